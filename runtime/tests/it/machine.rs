//! What the machine does to any thread, whatever the runtime does: to be taken off what a test has measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A thread that sleeps a millisecond at a time, and notes how much longer it took.
pub(crate) struct Machine {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Machine {
    pub(crate) fn watch() -> Self {
        const NAP: Duration = Duration::from_millis(1);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut worst = Duration::ZERO;
            while !stopped.load(SeqCst) {
                let start = Instant::now();
                thread::sleep(NAP);
                worst = worst.max(start.elapsed() - NAP);
            }
            worst
        });
        Self { stop, thread }
    }

    /// The longest time for which it was kept from a core.
    pub(crate) fn worst(self) -> Duration {
        self.stop.store(true, SeqCst);
        self.thread.join().unwrap()
    }
}
