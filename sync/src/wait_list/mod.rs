//! A list of waiting tasks, first come first served, whose nodes lie in the waiting futures.
//!
//! # What it guarantees
//! The waiting side [polls its waiter](Waiter::poll) and *then* looks at its condition; the other side makes the
//! condition true and *then* notifies. Then the condition is seen, or the waiter is notified if it is its turn. A
//! notification goes to one waiter, which hands it out exactly once: from `poll`, from [`Waiter::remove`], or, if it is
//! dropped with a notification of [`notify_one`](WaitList::notify_one) that it has not handed out, to the next waiter.
//! Who comes after `notify_all` or `notify_matching` has begun is not notified by it.
//!
//! # Shape
//! One doubly linked list in two segments: *detached* waiters, which are as good as notified and whose wakers are about
//! to be taken, then *live* ones.
//!
//! ```text
//! head -> d1 <-> d2 <-> l1 <-> l2 <-> l3 <- tail
//!                       ^ live
//! ```
//!
//! `notify_all` detaches everybody in constant time: it moves `live` behind the tail and bumps `epoch`; a node is
//! detached if its epoch is not that of the list. `notify_matching` moves the nodes that match to the end of the first
//! segment. Then wakers are taken from the head, a [`WakeBatch`] at a time, and woken with the lock released. A
//! detached waiter that is polled or removed meanwhile takes its notification itself.
//!
//! # The state of a waiter
//!
//! | state     | in the list | `state` is left by                                    | `links` belong to |
//! |-----------|-------------|-------------------------------------------------------|-------------------|
//! | `IDLE`    | no          | the waiter, by joining the list                       | the waiter        |
//! | `WAITING` | yes         | who holds the lock: the waiter leaves, or is notified | who holds the lock|
//! | `ONE`     | no          | the waiter, which hands the notification out          | the waiter        |
//! | `ALL`     | no          | the waiter, which hands the notification out          | the waiter        |
//!
//! The store of `ONE` or `ALL` is the last thing a notifier does to a node: it may be gone right after it.
//!
//! # The race
//! A notifier that finds `occupied` clear does not take the lock. Waiter: join the list, fence, look at the condition.
//! Notifier: make the condition true, fence, look at `occupied`. Of the two fences one comes first, so one of the two
//! sees what the other did. With the lock taken, the lock orders them.
//!
//! # User code
//! Wakers are cloned, woken and dropped with the lock released and every list whole.
#![expect(
    unsafe_code,
    reason = "nodes of the list lie in pinned futures and are reached by pointer"
)]

mod segments;
mod waiter;

use std::fmt;

use self::segments::{ALL, ONE, Segments};
pub use self::waiter::Waiter;
use crate::primitive::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use crate::primitive::{Mutex, MutexGuard};
use crate::wake_batch::{WakeBatch, keep_first, resume};

/// A first-in-first-out list of [waiters](Waiter), each with a tag.
///
/// # Examples
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
/// use rt_sync::wait_list::{Notification, WaitList, Waiter};
///
/// let list = WaitList::new();
/// let mut first = pin!(Waiter::new(&list, ()));
/// let mut second = pin!(Waiter::new(&list, ()));
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(first.as_mut().poll(&mut cx).is_pending());
/// assert!(second.as_mut().poll(&mut cx).is_pending());
///
/// assert!(list.notify_one());
/// assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready(Notification::One));
/// assert!(second.as_mut().poll(&mut cx).is_pending());
/// ```
pub struct WaitList<T: Copy = ()> {
    /// Whether there are live waiters; written under the lock, read without it.
    occupied: AtomicBool,
    list: Mutex<Segments<T>>,
}

/// How a waiter was notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// By [`WaitList::notify_one`]: this waiter only, which has to use the grant or pass it on.
    One,
    /// By [`WaitList::notify_all`] or [`WaitList::notify_matching`], as all its like.
    All,
}

/// How a waiter reaches its list: by reference, or by whatever keeps the list alive.
///
/// # Safety
/// `list` always returns the same list, and that list stays where it is for as long as `self` exists.
pub unsafe trait ListRef {
    /// The tag of the list's waiters.
    type Tag: Copy;

    /// The list.
    fn list(&self) -> &WaitList<Self::Tag>;
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl<T: Copy> ListRef for &WaitList<T> {
    type Tag = T;

    #[inline]
    fn list(&self) -> &WaitList<T> {
        self
    }
}

impl<T: Copy> WaitList<T> {
    /// A list without waiters.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            occupied: AtomicBool::new(false),
            list: Mutex::new(Segments::new()),
        }
    }

    /// A list without waiters.
    #[cfg(rt_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            occupied: AtomicBool::new(false),
            list: Mutex::new(Segments::new()),
        }
    }

    /// Whether there is nobody to notify. One fence and one load, no lock.
    ///
    /// A waiter that joins at the same time and is not seen here sees everything that this thread did before.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // SeqCst: a store (the condition) before a load (`occupied`), against the opposite in `Waiter::poll`.
        fence(SeqCst);
        self.is_empty_after_fence()
    }

    /// Same as [`is_empty`](Self::is_empty) for callers that have a `fence(SeqCst)` of their own between their change
    /// of the condition and this call.
    #[inline]
    pub fn is_empty_after_fence(&self) -> bool {
        !self.occupied.load(Relaxed)
    }

    /// Notifies the waiter that has waited longest. `false` if there is none.
    #[inline]
    pub fn notify_one(&self) -> bool {
        !self.is_empty() && self.notify_first()
    }

    fn notify_first(&self) -> bool {
        let mut list = self.list.lock();
        let node = list.live();
        if node.is_null() {
            return false;
        }
        // SAFETY: we hold the lock and `node` is in the list.
        let waker = unsafe { list.notify(node, ONE) };
        self.publish(&list);
        drop(list);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Notifies everybody who waits now, and returns how many that were.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    #[inline]
    pub fn notify_all(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut list = self.list.lock();
        let count = list.detach_all();
        self.wake_detached(list);
        count
    }

    /// Notifies those who wait now and whose tag matches, and returns how many that were.
    ///
    /// `matches` is called under the lock, once for each: it must be short, must not panic and must not touch this list.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    #[inline]
    pub fn notify_matching(&self, matches: impl FnMut(T) -> bool) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut list = self.list.lock();
        let count = list.detach_matching(matches);
        if count > 0 {
            self.wake_detached(list);
        }
        count
    }

    /// Wakes everybody who is detached now, maybe on behalf of another notifier that is at it too.
    fn wake_detached<'a>(&'a self, mut list: MutexGuard<'a, Segments<T>>) {
        self.publish(&list);
        // Who is detached later stands behind these, so this is an end.
        let mut left = list.detached();
        let mut batch = WakeBatch::new();
        let mut panicked = None;
        loop {
            while left > 0 && !batch.is_full() {
                left -= 1;
                if list.detached() == 0 {
                    left = 0;
                } else {
                    let head = list.head();
                    // SAFETY: we hold the lock and `head` is in the list, since somebody is.
                    if let Some(waker) = unsafe { list.notify(head, ALL) } {
                        batch.push(waker);
                    }
                }
            }
            drop(list);
            keep_first(&mut panicked, batch.wake_all_caught());
            if left == 0 {
                break;
            }
            list = self.list.lock();
        }
        resume(panicked);
    }

    /// Makes `occupied` say what the list says.
    #[inline]
    fn publish(&self, list: &Segments<T>) {
        let occupied = !list.live().is_null();
        // Relaxed: ordered by the fences of the race in the module head, and between writers by the lock.
        if self.occupied.load(Relaxed) != occupied {
            self.occupied.store(occupied, Relaxed);
        }
    }
}

impl<T: Copy> Default for WaitList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> fmt::Debug for WaitList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitList")
            .field("occupied", &self.occupied.load(Relaxed))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
