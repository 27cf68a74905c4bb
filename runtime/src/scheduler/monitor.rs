//! The monitor: one thread that looks after seats which cannot look after themselves.
//!
//! It sleeps while every worker does. Else, each [`TICK`], it looks at every seat that is awake and has not begun a turn
//! since the last look, that is, whose thread is inside one long poll or in a run of them:
//! - its selector and its timers are turned (`help.rs`);
//! - a task in its next slot, which no thief can reach, is moved to the injector;
//! - a backlog in its queue, or in the injector, wakes a worker, in case the seat had no occasion to do so.
//!
//! If no worker has turned, a spare worker is called (`spare.rs`).
//!
//! And it gives a stand-in to guest seats whose thread has left `block_on` while sockets or timers were registered.
//!
//! The current-thread flavour has no monitor: there nothing of the runtime runs on another thread.

use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lend::Job;
use super::spare::SpareWorkers;
use super::{Seat, Shared, launch};
use crate::debug;

/// Between two looks. A worker that is stuck delays its next slot by one to two of these.
const TICK: Duration = Duration::from_millis(2);

/// The same while some seat is stuck: its sockets are served once a tick.
const STUCK_TICK: Duration = Duration::from_millis(1);

/// Looks with every worker asleep before the monitor sleeps as well: a server with a request now and then does not pay
/// for waking it each time.
const IDLE_TICKS: u32 = 10;

/// The monitor's bed.
pub(crate) struct Monitor {
    asleep: AtomicBool,
    lock: Mutex<()>,
    condvar: Condvar,
    closed: AtomicBool,
    /// A guest seat was left with sources registered.
    guests: AtomicBool,
    /// Spare workers at work.
    spares: AtomicUsize,
    /// The longest time, in ns, that the monitor has seen a selector with registrations unattended.
    selector_age_max: AtomicU64,
    /// Likewise, that a queue with tasks in it has been without a turn.
    ready_age_max: AtomicU64,
}

impl Monitor {
    pub(crate) fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            lock: Mutex::new(()),
            condvar: Condvar::new(),
            closed: AtomicBool::new(false),
            guests: AtomicBool::new(false),
            spares: AtomicUsize::new(0),
            selector_age_max: AtomicU64::new(0),
            ready_age_max: AtomicU64::new(0),
        }
    }

    /// Spare workers at work.
    pub(crate) fn spares(&self) -> usize {
        self.spares.load(Relaxed)
    }

    pub(super) fn set_spares(&self, number: usize) {
        self.spares.store(number, Relaxed);
    }

    /// See [`RuntimeMetrics`](crate::runtime::RuntimeMetrics).
    pub(crate) fn selector_age_max(&self) -> Duration {
        Duration::from_nanos(self.selector_age_max.load(Relaxed))
    }

    /// See [`RuntimeMetrics`](crate::runtime::RuntimeMetrics).
    pub(crate) fn ready_age_max(&self) -> Duration {
        Duration::from_nanos(self.ready_age_max.load(Relaxed))
    }

    /// A worker woke up: one load unless the monitor sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.condvar.notify_one();
        }
    }

    /// Notes how long a seat that is stuck has left its selector and its tasks alone.
    fn note_ages(&self, seat: &Seat, now: Instant, stuck_since: Instant) {
        if seat.registrations() > 0 {
            self.selector_age_max
                .fetch_max(seat.selector_age(now), Relaxed);
        }
        if !seat.stealer.is_empty() || !seat.next.is_empty() {
            let age = now.saturating_duration_since(stuck_since).as_nanos();
            self.ready_age_max
                .fetch_max(u64::try_from(age).unwrap_or(u64::MAX), Relaxed);
        }
    }

    /// A guest seat was left while something is registered with it.
    pub(super) fn watch_guests(&self) {
        self.guests.store(true, SeqCst);
        self.wake();
    }

    pub(super) fn close(&self) {
        self.closed.store(true, SeqCst);
        self.asleep.store(false, SeqCst);
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.condvar.notify_one();
    }

    /// Waits for a tick, or until woken if `idle`. `false`: the runtime closed.
    fn wait(&self, idle: bool, tick: Duration, look: impl Fn() -> bool) -> bool {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if idle {
            self.asleep.store(true, SeqCst);
            // Pairs with the worker that clears its idle bit and then calls `wake`: it sees `asleep`, or we see it.
            std::sync::atomic::fence(SeqCst);
            while self.asleep.load(Ordering::SeqCst) && !self.closed.load(SeqCst) && !look() {
                guard = self
                    .condvar
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            self.asleep.store(false, SeqCst);
        } else if !self.closed.load(SeqCst) {
            drop(
                self.condvar
                    .wait_timeout(guard, tick)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
        !self.closed.load(SeqCst)
    }
}

/// A seat as it was when the monitor last saw a change.
pub(super) struct Watched {
    turn: u64,
    pub(super) since: Instant,
    /// What its thread had computed when all were first seen stuck: see `spare.rs`.
    pub(super) ran: Option<Duration>,
}

impl Watched {
    fn new(turn: u64, since: Instant) -> Self {
        Self {
            turn,
            since,
            ran: None,
        }
    }
}

/// Starts the monitor's thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let watched = shared.clone();
    launch::start_thread(shared, "monitor", move || watch(&watched))
}

fn watch(shared: &Arc<Shared>) {
    let mut seats = shared.seats.snapshot();
    // By the index of the seat.
    let mut watched: Vec<Watched> = Vec::new();
    let mut quiet = 0;
    let mut stuck = 0;
    let mut spares = SpareWorkers::default();
    loop {
        let busy = || seats.iter().any(|seat| is_awake(seat)) || shared.monitor.guests.load(SeqCst);
        let tick = if stuck > 0 { STUCK_TICK } else { TICK };
        // Spare workers that look after themselves are no reason to stay awake, but they have to be sent away.
        let idle = quiet > IDLE_TICKS && shared.monitor.spares() == 0;
        if !shared.monitor.wait(idle, tick, busy) {
            return;
        }
        shared.seats.refresh(&mut seats);
        let now = Instant::now();
        let (mut workers_turn, mut spares_turn) = (false, false);
        let mut any_awake = false;
        stuck = 0;
        for seat in seats.iter() {
            debug::polls::look(shared, seat, now);
            let turn = seat.turn.load(Relaxed);
            let is_awake = is_awake(seat);
            any_awake |= is_awake;
            let before = watched.get(seat.index);
            if let Some(before) = before
                && before.turn == turn
                && is_awake
            {
                stuck += 1;
                shared.monitor.note_ages(seat, now, before.since);
                rescue(shared, seat, now);
            } else {
                let seen = Watched::new(turn, now);
                match watched.get_mut(seat.index) {
                    Some(before) => *before = seen,
                    // Seats are looked at in their order.
                    None => watched.push(seen),
                }
                workers_turn |= !seat.is_guest();
                spares_turn |= seat.works.load(Relaxed);
            }
        }
        let guests = shared.monitor.guests.load(SeqCst);
        quiet = if any_awake || guests { 0 } else { quiet + 1 };
        spares.look(shared, now, workers_turn);
        if !workers_turn && !spares_turn {
            spares.consider(shared, now, &seats, &mut watched);
        }
        if guests {
            serve_guests(shared);
        }
    }
}

/// Whether somebody sits on the seat and does not sleep.
fn is_awake(seat: &Seat) -> bool {
    !seat.wakeup.park.is_parked() && !seat.is_free()
}

fn rescue(shared: &Shared, seat: &Seat, now: Instant) {
    seat.help(now);
    if let Some(task) = seat.next.rescue() {
        shared.inject(task);
    } else if (!seat.stealer.is_empty() || !shared.injector.is_empty()) && shared.idle.has_sleeper()
    {
        shared.notify_injected();
    }
}

/// Gives each abandoned guest seat a stand-in.
fn serve_guests(shared: &Arc<Shared>) {
    while let Some(seat) = shared.seats.take_to_serve(Seat::has_sources) {
        match seat.sit() {
            Some(core) => {
                if let Err(Job { seat, core }) = shared.spares.run(Job { seat, core }) {
                    // No thread to be had: try again at the next tick.
                    seat.rise(core);
                    shared.seats.put_free(seat);
                    return;
                }
            }
            None => unreachable!("a free seat has its core"),
        }
    }
    shared.monitor.guests.store(false, SeqCst);
    if shared.seats.any_free(Seat::has_sources) {
        shared.monitor.guests.store(true, SeqCst);
    }
}
