//! The ring of cells of a `broadcast` channel and the count of its ends.
#![expect(
    unsafe_code,
    reason = "cells are reached by pointer, and freed with the channel"
)]

use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;

use super::cell::{Cell, Claimed, MAX_SHARES, Then};
use crate::notify::Notify;
use crate::primitive::Mutex;
use crate::primitive::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::wake_batch;

/// What all ends share.
pub(super) struct Shared<T> {
    /// A power of two of them; written under the lock of `tail`. The cell at a number modulo their count has the newest
    /// value of such a number.
    slots: Box<[AtomicPtr<Cell<T>>]>,
    /// The cells that the slots had at first. Here as in `Tail::more`, cells are freed with the channel only.
    cells: NonNull<[Cell<T>]>,
    tail: Mutex<Tail<T>>,
    /// The number that the next value gets: that of `tail`, readable without the lock.
    next: AtomicU64,
    pub(super) senders: AtomicUsize,
    pub(super) weak_senders: AtomicUsize,
    /// Notified after each value, and when the last sender goes.
    pub(super) sent: Notify,
    /// Notified when the last receiver goes.
    pub(super) deserted: Notify,
}

struct Tail<T> {
    next: u64,
    receivers: usize,
    /// Cells that were needed besides `cells`: as many as were orphans at one time.
    more: Vec<NonNull<Cell<T>>>,
    /// Cells that are free and have no slot.
    spare: Vec<NonNull<Cell<T>>>,
}

// SAFETY: values go from thread to thread, and are cloned by several threads at a time; cells belong to the channel.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above; who may touch what in a cell: cell.rs.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// What a receiver finds for the number that it wants.
pub(super) enum Found<R> {
    Value(R),
    /// It has not been sent.
    Nothing,
    /// It has been overwritten; the number is that of the oldest value that is there.
    Overwritten(u64),
}

/// A share that is given back when this goes, also if `clone` panics.
struct Share<'a, T> {
    shared: &'a Shared<T>,
    cell: &'a Cell<T>,
}

impl<T> Drop for Share<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let then = self.cell.unpin_share();
        self.shared.go_on(self.cell, then);
    }
}

impl<T> Shared<T> {
    #[track_caller]
    pub(super) fn new(capacity: usize) -> Self {
        assert!(
            capacity > 0,
            "a broadcast channel of capacity 0 could never hold a value: ask for at least 1"
        );
        assert!(
            capacity <= usize::MAX >> 1,
            "a broadcast channel of capacity {capacity} cannot be: at most {} is possible",
            usize::MAX >> 1
        );
        let cells: Box<[Cell<T>]> = (0..capacity.next_power_of_two())
            .map(|_| Cell::new())
            .collect();
        let cells = NonNull::from(Box::leak(cells));
        // SAFETY: they are freed when we are dropped.
        let slots = unsafe { cells.as_ref() }
            .iter()
            .map(|cell| AtomicPtr::new(NonNull::from(cell).as_ptr()))
            .collect();
        Self {
            slots,
            cells,
            tail: Mutex::new(Tail {
                next: 0,
                receivers: 0,
                more: Vec::new(),
                spare: Vec::new(),
            }),
            next: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            weak_senders: AtomicUsize::new(0),
            sent: Notify::new(),
            deserted: Notify::new(),
        }
    }

    #[inline]
    fn slot(&self, number: u64) -> &AtomicPtr<Cell<T>> {
        #[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
        let index = number as usize & (self.slots.len() - 1);
        &self.slots[index]
    }

    #[inline]
    fn cell(&self, number: u64) -> &Cell<T> {
        // Acquire: with `orphaned`; a cell that took another's place is there.
        let cell = self.slot(number).load(Acquire);
        // SAFETY: slots lead to cells, which are freed with the channel only.
        unsafe { &*cell }
    }

    /// Puts a value in, unless there is no receiver; returns how many there are, and the value that had to go.
    #[inline]
    pub(super) fn push(&self, value: T) -> Result<(usize, Option<T>), T> {
        let mut tail = self.tail.lock();
        let receivers = tail.receivers;
        if receivers == 0 {
            drop(tail);
            return Err(value);
        }
        let number = tail.next;
        tail.next += 1;
        let mut cell = self.cell(number);
        let (free, old) = match cell.claim() {
            Claimed::Free => (true, None),
            Claimed::Overwritten(old) => (false, Some(old)),
            Claimed::Orphaned => {
                cell = self.replace(number, &mut tail);
                (true, None)
            }
        };
        // SAFETY: we have the lock, and the cell is claimed or was spare.
        unsafe { cell.fill(number, value, receivers, free) };
        // Release: with `next_number`; who sees this finds the value in its cell (or a later one in its slot).
        self.next.store(number + 1, Release);
        drop(tail);
        Ok((receivers, old))
    }

    /// Gives the slot of a number another cell, as its own is an orphan now.
    #[cold]
    fn replace(&self, number: u64, tail: &mut Tail<T>) -> &Cell<T> {
        let cell = tail.spare.pop().unwrap_or_else(|| {
            let cell = NonNull::from(Box::leak(Box::new(Cell::new())));
            tail.more.push(cell);
            cell
        });
        // Release: with `cell`.
        self.slot(number).store(cell.as_ptr(), Release);
        self.cell(number)
    }

    /// Does what is left to do with a cell.
    #[inline]
    fn go_on(&self, cell: &Cell<T>, then: Then) {
        if then != Then::Nothing {
            self.put_away(cell, then);
        }
    }

    #[cold]
    fn put_away(&self, cell: &Cell<T>, mut then: Then) {
        let mut panicked = None;
        if then == Then::TakeOut {
            // SAFETY: that is what `then` says.
            let value = unsafe { cell.take_out() };
            then = cell.release();
            if mem::needs_drop::<T>() {
                // The cell has to be put away, and when `clone` panics this runs in its wake.
                panicked = panic::catch_unwind(AssertUnwindSafe(|| drop(value))).err();
            }
        }
        if then == Then::Spare {
            self.tail.lock().spare.push(NonNull::from(cell));
        }
        wake_batch::resume(panicked);
    }

    /// The number that the next value gets.
    #[inline]
    pub(super) fn next_number(&self) -> u64 {
        // Acquire: with `push`.
        self.next.load(Acquire)
    }

    /// The value of a number for a receiver that has not asked for it before: `shared` makes the result of a value that
    /// others want too, `own` of one that nobody else wants. Both may run user code.
    #[inline]
    pub(super) fn get<R>(
        &self,
        number: u64,
        shared: impl FnOnce(&T) -> R,
        own: impl FnOnce(T) -> R,
    ) -> Found<R> {
        let mut next = number;
        loop {
            let cell = self.cell(number);
            if cell.has(number) {
                match cell.pin(number) {
                    Ok(false) => {
                        let share = Share { shared: self, cell };
                        // SAFETY: pinned until `share` goes.
                        let result = unsafe { cell.with(shared) };
                        drop(share);
                        return Found::Value(result);
                    }
                    Ok(true) => {
                        // SAFETY: the last share is ours, so the value is (cell.rs, step 2).
                        let value = unsafe { cell.take_out() };
                        self.go_on(cell, cell.unpin_last());
                        return Found::Value(own(value));
                    }
                    Err(then) => self.go_on(cell, then),
                }
            }
            if next != number {
                // It had been sent when we looked, so it has been overwritten since. `next` may not say so yet, but
                // then one value is what it takes.
                let room = self.slots.len() as u64;
                return Found::Overwritten(
                    (number + 1).max(self.next_number().saturating_sub(room)),
                );
            }
            next = self.next_number();
            // Less, if we have got a value from its cell before `next` says so.
            if next <= number {
                return Found::Nothing;
            }
        }
    }

    /// Counts a receiver, and returns the number of the first value that it gets.
    #[track_caller]
    pub(super) fn add_receiver(&self) -> u64 {
        let mut tail = self.tail.lock();
        assert!(
            tail.receivers < MAX_SHARES,
            "a broadcast channel has {MAX_SHARES} receivers, more than there can be"
        );
        tail.receivers += 1;
        tail.next
    }

    /// Takes a receiver out of the count; returns the number of the first value that is not sent to it any more, and
    /// whether it was the last one.
    pub(super) fn remove_receiver(&self) -> (u64, bool) {
        let mut tail = self.tail.lock();
        tail.receivers -= 1;
        (tail.next, tail.receivers == 0)
    }

    pub(super) fn receivers(&self) -> usize {
        self.tail.lock().receivers
    }

    /// How many values are there that a receiver has not got.
    pub(super) fn len(&self) -> usize {
        let tail = self.tail.lock();
        // A receiver gets values in their order, so those that everybody has got are the oldest ones.
        let room = self.slots.len();
        #[expect(clippy::cast_possible_truncation, reason = "at most `room`")]
        let there = tail.next.min(room as u64) as usize;
        let (mut low, mut high) = (0, there);
        while low < high {
            let middle = low + (high - low) / 2;
            let number = tail.next - (there - middle) as u64;
            if self.cell(number).is_over() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        there - low
    }

    pub(super) fn is_empty(&self) -> bool {
        let tail = self.tail.lock();
        tail.next == 0 || self.cell(tail.next - 1).is_over()
    }

    /// Whether every sender has gone.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: with the last sender; whoever sees 0 sees every value.
        self.senders.load(Acquire) == 0
    }

    /// Another sender for a weak one, if there is one still.
    pub(super) fn upgrade(&self) -> bool {
        // Relaxed: the sender that is there keeps the channel open, which is all there is to know.
        self.senders
            .fetch_update(Relaxed, Relaxed, |count| (count > 0).then(|| count + 1))
            .is_ok()
    }

    /// Lets a receiver pass over a value: drops it if nobody else wants it. Returns the number to go on with.
    pub(super) fn skip(&self, number: u64) -> u64 {
        match self.get(number, |_| (), drop) {
            Found::Value(()) => number + 1,
            Found::Overwritten(oldest) => oldest,
            Found::Nothing => number,
        }
    }

    /// How many cells were needed besides those of the ring, and how many of these are spare.
    #[cfg(all(test, not(rt_loom)))]
    pub(super) fn more_cells(&self) -> (usize, usize) {
        let tail = self.tail.lock();
        (tail.more.len(), tail.spare.len())
    }
}

impl<T> Drop for Shared<T> {
    /// There are no values in the cells: the receivers had shares of all, and they have gone.
    fn drop(&mut self) {
        // SAFETY: `new` leaked it, and nobody else is left.
        drop(unsafe { Box::from_raw(self.cells.as_ptr()) });
        for cell in self.tail.get_mut().more.drain(..) {
            // SAFETY: `replace` leaked it; as above.
            drop(unsafe { Box::from_raw(cell.as_ptr()) });
        }
    }
}
