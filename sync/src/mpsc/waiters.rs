//! The senders that wait for slots, first come first served; their nodes lie in the waiting futures.
//!
//! # Who may touch what
//! Everything in a node belongs to who holds the channel's lock, whether the node is in the list or not. The list lies
//! under that lock, so a reference to it says that it is held. A node that is in the list is alive: its future takes it
//! out before it goes.
//!
//! # Where it comes from
//! [`WaitList`](crate::WaitList) has a lock and a state of its own, for conditions that lie elsewhere. Here the
//! condition (free slots) and the list change together under the one lock that a send needs anyway: a second lock
//! would be two more read-modify-writes for each sender that waits and for each that is let in. The chain is that of
//! `list.rs`.
#![expect(
    unsafe_code,
    reason = "nodes of the list lie in pinned futures and are reached by pointer"
)]

use std::task::Waker;

use crate::list::{self, List};

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
pub(super) type Node = list::Node<(), Turn>;

/// What is known of a sender that has been pushed.
pub(super) struct Turn {
    /// `Some` while it is in the list, and only then.
    waker: Option<Waker>,
    need: usize,
    stage: Stage,
}

/// The list.
pub(super) struct Waiters {
    list: List<(), Turn>,
}

impl Waiters {
    pub(super) const fn new() -> Self {
        Self { list: List::new() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many slots the first one needs.
    #[inline]
    pub(super) fn first_need(&self) -> Option<usize> {
        // SAFETY: a node in the list is alive.
        let head = unsafe { self.list.head().as_ref() }?;
        // SAFETY: it has been pushed, and the lock is held (module head).
        Some(unsafe { head.value(|turn| turn.need) })
    }

    /// Appends a sender that needs so many slots.
    ///
    /// # Safety
    /// `node` is in no list. It stays where it is until it has left this one: by `pop`, or by `remove`.
    pub(super) unsafe fn push(&mut self, node: *const Node, need: usize, waker: Waker) {
        let turn = Turn {
            waker: Some(waker),
            need,
            stage: Stage::Waiting,
        };
        // SAFETY: the caller's; a node in no list is its owner's, who holds the lock.
        unsafe { self.list.push(node, turn) };
    }

    /// Takes the first one out and says how it fared; returns its waker.
    pub(super) fn pop(&mut self, stage: Stage) -> Option<Waker> {
        // SAFETY: a node in the list is alive: its owner takes the lock before it goes.
        let head = unsafe { self.list.head().as_ref() }?;
        // SAFETY: a node of the list.
        unsafe { self.list.remove(head) };
        // SAFETY: it has been pushed, and the lock is held.
        unsafe {
            head.value(|turn| {
                turn.stage = stage;
                turn.waker.take()
            })
        }
    }

    /// Takes any one out; returns its waker.
    ///
    /// # Safety
    /// `node` is in this list.
    pub(super) unsafe fn remove(&mut self, node: &Node) -> Option<Waker> {
        // SAFETY: the caller's.
        unsafe { self.list.remove(node) };
        // SAFETY: it has been pushed, and the lock is held.
        unsafe { node.value(|turn| turn.waker.take()) }
    }

    /// Where a sender stands that was pushed.
    ///
    /// # Safety
    /// `node` was pushed to this list.
    #[inline]
    pub(super) unsafe fn stage(&self, node: &Node) -> Stage {
        // SAFETY: the caller's, and the lock is held.
        unsafe { node.value(|turn| turn.stage) }
    }

    /// Sees to it that the sender's waker wakes the task of `waker`, as [`list::renew`] does.
    ///
    /// # Safety
    /// `node` is in this list.
    pub(super) unsafe fn renew(
        &mut self,
        node: &Node,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        // SAFETY: the caller's, and the lock is held.
        unsafe { node.value(|turn| list::renew(&mut turn.waker, waker, spare)) }
    }
}
