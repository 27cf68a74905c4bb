//! What the stress twins of the models share: a time limit, and waiting for a future on a thread.

use std::io::{self, Write as _};
use std::panic::{self, Location};
use std::pin::pin;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// How long a test may take: a lost wake-up hangs for ever, the tests themselves take seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a test on a thread of its own, and ends the process if it is not over after a minute.
#[track_caller]
pub fn limited(body: impl FnOnce() + Send + 'static) {
    let site = Location::caller();
    let (done, end) = mpsc::channel();
    let runner = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if end.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
        // Not by a macro, whose output the test harness would keep.
        let _ = writeln!(
            io::stderr(),
            "the test at {site} lost a wake-up: not over after {LIMIT:?}"
        );
        process::abort();
    }
    if let Err(payload) = runner.join() {
        panic::resume_unwind(payload);
    }
}

/// A waker that unparks a thread.
#[derive(Debug)]
pub struct Unpark(pub Thread);

impl Unpark {
    /// A new waker of this thread, equal to no other one.
    #[must_use]
    pub fn waker() -> Waker {
        Waker::from(Arc::new(Unpark(thread::current())))
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread to its end, always with the same waker.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Unpark::waker();
    run(future, || waker.clone())
}

/// The same with a waker of its own for every poll, so that each registration replaces the one before.
pub fn block_on_with_new_wakers<F: Future>(future: F) -> F::Output {
    run(future, Unpark::waker)
}

/// Gets in line and gives up at once: what was granted meanwhile must go on to somebody else.
pub fn give_up(future: impl Future) {
    let mut future = Box::pin(future);
    let _ = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    thread::yield_now();
}

fn run<F: Future>(future: F, waker: impl Fn() -> Waker) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker())) {
            return output;
        }
        thread::park();
    }
}
