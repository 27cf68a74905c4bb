//! The monitor: one thread that looks after seats which cannot look after themselves.
//!
//! It sleeps while every worker does. Else it looks at the seats that are awake, each [`CALM`] or more often. One whose
//! sitter has not been at its selector for half a millisecond gets its selector and its timers turned (`help.rs`). If it has
//! made no turn either at the next look, [`STUCK`] later, its thread is inside one long poll, and
//! - a task in its next slot, which no thief can reach, is moved to the injector;
//! - a backlog in its queue, or in the injector, wakes a worker, in case the seat had no occasion to do so.
//!
//! If no worker has turned, a spare worker is called (`spare.rs`). Closures that a thread of a pool has promised to take up
//! are given to another one if it does not come to that (`blocking/follow_up.rs`).
//!
//! And it gives a stand-in to guest seats whose thread has left `block_on` while sockets or timers were registered.
//!
//! The current-thread flavour has no monitor: there nothing of the runtime runs on another thread. With
//! [`Builder::monitor(false)`](crate::runtime::Builder::monitor) it sleeps, but for those guest seats.
//!
//! # What a look costs
//! Some 10 to 20 µs, nearly all of it for waking a thread by a timer; the seats by themselves take less than one. So what
//! counts is the number of looks: see [`CALM`] and [`ALERT`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use rt_io::fence;

use super::bed::{Bed, Sleep};
use super::lend::Job;
use super::seats::Snapshot;
use super::spare::SpareWorkers;
use super::{Seat, Shared, launch};
use crate::debug;

pub(super) use self::watched::{Found, Watched};

/// Between two looks while all goes well. A task that blocks its worker out of the blue delays its neighbours by one of
/// these, unless another worker runs out of work meanwhile. Looks each 2 ms were 1.4 % of the CPU of an echo server with 50
/// connections on two workers; see the rows "monitor" of the benchmarks.
const CALM: Duration = Duration::from_millis(8);

/// Between two looks for [`ALERT_FOR`] after a seat was stuck.
const ALERT: Duration = Duration::from_millis(2);

/// The same while some seat is stuck or may be: its sockets are served once a look.
const STUCK: Duration = Duration::from_millis(1);

/// After how long the system is asked whether the thread of a seat is stuck or just waits for its core. On a machine that
/// has something else to do as well that is often so, for a slice of the kernel's scheduler.
const DOUBT: Duration = Duration::from_millis(5);

/// Whatever rhythm a task blocks its worker in, it does so unexpectedly once in this time, so that a socket suffers from
/// [`CALM`] at most 8 ms in 2 s, 0.4 % of the time. For the rest of the time [`ALERT`] is the bound.
const ALERT_FOR: Duration = Duration::from_secs(2);

/// For so long after a thread was found to wait for its core only those that are known to be stuck are looked at more
/// often: with more threads than cores some thread always waits.
const CROWDED_FOR: Duration = Duration::from_millis(100);

/// With every worker asleep for so long the monitor sleeps as well. A server with a request now and then does not pay for
/// waking it each time.
const QUIET: Duration = Duration::from_millis(25);

/// After so long a sleep it sleeps again as soon as it finds every worker asleep: in a runtime that does next to nothing each
/// timer wakes it once, and it looks once more.
const LONG_SLEEP: Duration = Duration::from_millis(100);

/// What others see of the monitor.
pub(crate) struct Monitor {
    /// Whether it watches the workers, or only abandoned seats.
    watches: bool,
    pub(crate) bed: Bed,
    /// Spare workers at work.
    spares: AtomicUsize,
    /// The longest time, in ns, that the monitor has seen a selector with registrations unattended.
    selector_age_max: AtomicU64,
    /// Likewise, that a queue with tasks in it has been without a turn.
    ready_age_max: AtomicU64,
}

impl Monitor {
    pub(crate) fn new(watches: bool) -> Self {
        Self {
            watches,
            bed: Bed::new(),
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

    /// Notes how long a seat that is stuck has left its selector and its tasks alone.
    fn note_ages(&self, seat: &Seat, now: Instant, stuck_since: Instant) {
        let seen = now.saturating_duration_since(stuck_since).as_nanos();
        let seen = u64::try_from(seen).unwrap_or(u64::MAX);
        if seat.registrations() > 0 {
            // One that was woken and still waits for a core was at its selector all the time before.
            let age = if seat.counters.spent.rests() {
                seen
            } else {
                seat.selector_age(now)
            };
            self.selector_age_max.fetch_max(age, Relaxed);
        }
        if !seat.stealer.is_empty() || !seat.next.is_empty() {
            self.ready_age_max.fetch_max(seen, Relaxed);
        }
    }
}

/// Starts the monitor's thread.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let watched = shared.clone();
    launch::start_thread(shared, "monitor", move || watch(&watched))
}

fn watch(shared: &Arc<Shared>) {
    let mut looks = Looks::new(shared);
    loop {
        let sleep = looks.next_sleep(shared);
        let seats = &mut looks.seats;
        let is_busy = || {
            // A guest may have sat down on a new one since the last look.
            shared.seats.refresh(seats);
            seats.iter().any(|seat| is_awake(seat)) || has_promises(shared)
        };
        if !shared.monitor.bed.sleep(sleep, looks.no_thread, is_busy) {
            return;
        }
        let now = Instant::now();
        let was_woken = !matches!(sleep, Sleep::Tick(_));
        if was_woken {
            // Somebody was awake.
            looks.busy_at = now;
            looks.was_idle = now.saturating_duration_since(looks.at) >= LONG_SLEEP;
        }
        if shared.monitor.watches {
            looks.look(shared, now);
        }
        if !was_woken && looks.busy_at == now {
            looks.was_idle = false;
        }
        if shared.monitor.bed.has_guests() {
            looks.no_thread = serve_guests(shared).is_err();
        }
    }
}

/// What the monitor remembers from one look to the next.
struct Looks {
    seats: Snapshot,
    /// By the index of the seat.
    watched: Vec<Watched>,
    spares: SpareWorkers,
    /// Some seat may be stuck.
    suspects: bool,
    /// Some seat is.
    stuck: bool,
    /// When one last was.
    stuck_at: Option<Instant>,
    /// When a thread was last found to wait for its core.
    crowded_at: Option<Instant>,
    /// When a worker was last seen awake.
    busy_at: Instant,
    /// The monitor has had a long sleep, and since then no look but the first has found a worker awake.
    was_idle: bool,
    /// When the last look was.
    at: Instant,
    /// The longest tick.
    calm: Duration,
    /// A guest seat was left, and no thread could be had for it.
    no_thread: bool,
}

impl Looks {
    fn new(shared: &Shared) -> Self {
        let now = Instant::now();
        Self {
            seats: shared.seats.snapshot(),
            watched: Vec::new(),
            spares: SpareWorkers::default(),
            suspects: false,
            stuck: false,
            stuck_at: None,
            crowded_at: None,
            busy_at: now,
            was_idle: false,
            at: now,
            calm: CALM.min(shared.debug.look_each()),
            no_thread: false,
        }
    }

    /// Until the next look.
    fn next_sleep(&self, shared: &Shared) -> Sleep {
        let monitor = &shared.monitor;
        let quiet = self.at.saturating_duration_since(self.busy_at);
        let rests = !monitor.watches || quiet >= QUIET || self.was_idle && !quiet.is_zero();
        // Spare workers that look after themselves are no reason to stay awake, but they have to be sent away.
        if rests && monitor.spares() == 0 && !self.no_thread {
            return if monitor.watches {
                Sleep::UntilBusy
            } else {
                Sleep::UntilCalled
            };
        }
        let lately = |at: Option<Instant>, span| {
            at.is_some_and(|at| self.at.saturating_duration_since(at) < span)
        };
        let suspects = self.suspects && !lately(self.crowded_at, CROWDED_FOR);
        Sleep::Tick(if self.stuck || suspects {
            STUCK
        } else if lately(self.stuck_at, ALERT_FOR) {
            ALERT.min(self.calm)
        } else {
            self.calm
        })
    }

    fn look(&mut self, shared: &Arc<Shared>, now: Instant) {
        self.at = now;
        (self.suspects, self.stuck) = (false, false);
        let (mut workers_turn, mut spares_turn) = (false, false);
        let mut unattended = false;
        // The seat about which it is doubted the longest.
        let mut doubted: Option<(Instant, usize)> = None;
        shared.seats.refresh(&mut self.seats);
        for seat in self.seats.iter() {
            debug::polls::look(shared, seat, now);
            let state = (seat.turn.load(Relaxed), seat.counters.spent.mark());
            let is_awake = is_awake(seat);
            if is_awake {
                self.busy_at = now;
            }
            // One that merely computes calls somebody itself.
            if is_awake
                && seat.is_late(now)
                && seat.registrations() > 0
                && !seat.attendance.is_attended()
            {
                unattended = true;
            }
            let before = self.watched.get(seat.index);
            // Who slept then has just been woken, and may not have said so yet: nothing is known of how long that takes.
            if let Some(before) = before
                && is_awake
                && before.awake
                && before.state == state
            {
                let is_needed = is_needed(seat);
                self.suspects |= is_needed;
                self.stuck |= before.stuck && is_needed;
                if !before.stuck
                    && is_needed
                    && now.saturating_duration_since(before.since) >= DOUBT
                    && now >= before.ask_at
                    && doubted.is_none_or(|(since, _)| before.since < since)
                {
                    doubted = Some((before.since, seat.index));
                }
                shared.monitor.note_ages(seat, now, before.since);
                rescue(shared, seat, now);
                continue;
            }
            let mut late = is_awake && seat.is_late(now);
            if late {
                seat.help(now);
                // Not twice in a row: it has turned in between. (A seat on which nothing is registered does not always
                // say when.)
                late = !before.is_some_and(|before| before.late);
                self.suspects |= late;
            }
            let seen = Watched {
                state,
                since: now,
                awake: is_awake,
                late,
                stuck: false,
                ran: None,
                ask_at: now,
            };
            match self.watched.get_mut(seat.index) {
                Some(before) => *before = seen,
                // Seats are looked at in their order.
                None => self.watched.push(seen),
            }
            workers_turn |= !seat.is_guest();
            spares_turn |= seat.works.load(Relaxed);
        }
        if has_promises(shared) {
            self.busy_at = now;
            shared.blocking.redeem_promises();
            shared.compute.redeem_promises();
        }
        if unattended && shared.idle.has_sleeper() {
            // It finds nothing to do, and attends to it when it falls asleep.
            shared.notify_injected();
        }
        // Tasks from outside wait for any of them.
        self.suspects |= !workers_turn && !shared.injector.is_empty();
        if let Some((_, index)) = doubted {
            self.resolve(index, now);
        }
        if self.stuck {
            self.stuck_at = Some(now);
        }
        self.spares.look(shared, now, workers_turn);
        if !workers_turn && !spares_turn {
            self.spares
                .consider(shared, now, &self.seats, &mut self.watched);
        }
    }

    /// Finds out about a seat that is in doubt.
    fn resolve(&mut self, index: usize, now: Instant) {
        let (Some(seat), Some(watched)) = (self.seats.get(index), self.watched.get_mut(index))
        else {
            return;
        };
        match watched.ask(seat, now) {
            Found::Stuck => self.stuck = true,
            Found::Waits => self.crowded_at = Some(now),
            Found::Unknown => {}
        }
    }
}

/// Whether somebody sits on the seat and does not sleep.
fn is_awake(seat: &Seat) -> bool {
    !seat.wakeup.park.is_parked() && !seat.is_free()
}

/// Whether a closure waits for a thread of a pool that polls a task first.
fn has_promises(shared: &Shared) -> bool {
    shared.blocking.has_promises() || shared.compute.has_promises()
}

/// Whether anything waits for the sitter, or may come to.
fn is_needed(seat: &Seat) -> bool {
    seat.has_sources() || !seat.stealer.is_empty() || !seat.next.is_empty()
}

fn rescue(shared: &Shared, seat: &Seat, now: Instant) {
    seat.help(now);
    if let Some(task) = seat.next.rescue() {
        shared.inject(task);
    } else if (!seat.stealer.is_empty() || !shared.injector.is_empty()) && shared.idle.has_sleeper()
    {
        shared.notify_injected();
    }
    if let Some(error) = fence::take_refusal() {
        shared.debug.fence_refused(&error);
    }
}

/// Gives each abandoned guest seat a stand-in. Fails if no thread can be had.
fn serve_guests(shared: &Arc<Shared>) -> Result<(), ()> {
    while let Some(seat) = shared.seats.take_to_serve(Seat::has_sources) {
        let Some(core) = seat.sit() else {
            unreachable!("a free seat has its core");
        };
        if let Err(Job { seat, core }) = shared.spares.run(Job { seat, core }) {
            seat.rise(core);
            shared.seats.put_free(seat);
            return Err(());
        }
    }
    shared.monitor.bed.set_guests(false);
    if shared.seats.any_free(Seat::has_sources) {
        shared.monitor.bed.set_guests(true);
    }
    Ok(())
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
mod watched;
