//! The moment type of the runtime: that of `std`, read from a clock that tests may stop.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use super::clock;

/// A moment on the clock of the current runtime.
///
/// It is a [`std::time::Instant`] with the same arithmetic; only [`now`](Self::now) differs where a test has
/// [paused](super::pause) the clock. Outside a runtime, and where no clock was ever paused, it is the clock of the
/// system. Time that the machine sleeps does not count on Linux and macOS, and does count on Windows; on Linux
/// `rt::time::boottime` has a clock on which it counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    std: std::time::Instant,
}

const YEAR: u64 = 365 * 24 * 60 * 60;

impl Instant {
    /// The current moment.
    ///
    /// # Examples
    /// ```
    /// use rt::time::Instant;
    ///
    /// let before = Instant::now();
    /// assert!(Instant::now() >= before);
    /// ```
    #[inline]
    #[must_use]
    pub fn now() -> Instant {
        clock::now()
    }

    /// Takes a moment of the standard library as it is.
    #[inline]
    #[must_use]
    pub const fn from_std(std: std::time::Instant) -> Instant {
        Instant { std }
    }

    /// The moment as the standard library has it.
    #[inline]
    #[must_use]
    pub const fn into_std(self) -> std::time::Instant {
        self.std
    }

    /// A moment so far away that no wheel has room for it: a timer with this deadline never fires.
    ///
    /// How far the clock reaches depends on the platform; where it does not reach beyond the wheel (584 years) a timer
    /// with this deadline is an ordinary one that fires in some decades.
    pub(crate) fn far_future() -> Instant {
        let now = Instant::now();
        [1000, 100, 30]
            .into_iter()
            .find_map(|years| now.checked_add(Duration::from_secs(years * YEAR)))
            .unwrap_or(now)
    }

    /// `self + duration`, or [`far_future`](Self::far_future) where that does not exist.
    #[inline]
    pub(crate) fn saturating_add(self, duration: Duration) -> Instant {
        self.checked_add(duration).unwrap_or_else(Self::far_future)
    }

    /// The time from `earlier` to this moment, zero if `earlier` is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }

    /// The time from `earlier` to this moment, `None` if `earlier` is later.
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.std.checked_duration_since(earlier.std)
    }

    /// The time from `earlier` to this moment, zero if `earlier` is later.
    #[must_use]
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }

    /// The time that has passed since this moment, zero if it lies in the future.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(*self)
    }

    /// The moment `duration` later, if the clock reaches that far.
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        self.std.checked_add(duration).map(Instant::from_std)
    }

    /// The moment `duration` earlier, if the clock reaches that far.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        self.std.checked_sub(duration).map(Instant::from_std)
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Instant {
        Instant::from_std(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> std::time::Instant {
        instant.into_std()
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant::from_std(self.std + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.std.saturating_duration_since(earlier.std)
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant::from_std(self.std - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.std.fmt(f)
    }
}
