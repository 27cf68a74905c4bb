//! What a seat does when it has run out of own work: it looks for some elsewhere, helps others, and sleeps.
//!
//! The rest of the loop is in `worker.rs`; why no wake-up is lost, in `idle.rs` and `park.rs`.
//!
//! # Going to sleep
//! Own idle bit, fence, a look at every queue, and only then sleep. After any return from sleep the idle bit is cleared
//! first, so that nobody wakes a worker that is awake (it was the commonest needless wake); then come events, timers,
//! the own queue; and only then the reason for which it was woken.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::backlog::WAKE_COST;
use super::help::Attended;
use super::idle::Rest;
use super::moment::Moment;
use super::next_task::retry;
use super::seat::Seat;
use super::select::Select;
use super::spare::LOOK;
use super::worker::{Loop, Root};
use crate::context::{self, Phase};
use crate::runtime::config::call;
use crate::task::Runnable;
use crate::trace;

/// Likewise what a steal costs that nobody asked for: the thief's caches know nothing of the task and its socket.
const STEAL_COST: u64 = 50_000;

/// See [`Loop::before_a_look`]: as often as the monitor of the other flavour looks in times of trouble.
const ABANDONED: Duration = Duration::from_millis(2);

/// For how long a seat whose selector has failed sleeps without it. It may fail for good, and would be asked again at once:
/// a core that is used up for nothing, until somebody reads the report.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// What a search brought.
enum Find {
    /// From the inbox: for this thread alone.
    Own(Runnable),
    /// For whoever has time.
    Any(Runnable),
}

impl Loop<'_> {
    /// Nothing to do: looks for work elsewhere, and sleeps if there is none.
    pub(super) fn rest(&mut self, root: &impl Root) {
        let shared = self.seat.shared.clone();
        if let Some(hook) = &shared.config.on_thread_park {
            // A hook that makes work does not keep the selector from being looked at (pains A12).
            call(Some(hook));
            if self
                .with_core(|core| !core.is_empty() || !self.seat.next.is_empty())
                .unwrap_or(true)
                || root.is_ready()
            {
                return self.select_now();
            }
        }
        shared.seats.refresh(&mut self.seats);
        let now = Moment::now(&shared);
        self.learn(now);
        self.computing.rests(now);
        let (counters, began) = (&self.seat.counters, now.stamp);
        let mut now = now.at;
        counters.rests.add(1);
        if self.laps.is_timed() {
            counters.sampled.searches.add(1);
        }
        if self.help_others(now) {
            self.laps.lap(&counters.sampled.search);
            return self.share();
        }
        if self.seat.works.load(Relaxed)
            && let Some(work) = self.search()
        {
            self.laps.lap(&counters.sampled.search);
            return self.found(work, false);
        }
        // From `began` on it rests, if it comes to that.
        let mut rests_from = Some(began);
        let mut searching = false;
        loop {
            // Each time: a guest seat may have been added while this worker slept, and be what it was woken for.
            shared.seats.refresh(&mut self.seats);
            if let Some(index) = self.seat.idle_index {
                match shared
                    .idle
                    .rest(index, searching, || self.look(), || self.search())
                {
                    Rest::Found { work, last } => {
                        self.laps.lap(&counters.sampled.search);
                        if rests_from.is_none() {
                            // It slept: that is no part of the polls that come.
                            self.busy_since = self.awake_at.get();
                        }
                        return self.found(work, last);
                    }
                    Rest::Sleep => {}
                }
            }
            self.laps.lap(&counters.sampled.search);
            let from = rests_from
                .take()
                .unwrap_or_else(|| shared.stamp(Instant::now()));
            counters.spent.rest(from);
            self.sleep(root, now);
            if self.claimed.get().is_none() {
                self.awake();
            }
            if let Some(awake) = self.awake_at.get() {
                now = awake.at;
                trace::parked(from, awake.stamp);
            }
            // Events were dispatched by the sleep; timers are next. They are due by the time at which it woke up.
            if !self.seat.timers.is_empty() {
                if self.claimed.get() == Some(true) && self.seat.timers.is_due(now) {
                    self.pass_search_on();
                }
                self.expire_timers_at(now);
            }
            self.relieve_others(|| now);
            let claimed = self.claimed.take().unwrap_or(false);
            self.laps.lap(&counters.sampled.dispatch);
            self.with_core(|core| core.since_select.set(0));
            let own_work = self.with_core(|core| !core.is_empty()).unwrap_or(true)
                || root.is_ready()
                || (self.own && !self.seat.inbox.is_empty());
            match self.seat.idle_index {
                Some(index) if claimed && (own_work || self.interrupted().is_some()) => {
                    self.let_another_search(index);
                    break;
                }
                Some(_) if claimed => searching = true,
                _ => break,
            }
        }
        call(shared.config.on_thread_unpark.as_ref());
        self.share();
        // What was dispatched since counts as polls: some percent of them, and no clock is read for it.
        self.busy_since = self.awake_at.get();
    }

    /// Sleeps in the selector if any source is registered, else on the condition variable.
    fn sleep(&self, root: &impl Root, now: Instant) {
        let shared = &self.seat.shared;
        if root.is_ready() || self.interrupted().is_some() {
            return;
        }
        context::clean_up();
        if shared.clock.is_paused() && self.advance_virtual_time(self.seat.registrations() > 0) {
            return;
        }
        let attended = self.attend(now);
        // Published before the park word is set: an earlier timer inserted from now on unparks.
        let deadline = self.before_a_look(self.until_timers(now));
        self.seat.counters.parks.add(1);
        if attended.is_some() || self.seat.registrations() > 0 {
            if self.select(deadline, Select::Asleep(attended)).is_err() {
                let later = Instant::now() + AFTER_FAILURE;
                let deadline = deadline.map_or(later, |deadline| deadline.min(later));
                self.seat.wakeup.park.park(Some(deadline));
            }
        } else {
            self.seat.wakeup.park.park(deadline);
        }
    }

    /// See `help.rs`.
    fn attend(&self, now: Instant) -> Option<Attended> {
        if !self.takes_any() || self.seat.shared.is_current_thread() {
            return None;
        }
        let selector = self.seat.wakeup.selector.get()?;
        self.others()
            .find_map(|seat| seat.attend(self.seat.index, selector, now))
    }

    /// When to wake up at the latest, if timers alone would say `deadline`.
    ///
    /// On the current-thread flavour no stand-in serves the seat of a guest who has left sockets or timers behind. While
    /// others are in `block_on` one of them looks after it each [`ABANDONED`] (`help.rs`). A spare worker looks after the
    /// stuck.
    fn before_a_look(&self, deadline: Option<Instant>) -> Option<Instant> {
        let shared = &self.seat.shared;
        let after = if self.seat.works.load(Relaxed) {
            LOOK
        } else if shared.is_current_thread()
            && self.seats.len() > 1
            && shared.seats.any_free(Seat::has_sources)
        {
            ABANDONED
        } else {
            return deadline;
        };
        let soon = Instant::now() + after;
        Some(deadline.map_or(soon, |deadline| deadline.min(soon)))
    }

    /// Virtual time: with nothing else to do, jumps to the next timer. `true`: the loop has to look again.
    fn advance_virtual_time(&self, selecting: bool) -> bool {
        if selecting {
            let before = self.seat.counters.events.get();
            let _ = self.select(None, Select::Now);
            if self.seat.counters.events.get() != before {
                return true;
            }
        }
        self.seat.shared.clock.auto_advance(&self.seat.timers)
    }

    /// Before it sleeps, a worker looks after seats that are held up. `true`: there is something to do now.
    fn help_others(&self, now: Instant) -> bool {
        if !self.takes_any() {
            return false;
        }
        self.cx.phase.set(Phase::Dispatching);
        let mut woken = false;
        for seat in self.others() {
            woken |= seat.help(now);
        }
        self.cx.phase.set(Phase::Polling);
        woken
    }

    // Searching.

    /// Whether there is work anywhere that this seat could take.
    pub(super) fn look(&self) -> bool {
        !self.seat.shared.injector.is_empty()
            || self.seats.iter().any(|seat| seat.backlog() >= STEAL_COST)
            || (self.own && !self.seat.inbox.is_empty())
    }

    /// Tries the injector, then every other seat once, from a random one on.
    fn search(&self) -> Option<Find> {
        self.with_core(|core| {
            if self.own
                && let Some(task) = self.seat.inbox.pop()
            {
                return Some(Find::Own(task));
            }
            let task = self.steal_injected(core).or_else(|| {
                let start = core.random_below(self.seats.len());
                self.seats
                    .iter_from(start)
                    .filter(|seat| seat.index != self.seat.index)
                    .find_map(|seat| retry(|| seat.stealer.steal_batch_and_pop(&core.queue)))
            });
            task.map(Find::Any)
        })
        .flatten()
    }

    fn found(&self, work: Find, last: bool) {
        self.seat.counters.steals.add(1);
        trace::stole();
        self.with_core(|core| match work {
            // Timers come first in the next turn, and a waker of theirs may be foreign and keep the thread: the monitor
            // can take it out of the slot (pains A5). Where there is none, it keeps its place in front of the queue.
            Find::Any(task) if !self.seat.shared.is_current_thread() => {
                if let Some(displaced) = self.seat.next.put(task) {
                    core.queue.push(displaced);
                }
            }
            Find::Own(task) | Find::Any(task) => core.found.set(Some(task)),
        });
        // The last searcher found something. If outsiders have put more, another searches on; what lies in the queues
        // of other seats is for those to share.
        if last && (!self.seat.shared.injector.is_empty() || self.seat.backlog() >= WAKE_COST) {
            self.seat.shared.notify(self.seat);
        }
    }
}
