//! The end of a timed select, to the microsecond: `epoll_wait` itself counts in milliseconds.
//!
//! A timerfd in the same selector, made when it is first needed. It is armed only if it would fire too late for the
//! deadline. One that fires too early (its deadline was cancelled or moved away) costs one extra return of the select
//! for each arming, which is never more than re-arming at every move.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Deadlines further away are waited for in pieces: the kernel's range is not ours to test.
const MAX: Duration = Duration::from_secs(24 * 60 * 60);

const ZERO: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

pub(crate) struct Timer {
    token: Token,
    fd: Option<OwnedFd>,
    /// When the timer fires, if it is armed and its event has not been seen.
    armed: Option<Instant>,
}

impl Timer {
    pub(crate) const fn new(token: Token) -> Self {
        Self {
            token,
            fd: None,
            armed: None,
        }
    }

    /// Sees to it that a select ends at `deadline`, and returns the timeout to give to it.
    pub(crate) fn prepare(&mut self, registry: &Registry, deadline: Instant) -> Option<Duration> {
        if self.armed.is_some_and(|armed| armed <= deadline) {
            return None;
        }
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now).min(MAX);
        if left.is_zero() {
            return Some(Duration::ZERO);
        }
        match self.arm(registry, left) {
            Ok(()) => {
                self.armed = Some(now + left);
                None
            }
            // No descriptor left, say: late by a millisecond is better than not at all.
            Err(_) => Some(left),
        }
    }

    /// The event of the timer was seen.
    pub(crate) fn fired(&mut self) {
        self.armed = None;
    }

    fn arm(&mut self, registry: &Registry, left: Duration) -> std::io::Result<()> {
        let fd = match &mut self.fd {
            Some(fd) => fd,
            none => {
                let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
                let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
                // Edge-triggered: arming starts it anew, so nobody needs to read it.
                registry.register(
                    &mut SourceFd(&fd.as_raw_fd()),
                    self.token,
                    Interest::READABLE,
                )?;
                none.insert(fd)
            }
        };
        let value = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let spec = Itimerspec {
            it_interval: ZERO,
            it_value: value,
        };
        timerfd_settime(&*fd, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("armed", &self.armed)
            .finish_non_exhaustive()
    }
}
