//! What a worker does for the sockets of those that compute, itself among them.
//!
//! A seat **computes** while its polls are long ([`LONG_POLLS`]): it is at its selector after each of them, and so its sockets
//! wait for up to one poll, which is longer than it takes to wake somebody who has nothing to do. A sleeper attends to such
//! a seat (`help.rs`). The sitter sees to it that one does, and when nobody sleeps those that compute look at the selectors
//! of each other, between two polls, so that a socket waits for the first of them to end its poll.
//!
//! # What counts
//! Not the mean poll: the messages that a socket brings are polls as well, short ones, and ten in a row make a mean small. A
//! sleeper that had just helped with them would not attend any more, until somebody woke it for another reason. So a seat
//! computes until its polls have been short for [`MEMORY`].

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::moment::Moment;
use super::seat::Seat;
use super::worker::{Loop, Ran};
use crate::context::Phase;

/// The mean poll of a turn from which on it is a turn of long polls: longer than it takes to wake somebody.
const LONG_POLLS: Duration = Duration::from_micros(50);

/// For how long after such a turn a seat counts as computing: some of its polls, and the messages between them.
const MEMORY: Duration = Duration::from_millis(1);

/// How long a sitter must have been awake before it calls a sleeper. Most work is over before, and waking costs 12-17 µs.
const SURE: Duration = Duration::from_micros(500);

/// Between two calls of one sitter, at least and at most: twice as long after each that nobody followed. A call costs less than
/// 1 % of the time at least, then nothing that counts. One may be in vain because the sleeper attends to another seat.
const CALL_AGAIN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(64));

/// A selector that somebody has looked at since then is not looked at again by another: so it is no busier with many who
/// compute than with a few. A look takes 0.3 µs.
const FRESH: Duration = Duration::from_micros(20);

/// What a sitter remembers from one turn to the next.
#[derive(Default)]
pub(super) struct Computing {
    /// When its last turn was over, if that was timed.
    turned_at: Option<Moment>,
    /// When the last turn of long polls was over.
    computed_at: Option<Moment>,
    /// Turns are timed whatever it costs.
    suspects: Cell<bool>,
    /// When it may call again, and how long it waited last.
    call_at: Option<Instant>,
    pause: Duration,
    /// The seat after the one whose selector it looked at last.
    next: usize,
}

impl Computing {
    /// One poll in many was timed, and took so many ns.
    pub(super) fn polled(&self, took: u64) {
        if u128::from(took) >= LONG_POLLS.as_nanos() {
            self.suspects.set(true);
        }
    }

    /// A turn has ended for want of tasks.
    #[inline]
    pub(super) fn rests(&mut self, now: Moment) {
        self.turned_at = Some(now);
    }

    /// The polls of a turn were short.
    fn believe(&mut self, now: Moment) {
        let lately = |at| now.is_within(MEMORY, at);
        if !self.computed_at.is_some_and(lately) {
            self.suspects.set(false);
            self.turned_at = None;
        }
    }
}

impl Seat {
    /// Whether its sitter has long polls.
    pub(super) fn computes(&self, now: Instant) -> bool {
        let since = self
            .shared
            .stamp(now)
            .saturating_sub(self.computed_at.load(Relaxed));
        u128::from(since) < MEMORY.as_nanos()
    }
}

impl Loop<'_> {
    /// A turn is over, and a select comes next. It is timed if the clock is read anyway, or the polls are long.
    #[inline]
    pub(super) fn time_turn(&mut self, turn: &Ran) {
        let registered = self.seat.registrations() > 0;
        let now = match turn.full_at {
            Some(now) => now,
            None if registered || self.computing.suspects.get() => Moment::now(&self.seat.shared),
            None => return,
        };
        if registered && turn.full_at.is_none() {
            self.note_time(now);
        }
        let before = self.computing.turned_at.replace(now);
        let began = match (before, self.awake_at.get()) {
            (Some(before), awake) => Some(before.or_later(awake)),
            (None, awake) => awake,
        };
        let long = LONG_POLLS.as_nanos() as u64 * u64::from(turn.polls);
        let long = began.is_some_and(|began| now.since(began) >= long);
        if long {
            self.computed(now);
        } else if self.computing.suspects.get() {
            self.computing.believe(now);
        }
    }

    /// A turn of long polls is over.
    #[cold]
    #[inline(never)]
    fn computed(&mut self, now: Moment) {
        self.seat.computed_at.store(now.stamp, Relaxed);
        self.computing.suspects.set(true);
        self.computing.computed_at = Some(now);
        if self.takes_any() {
            self.look_at_another(now.at);
        }
        if self.seat.registrations() > 0 {
            self.call_for_attendance(now);
        }
    }

    /// Wakes a sleeper, which finds nothing else to do, if nobody attends to this seat.
    fn call_for_attendance(&mut self, now: Moment) {
        let (shared, calls) = (&self.seat.shared, &mut self.computing);
        if self.seat.attendance.is_attended() {
            calls.pause = Duration::ZERO;
            return;
        }
        let is_new = |at| now.is_within(SURE, at);
        if self.awake_at.get().is_some_and(is_new)
            || calls.call_at.is_some_and(|at| now.at < at)
            || !shared.idle.has_sleeper()
        {
            return;
        }
        calls.pause = (calls.pause * 2).clamp(CALL_AGAIN.0, CALL_AGAIN.1);
        calls.call_at = Some(now.at + calls.pause);
        shared.notify(self.seat);
    }

    /// The selector of one other seat that computes, and to which nobody attends. What that wakes comes before what waits for
    /// the next select of this seat.
    fn look_at_another(&mut self, now: Instant) {
        self.seat.shared.seats.refresh(&mut self.seats);
        let needs_it = |seat: &&Arc<Seat>| {
            seat.index != self.seat.index
                && !seat.attendance.is_attended()
                && seat.is_neglected(now)
                && u128::from(seat.selector_age(now)) >= FRESH.as_nanos()
        };
        let Some(other) = self.seats.iter_from(self.computing.next).find(needs_it) else {
            return;
        };
        self.computing.next = other.index + 1;
        self.cx.phase.set(Phase::Dispatching);
        other.help(now);
        self.cx.phase.set(Phase::Polling);
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
