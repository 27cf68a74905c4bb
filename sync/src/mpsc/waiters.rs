//! The senders that wait for slots, first come first served; their nodes lie in the waiting futures.
//!
//! # Who may touch what
//! Everything in a node belongs to who holds the channel's lock. The list lies under that lock, so `&mut Waiters` says
//! that it is held. A node that is in the list is alive: its future takes it out before it goes.
//!
//! # Where it comes from
//! [`WaitList`](crate::WaitList) has a lock and a state of its own, for conditions that lie elsewhere. Here the
//! condition (free slots) and the list change together under the one lock that a send needs anyway: a second lock
//! would be two more read-modify-writes for each sender that waits and for each that is let in.
#![expect(
    unsafe_code,
    reason = "an intrusive list: its nodes lie in pinned futures and are reached by pointer"
)]

use std::marker::PhantomPinned;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::task::Waker;

use crate::primitive::cell::UnsafeCell;

/// Where a waiting sender stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the list.
    Waiting,
    /// Out of the list; its slots are counted as reserved.
    Granted,
    /// Out of the list; the channel was closed.
    Closed,
}

/// One sender's place in the list.
pub(super) struct Node {
    /// Nothing until it is pushed for the first time: most sends do not wait. After it has left the list there is no
    /// waker in it, so nothing to be dropped.
    links: UnsafeCell<MaybeUninit<Links>>,
    _pinned: PhantomPinned,
}

struct Links {
    prev: *const Node,
    next: *const Node,
    waker: Option<Waker>,
    need: usize,
    stage: Stage,
}

// SAFETY: what is in a node is reached under the channel's lock only, from whatever thread holds it.
unsafe impl Send for Node {}
// SAFETY: as above; a shared node gives nothing away without the lock.
unsafe impl Sync for Node {}

impl Node {
    pub(super) fn new() -> Self {
        Self {
            links: UnsafeCell::new(MaybeUninit::uninit()),
            _pinned: PhantomPinned,
        }
    }
}

/// # Safety
/// `node` is alive and was pushed, and the caller holds the lock of its channel. `f` does not call this.
#[inline]
unsafe fn links<R>(node: *const Node, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: the caller's.
    let node = unsafe { &*node };
    node.links.with_mut(|links| {
        // SAFETY: the caller's: the lock makes us the only ones.
        let links = unsafe { &mut *links };
        // SAFETY: the caller's: the first `push` has written it.
        f(unsafe { links.assume_init_mut() })
    })
}

/// The list.
pub(super) struct Waiters {
    head: *const Node,
    tail: *const Node,
}

// SAFETY: the pointers lead to nodes that are reached only by who has the list; wakers may go from thread to thread.
unsafe impl Send for Waiters {}

impl Waiters {
    pub(super) const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// How many slots the first one needs.
    #[inline]
    pub(super) fn first_need(&self) -> Option<usize> {
        if self.head.is_null() {
            return None;
        }
        // SAFETY: a node in the list is alive, and `&mut`/`&` on the list says that the lock is held.
        Some(unsafe { links(self.head, |links| links.need) })
    }

    /// Appends a sender that needs so many slots.
    ///
    /// # Safety
    /// `node` is in no list. It stays where it is until it has left this one: by `pop`, or by `remove`.
    pub(super) unsafe fn push(&mut self, node: *const Node, need: usize, waker: Waker) {
        let before = self.tail;
        // SAFETY: the caller's.
        let pushed = unsafe { &*node };
        pushed.links.with_mut(|links| {
            // SAFETY: the caller's: a node in no list is its owner's, who holds the lock.
            let links = unsafe { &mut *links };
            links.write(Links {
                prev: before,
                next: ptr::null(),
                waker: Some(waker),
                need,
                stage: Stage::Waiting,
            });
        });
        if before.is_null() {
            self.head = node;
        } else {
            // SAFETY: a node of the list.
            unsafe { links(before, |links| links.next = node) };
        }
        self.tail = node;
    }

    /// Takes the first one out and says how it fared; returns its waker.
    pub(super) fn pop(&mut self, stage: Stage) -> Option<Waker> {
        let node = self.head;
        if node.is_null() {
            return None;
        }
        // SAFETY: a node of the list.
        unsafe { self.cut(node) };
        // SAFETY: the same: its owner takes the lock before the node goes.
        unsafe {
            links(node, |links| {
                links.stage = stage;
                links.waker.take()
            })
        }
    }

    /// Takes any one out; returns its waker.
    ///
    /// # Safety
    /// `node` is in this list.
    pub(super) unsafe fn remove(&mut self, node: *const Node) -> Option<Waker> {
        // SAFETY: the caller's.
        unsafe { self.cut(node) };
        // SAFETY: the caller's.
        unsafe { links(node, |links| links.waker.take()) }
    }

    /// Where a sender stands that was pushed.
    ///
    /// # Safety
    /// `node` is alive and was pushed to this list.
    #[inline]
    pub(super) unsafe fn stage(&self, node: *const Node) -> Stage {
        // SAFETY: the caller's.
        unsafe { links(node, |links| links.stage) }
    }

    /// Makes `new` the waker of a sender; returns the old one.
    ///
    /// # Safety
    /// `node` is in this list.
    pub(super) unsafe fn update(&mut self, node: *const Node, new: Waker) -> Option<Waker> {
        // SAFETY: the caller's.
        unsafe { links(node, |links| links.waker.replace(new)) }
    }

    /// Whether a waker wakes the same task as that of a sender. Runs no user code.
    ///
    /// # Safety
    /// `node` is in this list.
    pub(super) unsafe fn will_wake(&self, node: *const Node, waker: &Waker) -> bool {
        // SAFETY: the caller's.
        unsafe {
            links(node, |links| {
                links.waker.as_ref().is_some_and(|old| old.will_wake(waker))
            })
        }
    }

    /// # Safety
    /// `node` is in this list.
    unsafe fn cut(&mut self, node: *const Node) {
        // SAFETY: the caller's.
        let (prev, next) = unsafe {
            links(node, |links| {
                (
                    mem::replace(&mut links.prev, ptr::null()),
                    mem::replace(&mut links.next, ptr::null()),
                )
            })
        };
        if prev.is_null() {
            self.head = next;
        } else {
            // SAFETY: a neighbour in the list.
            unsafe { links(prev, |links| links.next = next) };
        }
        if next.is_null() {
            self.tail = prev;
        } else {
            // SAFETY: a neighbour in the list.
            unsafe { links(next, |links| links.prev = prev) };
        }
    }
}
