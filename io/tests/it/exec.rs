//! Two executors that are just large enough to test a driver without the runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rt_io::context;
use rt_io::driver::{Driver, Handle};

/// A thread that owns its driver: polls one future, and turns when there is nothing to poll.
pub(crate) struct Owner {
    pub(crate) driver: Driver,
    pub(crate) handle: Arc<Handle>,
}

impl Owner {
    pub(crate) fn new(name: &str) -> Self {
        let (driver, handle) = Driver::new(name.into()).expect("a selector");
        Self { driver, handle }
    }

    pub(crate) fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let counter = Counter::new(Some(Arc::clone(&self.handle)));
        loop {
            let seen = counter.wakes();
            if let Poll::Ready(output) = self.poll(future.as_mut(), &counter) {
                return output;
            }
            while counter.wakes() == seen {
                self.driver.turn(None).expect("a turn");
            }
        }
    }

    /// Polls once, as the owner of the driver.
    pub(crate) fn poll<F: Future + ?Sized>(
        &self,
        future: Pin<&mut F>,
        counter: &Arc<Counter>,
    ) -> Poll<F::Output> {
        let _context = context::enter(Some(Arc::clone(&self.handle)), true);
        future.poll(&mut Context::from_waker(&counter.waker()))
    }

    /// Turns until nothing has happened for a while.
    pub(crate) fn settle(&mut self) {
        while self
            .driver
            .turn(Some(Duration::from_millis(30)))
            .expect("a turn")
            .events
            > 0
        {}
    }
}

/// A waker that counts.
pub(crate) struct Counter {
    wakes: AtomicUsize,
    unpark: Option<Arc<Handle>>,
}

impl Counter {
    pub(crate) fn new(unpark: Option<Arc<Handle>>) -> Arc<Self> {
        Arc::new(Self {
            wakes: AtomicUsize::new(0),
            unpark,
        })
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.load(Ordering::SeqCst)
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        if let Some(handle) = &self.unpark {
            handle.unpark();
        }
    }
}

/// A driver that a thread of its own turns, for tests whose futures run elsewhere.
pub(crate) struct Background {
    pub(crate) handle: Arc<Handle>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn new(name: &str) -> Self {
        let (mut driver, handle) = Driver::new(name.into()).expect("a selector");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                driver.turn(None).expect("a turn");
            }
        });
        Self {
            handle,
            stop,
            thread: Some(thread),
        }
    }

    /// Runs a future on this thread; its sources register with the driver of the other one.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _context = context::enter(Some(Arc::clone(&self.handle)), false);
        futures_lite::future::block_on(future)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.handle.unpark();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the driver's thread");
        }
    }
}
