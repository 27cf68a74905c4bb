//! What few tasks have: a name, callbacks for their end, and the request of a graceful cancel.
//!
//! The header has one word for all of it. The rest is made when it is first needed, and freed with the task.
//!
//! # Who may touch what
//! The slot changes once, from null to a [`Cold`], by an exchange, and from then on everybody may read it. `name` is set
//! before the task is shared. `hooks` lies behind its lock.
//!
//! # Callbacks
//! 1. Who registers one puts it into the queue.
//! 2. It sets `HOOKS` in the state word. If the task is complete by then, it goes to step 3 itself; otherwise whoever
//!    completes the task sees the bit and does so.
//! 3. One thread at a time empties the queue: `running` is set. Others that come to this step leave what they queued to
//!    that thread, which looks once more, under the lock, before it clears `running`.
//!
//! So each callback runs once, and in the order of step 1.
//!
//! # A request
//! `asked` is set, then the list is notified; a waiter joins the list and then looks at `asked`. The list orders them.
//!
//! # User code
//! Callbacks run and are dropped, and wakers are woken, without the lock.
#![expect(
    unsafe_code,
    reason = "one word of the header leads to a box that is made when it is needed"
)]

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
// For dumps, and a number that stands for itself: not modelled.
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use rt_sync::wait_list::WaitList;

use super::done::Done;
use crate::debug::forgotten::Failure;

/// No timer counts.
const NO_GRACE: u64 = u64::MAX;

/// A callback of [`JoinHandle::on_done`](super::JoinHandle::on_done).
pub(crate) type Hook = Box<dyn FnOnce(&Done) + Send + 'static>;

/// See the module head.
pub(super) struct Cold {
    pub(super) name: Option<Arc<str>>,
    asked: AtomicBool,
    /// Those who wait for the request.
    pub(super) waiting: WaitList,
    /// The shortest grace that a timer counts, in nanoseconds, or [`NO_GRACE`].
    grace: AtomicU64,
    hooks: Mutex<Hooks>,
    /// What is told if nobody takes the error with which the task ended: see `debug/forgotten.rs`.
    failure: Mutex<Option<Failure>>,
    /// In debug mode: all polls together, and the longest one, in ns. Written by whoever polls.
    poll_total: AtomicU64,
    poll_longest: AtomicU64,
}

struct Hooks {
    queue: VecDeque<Hook>,
    running: bool,
}

impl Cold {
    fn boxed(name: Option<Arc<str>>) -> Box<Self> {
        Box::new(Self {
            name,
            asked: AtomicBool::new(false),
            waiting: WaitList::new(),
            grace: AtomicU64::new(NO_GRACE),
            hooks: Mutex::new(Hooks {
                queue: VecDeque::new(),
                running: false,
            }),
            failure: Mutex::new(None),
            poll_total: AtomicU64::new(0),
            poll_longest: AtomicU64::new(0),
        })
    }

    /// Asks the task to end.
    pub(super) fn ask(&self) {
        // Relaxed: the list orders it before the look of a waiter that it does not notify.
        self.asked.store(true, Relaxed);
        self.waiting.notify_all();
    }

    /// Whether a timer is to be started for this grace: none that was started before is over as early.
    pub(super) fn starts_grace(&self, grace: Duration) -> bool {
        let grace = u64::try_from(grace.as_nanos())
            .unwrap_or(NO_GRACE)
            .min(NO_GRACE - 1);
        // Relaxed: a number that stands for itself.
        self.grace.fetch_min(grace, Relaxed) > grace
    }

    /// A timer is gone.
    pub(super) fn end_grace(&self) {
        self.grace.store(NO_GRACE, Relaxed);
    }

    /// Whether the task was asked to end.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// A poll took so long. For whoever polls, or polled last: one that comes late counts for nothing much.
    pub(super) fn add_poll_time(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let total = self.poll_total.load(Relaxed).saturating_add(ns);
        self.poll_total.store(total, Relaxed);
        self.poll_longest
            .store(self.poll_longest.load(Relaxed).max(ns), Relaxed);
    }

    /// See [`add_poll_time`](Self::add_poll_time); `None` if no poll was timed.
    pub(super) fn poll_time(&self) -> Option<(Duration, Duration)> {
        let (total, longest) = (
            self.poll_total.load(Relaxed),
            self.poll_longest.load(Relaxed),
        );
        (total > 0).then_some((Duration::from_nanos(total), Duration::from_nanos(longest)))
    }

    /// Keeps what is to be told if nobody takes the error.
    pub(super) fn keep_failure(&self, failure: Failure) {
        let before = self.failure.lock().replace(failure);
        drop(before);
    }

    /// What is to be told, once.
    pub(super) fn take_failure(&self) -> Option<Failure> {
        self.failure.lock().take()
    }

    /// Step 1.
    pub(super) fn push(&self, hook: Hook) {
        self.hooks.lock().queue.push_back(hook);
    }

    /// Step 3: `false` if another thread is at it, or this one is further up its stack.
    pub(super) fn start_hooks(&self) -> bool {
        !std::mem::replace(&mut self.hooks.lock().running, true)
    }

    /// The next callback; after `None` the right of [`start_hooks`](Self::start_hooks) is given back.
    pub(super) fn next_hook(&self) -> Option<Hook> {
        let mut hooks = self.hooks.lock();
        let next = hooks.queue.pop_front();
        hooks.running = next.is_some();
        next
    }
}

/// The word in the header.
pub(super) struct ColdSlot(AtomicPtr<Cold>);

impl ColdSlot {
    #[inline]
    pub(super) fn new(name: Option<Arc<str>>) -> Self {
        let cold = match name {
            None => ptr::null_mut(),
            Some(name) => Box::into_raw(Cold::boxed(Some(name))),
        };
        Self(AtomicPtr::new(cold))
    }

    /// The cold part, if it was made.
    #[inline]
    pub(super) fn get(&self) -> Option<&Cold> {
        // Acquire: pairs with the exchange in `get_or_init`.
        let cold = self.0.load(Acquire);
        // SAFETY: null, or a box that lives as long as the slot.
        unsafe { cold.as_ref() }
    }

    /// The cold part, made now if need be.
    pub(super) fn get_or_init(&self) -> &Cold {
        if let Some(cold) = self.get() {
            return cold;
        }
        let new = Box::into_raw(Cold::boxed(None));
        // AcqRel: publishes the box, or sees that of another thread.
        match self
            .0
            .compare_exchange(ptr::null_mut(), new, AcqRel, Acquire)
        {
            // SAFETY: it is in the slot now and lives as long as that.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: made above, and it did not get into the slot.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: as in `get`; the exchange failed since it was not null.
                unsafe { &*other }
            }
        }
    }
}

impl Drop for ColdSlot {
    #[inline]
    fn drop(&mut self) {
        // Relaxed: whoever frees the task has ordered everything before.
        let cold = self.0.load(Relaxed);
        if !cold.is_null() {
            // SAFETY: made by `Box::into_raw`, and nobody else has the slot any more.
            drop(unsafe { Box::from_raw(cold) });
        }
    }
}
