//! What the tests of known pains share: runtimes, a mailbox between tasks, and waiting for an event.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Runtime};

pub(crate) const MS: Duration = Duration::from_millis(1);
/// Far longer than any machine takes for what is waited for, shorter than the watchdog.
pub(crate) const LONG: Duration = Duration::from_secs(40);

pub(crate) fn workers(number: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(number)
        .build()
        .expect("a runtime")
}

pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// A waker as one of another executor may be: it blocks the thread that wakes it. `entered` hears of that, `release` ends it.
pub(crate) fn blocking_waker(entered: mpsc::Sender<()>, release: mpsc::Receiver<()>) -> Waker {
    struct Blocks {
        entered: mpsc::Sender<()>,
        release: Mutex<mpsc::Receiver<()>>,
    }
    impl Wake for Blocks {
        fn wake(self: Arc<Self>) {
            self.entered.send(()).unwrap();
            let _ = self.release.lock().unwrap().recv_timeout(LONG);
        }
    }
    Waker::from(Arc::new(Blocks {
        entered,
        release: Mutex::new(release),
    }))
}

/// Both flavours, with one worker and with two.
pub(crate) fn each_kind() -> [Runtime; 3] {
    [current_thread(), workers(1), workers(2)]
}

/// Waits until `condition` holds, at most [`LONG`]; looks each millisecond.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "never came true: {what}");
        thread::sleep(MS);
    }
}

/// Whether so many workers sleep.
pub(crate) fn asleep(runtime: &Runtime, number: usize) -> bool {
    let workers = runtime.metrics().workers;
    workers[..number]
        .iter()
        .all(|worker| worker.parked.is_some())
}

/// Messages for one waiting task; anybody sends.
pub(crate) struct Mailbox<T>(Arc<Mutex<(VecDeque<T>, Option<Waker>)>>);

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new((VecDeque::new(), None))))
    }

    pub(crate) fn send(&self, message: T) {
        let waker = {
            let mut inner = self.0.lock().unwrap();
            inner.0.push_back(message);
            inner.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) async fn recv(&self) -> T {
        poll_fn(|cx| {
            let mut inner = self.0.lock().unwrap();
            if let Some(message) = inner.0.pop_front() {
                return Poll::Ready(message);
            }
            let before = inner.1.replace(cx.waker().clone());
            drop(inner);
            drop(before);
            Poll::Pending
        })
        .await
    }
}

/// Calls `f` when dropped.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
