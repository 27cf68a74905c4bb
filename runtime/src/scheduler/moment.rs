//! A point in time in the two forms in which the loop needs it.
//!
//! The difference of two `Instant`s is some 20 instructions, and a turn asked for three to five of them. The loop reads the
//! clock, works the stamp out, and from then on subtracts numbers.

use std::time::{Duration, Instant};

use super::Shared;

/// As the system says it, and as a seat keeps it: in ns since the start of the runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) at: Instant,
    pub(super) stamp: u64,
}

impl Moment {
    /// Reads the clock.
    #[inline]
    pub(super) fn now(shared: &Shared) -> Self {
        let at = Instant::now();
        Self {
            at,
            stamp: shared.stamp(at),
        }
    }

    /// How long after an earlier one this is, in ns.
    #[inline]
    pub(super) fn since(self, earlier: Self) -> u64 {
        self.stamp.saturating_sub(earlier.stamp)
    }

    /// Whether it lies less than that after the earlier one.
    #[inline]
    pub(super) fn is_within(self, span: Duration, earlier: Self) -> bool {
        u128::from(self.since(earlier)) < span.as_nanos()
    }

    /// The later one.
    #[inline]
    pub(super) fn or_later(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.stamp > self.stamp => other,
            _ => self,
        }
    }
}
