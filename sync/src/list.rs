//! The list of those who wait, first come first served: doubly linked, its nodes lie in the waiting futures.
//!
//! This is the chain and nothing else. What is decided under its lock, what a waiter is told, and who wakes it, is for
//! who has the list to say; that differs, the links do not.
//!
//! # Who may touch what
//! A list lies under a lock, and who has a reference to it holds that lock. In a node,
//!
//! - `shared` never changes hands: it is read (and, being atomic where it changes, written) by the node's owner at any
//!   time, and by who holds the lock while the node is in the list;
//! - `links`, with the value in them, belong to who holds the lock while the node is in the list. Outside of it, to the
//!   owner, or still to who holds the lock, as the list's user says.
//!
//! A node in a list is alive and stays where it is: it is pinned in a future that takes it out before it goes.
//!
//! # Cost
//! A node is not written to before it is pushed: most futures never wait. It follows that the value is not dropped with
//! the node: who takes a node out takes out of the value what has to be dropped. Under the lock nothing is dropped.
#![expect(
    unsafe_code,
    reason = "an intrusive list: its nodes lie in pinned futures and are reached by pointer"
)]

use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::ptr;
use std::task::Waker;

use crate::primitive::cell::UnsafeCell;

/// A chain of nodes.
pub(crate) struct List<S, T> {
    head: *const Node<S, T>,
    tail: *const Node<S, T>,
}

/// A future's place in a list: `shared` is there from the beginning, the value while it is in the list.
pub(crate) struct Node<S, T> {
    shared: S,
    /// Written by the first `push`.
    links: UnsafeCell<MaybeUninit<Links<S, T>>>,
    _pinned: PhantomPinned,
}

struct Links<S, T> {
    prev: *const Node<S, T>,
    next: *const Node<S, T>,
    value: T,
}

// SAFETY: the pointers lead to nodes that are reached only under the lock, from whatever thread holds it: so `shared` is
// shared between threads, and values go from thread to thread.
unsafe impl<S: Sync, T: Send> Send for List<S, T> {}

// SAFETY: the pointers in it are the list's; see there.
unsafe impl<S: Send, T: Send> Send for Node<S, T> {}
// SAFETY: `shared` may be shared, and of `links` a shared node gives nothing away without the lock (module head).
unsafe impl<S: Sync, T: Send> Sync for Node<S, T> {}

impl<S, T> Node<S, T> {
    /// A node in no list.
    #[cfg(not(rt_loom))]
    #[inline]
    pub(crate) const fn new(shared: S) -> Self {
        Self {
            shared,
            links: UnsafeCell::new(MaybeUninit::uninit()),
            _pinned: PhantomPinned,
        }
    }

    /// A node in no list.
    #[cfg(rt_loom)]
    pub(crate) fn new(shared: S) -> Self {
        Self {
            shared,
            links: UnsafeCell::new(MaybeUninit::uninit()),
            _pinned: PhantomPinned,
        }
    }

    /// What may be seen without the lock.
    #[inline]
    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }

    /// Looks at the node's value.
    ///
    /// # Safety
    /// The node has been pushed once, and `links` belong to the caller (module head): as a rule, it holds the lock. `f`
    /// does not look at the links of this node.
    #[inline]
    pub(crate) unsafe fn value<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the caller's.
        unsafe { self.links(|links| f(&mut links.value)) }
    }

    /// # Safety
    /// As for `value`.
    #[inline]
    unsafe fn links<R>(&self, f: impl FnOnce(&mut Links<S, T>) -> R) -> R {
        self.links.with_mut(|links| {
            // SAFETY: the caller's: nobody else has them.
            let links = unsafe { &mut *links };
            // SAFETY: the caller's: the first `push` has written them.
            f(unsafe { links.assume_init_mut() })
        })
    }
}

impl<S, T> List<S, T> {
    pub(crate) const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// The node that has waited longest; null if there is none.
    #[inline]
    pub(crate) fn head(&self) -> *const Node<S, T> {
        self.head
    }

    /// Appends a node.
    ///
    /// # Safety
    /// `node` is in no list, and its `links` belong to the caller. It stays where it is, and alive, until it has been
    /// removed from this list.
    #[inline]
    pub(crate) unsafe fn push(&mut self, node: *const Node<S, T>, value: T) {
        let prev = self.tail;
        // SAFETY: the caller's: it is alive.
        let pushed = unsafe { &*node };
        pushed.links.with_mut(|links| {
            // SAFETY: the caller's: nobody else has them.
            let links = unsafe { &mut *links };
            links.write(Links {
                prev,
                next: ptr::null(),
                value,
            });
        });
        // SAFETY: `prev` is in the list.
        unsafe { self.set_next(prev, node) };
        self.tail = node;
    }

    /// Takes a node out; returns the one behind it, null if there is none. The value is left where it is.
    ///
    /// # Safety
    /// `node` is in this list.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, node: *const Node<S, T>) -> *const Node<S, T> {
        // SAFETY: the caller's: it is alive.
        let node = unsafe { &*node };
        // SAFETY: a node of the list, whose lock we hold.
        let (prev, next) = unsafe { node.links(|links| (links.prev, links.next)) };
        // SAFETY: a neighbour in the list.
        unsafe { self.set_next(prev, next) };
        // SAFETY: the same.
        unsafe { self.set_prev(next, prev) };
        next
    }

    /// Puts a node that was removed back in, in front of `next`. Its value has been left where it was.
    ///
    /// # Safety
    /// As for `push`; `next` is in this list.
    pub(crate) unsafe fn insert_before(
        &mut self,
        next: *const Node<S, T>,
        node: *const Node<S, T>,
    ) {
        // SAFETY: the caller's: it is alive.
        let behind = unsafe { &*next };
        // SAFETY: a node of the list, whose lock we hold.
        let prev = unsafe { behind.links(|links| links.prev) };
        // SAFETY: the caller's: it is alive.
        let inserted = unsafe { &*node };
        // SAFETY: the caller's: the links are its own, and it was pushed before.
        unsafe {
            inserted.links(|links| {
                links.prev = prev;
                links.next = next;
            });
        }
        // SAFETY: a neighbour in the list.
        unsafe { self.set_next(prev, node) };
        // SAFETY: the same.
        unsafe { self.set_prev(next, node) };
    }

    /// The node behind `node`; null if there is none.
    ///
    /// # Safety
    /// `node` is in this list.
    #[inline]
    pub(crate) unsafe fn next(&self, node: *const Node<S, T>) -> *const Node<S, T> {
        // SAFETY: the caller's: it is alive.
        let node = unsafe { &*node };
        // SAFETY: a node of the list, whose lock we hold.
        unsafe { node.links(|links| links.next) }
    }

    /// Makes `next` what comes after `node`, or the head if that is null.
    ///
    /// # Safety
    /// `node` is null, or in this list.
    #[inline]
    unsafe fn set_next(&mut self, node: *const Node<S, T>, next: *const Node<S, T>) {
        // SAFETY: the caller's: a node of the list is alive.
        match unsafe { node.as_ref() } {
            None => self.head = next,
            // SAFETY: a node of the list, whose lock we hold.
            Some(node) => unsafe { node.links(|links| links.next = next) },
        }
    }

    /// Makes `prev` what comes before `node`, or the tail if that is null.
    ///
    /// # Safety
    /// `node` is null, or in this list.
    #[inline]
    unsafe fn set_prev(&mut self, node: *const Node<S, T>, prev: *const Node<S, T>) {
        // SAFETY: the caller's: a node of the list is alive.
        match unsafe { node.as_ref() } {
            None => self.tail = prev,
            // SAFETY: a node of the list, whose lock we hold.
            Some(node) => unsafe { node.links(|links| links.prev = prev) },
        }
    }
}

/// Sees to it that `kept` wakes the task of `waker`. If `false`, come again with a clone in `spare`, made without the
/// lock. What is left in `spare` is to be dropped without the lock. Runs no user code.
#[inline]
pub(crate) fn renew(kept: &mut Option<Waker>, waker: &Waker, spare: &mut Option<Waker>) -> bool {
    if kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
        return true;
    }
    match spare.take() {
        Some(new) => {
            *spare = kept.replace(new);
            true
        }
        None => false,
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
