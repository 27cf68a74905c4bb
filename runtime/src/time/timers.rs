//! The timers of one seat: a wheel behind a lock, and the few words that spare taking it.
//!
//! # Who may touch what
//! The lock is taken by the owner of the seat (uncontended), by a monitor that fires on its behalf, and by waiting
//! sides on other threads that cancel or move a timer. No waker is cloned, woken or dropped while it is held, and it is
//! given back after every batch of wakers.
//!
//! * `next`: when `expire` is to be called, in ns; `NONE` if the wheel is empty. A crowd in one tick may have to wait for
//!   the end of that. Written under the lock, read by anyone.
//! * `seen`: the last tick that `expire` was told about. A hint, may be old; never ahead of the clock.
//! * `parked_until`: until when the owner sleeps, in ns; `RUNNING` while it does not. Set by the owner under the
//!   lock, cleared by the owner without it, and by whoever unparks the owner under it. Read under the lock. Another thread may
//!   set it in the owner's name, if it fires these timers while the owner sleeps.
//! * `relieved`: whether that is so. A hint, written by the owner.
//!
//! # The race
//! A timer is put in from elsewhere while the owner goes to sleep. The owner publishes how long it means to sleep in the
//! same critical section in which it looks for the earliest deadline, and before it looks at its queues for the last
//! time. So an inserter came before (the owner knows the deadline) or comes after (it sees `parked_until`, and unparks
//! if its deadline is earlier). Publishing after the lock was given back is the mistake that let timers fire late or
//! never in a well-known runtime. A stale `parked_until` after the owner has woken, of its own or in its name, costs one needless unpark.
//!
//! # What it costs
//! A turn with nothing due: one store and one load, both relaxed. Putting in and cancelling: one lock each. A timer
//! that never was polled: nothing.

use std::fmt;
use std::time::Instant as RealInstant;

use rt_sync::WakeBatch;
use rt_sync::primitive::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use rt_sync::primitive::{Arc, Mutex, MutexGuard};
use rt_sync::wake_batch::discard;

use super::clock::{Clock, Reading};
use super::entry::{End, EntryRef, State};
use super::wheel::{Progress, Wheel, ns_of_tick, tick_after, tick_before};
use crate::scheduler::metrics::Buckets;

/// `next`: no timer.
const NONE: u64 = u64::MAX;
/// `parked_until`: the owner does not sleep. Nothing is earlier, so nobody unparks it.
const RUNNING: u64 = 0;

/// How many timers [`Timers::expire_some`] fires in a row: 0.1 to 1 ms.
#[cfg(not(rt_loom))]
const PORTION: usize = 512;
#[cfg(rt_loom)]
const PORTION: usize = 1;

/// The timers of one seat.
pub struct Timers {
    next: AtomicU64,
    seen: AtomicU64,
    parked_until: AtomicU64,
    relieved: AtomicBool,
    wheel: Mutex<Wheel>,
    clock: Clock,
    unpark: Box<dyn Fn() + Send + Sync>,
}

impl Timers {
    /// An empty wheel. `unpark` wakes the owner out of the sleep that it announced with
    /// [`before_park`](Self::before_park); it must leave a token if the owner does not sleep yet.
    #[must_use]
    pub fn new(clock: Clock, unpark: Box<dyn Fn() + Send + Sync>) -> Arc<Timers> {
        Arc::new(Timers {
            next: AtomicU64::new(NONE),
            seen: AtomicU64::new(0),
            parked_until: AtomicU64::new(RUNNING),
            relieved: AtomicBool::new(false),
            wheel: Mutex::new(Wheel::new()),
            clock,
            unpark,
        })
    }

    /// Whether no timer is set. From another thread than the owner's the answer may be old, so this does not replace
    /// [`before_park`](Self::before_park).
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next.load(Relaxed) == NONE
    }

    /// The clock that the deadlines are on.
    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The owner is about to park: until when. `None`: no timer would wake it.
    ///
    /// To be called *before* the owner looks at its queues for the last time, also when there is no timer: from here
    /// until [`after_park`](Self::after_park) an earlier deadline unparks it (module head).
    pub fn before_park(&self) -> Option<RealInstant> {
        let wheel = self.wheel.lock();
        let mut next = self.next.load(Relaxed);
        if next <= wheel.lower_bound() {
            // Cancelled or moved back.
            next = wheel.earliest().unwrap_or(NONE);
            self.next.store(next, Relaxed);
        }
        // A paused clock does not run on while we sleep: whatever is put in has to be looked at.
        let real = if next == NONE || self.clock.is_paused() {
            None
        } else {
            let at = self.clock.instant(next);
            at.and_then(|at| self.clock.real(at))
        };
        let until = if real.is_some() { next } else { NONE };
        // Relaxed: read under the lock, which we still hold.
        self.parked_until.store(until, Relaxed);
        drop(wheel);
        real
    }

    /// The owner runs again: what is put in from here on needs no unpark.
    #[inline]
    pub fn after_park(&self) {
        self.parked_until.store(RUNNING, Relaxed);
    }

    /// For the owner, between [`before_park`](Self::before_park) and [`after_park`](Self::after_park): whether it sleeps on, since
    /// others fire these timers (`scheduler/relief.rs`). What was said before.
    pub(crate) fn set_relieved(&self, relieved: bool) -> bool {
        let before = self.relieved.load(Relaxed);
        if before != relieved {
            self.relieved.store(relieved, Relaxed);
        }
        before
    }

    /// What was said last with [`set_relieved`](Self::set_relieved).
    #[inline]
    pub(crate) fn is_relieved(&self) -> bool {
        self.relieved.load(Relaxed)
    }

    /// Whether a crowd is next, which waits for the end of its tick.
    pub(crate) fn is_crowded(&self) -> bool {
        // Relaxed, here and below: hints. Few deadlines end with a tick by chance, and a few timers may be a crowd.
        let next = self.next.load(Relaxed);
        next != NONE && ns_of_tick(tick_before(next)) == next
    }

    /// Whether the owner of these, if it sleeps, wakes up for them when something is due in `other`, or before.
    pub(crate) fn wakes_up_for(&self, other: &Self) -> bool {
        let until = self.parked_until.load(Relaxed);
        until != RUNNING && until <= other.next.load(Relaxed) && !self.is_relieved()
    }

    /// Whether [`expire`](Self::expire) would fire anything at the real time `now`, as far as the owner knows.
    pub(crate) fn is_due(&self, now: RealInstant) -> bool {
        self.is_due_by(self.clock.read(now))
    }

    #[inline]
    fn is_due_by(&self, reading: Reading) -> bool {
        // On a paused clock nothing waits for the end of its tick.
        let by = if reading.exact {
            ns_of_tick(tick_after(reading.ns))
        } else {
            reading.ns
        };
        // Relaxed: a timer that is put in from elsewhere right now is seen on the next turn; before parking the lock
        // is taken.
        by >= self.next.load(Relaxed)
    }

    /// Fires everything that is due at the real time `now`; says how many timers that were.
    ///
    /// A panic in a waker goes to the panic hook and no further; the other timers fire all the same.
    #[inline]
    pub fn expire(&self, now: RealInstant) -> usize {
        match self.due(now) {
            Some(reading) => self.expire_by(reading, || Some(self.wheel.lock()), usize::MAX),
            None => 0,
        }
    }

    /// As [`expire`](Self::expire), for who looks after the owner and has others to look after: does not wait for the lock, and
    /// stops when [`PORTION`] have fired. Whoever has the lock fires what is due, or puts a timer in and is done at once.
    pub fn expire_some(&self, now: RealInstant) -> usize {
        match self.due(now) {
            Some(reading) => self.expire_by(reading, || self.wheel.try_lock(), PORTION),
            None => 0,
        }
    }

    /// What the clock says, if anything is due by that.
    #[inline]
    fn due(&self, now: RealInstant) -> Option<Reading> {
        let reading = self.clock.read(now);
        self.seen.store(tick_before(reading.ns), Relaxed);
        self.is_due_by(reading).then_some(reading)
    }

    /// How many timers are set.
    pub(crate) fn len(&self) -> usize {
        self.wheel.lock().len()
    }

    /// How late timers fired.
    pub(crate) fn lateness(&self) -> Buckets {
        *self.wheel.lock().lateness()
    }

    /// The lock, as if somebody were at the wheel.
    #[cfg(test)]
    pub(super) fn hold(&self) -> MutexGuard<'_, Wheel> {
        self.wheel.lock()
    }

    /// For how many entries the wheel has memory, beyond what it always has.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.wheel.lock().nodes()
    }

    /// Apart, so that the way of a turn with nothing due is short.
    #[inline(never)]
    fn expire_by<'a>(
        &self,
        reading: Reading,
        lock: impl Fn() -> Option<MutexGuard<'a, Wheel>>,
        most: usize,
    ) -> usize {
        let mut batch = WakeBatch::new();
        let mut fired = 0;
        while fired < most
            && let Some(mut wheel) = lock()
        {
            let progress = wheel.expire(reading.ns, reading.exact, &mut batch, &mut fired);
            let next = match progress {
                Progress::More => ns_of_tick(wheel.elapsed()),
                Progress::Done => wheel.earliest().unwrap_or(NONE),
            };
            self.next.store(next, Relaxed);
            drop(wheel);
            wake(&mut batch);
            if progress == Progress::Done {
                break;
            }
        }
        fired
    }

    /// The runtime shuts down: ends every timer as closed and wakes who waits for it. Timers that are put in later are
    /// closed at once.
    pub fn close(&self) {
        let mut batch = WakeBatch::new();
        loop {
            let mut wheel = self.wheel.lock();
            let progress = wheel.close(&mut batch);
            if progress == Progress::Done {
                self.next.store(NONE, Relaxed);
            }
            drop(wheel);
            wake(&mut batch);
            if progress == Progress::Done {
                return;
            }
        }
    }

    /// The earliest deadline in nanoseconds since the clock's base, for a clock that is moved by hand.
    pub(super) fn earliest_exact(&self) -> Option<u64> {
        self.wheel.lock().earliest_exact()
    }

    /// Puts an entry in that is Idle, and has its waker.
    pub(super) fn insert(&self, entry: EntryRef, deadline: u64) {
        self.place(entry, deadline, false);
    }

    /// Gives an entry that is, or just was, in this wheel another deadline; its waker stays. An entry that has ended
    /// meanwhile becomes Idle.
    pub(super) fn move_to(&self, entry: EntryRef, deadline: u64) {
        self.place(entry, deadline, true);
    }

    /// Common part of [`insert`](Self::insert) and [`move_to`](Self::move_to).
    #[inline]
    fn place(&self, entry: EntryRef, deadline: u64, again: bool) {
        let tick = tick_after(deadline);
        let mut wheel = self.wheel.lock();
        if again {
            if let State::Linked(_) = entry.get().state() {
                wheel.remove(entry);
            } else {
                entry.get().set_idle();
                return;
            }
        }
        let end = if wheel.is_closed() {
            Some(End::Closed)
        } else {
            wheel.catch_up(self.seen.load(Relaxed));
            (tick <= wheel.elapsed()).then_some(End::Fired)
        };
        if let Some(end) = end {
            if !again {
                // The waiting side looks at the word next.
                entry.get().set_ended(end);
                return;
            }
            let waker = entry.get().finish(entry.deadline(), end);
            self.note_empty(&wheel);
            drop(wheel);
            if let Ok(Some(waker)) = waker {
                waker.wake();
            }
            return;
        }
        entry.get().set_deadline(deadline);
        wheel.insert(entry, deadline);
        if deadline < self.next.load(Relaxed) {
            self.next.store(deadline, Relaxed);
        }
        // It can wait for the end of its tick.
        let unpark = ns_of_tick(tick) < self.parked_until.load(Relaxed);
        if unpark {
            // Whoever comes next need not do the same: the owner will look at the wheel again.
            self.parked_until.store(RUNNING, Relaxed);
        }
        drop(wheel);
        if unpark {
            (self.unpark)();
        }
    }

    /// Takes an entry out, unless it has ended meanwhile. Afterwards the wheel does not touch it any more.
    pub(super) fn cancel(&self, entry: EntryRef) {
        let mut wheel = self.wheel.lock();
        if let State::Linked(_) = entry.get().state() {
            wheel.remove(entry);
            entry.get().set_idle();
            self.note_empty(&wheel);
        }
    }

    /// After an entry was taken out.
    #[inline]
    fn note_empty(&self, wheel: &Wheel) {
        if wheel.is_empty() {
            self.next.store(NONE, Relaxed);
        }
    }
}

/// Wakes a batch; what panics was said by the panic hook, and the owner of the wheel is an innocent caller.
fn wake(batch: &mut WakeBatch) {
    if let Some(payload) = batch.wake_all_caught() {
        discard(payload);
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("clock", &self.clock)
            .field("empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}
