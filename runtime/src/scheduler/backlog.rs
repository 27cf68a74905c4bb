//! How long polls are, and whether what waits in a queue is worth waking a sleeper.
//!
//! Waking a sleeper for tasks that are done before it runs is pure loss, and for tasks that take long it is the point of
//! having several workers. So each seat keeps the mean length of its polls: measured over full turns, and over the time
//! between two sleeps. It follows upwards at once and downwards slowly. What others could take is judged by a second mean
//! which follows upwards only when two measurements agree: the one long poll of a task that spawns thousands says nothing
//! about those. Tasks that give way and come back are worth more than one poll (`returning.rs`). If it misjudges (a seat of
//! tiny tasks gets a few long ones), the monitor wakes a helper within two of its ticks.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::moment::Moment;
use super::seat::Seat;
use super::worker::{Loop, TURN};

/// How long a backlog has to be, in ns, before a worker is woken for it. Waking costs 12-17 µs of the waker and 23-31 µs
/// until the other one runs, and then both work in small portions and sleep more often. Echo of 16 KiB, 50 connections, 2
/// workers, µs of CPU a message: 7.2 to 8.5 with 30 µs, 6.4 to 6.8 with 100 µs (`benches/`, rows "echo").
pub(super) const WAKE_COST: u64 = 100_000;

/// What a poll costs more on another core than on that of the task's spawner, in ns: what is shorter is not worth
/// sharing, however much of it there is. 10,000 tasks that do nothing, 2 workers, ns a task: 220 to 340 without it and
/// the second mean, 117 to 167 with them.
const MOVE_COST: u64 = 200;

/// The mean poll of a seat that has not measured any, in ns: long enough that any backlog wakes a helper.
pub(super) const FIRST_GUESS: u64 = WAKE_COST;

impl Seat {
    /// How much time others could save by taking what lies in the queue, in ns: a guess.
    #[inline]
    pub(crate) fn backlog(&self) -> u64 {
        let gain = self.lasting_poll.load(Relaxed).saturating_sub(MOVE_COST);
        match self.stealer.len() as u64 {
            0 => 0,
            waiting => waiting * gain + self.returning.gain(),
        }
    }
}

impl Loop<'_> {
    /// A full turn is over, or the seat is about to sleep: measures its polls, and sets the length of the next turn.
    pub(super) fn learn(&mut self, now: Moment) {
        self.note_time(now);
        let polls = std::mem::take(&mut self.unmeasured);
        let returned = std::mem::take(&mut self.returned);
        let Some(since) = self.busy_since.replace(now) else {
            return;
        };
        if polls == 0 {
            return;
        }
        let took = now.since(since);
        let each = took / u64::from(polls);
        self.seat.returning.note(took, polls, returned);
        let limit = self.seat.shared.config.event_interval;
        self.with_core(|core| {
            let mean = follow(&self.seat.mean_poll, each);
            follow(
                &self.seat.lasting_poll,
                each.min(core.measured.replace(each)),
            );
            let fits = TURN.as_nanos() as u64 / mean.max(1);
            core.most_polls
                .set(u32::try_from(fits).unwrap_or(limit).clamp(1, limit));
        });
    }

    /// Rules 5 and 6: wakes a sleeper if there is more than this seat polls next.
    pub(super) fn share(&self) {
        if self.seat.shared.idle.has_sleeper()
            && self.seat.backlog() >= WAKE_COST
            && !self.polls_all_next()
        {
            self.seat.shared.notify(self.seat);
        }
    }

    /// Whether what could be stolen is the one task that this seat polls next (rule 5). Where polls are long by the clock, as
    /// on a machine that is busy elsewhere, each event would wake a sleeper for it else.
    fn polls_all_next(&self) -> bool {
        self.seat.stealer.len() == 1
            && self.seat.next.is_empty()
            && self
                .with_core(|core| core.deferred.borrow().is_empty())
                .unwrap_or(false)
    }
}

/// Brings a mean up at once, and down by a quarter of the way. The new mean.
fn follow(mean: &AtomicU64, measured: u64) -> u64 {
    let before = mean.load(Relaxed);
    let after = if measured > before {
        measured
    } else {
        before - (before - measured) / 4
    };
    mean.store(after, Relaxed);
    after
}
