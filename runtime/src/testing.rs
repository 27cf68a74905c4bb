//! What unit tests share.

use std::panic::Location;
use std::process;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(60);

/// Runs a test on a thread of its own, and ends the process if it hangs.
#[track_caller]
pub(crate) fn limited(body: impl FnOnce() + Send + 'static) {
    let site = Location::caller();
    let (done, end) = channel();
    let runner = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if end.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
        eprintln!("the test at {site} did not end within {LONG:?}");
        process::abort();
    }
    if let Err(panic) = runner.join() {
        std::panic::resume_unwind(panic);
    }
}
