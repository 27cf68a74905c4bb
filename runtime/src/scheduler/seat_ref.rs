//! The sitter's reference to its seat, with spare ones for the tasks that it spawns.
//!
//! Each task holds a reference to the seat on which it was spawned. To count up at its spawn and down at its end costs
//! two read-modify-writes, 12 of 120 ns. A task that is freed by the sitter leaves its reference here instead, and the next
//! one that is spawned takes it over.
//!
//! # Who may touch what
//! `spare` of the references that the `Arc` counts are ours besides `seat`. The value is the sitter's alone.
#![expect(
    unsafe_code,
    reason = "references are kept as a number, which a list of them is too dear for"
)]

use std::cell::Cell;
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::sync::Arc;

use super::Seat;

/// See the module head.
pub(crate) struct SeatRef {
    seat: Arc<Seat>,
    spare: Cell<usize>,
}

/// How many references are kept at most, so that a seat is left within some µs.
const MOST: usize = 1024;

impl SeatRef {
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self {
            seat,
            spare: Cell::new(0),
        }
    }

    /// One more reference, for a task.
    #[inline]
    pub(crate) fn another(&self) -> Arc<Seat> {
        let spare = self.spare.get();
        if spare == 0 {
            return self.seat.clone();
        }
        self.spare.set(spare - 1);
        // SAFETY: one of the references that `keep` forgot, which is ours no more.
        unsafe { Arc::from_raw(Arc::as_ptr(&self.seat)) }
    }

    /// Keeps the reference of a task that is gone. Gives it back if it is one to another seat, or one too many.
    #[inline]
    pub(crate) fn keep(&self, seat: Arc<Seat>) -> Option<Arc<Seat>> {
        if !Arc::ptr_eq(&seat, &self.seat) || self.spare.get() == MOST {
            return Some(seat);
        }
        self.spare.set(self.spare.get() + 1);
        mem::forget(seat);
        None
    }

    /// The reference itself; the spare ones are dropped.
    pub(crate) fn into_arc(self) -> Arc<Seat> {
        self.seat.clone()
    }
}

impl Drop for SeatRef {
    fn drop(&mut self) {
        while self.spare.get() > 0 {
            drop(self.another());
        }
    }
}

impl Deref for SeatRef {
    type Target = Arc<Seat>;

    #[inline]
    fn deref(&self) -> &Arc<Seat> {
        &self.seat
    }
}

impl fmt::Debug for SeatRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeatRef")
            .field("seat", &self.seat)
            .field("spare", &self.spare)
            .finish()
    }
}
