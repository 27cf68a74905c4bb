//! What the monitor remembers of a seat, and how it tells a stuck thread from one that waits for its core.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rt_io::thread::{Activity, ThreadId};

use crate::scheduler::Seat;

/// How much of a core a thread must have had in one turn to count as stuck.
const COMPUTES: Duration = Duration::from_millis(2);

/// How long a turn must take to count as stuck, where nothing else is known: several slices of the kernel's scheduler.
const UNKNOWN: Duration = Duration::from_millis(10);

/// Between two questions about one thread.
const ASK_AGAIN: Duration = Duration::from_millis(4);

/// A seat as it was when the monitor last saw a change.
pub(in crate::scheduler) struct Watched {
    /// Its turn, and since when it has been awake or asleep.
    pub(super) state: (u64, u64),
    pub(super) since: Instant,
    /// Somebody sat on it and did not sleep.
    pub(super) awake: bool,
    /// It had not been at its selector for a while, so it was looked at again soon.
    pub(super) late: bool,
    /// Its thread was found to be stuck.
    pub(super) stuck: bool,
    /// What its thread had computed when the system was first asked.
    pub(super) ran: Option<Duration>,
    /// When to ask again.
    pub(super) ask_at: Instant,
}

/// What a thread does that does not turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scheduler) enum Found {
    /// It blocks, or computes.
    Stuck,
    /// It waits for a core.
    Waits,
    /// That will be known when it is asked for the next time.
    Unknown,
}

impl Watched {
    /// Asks the system what the thread of the seat does. That takes some 20 µs.
    pub(in crate::scheduler) fn ask(&mut self, seat: &Seat, now: Instant) -> Found {
        let found = match ThreadId::from_raw(seat.sitter.load(Relaxed)).activity() {
            Some(Activity::Blocked) => Found::Stuck,
            Some(Activity::Runnable(ran)) => match self.ran {
                None => {
                    self.ran = Some(ran);
                    Found::Unknown
                }
                Some(before) if ran.saturating_sub(before) >= COMPUTES => Found::Stuck,
                Some(_) => Found::Waits,
            },
            None if now.saturating_duration_since(self.since) >= UNKNOWN => Found::Stuck,
            None => Found::Unknown,
        };
        self.stuck |= found == Found::Stuck;
        self.ask_at = now + ASK_AGAIN;
        found
    }
}
