//! The readiness of one source: what the selector reported, and who waits for it.
//!
//! # What it guarantees
//! A task that parks on a direction is woken by the next event of that direction, by the close of the driver, or finds
//! the direction ready when it looks again. Readiness that a newer event reported is never cleared by an operation
//! that started before it.
//!
//! # The word
//! ```text
//! tick (all upper bits) | URGENT | WAITERS | CLOSED | six bits of `Ready`
//! ```
//! Every event bumps the tick. `CLOSED`: the driver is gone, never cleared. `WAITERS`: somebody may be in the list;
//! set and cleared under the lock of the list. `URGENT`: an event has told of urgent data, never cleared (race 4).
//!
//! # Who may touch what
//! `word`: anyone. `reader` and `writer`: one waiting task each, registered by whoever polls `poll_read` and
//! `poll_write`. `waiters`: behind its lock; it is a slab that is allocated by the first `readable()` and the like.
//!
//! # The races
//! 1. Event against clear. An operation loads the word, sees "ready", gets `WouldBlock` and clears. If an event came
//!    between, the tick has moved and the clear does nothing; the operation tries again.
//! 2. Event against a parking task. The event does (a) set the bits, (b) take the waker. The task does (c) store the
//!    waker, (d) load the word again. Both touch the waker slot with read-modify-writes: if (b) comes before (c), then (d)
//!    sees (a); else (b) finds the waker. For the list, the task sets `WAITERS` with a read-modify-write of the word after it
//!    has put itself in: either that one sees (a), or (a) sees `WAITERS`.
//! 3. Only bits that become set wake. Who has parked saw its bits clear at (d); an event that finds one of them set
//!    comes after an event that set it, and that one wakes. This saves the look at the writer's slot at every message
//!    that arrives on an idle socket.
//! 4. A short read against urgent data. A read of a TCP stream stops at the mark of urgent data, with more behind it, so
//!    it does not prove that the stream is drained. The data comes with an event of its own. If that was seen before
//!    the read, `URGENT` is set and a short read clears nothing; if not, it moves the tick or comes after the clear, and
//!    makes the stream readable again. It stays set, since the mark outlives `PRIORITY`, which whoever takes the urgent
//!    byte may clear. One hole is left: who takes that byte before any event has told of it, by a `recv` of their own.
//!
//! # User code
//! None runs in here but `Waker::clone`, outside the lock. Wakers that are taken go to the caller, who wakes them when it
//! holds no lock.
//!
//! # Where it comes from
//! tokio's `ScheduledIo`. The list is a slab instead of an intrusive list: everybody who matches is woken, so it needs
//! no order, and the slab needs no `unsafe`.

use std::fmt;
use std::io;
use std::mem;
use std::task::{Poll, Waker};

use rt_sync::AtomicWaker;
use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use slab::Slab;

use super::ready::{Interest, Ready};

const CLOSED: usize = 1 << 6;
const WAITERS: usize = 1 << 7;
const URGENT: usize = 1 << 8;
const TICK: usize = 1 << 9;
/// From the bit of `PRIORITY` to `URGENT`.
const TO_URGENT: u32 = URGENT.trailing_zeros() - Ready::PRIORITY.bits().trailing_zeros();

/// One of the two directions that have a waker slot of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `poll_read`, `poll_accept`.
    Read,
    /// `poll_write`, connect.
    Write,
}

impl Direction {
    /// What makes an operation of this direction worth trying.
    #[inline]
    #[must_use]
    pub const fn mask(self) -> Ready {
        match self {
            Direction::Read => Interest::READABLE.mask(),
            Direction::Write => Interest::WRITABLE.mask(),
        }
    }

    /// The same without the bit of a closed half.
    #[inline]
    #[must_use]
    pub const fn data(self) -> Ready {
        match self {
            Direction::Read => Ready::READABLE,
            Direction::Write => Ready::WRITABLE,
        }
    }

    /// The other one.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Direction {
        match self {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        }
    }
}

/// What the word said at one moment: needed to clear readiness later.
#[derive(Debug, Clone, Copy)]
pub struct Seen(usize);

impl Seen {
    /// The bits.
    #[inline]
    #[must_use]
    pub fn ready(self) -> Ready {
        Ready::from_word(self.0)
    }

    /// Whether the driver is gone.
    #[inline]
    #[must_use]
    pub fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Whether there is no reason to wait for `mask`: it is there, or the driver is gone.
    #[inline]
    #[must_use]
    pub fn has(self, mask: Ready) -> bool {
        self.0 & (mask.bits() | CLOSED) != 0
    }
}

/// A place in the list; kept by the future that waits.
pub type Key = usize;

struct Waiter {
    mask: Ready,
    /// `None` once woken.
    waker: Option<Waker>,
}

/// The readiness word of one source, its two waker slots and its list.
pub struct Readiness {
    word: AtomicUsize,
    reader: AtomicWaker,
    writer: AtomicWaker,
    /// In a box, since most sources never have one.
    waiters: Mutex<Option<Box<Slab<Waiter>>>>,
}

impl Readiness {
    /// Readiness as assumed before the first event.
    #[must_use]
    pub fn new(initial: Ready) -> Self {
        Self {
            word: AtomicUsize::new(initial.bits()),
            reader: AtomicWaker::new(),
            writer: AtomicWaker::new(),
            waiters: Mutex::new(None),
        }
    }

    /// Looks at the word.
    #[inline]
    pub fn load(&self) -> Seen {
        // Acquire: pairs with `set`; what came before the event is seen by the operation that it allows.
        Seen(self.word.load(Acquire))
    }

    /// An event: sets bits, and moves the wakers of who waited for them to `woken`.
    pub fn set(&self, ready: Ready, woken: &mut Vec<Waker>) {
        let bits = ready.bits();
        let bits = bits | (bits & Ready::PRIORITY.bits()) << TO_URGENT;
        let mut old = self.word.load(Relaxed);
        loop {
            let new = (old | bits).wrapping_add(TICK);
            // Release: pairs with `load` and with the `fetch_or` of `wait`. Acquire is not needed: what is read here
            // is only the word itself, and the wakers have their own order.
            match self.word.compare_exchange_weak(old, new, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        // Race 3 in the module head.
        let fresh = Ready::from_word(bits & !old);
        self.take(fresh, old & WAITERS != 0, woken);
    }

    /// Forgets readiness that an operation found used up, unless an event came since `seen`. Returns whether it did.
    #[inline]
    pub fn clear(&self, mask: Ready, seen: Seen) -> bool {
        let mut old = seen.0;
        loop {
            let new = old & !mask.bits();
            if old == new {
                return true;
            }
            // Relaxed: an unchanged tick says that no event came since `seen`, and a read-modify-write leaves the
            // release sequence of older events whole.
            match self.word.compare_exchange(old, new, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) if now / TICK == seen.0 / TICK => old = now,
                Err(_) => return false,
            }
        }
    }

    /// The driver is gone: everybody who waits is moved to `woken`, nobody parks any more.
    pub fn close(&self, woken: &mut Vec<Waker>) {
        // Release: pairs with `load`, as in `set`.
        let old = self.word.fetch_or(CLOSED, Release);
        self.take(Ready::ALL, old & WAITERS != 0, woken);
    }

    /// Runs an operation while the direction is ready; parks the task when it is not. `Ready(None)`: the driver is gone.
    ///
    /// `WouldBlock` clears the whole direction, "closed" included: else an operation that says so in spite of a closed
    /// half spins. A result that `drained` accepts clears the bit that says "there is data", so that the end of the
    /// stream stays known; but not where urgent data was seen (race 4).
    #[inline]
    pub fn poll_op<R>(
        &self,
        direction: Direction,
        waker: &Waker,
        mut op: impl FnMut() -> io::Result<R>,
        drained: impl Fn(&R) -> bool,
    ) -> Poll<Option<io::Result<R>>> {
        let mask = direction.mask();
        loop {
            let seen = self.load();
            if seen.has(mask) {
                if seen.is_closed() {
                    return Poll::Ready(None);
                }
                match op() {
                    Ok(value) => {
                        if drained(&value) && seen.0 & URGENT == 0 {
                            self.clear(direction.data(), seen);
                        }
                        return Poll::Ready(Some(Ok(value)));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.clear(mask, seen);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            } else if self.park(direction, waker).is_none() {
                return Poll::Pending;
            }
        }
    }

    /// Stores the waker of one direction. `None`: park; otherwise the direction became ready meanwhile.
    #[inline]
    pub fn park(&self, direction: Direction, waker: &Waker) -> Option<Seen> {
        self.slot(direction).register(waker);
        let seen = self.load();
        seen.has(direction.mask()).then_some(seen)
    }

    /// Drops the waker of one direction, for a waiting side that goes away.
    pub fn unpark(&self, direction: Direction) {
        self.slot(direction).clear();
    }

    /// Puts a waiter into the list, or renews its waker. `None`: wait; otherwise it is ready already.
    ///
    /// The caller owns the key and gives it back with [`forget`](Self::forget).
    pub fn wait(&self, key: &mut Option<Key>, mask: Ready, waker: &Waker) -> Option<Seen> {
        // Cloned before the lock is taken; what it replaces is dropped after it is released.
        let waker = Some(waker.clone());
        let mut waiters = self.waiters.lock();
        let list = waiters.get_or_insert_with(Box::default);
        let replaced = match *key {
            Some(key) => mem::replace(&mut list[key].waker, waker),
            None => {
                *key = Some(list.insert(Waiter { mask, waker }));
                None
            }
        };
        // Acquire: pairs with `set`, as in `load`.
        let seen = Seen(self.word.fetch_or(WAITERS, Acquire));
        drop(waiters);
        drop(replaced);
        seen.has(mask).then_some(seen)
    }

    /// Takes a waiter out of the list.
    pub fn forget(&self, key: Key) {
        let mut waiters = self.waiters.lock();
        let waiter = waiters.as_mut().and_then(|list| list.try_remove(key));
        drop(waiters);
        drop(waiter);
    }

    #[inline]
    fn slot(&self, direction: Direction) -> &AtomicWaker {
        match direction {
            Direction::Read => &self.reader,
            Direction::Write => &self.writer,
        }
    }

    /// Always inline: a call for each event is 20 instructions of saving registers.
    #[inline(always)]
    fn take(&self, fresh: Ready, waiters: bool, woken: &mut Vec<Waker>) {
        for direction in [Direction::Read, Direction::Write] {
            if !(fresh & direction.mask()).is_empty()
                && let Some(waker) = self.slot(direction).take()
            {
                woken.push(waker);
            }
        }
        if waiters && !fresh.is_empty() {
            self.take_waiters(fresh, woken);
        }
    }

    #[cold]
    fn take_waiters(&self, fresh: Ready, woken: &mut Vec<Waker>) {
        let mut waiters = self.waiters.lock();
        let mut left = false;
        for (_, waiter) in waiters.iter_mut().flat_map(|list| list.iter_mut()) {
            if (waiter.mask & fresh).is_empty() {
                left |= waiter.waker.is_some();
            } else {
                woken.extend(waiter.waker.take());
            }
        }
        if !left {
            // Relaxed: who sets it does so under this lock.
            self.word.fetch_and(!WAITERS, Relaxed);
        }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Relaxed);
        f.debug_struct("Readiness")
            .field("ready", &Ready::from_word(word))
            .field("closed", &(word & CLOSED != 0))
            .field("tick", &(word / TICK))
            .finish_non_exhaustive()
    }
}
