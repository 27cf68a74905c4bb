//! The next slot: one task that its worker polls before its queue.
//!
//! # What it guarantees
//! A task put in comes out exactly once: to the owner, or to the monitor, which rescues it from a worker that is stuck.
//!
//! # Who may touch what
//! The owner is whoever holds the core of the seat. It puts and takes at nearly every poll, the monitor comes once in
//! milliseconds at most. So the owner reads and writes plainly, and the rescuer pays: [`NextSlot::rescue`] asks the
//! kernel for a fence on the owner's core (`rt_io::fence`). An exchange for each take costs 7 of the 47 ns of a switch
//! between two tasks. Should the kernel refuse one day, both fence for themselves from the owner's next turn on, or some ms
//! later at the latest if the kernel lets threads move between cores; until then nothing is rescued.
//!
//! # The race
//! The owner takes the task while the monitor rescues it. Each says that it is there and then looks for the other:
//! `taking` and `rescuing`, with the pair of fences between. If the owner sees the rescuer, both exchange, and one gets
//! the task. If the rescuer sees the owner, it leaves: who takes is not stuck. They cannot both miss each other.
#![expect(unsafe_code, reason = "a Runnable is kept in an atomic pointer")]

use std::fmt;
use std::ptr::{self, NonNull};

use rt_io::fence::Pair;
use rt_sync::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use rt_sync::primitive::atomic::{AtomicBool, AtomicPtr};

use crate::task::{Header, Runnable};

/// See the module head.
pub struct NextSlot {
    task: AtomicPtr<Header>,
    /// The owner is taking. Written by the owner.
    taking: AtomicBool,
    /// Somebody rescues. Set by who rescues, one at a time.
    rescuing: AtomicBool,
    /// Between the two.
    fences: Pair,
}

impl NextSlot {
    /// An empty slot.
    #[must_use]
    pub fn new() -> Self {
        Self {
            task: AtomicPtr::new(ptr::null_mut()),
            taking: AtomicBool::new(false),
            rescuing: AtomicBool::new(false),
            fences: Pair::new(),
        }
    }

    /// The owner begins a turn.
    #[inline]
    pub fn begin_turn(&self) {
        self.fences.look();
    }

    /// Puts a task in; the one that lay there comes out. For the owner.
    #[inline]
    pub fn put(&self, task: Runnable) -> Option<Runnable> {
        let displaced = self.take();
        // Nobody but us fills the slot, and now it is empty. Release: publishes the task to a rescuer.
        self.task.store(task.into_raw().as_ptr(), Release);
        displaced
    }

    /// Takes the task out. For the owner.
    #[inline]
    pub fn take(&self) -> Option<Runnable> {
        // Acquire: with the exchange in `rescue`. An owner that has seen its task rescued is behind the rescue for good.
        if self.task.load(Acquire).is_null() {
            return None;
        }
        self.taking.store(true, Relaxed);
        self.fences.light();
        // Acquire: with the store at the end of `rescue`; if that one is over, its exchange is seen.
        let task = if self.rescuing.load(Acquire) {
            self.task.swap(ptr::null_mut(), AcqRel)
        } else {
            // Relaxed: the owner put it there.
            let task = self.task.load(Relaxed);
            self.task.store(ptr::null_mut(), Relaxed);
            task
        };
        // Release: with the load in `rescue`; who sees that the take is over sees the slot as it left it.
        self.taking.store(false, Release);
        own(task)
    }

    /// Takes the task out from under an owner that is stuck. `None` also if the owner is just taking it, or another
    /// rescuer is.
    pub fn rescue(&self) -> Option<Runnable> {
        let task = self.task.load(Relaxed);
        if task.is_null() || self.rescuing.swap(true, Acquire) {
            return None;
        }
        // Acquire: with the store at the end of `take`. AcqRel: sees the task as its putter left it; nothing is written
        // unless a task is taken.
        let rescued = self.fences.heavy()
            && !self.taking.load(Acquire)
            && self
                .task
                .compare_exchange(task, ptr::null_mut(), AcqRel, Relaxed)
                .is_ok();
        // Release: with the load in `take`, and the exchange of the next rescuer.
        self.rescuing.store(false, Release);
        if rescued { own(task) } else { None }
    }

    /// Whether there is nothing to take: a hint, unless the caller is the owner and it is `true`.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.task.load(Relaxed).is_null()
    }
}

#[inline]
fn own(ptr: *mut Header) -> Option<Runnable> {
    // SAFETY: only `put` stores a pointer, given up by `into_raw`; who reads it here has taken it out, and no one else has
    // (module head).
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
