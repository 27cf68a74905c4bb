//! What the tests share: a watchdog.

use std::panic::Location;
use std::process;
use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

/// Runs a test body on a thread of its own and ends the process if it takes more than 60 seconds.
#[track_caller]
pub(crate) fn within_limit<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let site = Location::caller();
    let (done, ended) = mpsc::channel();
    let runner = thread::Builder::new()
        .name(thread::current().name().unwrap_or("test").to_owned())
        .spawn(move || {
            let result = body();
            let _ = done.send(());
            result
        })
        .expect("a thread for the test body");
    if ended.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        eprintln!("the test at {site} did not end within 60 seconds");
        process::abort();
    }
    runner
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A waker, and what tells how many of its like there are.
pub(crate) fn counted_waker() -> (Arc<impl Wake + Send + Sync>, Waker) {
    struct Counted;
    impl Wake for Counted {
        fn wake(self: Arc<Self>) {}
    }
    let count = Arc::new(Counted);
    let waker = Waker::from(count.clone());
    (count, waker)
}
