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
//! Which task comes next is in `next_task.rs`, steps 4 and 5 are in `select.rs`.
//!
//! # How long a turn is
//! At most `event_interval` (61) polls or about [`TURN`], whichever is first. A clock read for each poll would cost more
//! than a small poll, so the limit is learnt: a turn that was full is timed as a whole, and the number of polls of
//! the next is set so that it fits. One turn may be too long when the load changes; the next is not.
//!
//! # How long a poll is, and what is worth sharing
//! `backlog.rs`.
//!
//! # When nothing is ready
//! `rest.rs`.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rt_io::driver::Woken;
use rt_sync::wait;

use super::computing::Computing;
use super::help::coarse;
use super::laps::Laps;
use super::moment::Moment;
use super::seat::{Core, Seat};
use super::seats::Snapshot;
use crate::context::{Context, Phase};
use crate::debug;
use crate::task::{Activity, Runnable};
use crate::trace;

/// How long a turn may take before sockets and timers are looked at again. Long against a select (0.3 µs), short
/// against what a client notices.
pub(super) const TURN: Duration = Duration::from_micros(100);

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
    pub(super) busy_since: Option<Moment>,
    /// Polls since then.
    pub(super) unmeasured: u32,
    /// How many of those tasks gave way and came back.
    pub(super) returned: u32,
    /// Set when a sleep ends, before anything is dispatched: whether the seat has been claimed to search, and still counts
    /// as searching.
    pub(super) claimed: Cell<Option<bool>>,
    /// Wakers of one select; kept for its capacity.
    pub(super) woken: Cell<Woken>,
    /// Whether this is debug mode, or a trace is taken.
    notes_polls: bool,
    /// When the last sleep ended.
    pub(super) awake_at: Cell<Option<Moment>>,
    pub(super) laps: Laps,
    pub(super) computing: Computing,
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
            returned: 0,
            claimed: Cell::new(None),
            woken: Cell::default(),
            notes_polls: seat.shared.debug.notes_polls() || trace::is_on(),
            awake_at: Cell::new(None),
            laps: Laps::new(seat.turns()),
            computing: Computing::default(),
        }
    }

    /// Turns until there is a reason to stop.
    pub(super) fn run(&mut self, root: &mut impl Root) -> Exit {
        let now = Moment::now(&self.seat.shared);
        self.note_time(now);
        self.seat.counters.spent.sit(now.stamp);
        // It may be in its first poll for long.
        self.seat.shared.monitor.bed.wake();
        let exit = loop {
            let turn = self.seat.turn.load(Relaxed) + 1;
            self.seat.turn.store(turn, Relaxed);
            self.seat.next.begin_turn();
            let exit = if self.laps.is_due(turn) {
                self.timed_turn(root)
            } else {
                self.turn::<false>(root)
            };
            if let Some(exit) = exit {
                break exit;
            }
        };
        // A seat that is lent is its stand-in's.
        if exit != Exit::Lent {
            let now = Moment::now(&self.seat.shared);
            self.seat.counters.spent.leave(now.stamp);
        }
        exit
    }

    /// One turn, whose steps are timed or not. Why the loop is to end, if it is.
    #[inline(always)]
    fn turn<const TIMED: bool>(&mut self, root: &mut impl Root) -> Option<Exit> {
        self.cx.phase.set(Phase::Polling);
        // Before the root future: in a runtime that has closed it could only fail.
        if let Some(exit) = self.interrupted() {
            return Some(exit);
        }
        let roots = u32::from(root.is_ready());
        if root.turn(self.cx) {
            return Some(Exit::Done);
        }
        if TIMED {
            self.laps.lap(&self.seat.counters.sampled.tasks);
        }
        self.expire_timers();
        if TIMED {
            self.laps.lap(&self.seat.counters.sampled.dispatch);
        }
        let Some(turn) = self.run_ready::<TIMED>(roots) else {
            return Some(Exit::Lent);
        };
        if TIMED {
            self.laps.lap(&self.seat.counters.sampled.tasks);
        }
        if turn.full || turn.deferred {
            self.time_turn(&turn);
            self.select_now();
            self.relieve_others(Instant::now);
        } else if !root.is_ready() {
            self.rest(root);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn timed_turn(&mut self, root: &mut impl Root) -> Option<Exit> {
        let now = Moment::now(&self.seat.shared);
        wait::set_now(coarse(now.stamp));
        self.laps.begin(now.at);
        let exit = self.turn::<true>(root);
        self.laps.end();
        if exit != Some(Exit::Lent) {
            self.seat.counters.sampled.turns.add(1);
        }
        exit
    }

    /// The seat is at its selector, or leaves it: the time of tasks that begin to wait, and of whoever looks after the seat.
    #[inline]
    pub(super) fn note_time(&self, now: Moment) {
        self.seat.selected_at.store(now.stamp, Relaxed);
        wait::set_now(coarse(now.stamp));
    }

    pub(super) fn interrupted(&self) -> Option<Exit> {
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
    pub(super) fn with_core<R>(&self, f: impl FnOnce(&Core) -> R) -> Option<R> {
        self.cx
            .sitting
            .borrow()
            .as_ref()
            .map(|sitting| f(&sitting.core))
    }

    // Steps 2 and 3.

    pub(super) fn expire_timers(&mut self) {
        if !self.seat.timers.is_empty() {
            self.expire_timers_at(Instant::now());
        }
    }

    pub(super) fn expire_timers_at(&mut self, now: Instant) {
        self.cx.phase.set(Phase::Dispatching);
        let fired = self.seat.timers.expire(now);
        self.cx.phase.set(Phase::Polling);
        if fired > 0 {
            self.seat.counters.timers.add(fired as u64);
            self.share();
        }
    }

    /// Polls ready tasks, after so many polls of the root future: those count too, else one that always wakes itself would
    /// keep the selector waiting for ever. `None`: a task gave the seat away.
    fn run_ready<const TIMED: bool>(&mut self, roots: u32) -> Option<Ran> {
        let (first, most) =
            self.with_core(|core| (self.first_task(core), self.polls_left(core)))?;
        let (mut polls, mut sampled) = (0, false);
        if let Some(task) = first {
            self.poll(task);
            polls += 1;
        }
        while polls < most {
            match self.with_core(|core| self.next_task(core))? {
                Some(task) if TIMED => self.timed_poll(task, &mut sampled),
                Some(task) => self.poll(task),
                None => break,
            }
            polls += 1;
        }
        self.seat.counters.polls.add(u64::from(polls));
        polls += roots;
        let full = polls >= most;
        let deferred = self.with_core(|core| {
            core.since_select.set(core.since_select.get() + polls);
            core.since_injector.set(core.since_injector.get() + polls);
            core.deferred.borrow().len()
        })?;
        self.unmeasured += polls;
        self.returned += deferred as u32;
        let deferred = deferred > 0;
        let mut full_at = None;
        if full {
            let now = *full_at.insert(Moment::now(&self.seat.shared));
            self.learn(now);
            self.share();
        }
        Some(Ran {
            polls,
            full,
            full_at,
            deferred,
        })
    }

    /// In a turn that is timed: one of its polls is timed alone.
    #[cold]
    fn timed_poll(&self, task: Runnable, sampled: &mut bool) {
        if std::mem::replace(sampled, true) {
            return self.poll(task);
        }
        let sums = &self.seat.counters.sampled;
        self.laps.lap(&sums.tasks);
        self.poll(task);
        // Else the sums are a stand-in's.
        if self.cx.sitting.borrow().is_some() {
            let took = self.laps.lap(&sums.tasks);
            sums.polls.add(took);
            self.computing.polled(took);
        }
    }

    #[inline]
    fn poll(&self, task: Runnable) {
        if self.notes_polls {
            self.noted_poll(task);
        } else {
            task.run();
        }
    }

    /// In debug mode, or if a trace is taken: the poll is timed.
    #[cold]
    #[inline(never)]
    fn noted_poll(&self, task: Runnable) {
        let (polled, began) = (task.to_ref(), Instant::now());
        if self.seat.shared.debug.notes_polls() {
            debug::polls::run(self.seat, task);
        } else {
            task.run();
        }
        let took = began.elapsed();
        if polled.header().activity() != Activity::Over {
            polled.header().add_poll_time(took);
        }
        trace::polled(polled.header(), began, took);
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
}

/// What a run of ready tasks left.
pub(super) struct Ran {
    pub(super) polls: u32,
    /// The limit of polls was reached.
    full: bool,
    /// When that was.
    pub(super) full_at: Option<Moment>,
    /// Tasks wait for the next select.
    deferred: bool,
}
