//! Timing one turn in many step by step: see `metrics.rs`.

use std::cell::Cell;
use std::time::Instant;

use super::metrics::{EVERY, OwnCount};

/// The time of one thread in a turn that is timed.
#[derive(Default)]
pub(super) struct Laps {
    /// When the present step began; `None` in a turn that is not timed.
    last: Cell<Option<Instant>>,
    /// A turn is timed if its number has none of these bits: all at first, then ever fewer.
    mask: Cell<u64>,
}

impl Laps {
    /// For a seat that has made so many turns.
    pub(super) fn new(turns: u64) -> Self {
        let mask = turns.saturating_add(1).next_power_of_two() - 1;
        Self {
            last: Cell::new(None),
            mask: Cell::new(mask.min(EVERY - 1)),
        }
    }

    /// Whether this turn is to be timed.
    #[inline]
    pub(super) fn is_due(&self, turn: u64) -> bool {
        turn & self.mask.get() == 0
    }

    /// A timed turn begins.
    pub(super) fn begin(&self, now: Instant) {
        self.last.set(Some(now));
        self.mask.set((self.mask.get() * 2 + 1).min(EVERY - 1));
    }

    pub(super) fn end(&self) {
        self.last.set(None);
    }

    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.last.get().is_some()
    }

    /// A step is over: its time goes to `count`. How long it took, in ns.
    #[inline]
    pub(super) fn lap(&self, count: &OwnCount) -> u64 {
        match self.last.get() {
            None => 0,
            Some(last) => self.timed_lap(last, count),
        }
    }

    #[cold]
    fn timed_lap(&self, last: Instant, count: &OwnCount) -> u64 {
        let now = Instant::now();
        let took = u64::try_from(now.duration_since(last).as_nanos()).unwrap_or(u64::MAX);
        count.add(took);
        self.last.set(Some(now));
        took
    }

    /// A step is over that is timed otherwise.
    #[inline]
    pub(super) fn skip(&self, now: Instant) {
        if self.is_timed() {
            self.last.set(Some(now));
        }
    }
}
