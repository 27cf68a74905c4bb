//! The queue of those who wait for permits: an intrusive list whose nodes lie in the waiting futures.
//!
//! # The state of a node
//!
//! | state     | in the queue | left by                                                | `links` belong to |
//! |-----------|--------------|--------------------------------------------------------|-------------------|
//! | `IDLE`    | no           | the future, by joining the queue or taking permits     | the future        |
//! | `WAITING` | yes          | who holds the lock: granted, refused, or the future goes | who holds the lock|
//! | `GRANTED` | no           | nobody: the future takes the permits and is over       | the future        |
//! | `REFUSED` | no           | nobody: the future fails and is over                   | the future        |
//!
//! The store of `GRANTED` or `REFUSED` is the last thing that is done to a node: it may be gone right after it.
//!
//! # Where it comes from
//! `WaitList` is the general form. It has its lock to itself, while whether to wait, whom to serve and what is left must
//! be decided under one; and its waiters do not say how much they need. The chain is that of `list.rs`.
#![expect(
    unsafe_code,
    reason = "nodes of the queue lie in pinned futures and are reached by pointer"
)]

use std::task::Waker;

use crate::grants;
use crate::list::{self, List};
use crate::primitive::atomic::{
    AtomicU8,
    Ordering::{Acquire, Relaxed, Release},
};

pub(super) const IDLE: u8 = 0;
pub(super) const WAITING: u8 = 1;
pub(super) const GRANTED: u8 = 2;
pub(super) const REFUSED: u8 = 3;

/// A place in the queue: lies pinned in the future that waits. The value is `Some` while it is in the queue.
pub(super) type Node = list::Node<Wish, Option<Waker>>;

/// What a future waits for, and how far it has come.
pub(super) struct Wish {
    state: AtomicU8,
    /// How many permits.
    needed: usize,
}

/// What the lock guards. Each method leaves it whole.
pub(super) struct Queue {
    list: List<Wish, Option<Waker>>,
}

/// Who can be served, from the head on.
pub(super) struct Served {
    pub(super) count: usize,
    pub(super) permits: usize,
    /// Whether nobody is left then.
    pub(super) all: bool,
}

impl Node {
    /// A node for who needs so many permits.
    #[inline]
    pub(super) fn needing(permits: usize) -> Self {
        Self::new(Wish {
            state: AtomicU8::new(IDLE),
            needed: permits,
        })
    }

    /// How many permits it waits for.
    #[inline]
    pub(super) fn needed(&self) -> usize {
        self.shared().needed
    }

    #[inline]
    pub(super) fn state(&self) -> u8 {
        // Acquire: with the store of `Queue::settle`. What the releasing side did before is seen, and it is done with
        // the node.
        self.shared().state.load(Acquire)
    }

    /// The future has taken its permits without having been in the queue: as good as granted.
    pub(super) fn take_itself(&self) {
        // Relaxed: nobody else looks at a node that is in no queue.
        self.shared().state.store(GRANTED, Relaxed);
    }
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { list: List::new() }
    }

    #[inline]
    pub(super) fn head(&self) -> *const Node {
        self.list.head()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How far `available` permits reach, for at most `limit` nodes.
    #[inline]
    pub(super) fn affordable(&self, available: usize, limit: usize) -> Served {
        let mut served = Served {
            count: 0,
            permits: 0,
            all: false,
        };
        let mut at = self.head();
        while served.count < limit {
            // SAFETY: it is in the queue, so it is alive.
            let Some(node) = (unsafe { at.as_ref() }) else {
                break;
            };
            if node.needed() > available - served.permits {
                return served;
            }
            served.permits += node.needed();
            served.count += 1;
            // SAFETY: it is in the queue.
            at = unsafe { self.list.next(node) };
        }
        served.all = at.is_null();
        served
    }

    /// Appends a node, which waits from now on.
    ///
    /// # Safety
    /// `node` is `IDLE`, and stays where it is until it has left this queue.
    pub(super) unsafe fn push(&mut self, node: &Node, waker: Waker) {
        // SAFETY: the caller's; a node that is in no queue belongs to its future, which is the caller.
        unsafe { self.list.push(node, Some(waker)) };
        // Relaxed: the lock orders it.
        node.shared().state.store(WAITING, Relaxed);
    }

    /// Takes a node out, sets its state and returns its waker. The node may be gone when this returns.
    ///
    /// # Safety
    /// `node` is in this queue.
    #[inline]
    pub(super) unsafe fn settle(&mut self, node: *const Node, state: u8) -> Option<Waker> {
        // SAFETY: the caller's.
        unsafe { self.list.remove(node) };
        if state == GRANTED && grants::is_on() {
            grants::granted(node);
        }
        // SAFETY: the node is alive until the store below at least.
        let node = unsafe { &*node };
        // SAFETY: it was in the queue, and we hold the lock; its future does not touch it before the store below.
        let waker = unsafe { node.value(Option::take) };
        // Release: with the Acquire of `Node::state`; what we did to the node, and before, is done.
        node.shared().state.store(state, Release);
        waker
    }

    /// Sees to it that the waker of `node` wakes the task of `waker`, as [`list::renew`] does.
    ///
    /// # Safety
    /// `node` is in this queue.
    pub(super) unsafe fn renew(
        &mut self,
        node: &Node,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        // SAFETY: the caller's, and we hold the lock.
        unsafe { node.value(|kept| list::renew(kept, waker, spare)) }
    }
}
