//! What the tests share: a watchdog and a source of repeatable random numbers.

use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Runs a test body on a thread of its own and ends the process if it takes more than 30 seconds.
#[track_caller]
pub(crate) fn within_limit<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let site = std::panic::Location::caller();
    let (done, ended) = mpsc::channel();
    let runner = thread::Builder::new()
        .name(thread::current().name().unwrap_or("test").to_owned())
        .spawn(move || {
            let result = body();
            let _ = done.send(());
            result
        })
        .expect("a thread for the test body");
    if ended.recv_timeout(Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout) {
        eprintln!("the test at {site} did not end within 30 seconds");
        process::abort();
    }
    runner
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Numbers that look random and are the same in every run (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number in `1..=limit`.
    pub(crate) fn up_to(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit + 1
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.up_to(256) as u8).collect()
    }
}
