//! Turning the selector and the timers of a seat whose sitter does not: it is in a long poll, or its thread has lost its
//! core to somebody else.
//!
//! Per-worker selectors turn one shared stall into one stall a worker, unless others help. Two do: a worker that has
//! nothing to do, before it sleeps, and the monitor. What they wake goes to their own queue, or to the injector. Who sleeps needs
//! no help, unless it relies on it (`relief.rs`).
//!
//! A worker that falls asleep while another computes (`computing.rs`), or is stuck, sleeps in the selectors of both
//! ([`Seat::attend`]): an event of the other wakes it, and it turns the other's selector before it looks for anything else.
//! So sockets that are registered with a worker which computes are served as soon as a sleeper is awake, some 30 µs. One
//! sleeper does so for each such seat, and none for seats whose sitters sleep, or are at their selectors often enough.
//!
//! # The race
//! The sitter comes back while a helper turns its driver: the driver is behind a lock (`driver_lock.rs`), which the sitter
//! keeps while it sleeps in it. For a look both only try the lock, and neither waits in the selector.
//! Those of a sleeper that attends are in `attendance.rs`.
//! Timers have a lock of their own; a timer fires for whoever comes first.
//!
//! # Where it comes from
//! pains A1 and A2. On two cores with a busy load generator beside two workers the kernel takes a core away for some
//! milliseconds now and then; without help the sockets of that worker wait all that time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rt_io::driver::{Handle, Woken};

use super::{Seat, Shared};
use crate::trace;

/// How long a seat must not have looked at its selector before somebody else does. A turn is about 100 µs; five times
/// that says that something is wrong, and still nobody notices.
const AFTER: Duration = Duration::from_micros(500);

/// A unit of coarse time is 2^24 ns, 17 ms; 32 bits of them are two years.
const COARSE: u32 = 24;

/// A stamp as the coarse time that tasks keep with their waits.
#[inline]
pub(super) fn coarse(stamp: u64) -> u32 {
    (stamp >> COARSE) as u32
}

impl Shared {
    /// A point in time as [`Seat::selected_at`] keeps it.
    pub(crate) fn stamp(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started).as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long ago a task began to wait, by the coarse time of its slot: see [`coarse`].
    pub(crate) fn waited(&self, since: u32, now: Instant) -> Duration {
        let units = coarse(self.stamp(now)).wrapping_sub(since);
        // A thread may have read the clock after we did.
        let units = if units > u32::MAX / 2 { 0 } else { units };
        Duration::from_nanos(u64::from(units) << COARSE)
    }
}

impl Seat {
    /// Nanoseconds since anybody looked at its selector.
    pub(crate) fn selector_age(&self, now: Instant) -> u64 {
        let looked = self.selected_at.load(Relaxed);
        let helped = self.helped_at.load(Relaxed);
        self.shared.stamp(now).saturating_sub(looked.max(helped))
    }

    /// Whether the sitter has not been at its selector for a while. What others did there does not count: they look once, and
    /// the next event comes all the same.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        let looked = self.selected_at.load(Relaxed);
        let away = self.shared.stamp(now).saturating_sub(looked);
        u128::from(away) >= AFTER.as_nanos()
    }

    /// Whether its sitter is awake, but at its selector too seldom.
    pub(super) fn is_neglected(&self, now: Instant) -> bool {
        !self.wakeup.park.is_parked()
            && self.registrations() > 0
            && (self.computes(now) || self.is_late(now))
    }

    /// For a sleeper on the seat in that place, with that selector: it also wakes up when the selector of this seat has
    /// events. `None` if another does already, or this seat has no need.
    pub(super) fn attend(
        self: &Arc<Self>,
        sleeper: usize,
        selector: &Arc<Handle>,
        now: Instant,
    ) -> Option<Attended> {
        if self.attendance.is_attended() || !self.is_neglected(now) {
            return None;
        }
        let own = self.wakeup.selector.get()?;
        let register = || selector.attend(own).is_ok();
        let began = self
            .attendance
            .begin(sleeper, &self.wakeup.park, &self.driver, register);
        began.then(|| Attended {
            seat: Arc::clone(self),
            sleeper,
            selector: Arc::clone(selector),
        })
    }

    /// For the sitter, with the lock of its driver in hand, before it sleeps in its selector: what comes from now on is its
    /// own business.
    #[inline]
    pub(super) fn end_attendance(&self) {
        self.attendance.end_by_sitter(|sleeper| {
            if let Some(sleeper) = self.shared.seats.get(sleeper)
                && let Some(selector) = sleeper.wakeup.selector.get()
                && let Some(own) = self.wakeup.selector.get()
            {
                selector.ignore(own);
            }
        });
    }

    /// Turns selector and timers in the sitter's stead, if it has not for a while; what becomes ready is woken on this
    /// thread. Whether anything was.
    pub(super) fn help(&self, now: Instant) -> bool {
        if self.wakeup.park.is_parked() {
            return self.relieve(now);
        }
        if !self.computes(now) && !self.is_late(now) {
            return false;
        }
        let mut woken = false;
        let mut found = Woken::new();
        if self.registrations() > 0
            && let Some(turned) = self.driver.turn(|driver| driver.select_now(&mut found))
        {
            // The selector is unlocked: the sitter may want it, and a foreign waker may block.
            found.wake_contained();
            woken |= turned.is_ok_and(|turn| turn.events > 0);
            self.helped_at.store(self.shared.stamp(now), Relaxed);
        }
        if !self.timers.is_empty() {
            woken |= self.timers.expire_some(now) > 0;
        }
        if woken {
            self.shared.helps.add(1);
            trace::helped(self.index);
        }
        woken
    }
}

/// A seat whose events wake somebody else as well, until this is dropped or its sitter sleeps.
pub(super) struct Attended {
    seat: Arc<Seat>,
    sleeper: usize,
    selector: Arc<Handle>,
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.seat.attendance.end(self.sleeper, || {
            if let Some(own) = self.seat.wakeup.selector.get() {
                self.selector.ignore(own);
            }
        });
    }
}
