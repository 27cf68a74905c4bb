//! A hierarchical wheel: which entries are due at a tick, and when the next one is.
//!
//! # How it works
//! Time counts in ticks of 2^18 ns (262 µs). Level 0 has a slot for each of 64 ticks, a slot of level 1 spans 64 ticks,
//! one of level 2 spans 64², and so on. An entry lies on the level of the highest digit (to base 64) in which its tick
//! differs from `elapsed`, in the slot that this digit names. So all entries of a level come before all entries of the
//! levels above it, and a slot number never wraps: the first slot of the lowest level in use holds the earliest.
//! Putting in and taking out is constant time, and an entry is moved at most once per level before it fires. What is
//! moved is its node in [`list`]; the entry itself is touched only when it fires.
//!
//! # What it guarantees
//! `elapsed` never passes the start of a slot that holds entries: they are fired or sorted into lower levels first.
//! An entry lies in the slot of its deadline *rounded up* to a tick, and fires when its deadline has passed: never early,
//! and at the latest when its tick is over.
//!
//! # Eight levels
//! give 48 bits of ticks, which is more than there are in a `u64` of nanoseconds. So no deadline lies beyond the top
//! level, and there is nothing to clamp: two more levels (2 KiB a seat) are cheaper than a case that comes up once in
//! 208 days and that no user ever tests.
//!
//! # The tick
//! It is how long a crowd waits, so that it is woken for together; a few have a wake-up each, at their very deadlines. Who
//! is awake fires everything that is due by the clock, whatever the tick. So in a crowd a timer is half a tick late on
//! average, and 100,000 timers that are spread over a second are fired in 3,800 turns. With half the tick and all of it
//! rounded up they were as late, since a sleeper wakes up some 60 µs after its tick, and took twice the turns.
//!
//! # Stale places
//! A deadline that was moved back (see [`super::entry`]) leaves its entry in a slot that comes too early. Everything
//! here takes the slot, and the deadline in the node, as a lower bound and the deadline in the entry as the truth.

use rt_sync::WakeBatch;

use super::entry::{End, EntryRef};
use super::list::{self, Key, Lists};
use crate::scheduler::metrics::Buckets;

/// Nanoseconds of a tick, as a power of two.
const TICK_BITS: u32 = 18;
/// Slots of a level, as a power of two.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 8;
const _: () = assert!(LEVELS * SLOTS == list::SLOTS as usize);

/// How many entries are sorted into lower levels, or looked at, before the lock is given back: some 10 to 100 µs, by how
/// far away their nodes lie.
const MOVES: usize = 512;

/// How many entries of the first slot are looked at to find the earliest. Without that a single timer would wake its
/// worker once for each level on the way down; with more of them the worker has something to do then anyway.
const LOOK: usize = 32;

/// How many entries of one tick have a wake-up each, at their very deadlines. If there are more of them, all wait for the
/// end of the tick. With two there are as many wake-ups at most as with a tick of half the length.
const FEW: usize = 2;

/// The tick by which a deadline has passed.
#[inline]
pub(super) const fn tick_after(ns: u64) -> u64 {
    ns.saturating_add((1 << TICK_BITS) - 1) >> TICK_BITS
}

/// The last tick that has passed at a point of time.
#[inline]
pub(super) const fn tick_before(ns: u64) -> u64 {
    ns >> TICK_BITS
}

/// When a tick is.
#[inline]
pub(super) const fn ns_of_tick(tick: u64) -> u64 {
    if tick > u64::MAX >> TICK_BITS {
        return u64::MAX;
    }
    tick << TICK_BITS
}

const fn level_of(slot: u16) -> usize {
    slot as usize >> SLOT_BITS
}

const fn digit_of(slot: u16) -> u32 {
    slot as u32 & (SLOTS as u32 - 1)
}

/// What [`Wheel::expire`] has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is due any more.
    Done,
    /// The batch is full, or the lock was held for long enough: call it again.
    More,
}

/// The slot that comes first.
#[derive(Debug, Clone, Copy)]
struct First {
    slot: u16,
    /// Its first tick.
    start: u64,
}

/// The wheel itself, to be kept behind a lock.
pub(super) struct Wheel {
    /// The tick up to which everything was fired.
    elapsed: u64,
    /// Which levels hold entries.
    levels: u8,
    /// Which slots hold entries, by level.
    occupied: [u64; LEVELS],
    lists: Lists,
    /// A slot of level 1 or higher whose start is `elapsed` and which is being sorted into lower levels.
    sorting: Option<u16>,
    closed: bool,
    /// Entries.
    len: usize,
    /// The clock's reading for which `expire` is called, in ns.
    reading: u64,
    /// By how much entries fired late.
    lateness: Buckets,
}

impl Wheel {
    pub(super) fn new() -> Wheel {
        Wheel {
            elapsed: 0,
            levels: 0,
            occupied: [0; LEVELS],
            lists: Lists::new(),
            sorting: None,
            closed: false,
            len: 0,
            reading: 0,
            lateness: Buckets::default(),
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.levels == 0
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// For how many entries there is memory.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.lists.nodes()
    }

    /// By how much entries fired late.
    pub(super) fn lateness(&self) -> &Buckets {
        &self.lateness
    }

    #[inline]
    pub(super) fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Puts an entry in that has this deadline, whose tick lies after `elapsed`.
    #[inline]
    pub(super) fn insert(&mut self, entry: EntryRef, deadline: u64) {
        self.len += 1;
        let key = self.lists.add(entry, deadline);
        self.link(key, tick_after(deadline));
    }

    /// Takes an entry out that is in this wheel.
    #[inline]
    pub(super) fn remove(&mut self, entry: EntryRef) {
        let key = self.lists.key_of(entry);
        self.unlink(key);
        self.release(key);
    }

    #[inline(always)]
    fn link(&mut self, key: Key, tick: u64) {
        debug_assert!(tick > self.elapsed);
        let slot = self.place(tick);
        let level = level_of(slot);
        self.lists.push_back(slot, key);
        self.occupied[level] |= 1 << digit_of(slot);
        self.levels |= 1 << level;
    }

    #[inline(always)]
    fn unlink(&mut self, key: Key) {
        if let Some(slot) = self.lists.unlink(key) {
            let level = level_of(slot);
            self.occupied[level] &= !(1 << digit_of(slot));
            if self.occupied[level] == 0 {
                self.levels &= !(1 << level);
            }
            if self.sorting == Some(slot) {
                self.sorting = None;
            }
        }
    }

    /// The entry of a node that is not linked any more has left the wheel.
    #[inline]
    fn release(&mut self, key: Key) {
        self.len -= 1;
        self.lists.free(key);
        if self.len == 0 {
            self.lists.trim();
        }
    }

    /// Moves `elapsed` towards `now` as far as there is nothing to fire or to sort, so that what is put in next lies
    /// on as low a level as it can. `now` may be an old reading.
    #[inline]
    pub(super) fn catch_up(&mut self, now: u64) {
        if now > self.elapsed {
            let before = self
                .first()
                .map_or(now, |first| first.start.saturating_sub(1));
            self.elapsed = self.elapsed.max(now.min(before));
        }
    }

    /// Fires what is due by the clock's `reading`, in ns. In a tick that is not over it looks at [`MOVES`] entries, or at
    /// `all`.
    ///
    /// Wakers go to `batch`, `fired` is counted up. Holds out for a bounded time only: see [`Progress`].
    pub(super) fn expire(
        &mut self,
        reading: u64,
        all: bool,
        batch: &mut WakeBatch,
        fired: &mut usize,
    ) -> Progress {
        self.reading = reading;
        let now = tick_before(reading);
        let mut moves = 0;
        while let Some(first) = self.first().filter(|first| first.start <= now) {
            self.elapsed = self.elapsed.max(first.start);
            if level_of(first.slot) > 0 {
                self.sorting = Some(first.slot);
            }
            while let Some(key) = self.lists.front(first.slot) {
                if batch.is_full() || moves == MOVES {
                    return Progress::More;
                }
                moves += 1;
                self.unlink(key);
                self.settle(key, ns_of_tick(self.elapsed), batch, fired);
            }
        }
        self.elapsed = self.elapsed.max(now);

        // All that is left lies after `now`. What is due within the tick lies in the slot that starts with the next
        // one, since a deadline has one place.
        if let Some(first) = self.first()
            && first.start == now + 1
        {
            let most = if all { usize::MAX } else { MOVES };
            let mut next = self.lists.front(first.slot);
            let mut looked = 0;
            while let Some(key) = next.filter(|_| looked < most) {
                looked += 1;
                next = self.lists.after(key);
                if self.lists.deadline(key) <= reading {
                    if batch.is_full() {
                        return Progress::More;
                    }
                    self.unlink(key);
                    self.settle(key, reading, batch, fired);
                }
            }
        }
        Progress::Done
    }

    /// Fires the entry of a node that was just unlinked, or puts it back if its deadline is later than `due`.
    #[inline]
    fn settle(&mut self, key: Key, due: u64, batch: &mut WakeBatch, fired: &mut usize) {
        let mut deadline = self.lists.deadline(key);
        while deadline <= due {
            match self.lists.entry(key).get().finish(deadline, End::Fired) {
                Ok(waker) => {
                    *fired += 1;
                    self.lateness.add(self.reading.saturating_sub(deadline));
                    if let Some(waker) = waker {
                        batch.push(waker);
                    }
                    return self.release(key);
                }
                Err(moved) => {
                    deadline = moved;
                    self.lists.set_deadline(key, moved);
                }
            }
        }
        self.link(key, tick_after(deadline));
    }

    /// Takes entries out and ends them as closed, until the batch is full or the wheel is empty. From the first call on
    /// the wheel [is closed](Self::is_closed).
    pub(super) fn close(&mut self, batch: &mut WakeBatch) -> Progress {
        self.closed = true;
        while let Some(first) = self.first() {
            while let Some(key) = self.lists.front(first.slot) {
                if batch.is_full() {
                    return Progress::More;
                }
                let entry = self.lists.entry(key);
                self.unlink(key);
                self.release(key);
                let mut deadline = entry.deadline();
                loop {
                    match entry.get().finish(deadline, End::Closed) {
                        Ok(Some(waker)) => break batch.push(waker),
                        Ok(None) => break,
                        Err(moved) => deadline = moved,
                    }
                }
            }
        }
        Progress::Done
    }

    /// When [`expire`](Self::expire) is to be called, in ns; nothing has to fire before. Mostly it is the earliest
    /// deadline, but for a crowd in one tick the end of that.
    pub(super) fn earliest(&self) -> Option<u64> {
        let first = self.first()?;
        let start = ns_of_tick(first.start);
        if self.sorting.is_some() {
            return Some(start);
        }
        let level = level_of(first.slot);
        let most = if level == 0 { FEW } else { LOOK };
        if self.lists.iter(first.slot).nth(most).is_some() {
            return Some(start);
        }
        // What comes after this slot need not fire earlier than here.
        let after = ns_of_tick(first.start + (1 << (SLOT_BITS * level as u32)));
        let deadlines = self.lists.iter(first.slot);
        let deadlines = deadlines.map(|key| self.lists.entry(key).deadline());
        Some(deadlines.fold(after, u64::min))
    }

    /// When something is due at the earliest, in ns, from the bitmaps alone.
    #[inline]
    pub(super) fn lower_bound(&self) -> u64 {
        self.first()
            .map_or(u64::MAX, |first| ns_of_tick(first.start.saturating_sub(1)))
    }

    /// The earliest deadline, to the nanosecond. Puts entries that lie too early where they belong.
    pub(super) fn earliest_exact(&mut self) -> Option<u64> {
        loop {
            let first = self.first()?;
            let mut earliest = None;
            let mut next = self.lists.front(first.slot);
            while let Some(key) = next {
                next = self.lists.after(key);
                let deadline = self.lists.entry(key).deadline();
                let tick = tick_after(deadline);
                if tick > self.elapsed && self.place(tick) != first.slot {
                    self.unlink(key);
                    self.lists.set_deadline(key, deadline);
                    self.link(key, tick);
                } else {
                    earliest = Some(earliest.map_or(deadline, |ns: u64| ns.min(deadline)));
                }
            }
            if earliest.is_some() {
                return earliest;
            }
        }
    }

    /// The slot for a tick after `elapsed`.
    #[inline]
    fn place(&self, tick: u64) -> u16 {
        let differ = (self.elapsed ^ tick) | (SLOTS as u64 - 1);
        let level = differ.ilog2() / SLOT_BITS;
        let digit = (tick >> (SLOT_BITS * level)) & (SLOTS as u64 - 1);
        ((level << SLOT_BITS) | digit as u32) as u16
    }

    /// The first slot that holds entries.
    #[inline]
    fn first(&self) -> Option<First> {
        if let Some(slot) = self.sorting {
            return Some(First {
                slot,
                start: self.elapsed,
            });
        }
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let digit = self.occupied[level as usize].trailing_zeros();
        let shift = SLOT_BITS * level;
        // The digits of `elapsed` above this level are those of every entry on it.
        let above = self.elapsed >> shift >> SLOT_BITS << SLOT_BITS;
        Some(First {
            slot: ((level << SLOT_BITS) | digit) as u16,
            start: (above | u64::from(digit)) << shift,
        })
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
