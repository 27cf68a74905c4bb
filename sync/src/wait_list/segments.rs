//! What the lock of a [`WaitList`](super::WaitList) guards: the list in two segments. The module head of
//! [`wait_list`](super) has the shape, and the table of a node's states.
#![expect(
    unsafe_code,
    reason = "nodes of the list lie in pinned futures and are reached by pointer"
)]

use std::ptr;
use std::task::Waker;

use crate::list::{self, List};
use crate::primitive::atomic::{
    AtomicU8,
    Ordering::{Relaxed, Release},
};

pub(super) const IDLE: u8 = 0;
pub(super) const WAITING: u8 = 1;
pub(super) const ONE: u8 = 2;
pub(super) const ALL: u8 = 3;

/// A waiter's place: its state, and what there is to know of it while it is in the list.
pub(super) type Node<T> = list::Node<AtomicU8, Entry<T>>;

pub(super) struct Entry<T> {
    /// `Some` while it is in the list, and only then.
    pub(super) waker: Option<Waker>,
    tag: T,
    epoch: u64,
}

/// Each method leaves it whole. Who has a reference to it holds the lock.
pub(super) struct Segments<T> {
    list: List<AtomicU8, Entry<T>>,
    /// The first live node.
    live: *const Node<T>,
    len: usize,
    /// How many of `len` are detached.
    detached: usize,
    /// Of the live nodes.
    epoch: u64,
}

// SAFETY: `live` leads to a node of the list, which may go from thread to thread.
unsafe impl<T: Send> Send for Segments<T> {}

impl<T: Copy> Segments<T> {
    pub(super) const fn new() -> Self {
        Self {
            list: List::new(),
            live: ptr::null(),
            len: 0,
            detached: 0,
            epoch: 1,
        }
    }

    /// The first node of both segments; null if there is none.
    #[inline]
    pub(super) fn head(&self) -> *const Node<T> {
        self.list.head()
    }

    /// The first live node; null if there is none.
    #[inline]
    pub(super) fn live(&self) -> *const Node<T> {
        self.live
    }

    /// How many are detached.
    #[inline]
    pub(super) fn detached(&self) -> usize {
        self.detached
    }

    /// # Safety
    /// `node` is in this list.
    #[inline]
    pub(super) unsafe fn is_detached(&self, node: &Node<T>) -> bool {
        // SAFETY: the caller's.
        unsafe { node.value(|entry| entry.epoch != self.epoch) }
    }

    /// Appends a node to the live ones.
    ///
    /// # Safety
    /// `node` is in no list, and stays where it is until it has left this one.
    pub(super) unsafe fn push(&mut self, node: &Node<T>, tag: T, waker: Waker) {
        let entry = Entry {
            waker: Some(waker),
            tag,
            epoch: self.epoch,
        };
        // SAFETY: the caller's; a node that is in no list belongs to its waiter, who is the caller.
        unsafe { self.list.push(node, entry) };
        // Relaxed: the lock orders it.
        node.shared().store(WAITING, Relaxed);
        if self.live.is_null() {
            self.live = node;
        }
        self.len += 1;
    }

    /// Takes a node out, sets its state and returns its waker. The node may be gone when this returns.
    ///
    /// # Safety
    /// `node` is in this list.
    #[inline]
    pub(super) unsafe fn notify(&mut self, node: *const Node<T>, state: u8) -> Option<Waker> {
        // SAFETY: the caller's: it is alive, until the store below at least.
        let node = unsafe { &*node };
        // SAFETY: the caller's.
        if unsafe { self.is_detached(node) } {
            self.detached -= 1;
        }
        self.len -= 1;
        // SAFETY: the caller's.
        unsafe { self.cut(node) };
        // SAFETY: it was in the list, and its waiter does not touch it before the store below.
        let waker = unsafe { node.value(|entry| entry.waker.take()) };
        // Release: with the Acquire of `Waiter::poll`; what we did to the node, and before, is done.
        node.shared().store(state, Release);
        waker
    }

    /// Makes every live node a detached one; returns how many these were.
    pub(super) fn detach_all(&mut self) -> usize {
        let count = self.len - self.detached;
        self.detached = self.len;
        self.live = ptr::null();
        self.epoch += 1;
        count
    }

    /// Makes the live nodes that match detached ones, in their order; returns how many these were.
    pub(super) fn detach_matching(&mut self, mut matches: impl FnMut(T) -> bool) -> usize {
        let mut count = 0;
        let mut at = self.live;
        // SAFETY: a node of the list is alive.
        while let Some(node) = unsafe { at.as_ref() } {
            // SAFETY: it is in the list.
            at = unsafe { self.list.next(node) };
            // SAFETY: the same.
            let tag = unsafe { node.value(|entry| entry.tag) };
            if matches(tag) {
                // SAFETY: it is in the list, and live.
                unsafe { self.detach(node) };
                count += 1;
            }
        }
        count
    }

    /// Moves a live node to the end of the detached ones.
    ///
    /// # Safety
    /// `node` is in this list and live.
    unsafe fn detach(&mut self, node: &Node<T>) {
        if ptr::eq(self.live, node) {
            // It is there already: only the border moves.
            // SAFETY: the caller's.
            self.live = unsafe { self.list.next(node) };
        } else {
            // SAFETY: the caller's.
            unsafe { self.cut(node) };
            // SAFETY: it is out of the list now. `live` stood before it, so it is a node, and in the list.
            unsafe { self.list.insert_before(self.live, node) };
        }
        self.detached += 1;
        let other = self.epoch - 1;
        // SAFETY: the caller's.
        unsafe { node.value(|entry| entry.epoch = other) };
    }

    /// Takes a node out of the chain, without a look at what else is counted.
    ///
    /// # Safety
    /// `node` is in this list.
    #[inline]
    unsafe fn cut(&mut self, node: &Node<T>) {
        // SAFETY: the caller's.
        let next = unsafe { self.list.remove(node) };
        if ptr::eq(self.live, node) {
            self.live = next;
        }
    }
}
