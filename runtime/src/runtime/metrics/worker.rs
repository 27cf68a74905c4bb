//! The counters of one seat.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::scheduler::Seat;
use crate::scheduler::metrics::{Counters, SpendsAs};

/// The counters of one seat.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Turns of the loop, the present one among them.
    pub turns: u64,
    /// Tasks polled.
    pub polls: u64,
    /// Polls that came from the next slot, where what a search brought is put as well.
    pub next_slot_hits: u64,
    /// Searches that found work at others or in the injector.
    pub steals: u64,
    /// Sleeps.
    pub parks: u64,
    /// Times that somebody woke it out of a sleep.
    pub unparks: u64,
    /// Looks at the selector.
    pub selects: u64,
    /// Events of sockets.
    pub events: u64,
    /// Timers that it fired itself; others do while it is held up.
    pub timers: u64,
    /// Timers that are set.
    pub pending_timers: usize,
    /// Tasks in its queue.
    pub queue_depth: usize,
    /// Tasks that were spawned on it and are not over.
    pub live_tasks: usize,
    /// Sockets and other sources registered with its selector.
    pub registrations: usize,
    /// The mean length of a poll, as of late: a guess.
    pub mean_poll: Duration,
    /// About how long the oldest task in its queue has waited: a guess from the length of the queue and of the polls, but
    /// no less than the time for which the worker has been stuck.
    pub oldest_ready_age: Duration,
    /// For how long nobody has looked at its selector, while it does not sleep there.
    pub selector_age: Duration,
    /// For how long it has been asleep, if it is.
    pub parked: Option<Duration>,
    /// Whether a thread sits on it. Guest seats are free between two calls of `block_on`.
    pub occupied: bool,
    /// Where its time went.
    pub time: TimeShares,
}

/// Where the time of a worker went, from its start to the moment of the snapshot. The parts add up to the whole.
///
/// The time asleep is measured, and so is that awake. What a worker does while awake is timed in one turn of 128, and
/// estimated from that; what is not accounted for otherwise went into tasks. So a task that blocks shows in `tasks`, also
/// while it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeShares {
    /// Looking at the selector without waiting there.
    pub select: Duration,
    /// Waking the tasks whose sockets are ready and whose timers are due.
    pub dispatch: Duration,
    /// Polling tasks, and the root future of `block_on`.
    pub tasks: Duration,
    /// Looking for tasks elsewhere, and after the sockets of others.
    pub stealing: Duration,
    /// Asleep.
    pub parked: Duration,
}

impl TimeShares {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.select + self.dispatch + self.tasks + self.stealing + self.parked
    }

    /// The part of `time` in the whole, in percent; zero if there is no time yet.
    #[must_use]
    pub fn percent(&self, time: Duration) -> f64 {
        let total = self.total();
        if total.is_zero() {
            return 0.0;
        }
        100.0 * time.as_secs_f64() / total.as_secs_f64()
    }

    /// What was added since `earlier`, a part that was estimated higher then counting as nothing.
    #[must_use]
    pub fn since(&self, earlier: &TimeShares) -> TimeShares {
        TimeShares {
            select: self.select.saturating_sub(earlier.select),
            dispatch: self.dispatch.saturating_sub(earlier.dispatch),
            tasks: self.tasks.saturating_sub(earlier.tasks),
            stealing: self.stealing.saturating_sub(earlier.stealing),
            parked: self.parked.saturating_sub(earlier.parked),
        }
    }

    /// From sums and samples; `turns` were made.
    fn estimate(awake: u64, rested: u64, turns: u64, counters: &Counters) -> Self {
        let sampled = &counters.sampled;
        let rests = counters.rests.get();
        // A rest that ended in a sleep is `rested`, search and all; one that found something is `awake`.
        let slept = counters.parks.get().min(rests);
        let each = |sum: u64, of: u64, times: u64| {
            let all = u128::from(sum) * u128::from(times) / u128::from(of.max(1));
            u64::try_from(all).unwrap_or(u64::MAX)
        };
        let (samples, searches) = (sampled.turns.get(), sampled.searches.get());
        let search = sampled.search.get();
        let asleep_late = each(search, searches, slept).min(rested);
        let mut left = awake;
        let mut take = |ns: u64| {
            let ns = ns.min(left);
            left -= ns;
            ns
        };
        let searched = take(each(search, searches, rests - slept));
        let select = take(each(sampled.select.get(), samples, turns));
        let dispatch = take(each(sampled.dispatch.get(), samples, turns));
        Self {
            select: Duration::from_nanos(select),
            dispatch: Duration::from_nanos(dispatch),
            tasks: Duration::from_nanos(left),
            stealing: Duration::from_nanos(searched + asleep_late),
            parked: Duration::from_nanos(rested - asleep_late),
        }
    }
}

impl WorkerMetrics {
    pub(super) fn of(seat: &Seat, now: Instant) -> Self {
        let (counters, stamp) = (&seat.counters, seat.shared.stamp(now));
        let spent = counters.spent.until(stamp);
        let parked = match spent.state {
            SpendsAs::Rests(ns) => Some(Duration::from_nanos(ns)),
            SpendsAs::Awake | SpendsAs::Nobody => None,
        };
        let awake = spent.state == SpendsAs::Awake;
        let (queue_depth, mean_poll) = (seat.stealer.len(), seat.mean_poll.load(Relaxed));
        let waiting = queue_depth + usize::from(!seat.next.is_empty());
        let looked = if awake { seat.selector_age(now) } else { 0 };
        let oldest_ready_age = if awake && waiting > 0 {
            looked.max(mean_poll.saturating_mul(waiting as u64))
        } else {
            0
        };
        let registrations = seat.registrations();
        Self {
            turns: seat.turns(),
            polls: counters.polls.get(),
            next_slot_hits: counters.next_slot_hits.get(),
            steals: counters.steals.get(),
            parks: counters.parks.get(),
            unparks: seat.wakeup.unparks.get(),
            selects: counters.selects.get(),
            events: counters.events.get(),
            timers: counters.timers.get(),
            pending_timers: seat.timers.len(),
            queue_depth,
            live_tasks: seat.live_tasks() + seat.inbox.live.len(),
            registrations,
            mean_poll: Duration::from_nanos(mean_poll),
            oldest_ready_age: Duration::from_nanos(oldest_ready_age),
            selector_age: Duration::from_nanos(if registrations > 0 { looked } else { 0 }),
            parked,
            occupied: spent.state != SpendsAs::Nobody,
            time: TimeShares::estimate(spent.awake, spent.rested, seat.turns(), counters),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_whatever_the_samples_say() {
        let counters = Counters::default();
        let parts = |awake, rested, turns| TimeShares::estimate(awake, rested, turns, &counters);
        assert_eq!(parts(0, 0, 0), TimeShares::default());
        assert_eq!(parts(500, 100, 3).tasks, Duration::from_nanos(500));
        counters.sampled.turns.add(2);
        counters.sampled.select.add(20);
        counters.sampled.dispatch.add(40);
        counters.rests.add(4);
        counters.parks.add(1);
        counters.sampled.searches.add(1);
        counters.sampled.search.add(7);
        let shares = parts(1000, 100, 10);
        assert_eq!(shares.select, Duration::from_nanos(100));
        assert_eq!(shares.dispatch, Duration::from_nanos(200));
        assert_eq!(shares.stealing, Duration::from_nanos(3 * 7 + 7));
        assert_eq!(shares.parked, Duration::from_nanos(93));
        assert_eq!(shares.total(), Duration::from_nanos(1100));
        // More than there was time for.
        for awake in [0, 10, 150] {
            assert_eq!(parts(awake, 3, 10).total(), Duration::from_nanos(awake + 3));
        }
        let sum: f64 = [
            shares.select,
            shares.dispatch,
            shares.tasks,
            shares.stealing,
            shares.parked,
        ]
        .iter()
        .map(|part| shares.percent(*part))
        .sum();
        assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    }
}
