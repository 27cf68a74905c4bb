//! What these tests share: a watchdog, runtimes, and waiting for an event.

use std::panic::Location;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Runtime};

pub(crate) const MS: Duration = Duration::from_millis(1);
/// Far longer than any machine takes for what is waited for, shorter than the watchdog.
pub(crate) const LONG: Duration = Duration::from_secs(40);

/// Runs a test body on a thread of its own and ends the process if it takes more than 60 seconds.
#[track_caller]
pub(crate) fn within_limit(body: impl FnOnce() + Send + 'static) {
    let site = Location::caller();
    let (done, ended) = mpsc::channel();
    let runner = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if ended.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
        eprintln!("the test at {site} did not end within 60 seconds");
        process::abort();
    }
    if let Err(payload) = runner.join() {
        std::panic::resume_unwind(payload);
    }
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

pub(crate) fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .name("measured")
        .build()
        .expect("a runtime")
}

pub(crate) fn current() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}
