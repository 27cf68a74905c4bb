//! A moment on the boot clock.

use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use super::line;

/// A moment on the boot clock, which does not stand still while the machine is suspended.
///
/// Moments of this clock and of [`rt::time::Instant`](crate::time::Instant) cannot be compared: how much one runs ahead of
/// the other changes with each suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// The current moment.
    ///
    /// # Examples
    /// ```
    /// use rt::time::boottime::Instant;
    ///
    /// let before = Instant::now();
    /// assert!(Instant::now() >= before);
    /// ```
    #[must_use]
    pub fn now() -> Self {
        Self(line::now())
    }

    /// The time since the machine was started.
    pub(super) fn since_boot(self) -> Duration {
        self.0
    }

    /// `self + duration`, or the end of the clock.
    pub(super) fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// The time from `earlier` to this moment, zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time that has passed since this moment, zero if it lies in the future.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// The moment `duration` later, if the clock reaches that far.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    /// The moment `duration` earlier, if the machine was up then.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        self.0.checked_sub(duration).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0 - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        self.0 -= duration;
    }
}
