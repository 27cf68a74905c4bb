//! A waker kept as two atomic words: read ahead by anyone, owned by who wins an exchange on a state word beside it.
//!
//! # Who may touch what
//! The structure that holds the words has a state word with a bit that says "there is a waker" and a generation that
//! changes whenever that bit is set. While the bit is set nobody writes the words. Whoever clears the bit, with a
//! compare-exchange that starts from a state read (Acquire) *before* [`WakerWords::read`], owns the waker: the
//! generation is not armed twice, so the words read are those that were published (Release) with it. A pair read
//! otherwise may be torn, and must be forgotten.
#![expect(
    unsafe_code,
    reason = "a waker is taken apart and put together again by its owner"
)]

use std::mem::ManuallyDrop;
use std::ptr;
use std::task::{RawWakerVTable, Waker};

use crate::primitive::atomic::{AtomicPtr, Ordering::Relaxed};

/// Room for a waker, without knowledge of whether there is one.
pub(crate) struct WakerWords {
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

/// What the words said, maybe torn.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    data: *mut (),
    vtable: *mut RawWakerVTable,
}

impl WakerWords {
    #[cfg(not(rt_loom))]
    pub(crate) const fn new() -> Self {
        Self {
            data: AtomicPtr::new(ptr::null_mut()),
            vtable: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[cfg(rt_loom)]
    pub(crate) fn new() -> Self {
        Self {
            data: AtomicPtr::new(ptr::null_mut()),
            vtable: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> Pair {
        Pair {
            data: self.data.load(Relaxed),
            vtable: self.vtable.load(Relaxed),
        }
    }

    /// Writes a waker, whose ownership goes to who takes it from the state word later.
    #[inline]
    pub(crate) fn write(&self, waker: &ManuallyDrop<Waker>) {
        self.data.store(waker.data().cast_mut(), Relaxed);
        self.vtable
            .store(ptr::from_ref(waker.vtable()).cast_mut(), Relaxed);
    }

    /// Whether the words are those of a waker that wakes the same task.
    #[inline]
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        let pair = self.read();
        pair.data.cast_const() == waker.data() && ptr::eq(pair.vtable, waker.vtable())
    }
}

impl Pair {
    /// # Safety
    /// The pair was written by one `write`, and the caller owns that waker (module head).
    #[inline]
    pub(crate) unsafe fn into_waker(self) -> Waker {
        // SAFETY: `write` stored a `&'static RawWakerVTable`.
        let vtable = unsafe { &*self.vtable.cast_const() };
        // SAFETY: both words come from one waker that was not dropped, and that the caller owns.
        unsafe { Waker::new(self.data.cast_const(), vtable) }
    }
}
