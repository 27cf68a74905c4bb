//! The loop of a seat, and nothing else.
//!
//! A turn, in the order in which the loop begins it (`run`):
//!
//! 1. **Root**: the future of `block_on`, if this is a guest seat and the future was woken.
//! 2. **Expire timers** that are due, by one clock read a turn; none is read if there is no timer and nothing to time.
//! 3. **Run** ready tasks, at most [`Core::most_polls`] of them.
//! 4. **Timeout**: none if anything is ready; else until the earliest timer; else unbounded.
//! 5. **Select** and **dispatch**: wakes go to the back of the queue.
//!
//! # How long a turn is
//! At most `event_interval` (61) polls or about [`TURN`], whichever is first. A clock read for each poll would cost more
//! than a small poll, so the limit is learnt: a turn that was full is timed as a whole, and the number of polls of
//! the next is set so that it fits. One turn may be too long when the load changes; the next is not.
//!
//! # How long a poll is
//! Waking a sleeper for tasks that are done before it runs is pure loss, and for tasks that take long it is the point of
//! having several workers. So each seat keeps the mean length of its polls: measured over full turns, and over the time
//! between two sleeps. It follows upwards at once and downwards slowly. If it misjudges (a seat of tiny tasks gets a few
//! long ones), the monitor wakes a helper within two of its ticks.
//!
//! # Going to sleep
//! `rest`: own idle bit, fence, a look at every queue, and only then sleep (`idle.rs`). After any return from sleep: the
//! idle bit is cleared first, so that nobody wakes a worker that is awake (it was the commonest needless wake); then
//! events, timers, the own queue; and only then the reason for which it was woken.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_deque::Steal;

use super::MOST_FROM_SLOT;
use super::idle::Rest;
use super::seat::{Core, Seat};
use super::seats::Snapshot;
use crate::context::{Context, Phase};
use crate::runtime::config::call;
use crate::task::Runnable;

/// How long a turn may take before sockets and timers are looked at again. Long against a select (0.3 µs), short
/// against what a client notices.
const TURN: Duration = Duration::from_micros(100);

/// How long a backlog has to be, in ns, before a worker is woken for it. Waking costs 12-17 µs of the waker and 23-31 µs
/// until the other one runs, and then both work in small portions and sleep more often. Echo of 16 KiB, 50 connections, 2
/// workers, µs of CPU a message: 7.2 to 8.5 with 30 µs, 6.4 to 6.8 with 100 µs (`benches/`, rows "echo").
pub(super) const WAKE_COST: u64 = 100_000;

/// Likewise what a steal costs that nobody asked for: the thief's caches know nothing of the task and its socket.
const STEAL_COST: u64 = 50_000;

/// The mean poll of a seat that has not measured any, in ns: long enough that any backlog wakes a helper.
pub(super) const FIRST_GUESS: u64 = WAKE_COST;

/// See [`Loop::before_abandoned`]: as often as the monitor looks on the other flavour.
const ABANDONED: Duration = Duration::from_millis(2);

/// How often a contended steal is tried before the thief goes on to the next victim: no unbounded retry (pains A5).
const STEAL_TRIES: usize = 4;

/// What a seat runs besides tasks: the root future of a guest, or nothing.
pub(super) trait Root {
    /// Polls if woken; `true`: the loop is to end.
    fn turn(&mut self, cx: &Context) -> bool;
    /// Whether `turn` has something to do.
    fn is_ready(&self) -> bool;
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// The root future is done.
    Done,
    /// The runtime is shutting down.
    Closed,
    /// A task of this thread gave the seat away.
    Lent,
    /// The owner of the seat wants it back.
    Wanted,
}

/// The loop of one thread on one seat.
pub(super) struct Loop<'a> {
    pub(super) cx: &'a Context,
    pub(super) seat: &'a Seat,
    /// Whether this thread is the seat's own, not a stand-in.
    pub(super) own: bool,
    pub(super) seats: Snapshot,
    /// When the polls began that `unmeasured` counts: after the last sleep, or the last full turn.
    busy_since: Option<Instant>,
    /// Polls since then.
    unmeasured: u32,
    /// Set when a sleep ends, before anything is dispatched: whether the seat had been claimed to search.
    claimed: Cell<Option<bool>>,
}

impl<'a> Loop<'a> {
    pub(super) fn new(cx: &'a Context, seat: &'a Seat, own: bool) -> Self {
        Self {
            cx,
            seat,
            own,
            seats: seat.shared.seats.snapshot(),
            busy_since: None,
            unmeasured: 0,
            claimed: Cell::new(None),
        }
    }

    /// Turns until there is a reason to stop.
    pub(super) fn run(&mut self, root: &mut impl Root) -> Exit {
        loop {
            self.seat
                .turn
                .store(self.seat.turn.load(Relaxed).wrapping_add(1), Relaxed);
            self.cx.phase.set(Phase::Polling);
            // Before the root future: in a runtime that has closed it could only fail.
            if let Some(exit) = self.interrupted() {
                return exit;
            }
            if root.turn(self.cx) {
                return Exit::Done;
            }
            self.expire_timers();
            let Some(turn) = self.run_ready() else {
                return Exit::Lent;
            };
            if turn.full || turn.deferred {
                self.select_now();
            } else if !root.is_ready() {
                self.rest(root);
            }
        }
    }

    fn interrupted(&self) -> Option<Exit> {
        if self.seat.shared.is_closed() {
            Some(Exit::Closed)
        } else if self.cx.sitting.borrow().is_none() {
            Some(Exit::Lent)
        } else if !self.own && self.seat.wanted.load(Relaxed) {
            Some(Exit::Wanted)
        } else {
            None
        }
    }

    /// The core, for a step in which no user code runs.
    #[inline]
    fn with_core<R>(&self, f: impl FnOnce(&Core) -> R) -> Option<R> {
        self.cx
            .sitting
            .borrow()
            .as_ref()
            .map(|sitting| f(&sitting.core))
    }

    // Steps 2 and 3.

    fn expire_timers(&mut self) {
        if self.seat.timers.is_empty() {
            return;
        }
        self.cx.phase.set(Phase::Dispatching);
        let fired = self.seat.timers.expire(Instant::now());
        self.cx.phase.set(Phase::Polling);
        if fired > 0 {
            self.seat.counters.timers.add(fired as u64);
            self.share();
        }
    }

    /// Polls ready tasks. `None`: a task gave the seat away.
    fn run_ready(&mut self) -> Option<Ran> {
        let (first, most) =
            self.with_core(|core| (self.first_task(core), self.polls_left(core)))?;
        let mut polls = 0;
        if let Some(task) = first {
            task.run();
            polls += 1;
        }
        while polls < most {
            match self.with_core(|core| self.next_task(core))? {
                Some(task) => task.run(),
                None => break,
            }
            polls += 1;
        }
        let full = polls >= most;
        self.seat.counters.polls.add(u64::from(polls));
        self.seat.counters.turns.add(1);
        let deferred = self.with_core(|core| {
            core.since_select.set(core.since_select.get() + polls);
            core.since_injector.set(core.since_injector.get() + polls);
            !core.deferred.borrow().is_empty()
        })?;
        self.unmeasured += polls;
        if full {
            self.learn(Instant::now());
            self.share();
        }
        Some(Ran { full, deferred })
    }

    /// How many polls fit before the next select, and before the next look at the injector.
    fn polls_left(&self, core: &Core) -> u32 {
        let until_select = core
            .most_polls
            .get()
            .saturating_sub(core.since_select.get());
        let until_injector = self
            .seat
            .shared
            .config
            .global_queue_interval
            .saturating_sub(core.since_injector.get());
        until_select.min(until_injector).max(1)
    }

    /// What comes before the own queue: a task that a search found, and, when it is time, one from the injector or the
    /// inbox.
    fn first_task(&self, core: &Core) -> Option<Runnable> {
        if let Some(task) = core.found.take() {
            return Some(task);
        }
        if core.since_injector.get() < self.seat.shared.config.global_queue_interval {
            return None;
        }
        core.since_injector.set(0);
        self.foreign_task(core)
    }

    /// What others have put where only this seat, or any, takes it.
    fn foreign_task(&self, core: &Core) -> Option<Runnable> {
        let pinned = if self.own {
            self.seat.inbox.pop()
        } else {
            None
        };
        pinned.or_else(|| {
            if self.takes_injected() {
                self.steal_injected(core)
            } else {
                None
            }
        })
    }

    /// Own work, in order: the slot, the queue; and then what others have put.
    #[inline]
    fn next_task(&self, core: &Core) -> Option<Runnable> {
        if let Some(task) = self.seat.next.take() {
            let streak = core.streak.get();
            if streak < MOST_FROM_SLOT || core.queue.is_empty() {
                core.streak.set(streak + 1);
                self.seat.counters.next_slot_hits.add(1);
                return Some(task);
            }
            core.queue.push(task);
        }
        core.streak.set(0);
        match core.queue.pop() {
            Some(task) => Some(task),
            None => self.foreign_task(core),
        }
    }

    /// Whether this seat looks at the injector: guests of the multi-thread flavour do not.
    #[inline]
    fn takes_injected(&self) -> bool {
        self.seat.idle_index.is_some()
    }

    fn steal_injected(&self, core: &Core) -> Option<Runnable> {
        core.since_injector.set(0);
        let injector = &self.seat.shared.injector;
        retry(|| injector.steal_batch_and_pop(&core.queue))
    }

    /// A full turn is over, or the seat is about to sleep: measures its polls, and sets the length of the next turn.
    fn learn(&mut self, now: Instant) {
        self.seat.note_selected(now);
        let polls = std::mem::take(&mut self.unmeasured);
        let Some(since) = self.busy_since.replace(now) else {
            return;
        };
        if polls == 0 {
            return;
        }
        let each = u64::try_from(now.duration_since(since).as_nanos()).unwrap_or(u64::MAX)
            / u64::from(polls);
        let limit = self.seat.shared.config.event_interval;
        self.with_core(|core| {
            let mean = self.seat.mean_poll.load(Relaxed);
            let mean = if each > mean {
                each
            } else {
                mean - (mean - each) / 4
            };
            self.seat.mean_poll.store(mean, Relaxed);
            let fits = TURN.as_nanos() as u64 / mean.max(1);
            core.most_polls
                .set(u32::try_from(fits).unwrap_or(limit).clamp(1, limit));
        });
    }

    /// Rules 5 and 6: wakes a sleeper if there is more than this seat polls next.
    fn share(&self) {
        if self.seat.shared.idle.has_sleeper() && self.seat.backlog() >= WAKE_COST {
            self.seat.shared.notify(self.seat);
        }
    }

    // Steps 4 and 5.

    /// A select that does not wait, between two full turns. Deferred tasks come back behind what it brings.
    fn select_now(&mut self) {
        if self.seat.registrations() > 0 {
            self.select(None, false);
        }
        self.with_core(|core| {
            core.since_select.set(0);
            for task in core.deferred.borrow_mut().drain(..) {
                core.queue.push(task);
            }
        });
    }

    /// One turn of the driver. With `sleep` it waits until `deadline`, and the seat's sleep is over when it is back.
    fn select(&self, deadline: Option<Instant>, sleep: bool) {
        // A helper may hold the lock for a moment; it does not wait in the selector.
        let mut driver = self.seat.driver.lock();
        self.cx.phase.set(Phase::Dispatching);
        // A foreign waker may panic; the loop goes on.
        let turned = catch_unwind(AssertUnwindSafe(|| {
            if sleep {
                driver.turn_until_then(deadline, || {
                    self.seat.wakeup.park.after_select();
                    self.awake();
                })
            } else {
                driver.turn_now()
            }
        }));
        drop(driver);
        self.cx.phase.set(Phase::Polling);
        self.seat.counters.selects.add(1);
        match turned {
            Ok(Ok(turn)) => self.seat.counters.events.add(turn.events as u64),
            Ok(Err(error)) => {
                eprintln!(
                    "rt: the selector of runtime '{}' failed: {error}",
                    self.seat.shared.name
                );
            }
            Err(_) => {}
        }
    }

    /// The thread is awake again, and has not looked at anything yet.
    fn awake(&self) {
        let shared = &self.seat.shared;
        self.seat.timers.after_park();
        self.claimed.set(Some(
            self.seat
                .idle_index
                .is_some_and(|index| shared.idle.wake(index)),
        ));
        shared.monitor.wake();
    }

    /// Nothing to do: looks for work elsewhere, and sleeps if there is none.
    fn rest(&mut self, root: &impl Root) {
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
        let now = Instant::now();
        self.learn(now);
        if self.help_others(now) {
            return self.share();
        }
        let mut searching = false;
        loop {
            if let Some(index) = self.seat.idle_index {
                match shared
                    .idle
                    .rest(index, searching, || self.look(), || self.search())
                {
                    Rest::Found { work, last } => return self.found(work, last),
                    Rest::Sleep => {}
                }
            }
            self.sleep(root);
            if self.claimed.get().is_none() {
                self.awake();
            }
            let claimed = self.claimed.take().unwrap_or(false);
            // Events were dispatched by the sleep; timers are next.
            self.expire_timers();
            self.with_core(|core| core.since_select.set(0));
            let own_work = self.with_core(|core| !core.is_empty()).unwrap_or(true)
                || root.is_ready()
                || (self.own && !self.seat.inbox.is_empty());
            match (claimed, own_work, self.seat.idle_index) {
                (false, _, _) | (_, _, None) => break,
                (true, true, Some(index)) => {
                    // Whoever claimed this worker wanted something searched for; another has to do that.
                    if shared.idle.stop_searching(index) && self.look() {
                        shared.notify_injected();
                    }
                    break;
                }
                (true, false, Some(index)) => {
                    if self.interrupted().is_some() {
                        if shared.idle.stop_searching(index) && self.look() {
                            shared.notify_injected();
                        }
                        break;
                    }
                    searching = true;
                }
            }
        }
        call(shared.config.on_thread_unpark.as_ref());
        self.share();
        let now = Instant::now();
        self.seat.note_selected(now);
        self.busy_since = Some(now);
    }

    /// Sleeps in the selector if any source is registered, else on the condition variable.
    fn sleep(&self, root: &impl Root) {
        let shared = &self.seat.shared;
        if root.is_ready() || self.interrupted().is_some() {
            return;
        }
        let selecting = self.seat.registrations() > 0;
        if shared.clock.is_paused() && self.advance_virtual_time(selecting) {
            return;
        }
        // Published before the park word is set: an earlier timer inserted from now on unparks.
        let deadline = self.before_abandoned(self.seat.timers.before_park());
        let park = &self.seat.wakeup.park;
        self.seat.counters.parks.add(1);
        if selecting {
            if park.before_select() {
                self.select(deadline, true);
            } else {
                self.awake();
                self.select(None, false);
            }
        } else {
            park.park(deadline);
        }
    }

    /// When to wake up at the latest, if timers alone would say `deadline`.
    ///
    /// On the current-thread flavour no stand-in serves the seat of a guest who has left sockets or timers behind. While
    /// others are in `block_on` one of them looks after it each [`ABANDONED`] (`help.rs`).
    fn before_abandoned(&self, deadline: Option<Instant>) -> Option<Instant> {
        let shared = &self.seat.shared;
        if !shared.is_current_thread()
            || self.seats.len() == 1
            || !shared.seats.any_free(Seat::has_sources)
        {
            return deadline;
        }
        let soon = Instant::now() + ABANDONED;
        Some(deadline.map_or(soon, |deadline| deadline.min(soon)))
    }

    /// Virtual time: with nothing else to do, jumps to the next timer. `true`: the loop has to look again.
    fn advance_virtual_time(&self, selecting: bool) -> bool {
        if selecting {
            let before = self.seat.counters.events.get();
            self.select(None, false);
            if self.seat.counters.events.get() != before {
                return true;
            }
        }
        self.seat.shared.clock.auto_advance(&self.seat.timers)
    }

    /// Before it sleeps, a worker looks after seats that are held up. `true`: there is something to do now.
    fn help_others(&self, now: Instant) -> bool {
        if self.seat.idle_index.is_none() {
            return false;
        }
        self.cx.phase.set(Phase::Dispatching);
        let mut woken = false;
        for seat in self
            .seats
            .iter()
            .filter(|seat| seat.index != self.seat.index)
        {
            woken |= seat.help(now);
        }
        self.cx.phase.set(Phase::Polling);
        woken
    }

    // Searching.

    /// Whether there is work anywhere that this seat could take.
    fn look(&self) -> bool {
        !self.seat.shared.injector.is_empty()
            || self.seats.iter().any(|seat| seat.backlog() >= STEAL_COST)
            || (self.own && !self.seat.inbox.is_empty())
    }

    /// Tries the injector, then every other seat once, from a random one on.
    fn search(&self) -> Option<Runnable> {
        self.with_core(|core| {
            if self.own
                && let Some(task) = self.seat.inbox.pop()
            {
                return Some(task);
            }
            self.steal_injected(core).or_else(|| {
                let start = core.random_below(self.seats.len());
                self.seats
                    .iter_from(start)
                    .filter(|seat| seat.index != self.seat.index)
                    .find_map(|seat| retry(|| seat.stealer.steal_batch_and_pop(&core.queue)))
            })
        })
        .flatten()
    }

    fn found(&self, work: Runnable, last: bool) {
        self.seat.counters.steals.add(1);
        self.with_core(|core| core.found.set(Some(work)));
        // The last searcher found something. If outsiders have put more, another searches on; what lies in the queues
        // of other seats is for those to share.
        if last && (!self.seat.shared.injector.is_empty() || self.seat.backlog() >= WAKE_COST) {
            self.seat.shared.notify(self.seat);
        }
    }
}

/// What a run of ready tasks left.
struct Ran {
    /// The limit of polls was reached.
    full: bool,
    /// Tasks wait for the next select.
    deferred: bool,
}

/// Retries a contended steal a few times.
fn retry(mut steal: impl FnMut() -> Steal<Runnable>) -> Option<Runnable> {
    for _ in 0..STEAL_TRIES {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => {}
        }
    }
    None
}
