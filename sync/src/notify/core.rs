//! The word and the list of a `Notify`: permits without a lock, waiters under a lock that is a bit of the word.
//!
//! # The word
//!
//! | part      | means                                                    | changed by                                |
//! |-----------|----------------------------------------------------------|-------------------------------------------|
//! | `PERMIT`  | a notification that the next waiter takes                | an exchange, while `LOCKED` is clear      |
//! | `WAITING` | there are live waiters; never together with `PERMIT`     | the holder of the lock, by unlocking      |
//! | `LOCKED`  | one thread has the list and the rest of the word         | set by an exchange, cleared by its holder |
//! | the rest  | how often `notify_waiters` was called (2^61 do not happen)| an exchange, while `LOCKED` is clear     |
//!
//! So a stored permit costs one read-modify-write, and so does everything that needs the list: the exchange that locks
//! checks `PERMIT` and the number of calls as well, and unlocking is a plain store, because nobody changes the word of
//! somebody else's lock. Who finds `LOCKED` waits (`backoff.rs`).
//!
//! # The list
//! See `list.rs`: who has set `LOCKED` has it.
//!
//! # User code
//! Wakers are cloned, woken and dropped while the word is not locked.
//!
//! # Where it comes from
//! `WaitList` has a mutex beside its word: a wait and its wake are seven read-modify-writes with it, and two here; and
//! the number of calls tells it nothing of futures that were not polled. A slot for a single waiter without a lock was
//! drawn up too: it needs four, as it has to be claimed, filled, granted and given back.
#![expect(
    unsafe_code,
    reason = "a lock of its own, and a list of nodes that lie in pinned futures"
)]

use std::fmt;
use std::ptr;
use std::task::{Poll, Waker};

use super::list::{ALL, DONE, IDLE, LAST, List, Node, ONE, WAITING};
use crate::backoff::Backoff;
use crate::primitive::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::primitive::cell::UnsafeCell;
use crate::wake_batch::{WakeBatch, in_drop, keep_first, resume};

const PERMIT: u64 = 1;
const WAITING_BIT: u64 = 1 << 1;
const LOCKED: u64 = 1 << 2;
/// One call of `notify_waiters`.
const CALL: u64 = 1 << 3;
const CALLS: u64 = !(CALL - 1);

/// Which of several waiters a notification goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Oldest,
    Newest,
}

pub(super) struct Core {
    word: AtomicU64,
    /// Belongs to who has set `LOCKED`.
    list: UnsafeCell<List>,
}

/// The lock. Unlocks when dropped.
struct Locked<'a> {
    core: &'a Core,
    /// `CALLS` and `PERMIT` of the word. Nobody else changes it while `LOCKED` is set, so it need not be read again.
    rest: u64,
}

// SAFETY: the pointers in the list lead to nodes that are reached only under the lock, from whatever thread has it;
// the wakers in them may go from thread to thread.
unsafe impl Send for Core {}
// SAFETY: as above; the list belongs to who has set `LOCKED`.
unsafe impl Sync for Core {}

impl Core {
    #[cfg(not(rt_loom))]
    pub(super) const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            list: UnsafeCell::new(List::new()),
        }
    }

    #[cfg(rt_loom)]
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            list: UnsafeCell::new(List::new()),
        }
    }

    /// A node that knows how often `notify_waiters` has been called.
    #[inline]
    pub(super) fn node(&self) -> Node {
        // Acquire: who sees a call in the number sees what was done before that call.
        let calls = self.word.load(Acquire) & CALLS;
        Node::new(calls)
    }

    /// Notifies one waiter, or leaves a permit.
    #[inline]
    pub(super) fn notify(&self, choice: Choice) {
        // Relaxed: nothing is read on its account.
        let mut word = self.word.load(Relaxed);
        loop {
            if word & LOCKED != 0 {
                word = self.wait_for_unlock();
                continue;
            }
            let next = if word & WAITING_BIT == 0 {
                // Also when there is one already: who takes it sees what was done before each call.
                word | PERMIT
            } else {
                word | LOCKED
            };
            // Release: with the Acquire of who takes the permit. (What was done before an earlier call is in it too: an
            // exchange goes on with the release sequence that it finds, and who unlocked has acquired it.)
            // Acquire: the list is that of who unlocked before.
            match self.word.compare_exchange_weak(word, next, AcqRel, Relaxed) {
                Ok(_) if next & LOCKED == 0 => return,
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let mut locked = Locked {
            core: self,
            // Without a permit, as there are waiters.
            rest: word & CALLS,
        };
        let waker = locked.with(|list| {
            let (node, state) = match choice {
                Choice::Oldest => (list.live, ONE),
                Choice::Newest => (list.tail, LAST),
            };
            // SAFETY: `WAITING` was set, so there is a live node, and the last one is live too.
            unsafe { list.notify(node, state) }
        });
        drop(locked);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Notifies every future that exists.
    #[inline]
    pub(super) fn notify_all(&self) {
        let mut word = self.word.load(Relaxed);
        let calls = loop {
            if word & LOCKED != 0 {
                word = self.wait_for_unlock();
                continue;
            }
            let called = word.wrapping_add(CALL);
            let next = if word & WAITING_BIT == 0 {
                called
            } else {
                called | LOCKED
            };
            // Release: with the Acquire of `node` and `join`. Acquire: as in `notify`.
            match self.word.compare_exchange_weak(word, next, AcqRel, Relaxed) {
                Ok(_) if next & LOCKED == 0 => return,
                Ok(_) => break called & CALLS,
                Err(now) => word = now,
            }
        };
        self.wake_detached(Locked {
            core: self,
            // Without a permit, as in `notify`.
            rest: calls,
        });
    }

    /// Wakes everybody who waited before the call that has just been counted.
    #[cold]
    fn wake_detached<'a>(&'a self, mut locked: Locked<'a>) {
        let calls = locked.calls();
        let mut batch = WakeBatch::new();
        let mut panicked = None;
        locked.with(|list| list.live = ptr::null());
        loop {
            let more = locked.with(|list| list.take_wakers(calls, &mut batch));
            drop(locked);
            keep_first(&mut panicked, batch.wake_all_caught());
            if !more {
                break;
            }
            locked = self.lock();
        }
        resume(panicked);
    }

    /// Waits until nobody has the lock, and returns the word.
    #[cold]
    fn wait_for_unlock(&self) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            backoff.wait();
            // Acquire: as in `join`.
            let word = self.word.load(Acquire);
            if word & LOCKED == 0 {
                return word;
            }
        }
    }

    #[inline]
    fn lock(&self) -> Locked<'_> {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & LOCKED != 0 {
                word = self.wait_for_unlock();
                continue;
            }
            // Acquire: the list is that of who unlocked before.
            match self
                .word
                .compare_exchange_weak(word, word | LOCKED, Acquire, Relaxed)
            {
                Ok(_) => {
                    return Locked {
                        core: self,
                        rest: word & (CALLS | PERMIT),
                    };
                }
                Err(now) => word = now,
            }
        }
    }

    /// Whether the node has been notified; waits for that otherwise, with the waker if there is one.
    ///
    /// # Safety
    /// The node is of this core, stays where it is, and [`leave`](Self::leave) is called before it or the core goes.
    /// Only its future calls this.
    #[inline]
    pub(super) unsafe fn poll(&self, node: &Node, waker: Option<&Waker>) -> Poll<()> {
        // Acquire: with the store of the notifier. What it did before is seen, and it is done with the node.
        match node.state.load(Acquire) {
            // SAFETY: the caller's.
            IDLE => unsafe { self.join(node, waker) },
            // SAFETY: the caller's.
            WAITING => unsafe { self.update(node, waker) },
            _ => {
                node.state.store(DONE, Relaxed);
                Poll::Ready(())
            }
        }
    }

    /// The first poll.
    ///
    /// # Safety
    /// As for `poll`, and the node is `IDLE`.
    #[inline]
    unsafe fn join(&self, node: &Node, waker: Option<&Waker>) -> Poll<()> {
        let mut cloned = None;
        // Acquire, here and below: with the Release of the notifier whose permit is taken or whose call is seen.
        let mut word = self.word.load(Acquire);
        loop {
            if word & CALLS != node.calls {
                // A permit that may be there is for others.
                break;
            }
            if word & LOCKED != 0 {
                word = self.wait_for_unlock();
                continue;
            }
            let next = if word & PERMIT != 0 {
                word & !PERMIT
            } else {
                if cloned.is_none() {
                    // User code, before anything is changed.
                    cloned = waker.cloned();
                }
                word | LOCKED
            };
            match self
                .word
                .compare_exchange_weak(word, next, Acquire, Acquire)
            {
                Ok(_) if next & LOCKED == 0 => break,
                Ok(_) => {
                    let mut locked = Locked {
                        core: self,
                        // Without a permit, or we would have taken it.
                        rest: node.calls,
                    };
                    // SAFETY: the node is in no list; the rest is the caller's.
                    locked.with(|list| unsafe { list.push(node, cloned) });
                    return Poll::Pending;
                }
                Err(now) => word = now,
            }
        }
        node.state.store(DONE, Relaxed);
        Poll::Ready(())
    }

    /// A later poll of a node that was `WAITING` when it was looked at.
    ///
    /// # Safety
    /// As for `poll`.
    #[cold]
    unsafe fn update(&self, node: &Node, waker: Option<&Waker>) -> Poll<()> {
        let mut replacement = None;
        loop {
            let mut locked = self.lock();
            // Relaxed: the lock orders it.
            if node.state.load(Relaxed) != WAITING {
                drop(locked);
                break;
            }
            if node.calls != locked.calls() {
                // Detached: it need not wait until its turn comes.
                // SAFETY: the node is in the list.
                let stale = locked.with(|list| unsafe { list.notify(node, ALL) });
                drop(locked);
                drop(stale);
                break;
            }
            let kept = locked.with(|_| {
                // SAFETY: the node is in the list, and nobody else has its lock.
                unsafe { node.exchange_waker(waker, &mut replacement) }
            });
            drop(locked);
            if kept {
                // A waker that was replaced, or was not needed after all, is dropped here, after the lock.
                return Poll::Pending;
            }
            replacement = waker.cloned();
        }
        node.state.store(DONE, Relaxed);
        Poll::Ready(())
    }

    /// Takes the node out; a notification for one that it has not handed out goes to the next.
    ///
    /// # Safety
    /// As for `poll`.
    #[inline]
    pub(super) unsafe fn leave(&self, node: &Node) {
        // Relaxed: these two are set by the future itself.
        if !matches!(node.state.load(Relaxed), IDLE | DONE) {
            // SAFETY: the caller's.
            unsafe { self.leave_early(node) };
        }
    }

    /// `leave` of a node that waits or has not handed out its notification.
    ///
    /// # Safety
    /// As for `poll`.
    #[cold]
    unsafe fn leave_early(&self, node: &Node) {
        // Acquire: as in `poll`.
        let mut state = node.state.load(Acquire);
        if state == WAITING {
            let mut locked = self.lock();
            // Relaxed: the lock orders it.
            state = node.state.load(Relaxed);
            let waker = if state == WAITING {
                // SAFETY: the node is in the list.
                locked.with(|list| unsafe { list.notify(node, DONE) })
            } else {
                None
            };
            drop(locked);
            drop(waker);
        }
        let choice = match state {
            ONE => Choice::Oldest,
            LAST => Choice::Newest,
            _ => return,
        };
        node.state.store(DONE, Relaxed);
        in_drop(|| self.notify(choice));
    }
}

impl Locked<'_> {
    #[inline]
    fn calls(&self) -> u64 {
        self.rest & CALLS
    }

    /// `f` is short and runs no user code.
    #[inline]
    fn with<R>(&mut self, f: impl FnOnce(&mut List) -> R) -> R {
        self.core.list.with_mut(|list| {
            // SAFETY: we have set `LOCKED`, so the list is ours until we clear it, and we are borrowed mutably.
            f(unsafe { &mut *list })
        })
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        let live = self.core.list.with(|list| {
            // SAFETY: as in `with`.
            unsafe { &*list }.live
        });
        let waiting = if live.is_null() { 0 } else { WAITING_BIT };
        // Release: with the Acquire of the next one who locks.
        self.core.word.store(self.rest | waiting, Release);
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Relaxed);
        f.debug_struct("Notify")
            .field("permit", &(word & PERMIT != 0))
            .field("waiting", &(word & WAITING_BIT != 0))
            .finish_non_exhaustive()
    }
}
