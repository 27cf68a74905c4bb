//! What a thread does while it waits for a few instructions of another thread.
//!
//! The word of [`Notify`](crate::notify::Notify) is locked for some tens of instructions, without user code and without
//! a system call in between. So the wait is over after some turns of a spin, unless the holder lost its processor: then
//! giving ours away is what helps, and at last a sleep, for the case that the scheduler prefers us to the holder.

use crate::primitive::{hint, thread};

/// Rounds of spinning, of doubling length: 64 pauses together, about the time of two contended locks.
#[cfg(not(rt_loom))]
const SPINS: u32 = 6;
/// Rounds that give the processor away before the waiter sleeps.
#[cfg(not(rt_loom))]
const YIELDS: u32 = 32;
/// Shorter than any time slice that the holder could get meanwhile.
#[cfg(not(rt_loom))]
const SLEEP: std::time::Duration = std::time::Duration::from_micros(50);

/// How long this thread has waited already.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    #[cfg(not(rt_loom))]
    round: u32,
}

impl Backoff {
    #[inline]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Waits a little longer than the last time.
    #[cfg(not(rt_loom))]
    #[cold]
    pub(crate) fn wait(&mut self) {
        if self.round < SPINS {
            for _ in 0..1 << self.round {
                hint::spin_loop();
            }
        } else if self.round < SPINS + YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(SLEEP);
            return;
        }
        self.round += 1;
    }

    /// Lets the others go on.
    #[cfg(rt_loom)]
    pub(crate) fn wait(&mut self) {
        hint::spin_loop();
        thread::yield_now();
    }
}
