//! The watchdog as a guard, for tests that `#[rt::test]` starts and that cannot be wrapped.

use std::panic::Location;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Ends the process unless it is dropped in time.
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
                eprintln!("the test at {site} hangs: no end after {LIMIT:?}");
                std::process::abort();
            }
        });
        Limit { _done: done }
    }
}
