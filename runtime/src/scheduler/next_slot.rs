//! The next slot: one task that its worker polls before its queue.
//!
//! # What it guarantees
//! A task put in comes out exactly once: to the owner, or to the monitor, which rescues it from a worker that is stuck.
//!
//! # Who may touch what
//! One atomic pointer. The owner alone puts, so it fills an empty slot by a store; every access that takes a task out is an
//! exchange, so anyone may take.
//!
//! # The race
//! The owner takes or replaces the task while the monitor rescues it: both exchange, one gets it.
#![expect(unsafe_code, reason = "a Runnable is kept in an atomic pointer")]

use std::fmt;
use std::ptr::{self, NonNull};

use rt_sync::primitive::atomic::AtomicPtr;
use rt_sync::primitive::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::task::{Header, Runnable};

/// See the module head.
pub struct NextSlot(AtomicPtr<Header>);

impl NextSlot {
    /// An empty slot.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts a task in; the one that lay there comes out.
    #[inline]
    pub fn put(&self, task: Runnable) -> Option<Runnable> {
        let task = task.into_raw().as_ptr();
        if self.is_empty() {
            // Nobody but us fills an empty slot. Release: publishes the task to whoever takes it.
            self.0.store(task, Release);
            return None;
        }
        // AcqRel: publishes the task to whoever takes it, and sees the one taken out.
        own(self.0.swap(task, AcqRel))
    }

    /// Takes the task out.
    #[inline]
    pub fn take(&self) -> Option<Runnable> {
        if self.is_empty() {
            return None;
        }
        // AcqRel: sees the task as its putter left it.
        own(self.0.swap(ptr::null_mut(), AcqRel))
    }

    /// Whether there is nothing to take: a hint, unless the caller is the owner and it is `true`.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.load(Relaxed).is_null()
    }
}

#[inline]
fn own(ptr: *mut Header) -> Option<Runnable> {
    // SAFETY: only `put` stores a pointer, given up by `into_raw`; the exchange that brought it here took it out.
    NonNull::new(ptr).map(|ptr| unsafe { Runnable::from_queue(ptr) })
}

impl Default for NextSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for NextSlot {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl fmt::Debug for NextSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextSlot")
            .field("empty", &self.is_empty())
            .finish()
    }
}
