//! The monitor: one thread that looks after seats which cannot look after themselves.
//!
//! It sleeps while every worker does. Else, each [`TICK`], it looks at every seat that is awake and has not begun a turn
//! since the last look, that is, whose thread is inside one long poll or in a run of them:
//! - its selector and its timers are turned (`help.rs`);
//! - a task in its next slot, which no thief can reach, is moved to the injector;
//! - a backlog in its queue, or in the injector, wakes a worker, in case the seat had no occasion to do so.
//!
//! And it gives a stand-in to guest seats whose thread has left `block_on` while sockets or timers were registered.
//!
//! The current-thread flavour has no monitor: there nothing of the runtime runs on another thread.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lend::Job;
use super::{Seat, Shared, launch};

/// Between two looks. A worker that is stuck delays its next slot by one to two of these.
const TICK: Duration = Duration::from_millis(2);

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
}

impl Monitor {
    pub(crate) fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            lock: Mutex::new(()),
            condvar: Condvar::new(),
            closed: AtomicBool::new(false),
            guests: AtomicBool::new(false),
        }
    }

    /// A worker woke up: one load unless the monitor sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.condvar.notify_one();
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
    fn wait(&self, idle: bool, look: impl Fn() -> bool) -> bool {
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
                    .wait_timeout(guard, TICK)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
        !self.closed.load(SeqCst)
    }
}

/// Starts the monitor's thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let watched = shared.clone();
    launch::start_thread(shared, "monitor", move || watch(&watched))
}

fn watch(shared: &Arc<Shared>) {
    let mut seats = shared.seats.snapshot();
    let mut turns: HashMap<usize, u32> = HashMap::new();
    let mut quiet = 0;
    loop {
        let busy = || seats.iter().any(|seat| is_awake(seat)) || shared.monitor.guests.load(SeqCst);
        quiet = if busy() { 0 } else { quiet + 1 };
        if !shared.monitor.wait(quiet > IDLE_TICKS, busy) {
            return;
        }
        shared.seats.refresh(&mut seats);
        for seat in seats.iter() {
            let turn = seat.turn.load(Relaxed);
            if turns.insert(seat.index, turn) == Some(turn) && is_awake(seat) {
                rescue(shared, seat);
            }
        }
        if shared.monitor.guests.load(SeqCst) {
            serve_guests(shared);
        }
    }
}

/// Whether somebody sits on the seat and does not sleep.
fn is_awake(seat: &Seat) -> bool {
    !seat.wakeup.park.is_parked() && !seat.is_free()
}

fn rescue(shared: &Shared, seat: &Seat) {
    seat.help(Instant::now());
    if let Some(task) = seat.next.take() {
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
