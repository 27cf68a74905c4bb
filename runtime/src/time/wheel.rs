//! A hierarchical wheel: which entries are due at a tick, and when the next one is.
//!
//! # How it works
//! Time counts in ticks of 2^17 ns (131 µs). Level 0 has a slot for each of 64 ticks, a slot of level 1 spans 64 ticks,
//! one of level 2 spans 64², and so on. An entry lies on the level of the highest digit (to base 64) in which its tick
//! differs from `elapsed`, in the slot that this digit names. So all entries of a level come before all entries of the
//! levels above it, and a slot number never wraps: the first slot of the lowest level in use holds the earliest.
//! Putting in and taking out is constant time, and an entry is moved at most once per level before it fires.
//!
//! # What it guarantees
//! `elapsed` never passes the start of a slot that holds entries: they are fired or sorted into lower levels first.
//! An entry is due when `elapsed` has reached its deadline *rounded up* to a tick, so it is never early.
//!
//! # Eight levels
//! give 48 bits of ticks, which is more than there are in a `u64` of nanoseconds. So no deadline lies beyond the top
//! level, and there is nothing to clamp: two more levels (2 KiB a seat) are cheaper than a case that comes up once in
//! 104 days and that no user ever tests.
//!
//! # The tick
//! A finer one means more wake-ups for the same number of timers; a coarser one is later. With 131 µs a timer is 65 µs
//! late on average, and 100,000 timers spread over a second are fired in 7,600 turns.
//!
//! # Stale places
//! A deadline that was moved back (see [`super::entry`]) leaves its entry in a slot that comes too early. Everything
//! here takes the slot as a lower bound and the deadline in the entry as the truth.

use rt_sync::WakeBatch;

use super::entry::{End, EntryRef};
use super::list::List;
use crate::scheduler::metrics::Buckets;

/// Nanoseconds of a tick, as a power of two.
const TICK_BITS: u32 = 17;
/// Slots of a level, as a power of two.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 8;

/// How many entries are sorted into lower levels before the lock is given back: some 10 µs.
const MOVES: usize = 256;

/// How many entries of the first slot are looked at to find the earliest. Without that a single timer would wake its
/// worker once for each level on the way down; with more of them the worker has something to do then anyway.
const LOOK: usize = 32;

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
    slots: [List; LEVELS * SLOTS],
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
            slots: [List::EMPTY; LEVELS * SLOTS],
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

    /// Before [`expire`](Self::expire): what the clock says, so that it is known how late an entry fires.
    #[inline]
    pub(super) fn set_reading(&mut self, ns: u64) {
        self.reading = ns;
    }

    /// By how much entries fired late.
    pub(super) fn lateness(&self) -> &Buckets {
        &self.lateness
    }

    #[inline]
    pub(super) fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Puts an entry in whose deadline rounds up to `tick`, which lies after `elapsed`.
    #[inline]
    pub(super) fn insert(&mut self, entry: EntryRef, tick: u64) {
        debug_assert!(tick > self.elapsed);
        self.len += 1;
        let slot = self.place(tick);
        let level = level_of(slot);
        self.slots[usize::from(slot)].push_back(entry, slot);
        self.occupied[level] |= 1 << digit_of(slot);
        self.levels |= 1 << level;
    }

    /// Takes an entry out that is in this wheel.
    #[inline]
    pub(super) fn remove(&mut self, entry: EntryRef) {
        self.len -= 1;
        let slot = List::slot_of(entry);
        let list = &mut self.slots[usize::from(slot)];
        list.unlink(entry);
        if list.is_empty() {
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

    /// Fires what is due at tick `now`; with `exact`, also what is due by these nanoseconds, which lie within the tick.
    ///
    /// Wakers go to `batch`, `fired` is counted up. Holds out for a bounded time only: see [`Progress`].
    pub(super) fn expire(
        &mut self,
        now: u64,
        exact: Option<u64>,
        batch: &mut WakeBatch,
        fired: &mut usize,
    ) -> Progress {
        let mut moves = 0;
        while let Some(first) = self.first().filter(|first| first.start <= now) {
            self.elapsed = self.elapsed.max(first.start);
            if level_of(first.slot) > 0 {
                self.sorting = Some(first.slot);
            }
            while let Some(entry) = self.slots[usize::from(first.slot)].front() {
                if batch.is_full() || moves == MOVES {
                    return Progress::More;
                }
                moves += 1;
                self.remove(entry);
                let elapsed = self.elapsed;
                self.settle(entry, |ns| tick_after(ns) <= elapsed, batch, fired);
            }
        }
        self.elapsed = self.elapsed.max(now);

        // All that is left lies after `now`. What is due within the tick lies in the slot that starts with the next
        // one, since a deadline has one place.
        if let Some(ns) = exact
            && let Some(first) = self.first()
            && first.start == now + 1
        {
            let mut next = self.slots[usize::from(first.slot)].front();
            while let Some(entry) = next {
                next = List::after(entry);
                if entry.deadline() <= ns {
                    if batch.is_full() {
                        return Progress::More;
                    }
                    self.remove(entry);
                    self.settle(entry, |deadline| deadline <= ns, batch, fired);
                }
            }
        }
        Progress::Done
    }

    /// Fires an entry that was just taken out, or puts it back if its deadline says so.
    #[inline]
    fn settle(
        &mut self,
        entry: EntryRef,
        due: impl Fn(u64) -> bool,
        batch: &mut WakeBatch,
        fired: &mut usize,
    ) {
        let mut deadline = entry.deadline();
        while due(deadline) {
            match entry.get().finish(deadline, End::Fired) {
                Ok(waker) => {
                    *fired += 1;
                    self.lateness.add(self.reading.saturating_sub(deadline));
                    if let Some(waker) = waker {
                        batch.push(waker);
                    }
                    return;
                }
                Err(moved) => deadline = moved,
            }
        }
        self.insert(entry, tick_after(deadline));
    }

    /// Takes entries out and ends them as closed, until the batch is full or the wheel is empty. From the first call on
    /// the wheel [is closed](Self::is_closed).
    pub(super) fn close(&mut self, batch: &mut WakeBatch) -> Progress {
        self.closed = true;
        while let Some(first) = self.first() {
            while let Some(entry) = self.slots[usize::from(first.slot)].front() {
                if batch.is_full() {
                    return Progress::More;
                }
                self.remove(entry);
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

    /// A tick by which [`expire`](Self::expire) must be called; nothing is due before it. Mostly it is that of the
    /// earliest deadline.
    pub(super) fn earliest(&self) -> Option<u64> {
        let first = self.first()?;
        let level = level_of(first.slot);
        if level == 0 || self.sorting.is_some() {
            return Some(first.start);
        }
        // What comes after this slot starts no earlier than here.
        let mut earliest = first.start + (1 << (SLOT_BITS * level as u32));
        for (n, entry) in self.slots[usize::from(first.slot)].iter().enumerate() {
            if n == LOOK {
                return Some(first.start);
            }
            earliest = earliest.min(tick_after(entry.deadline()));
        }
        Some(earliest)
    }

    /// A tick before which nothing is due, from the bitmaps alone.
    #[inline]
    pub(super) fn lower_bound(&self) -> u64 {
        self.first().map_or(u64::MAX, |first| first.start)
    }

    /// The earliest deadline, to the nanosecond. Puts entries that lie too early where they belong.
    pub(super) fn earliest_exact(&mut self) -> Option<u64> {
        loop {
            let first = self.first()?;
            let mut earliest = None;
            let mut next = self.slots[usize::from(first.slot)].front();
            while let Some(entry) = next {
                next = List::after(entry);
                let deadline = entry.deadline();
                let tick = tick_after(deadline);
                if tick > self.elapsed && self.place(tick) != first.slot {
                    self.remove(entry);
                    self.insert(entry, tick);
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
