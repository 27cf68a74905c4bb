//! What these tests share: a watchdog, runtimes, and waiting for an event.

use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Runtime};

#[path = "../watchdog/mod.rs"]
mod watchdog;

pub(crate) use self::watchdog::within_limit;

pub(crate) const MS: Duration = Duration::from_millis(1);
/// Far longer than any machine takes for what is waited for, shorter than the watchdog.
pub(crate) const LONG: Duration = Duration::from_secs(40);

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
