//! One sleeper for the timers of many: a crowd that lies in several wheels does not wake a worker for each.
//!
//! Timers lie with the seat on which their tasks were polled, and a mass of tasks is spread over the seats by stealing. A
//! crowd wakes its seat at the end of each tick (`time/wheel.rs`), and ticks end everywhere at once: with a crowd in every wheel
//! all workers woke up together, 3,800 times a second, each for a part of what one would have done while the others woke up.
//!
//! So a worker that is about to sleep looks for another that sleeps already and wakes up in time. If there is one, it is
//! **relieved**: it sleeps on for [`FALLBACK`] after its next deadline, and those who are awake fire its timers with
//! their own, in full turns, before they sleep and after. Who sleeps wakes up for the timers of the relieved too. What fires
//! goes to the queue of the seat that fired it, and if that is too much for one, it wakes another as ever.
//!
//! # What it guarantees
//! Nothing depends on another's promise: whoever is relieved wakes up for its timers all the same, [`FALLBACK`] late at worst.
//! That is for whoever relied on a worker which is stuck since, or has lost its core. A few timers are no crowd, and
//! are fired by their own seat at their very deadlines.
//!
//! # The race
//! A timer is put into the wheel of a relieved seat, while another goes to sleep for it. It announces how long the relieved
//! one needs to sleep, in its name and in the critical section in which it looks for the earliest deadline
//! ([`Timers::before_park`](crate::time::Timers::before_park)): so an earlier timer unparks the relieved seat, which then sees to
//! it itself. Whether a seat is relieved is a hint.
//!
//! # Numbers
//! 100,000 sleeps that end within a second, two workers, memory in huge pages, since the cost of touching memory hides the rest
//! elsewhere: 2.1 to 3.3 µs of CPU for each before, in four runs of six above 2.7; 2.0 to 2.5 with it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::seat::Seat;
use super::worker::Loop;
use crate::context::Phase;
use crate::trace;

/// How long after its next deadline a relieved seat wakes up for its timers itself. Eight ticks: of eight wake-ups seven are
/// saved, and nobody notices the rest.
const FALLBACK: Duration = Duration::from_millis(2);

impl Seat {
    /// Fires what is due in the wheel of this seat, if it is relieved. Whether anything was.
    pub(super) fn relieve(&self, now: Instant) -> bool {
        let fired = self.timers.is_relieved() && self.timers.expire_some(now) > 0;
        if fired {
            self.shared.helps.add(1);
            trace::helped(self.index);
        }
        fired
    }

    /// Whether this is the seat of a worker that sleeps, and wakes up for its own timers when `other` has to, or before.
    fn relieves(&self, other: &Seat) -> bool {
        self.idle_index.is_some()
            && self.wakeup.park.is_parked()
            && self.timers.wakes_up_for(&other.timers)
    }
}

impl Loop<'_> {
    /// The seat is about to sleep: until when, on account of timers. It is relieved, or sees to the relieved.
    pub(super) fn until_timers(&self, now: Instant) -> Option<Instant> {
        let (shared, timers) = (&self.seat.shared, &self.seat.timers);
        let own = timers.before_park();
        if !self.takes_any() || shared.is_current_thread() || shared.clock.is_paused() {
            return own;
        }
        if let Some(own) = own
            && timers.is_crowded()
            && own.saturating_duration_since(now) < FALLBACK
            && self.others().any(|other| other.relieves(self.seat))
        {
            timers.set_relieved(true);
            shared.relieved.fetch_add(1, Relaxed);
            return Some(own + FALLBACK);
        }
        if shared.relieved.load(Relaxed) == 0 {
            return own;
        }
        self.relieved()
            .filter_map(|other| other.timers.before_park())
            .chain(own)
            .min()
    }

    /// Fires what is due of those who are relieved.
    #[inline]
    pub(super) fn relieve_others(&self, now: impl FnOnce() -> Instant) {
        if self.seat.shared.relieved.load(Relaxed) > 0 && self.takes_any() {
            self.relieve_at(now());
        }
    }

    #[inline(never)]
    fn relieve_at(&self, now: Instant) {
        if self.claimed.get() == Some(true) && self.relieved().any(|other| other.timers.is_due(now))
        {
            self.pass_search_on();
        }
        self.cx.phase.set(Phase::Dispatching);
        // Each of them, whatever the others had.
        let fired = self.relieved().filter(|other| other.relieve(now)).count();
        self.cx.phase.set(Phase::Polling);
        if fired > 0 {
            self.share();
        }
    }

    /// The thread is awake again, and sees to its timers itself.
    pub(super) fn end_relief(&self) {
        if self.seat.timers.set_relieved(false) {
            self.seat.shared.relieved.fetch_sub(1, Relaxed);
        }
    }

    /// The other seats, as far as this thread knows them.
    pub(super) fn others(&self) -> impl Iterator<Item = &Arc<Seat>> {
        self.seats
            .iter()
            .filter(|seat| seat.index != self.seat.index)
    }

    fn relieved(&self) -> impl Iterator<Item = &Arc<Seat>> {
        self.others().filter(|other| other.timers.is_relieved())
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
