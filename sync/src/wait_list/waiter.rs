//! A waiting future's place in a [`WaitList`](super::WaitList).
#![expect(
    unsafe_code,
    reason = "the node of the list lies in it, pinned, and is reached by pointer"
)]

use std::fmt;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::segments::{ALL, IDLE, Node, ONE, WAITING};
use super::{ListRef, Notification};
use crate::list;
use crate::primitive::atomic::{
    AtomicU8,
    Ordering::{Acquire, Relaxed, SeqCst},
    fence,
};
use crate::wake_batch::in_drop;

/// One waiting future's place in a [`WaitList`](super::WaitList): lies pinned in the future.
///
/// Dropping it leaves the list. A notification by [`notify_one`](super::WaitList::notify_one) that it has not handed out
/// is passed on to the next waiter; if there is none, it is gone. Who must not lose it then calls
/// [`remove`](Self::remove) first.
pub struct Waiter<R: ListRef> {
    list: R,
    tag: R::Tag,
    node: Node<R::Tag>,
    _pinned: PhantomPinned,
}

impl<R: ListRef> Waiter<R> {
    /// A waiter that is not in the list yet.
    #[cfg(not(rt_loom))]
    #[inline]
    pub const fn new(list: R, tag: R::Tag) -> Self {
        Self {
            list,
            tag,
            node: Node::new(AtomicU8::new(IDLE)),
            _pinned: PhantomPinned,
        }
    }

    /// A waiter that is not in the list yet.
    #[cfg(rt_loom)]
    pub fn new(list: R, tag: R::Tag) -> Self {
        Self {
            list,
            tag,
            node: Node::new(AtomicU8::new(IDLE)),
            _pinned: PhantomPinned,
        }
    }

    /// The reference to the list that was given to [`new`](Self::new).
    #[inline]
    pub fn list_ref(&self) -> &R {
        &self.list
    }

    /// Whether the waiter is in the list, or was and has not yet handed its notification out.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.node.shared().load(Relaxed) != IDLE
    }

    /// Hands a notification out, or waits for one: joins the list with the waker of `cx`, or brings its waker up to
    /// date.
    ///
    /// After `Pending`, look at the condition once more: it may have come true before the waiter was in the list. After
    /// `Ready` the waiter is out of the list, and the next call joins again, at the end.
    #[inline]
    pub fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Notification> {
        let this = self.into_ref().get_ref();
        // Acquire: with the store of the notifier. What it did before is seen, and it is done with the node.
        match this.node.shared().load(Acquire) {
            IDLE => {
                this.join(cx.waker());
                Poll::Pending
            }
            WAITING => this.update(cx.waker()),
            notified => Poll::Ready(this.hand_out(notified)),
        }
    }

    /// Leaves the list; returns the notification that was not handed out, which the caller has to use or pass on.
    #[inline]
    pub fn remove(self: Pin<&mut Self>) -> Option<Notification> {
        self.into_ref().get_ref().leave()
    }

    fn leave(&self) -> Option<Notification> {
        // Acquire: as in `poll`.
        match self.node.shared().load(Acquire) {
            IDLE => None,
            WAITING => self.unlink(),
            notified => Some(self.hand_out(notified)),
        }
    }

    fn hand_out(&self, state: u8) -> Notification {
        debug_assert!(
            // SAFETY: it was in the list, and now that it is not, it is the waiter's own.
            unsafe { self.node.value(|entry| entry.waker.is_none()) },
            "the waker is left in a node that was notified"
        );
        // Relaxed: as above, nobody else looks at it.
        self.node.shared().store(IDLE, Relaxed);
        if state == ONE {
            Notification::One
        } else {
            Notification::All
        }
    }

    fn join(&self, waker: &Waker) {
        let waker = waker.clone();
        let wait_list = self.list.list();
        let mut list = wait_list.list.lock();
        // SAFETY: the node is `IDLE`, so in no list. It is pinned, and dropping it removes it; by the contract of
        // `ListRef` the list lives until then.
        unsafe { list.push(&self.node, self.tag, waker) };
        wait_list.publish(&list);
        drop(list);
        // SeqCst: a store (`occupied`) before a load (the condition, by the caller), against the opposite in
        // `WaitList::is_empty`.
        fence(SeqCst);
    }

    /// The way of a waiter that was `WAITING` when it was looked at.
    #[inline]
    fn update(&self, waker: &Waker) -> Poll<Notification> {
        let mut replacement = None;
        loop {
            let mut list = self.list.list().list.lock();
            // Relaxed: the lock orders it.
            let state = self.node.shared().load(Relaxed);
            if state != WAITING {
                drop(list);
                return Poll::Ready(self.hand_out(state));
            }
            let node = &self.node;
            // SAFETY: we hold the lock and the node is in the list.
            if unsafe { list.is_detached(node) } {
                // SAFETY: the same.
                let stale = unsafe { list.notify(node, ALL) };
                drop(list);
                drop(stale);
                return Poll::Ready(self.hand_out(ALL));
            }
            // SAFETY: the same.
            let kept = unsafe {
                self.node
                    .value(|entry| list::renew(&mut entry.waker, waker, &mut replacement))
            };
            drop(list);
            if kept {
                // A waker that was replaced, or was not needed after all, is dropped here, after the lock.
                return Poll::Pending;
            }
            replacement = Some(waker.clone());
        }
    }

    fn unlink(&self) -> Option<Notification> {
        let wait_list = self.list.list();
        let mut list = wait_list.list.lock();
        // Relaxed: the lock orders it.
        let state = self.node.shared().load(Relaxed);
        if state != WAITING {
            drop(list);
            return Some(self.hand_out(state));
        }
        let node = &self.node;
        // SAFETY: we hold the lock and the node is in the list.
        let notification = unsafe { list.is_detached(node) }.then_some(Notification::All);
        // SAFETY: the same.
        let waker = unsafe { list.notify(node, IDLE) };
        wait_list.publish(&list);
        drop(list);
        drop(waker);
        notification
    }
}

impl<R: ListRef> Drop for Waiter<R> {
    fn drop(&mut self) {
        if self.leave() == Some(Notification::One) {
            in_drop(|| {
                self.list.list().notify_one();
            });
        }
    }
}

impl<R: ListRef> fmt::Debug for Waiter<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.node.shared().load(Relaxed) {
            IDLE => "idle",
            WAITING => "waiting",
            _ => "notified",
        };
        f.debug_struct("Waiter")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
