//! The watchdog of the tests, for all test binaries of this crate: a test that hangs ends the process, and says which it was.

use std::io::{self, Write as _};
use std::panic::{self, Location};
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Ends the process unless it is dropped in time: for tests that `#[rt::test]` starts and that cannot be wrapped.
#[derive(Debug)]
pub(crate) struct Limit {
    _done: Sender<()>,
}

impl Limit {
    #[track_caller]
    pub(crate) fn new() -> Limit {
        let site = Location::caller();
        let (done, over) = mpsc::channel::<()>();
        thread::spawn(move || {
            if over.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                // Not by a macro, whose output the test harness would keep.
                let _ = writeln!(
                    io::stderr(),
                    "the test at {site} hangs: no end after {LIMIT:?}"
                );
                process::abort();
            }
        });
        Limit { _done: done }
    }
}

/// Runs a test body on a thread of its own, within the [`Limit`].
#[track_caller]
pub(crate) fn within_limit<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let _limit = Limit::new();
    let runner = thread::Builder::new()
        .name(thread::current().name().unwrap_or("test").to_owned())
        .spawn(body)
        .expect("a thread for the test body");
    runner
        .join()
        .unwrap_or_else(|payload| panic::resume_unwind(payload))
}
