//! How often a task was polled, and whether the poll for which it is scheduled has begun.
//!
//! # What it guarantees
//! The number is odd from the start of a poll on, and even again from the moment at which the task is scheduled anew. So
//! a task that is `SCHEDULED` (`state.rs`) with an even number lies in a queue, and with an odd one is being polled.
//!
//! # Who may touch what
//! Only the holder of the `Runnable` writes: who starts the poll, and who schedules the task again. Anybody reads.
//!
//! # The race
//! Starting a poll is the most frequent step of all, so it only stores here and then reads the state word; no exchange.
//! Whoever wants to end a task that lies in a queue (shutdown) sets `CANCELLED` and then reads here, with the dear one of
//! the pair of fences between (`rt_io::fence`): either it sees that the poll has begun, and leaves the task to the poll,
//! whose end looks at `CANCELLED`; or the poll sees `CANCELLED` at its start, and both go for `CLAIMED`.

use std::fmt;

use rt_sync::primitive::atomic::AtomicU32;
use rt_sync::primitive::atomic::Ordering::Relaxed;

/// See the module head.
pub(crate) struct Steps(AtomicU32);

impl Steps {
    /// Of a task that is scheduled and was never polled.
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A poll begins.
    #[inline]
    pub(super) fn begin(&self) {
        // Relaxed, here and below: ordered by fences, or by the state word.
        self.0.store(self.0.load(Relaxed) | 1, Relaxed);
    }

    /// The task is scheduled again, and no poll has begun since.
    #[inline]
    pub(super) fn renew(&self) {
        let steps = self.0.load(Relaxed);
        self.0.store(steps.wrapping_add(steps & 1), Relaxed);
    }

    /// Whether the poll for which the task is scheduled, or was scheduled last, has begun.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Relaxed) & 1 != 0
    }

    /// How many polls have begun. Wraps.
    pub(crate) fn polls(&self) -> u32 {
        self.0.load(Relaxed).div_ceil(2)
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Steps").field(&self.polls()).finish()
    }
}
