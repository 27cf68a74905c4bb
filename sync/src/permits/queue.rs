//! The queue of those who wait for permits: an intrusive list whose nodes lie in the waiting futures.
//!
//! # The state of a node
//!
//! | state     | in the queue | left by                                                | `links` belong to |
//! |-----------|--------------|--------------------------------------------------------|-------------------|
//! | `IDLE`    | no           | the future, by joining the queue                       | the future        |
//! | `WAITING` | yes          | who holds the lock: granted, refused, or the future goes | who holds the lock|
//! | `GRANTED` | no           | nobody: the future takes the permits and is over       | the future        |
//! | `REFUSED` | no           | nobody: the future fails and is over                   | the future        |
//!
//! The store of `GRANTED` or `REFUSED` is the last thing that is done to a node: it may be gone right after it.
//!
//! # Where it comes from
//! `WaitList` is the general form. It has its lock to itself, while whether to wait, whom to serve and what is left must
//! be decided under one; and its waiters do not say how much they need.
#![expect(
    unsafe_code,
    reason = "an intrusive list: its nodes lie in pinned futures and are reached by pointer"
)]

use std::marker::PhantomPinned;
use std::ptr;
use std::task::Waker;

use crate::grants;
use crate::primitive::atomic::{
    AtomicU8,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::primitive::cell::UnsafeCell;

pub(super) const IDLE: u8 = 0;
pub(super) const WAITING: u8 = 1;
pub(super) const GRANTED: u8 = 2;
pub(super) const REFUSED: u8 = 3;

/// A place in the queue: lies pinned in the future that waits.
pub(super) struct Node {
    state: AtomicU8,
    /// How many permits it waits for.
    pub(super) needed: usize,
    links: UnsafeCell<Links>,
    _pinned: PhantomPinned,
}

struct Links {
    prev: *const Node,
    next: *const Node,
    waker: Option<Waker>,
}

// SAFETY: the pointers lead to nodes that are reached only under the lock, and wakers may go from thread to thread.
unsafe impl Send for Node {}
// SAFETY: shared between its future and who holds the lock, by the table in the module head.
unsafe impl Sync for Node {}

/// What the lock guards. Each method leaves it whole.
pub(super) struct Queue {
    head: *const Node,
    tail: *const Node,
}

// SAFETY: nodes are reached only under the lock, from whatever thread holds it, and wakers may go from thread to thread.
unsafe impl Send for Queue {}

/// Who can be served, from the head on.
pub(super) struct Served {
    pub(super) count: usize,
    pub(super) permits: usize,
    /// Whether nobody is left then.
    pub(super) all: bool,
}

impl Node {
    #[inline]
    pub(super) fn new(needed: usize) -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            needed,
            links: UnsafeCell::new(Links {
                prev: ptr::null(),
                next: ptr::null(),
                waker: None,
            }),
            _pinned: PhantomPinned,
        }
    }

    #[inline]
    pub(super) fn state(&self) -> u8 {
        // Acquire: with the store of `Queue::settle`. What the releasing side did before is seen, and it is done with
        // the node.
        self.state.load(Acquire)
    }
}

/// # Safety
/// The caller holds the lock of the queue that `node` is in (or is about to enter), and does not call this from `f`.
#[inline]
unsafe fn links<R>(node: *const Node, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: a node in the queue is alive: it leaves the queue before it goes.
    let node = unsafe { &*node };
    node.links.with_mut(|links| {
        // SAFETY: `links` of a node in the queue belong to who holds the lock (module head).
        f(unsafe { &mut *links })
    })
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
        }
    }

    #[inline]
    pub(super) fn head(&self) -> *const Node {
        self.head
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// How far `available` permits reach, for at most `limit` nodes.
    #[inline]
    pub(super) fn affordable(&self, available: usize, limit: usize) -> Served {
        let mut served = Served {
            count: 0,
            permits: 0,
            all: false,
        };
        let mut node = self.head;
        while served.count < limit && !node.is_null() {
            // SAFETY: it is in the queue, so it is alive.
            let needed = unsafe { (*node).needed };
            if needed > available - served.permits {
                return served;
            }
            served.permits += needed;
            served.count += 1;
            // SAFETY: the caller has the queue, so it holds the lock.
            node = unsafe { links(node, |links| links.next) };
        }
        served.all = node.is_null();
        served
    }

    /// Appends a node, which waits from now on.
    ///
    /// # Safety
    /// `node` is `IDLE`, and stays where it is until it has left this queue.
    pub(super) unsafe fn push(&mut self, node: *const Node, waker: Waker) {
        let before = self.tail;
        // SAFETY: the caller's; a node that is in no queue belongs to its future, which is the caller.
        unsafe {
            links(node, |links| {
                links.prev = before;
                links.next = ptr::null();
                links.waker = Some(waker);
            });
        }
        // SAFETY: the caller's.
        let state = unsafe { &(*node).state };
        // Relaxed: the lock orders it.
        state.store(WAITING, Relaxed);
        if before.is_null() {
            self.head = node;
        } else {
            // SAFETY: `before` is in the queue.
            unsafe { links(before, |links| links.next = node) };
        }
        self.tail = node;
    }

    /// Takes a node out, sets its state and returns its waker. The node may be gone when this returns.
    ///
    /// # Safety
    /// `node` is in this queue.
    #[inline]
    pub(super) unsafe fn settle(&mut self, node: *const Node, state: u8) -> Option<Waker> {
        // SAFETY: the caller's.
        let (prev, next, waker) =
            unsafe { links(node, |links| (links.prev, links.next, links.waker.take())) };
        if prev.is_null() {
            self.head = next;
        } else {
            // SAFETY: a neighbour in the queue.
            unsafe { links(prev, |links| links.next = next) };
        }
        if next.is_null() {
            self.tail = prev;
        } else {
            // SAFETY: a neighbour in the queue.
            unsafe { links(next, |links| links.prev = prev) };
        }
        if state == GRANTED && grants::is_on() {
            grants::granted(node);
        }
        // SAFETY: the node is alive until the store below at least.
        let node = unsafe { &*node };
        // Release: with the Acquire of `Node::state`; what we did to the node, and before, is done.
        node.state.store(state, Release);
        waker
    }

    /// Puts `new` in the place of the waker of `node`, unless that wakes the same task already; `Err` asks for a `new`.
    /// What comes back is to be dropped without the lock.
    ///
    /// # Safety
    /// `node` is in this queue.
    pub(super) unsafe fn renew(
        &mut self,
        node: *const Node,
        waker: &Waker,
        new: Option<Waker>,
    ) -> Result<Option<Waker>, ()> {
        // SAFETY: the caller's; the closure runs no user code.
        unsafe {
            links(node, |links| {
                if links.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                    Ok(new)
                } else if new.is_some() {
                    Ok(std::mem::replace(&mut links.waker, new))
                } else {
                    Err(())
                }
            })
        }
    }
}
