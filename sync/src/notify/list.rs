//! The list of a `Notify` and the nodes in it, which lie in the waiting futures.
//!
//! # Shape
//! *Detached* nodes come first: they were there when `notify_waiters` was called and are as good as notified; their
//! wakers are about to be taken. Then come the *live* ones. A node keeps the number of calls that it was made at, joins
//! only while that is the number of the word, and is detached when it is not any more.
//!
//! ```text
//! head -> d1 <-> d2 <-> l1 <-> l2 <-> l3 <- tail
//!                       ^ live
//! ```
//!
//! # The state of a node
//!
//! | state             | in the list | left by                                           | `links` belong to |
//! |-------------------|-------------|---------------------------------------------------|-------------------|
//! | `IDLE`            | no          | its future, by joining or by being done           | the future        |
//! | `WAITING`         | yes         | who holds the lock: the future goes, or a notifier| who holds the lock|
//! | `ONE` `LAST` `ALL`| no          | its future, by being done                         | the future        |
//! | `DONE`            | no          | nobody                                            | the future        |
//!
//! The store of `ONE`, `LAST` or `ALL` is the last thing a notifier does to a node: it may be gone right after it.
#![expect(
    unsafe_code,
    reason = "an intrusive list: its nodes lie in pinned futures and are reached by pointer"
)]

use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::ptr;
use std::task::Waker;

use crate::primitive::atomic::{
    AtomicU8,
    Ordering::{Relaxed, Release},
};
use crate::primitive::cell::UnsafeCell;
use crate::wake_batch::WakeBatch;

pub(super) const IDLE: u8 = 0;
pub(super) const WAITING: u8 = 1;
pub(super) const ONE: u8 = 2;
pub(super) const LAST: u8 = 3;
pub(super) const ALL: u8 = 4;
pub(super) const DONE: u8 = 5;

/// A future's place in the list.
pub(super) struct Node {
    pub(super) state: AtomicU8,
    /// `CALLS` of the word when the future was made; never changed.
    pub(super) calls: u64,
    /// Written when the node joins the list, and not before: a future that is ready at once should not pay for them, and
    /// one that waits is moved when it is made, which costs most where the last thing written is copied.
    links: UnsafeCell<MaybeUninit<Links>>,
    _pinned: PhantomPinned,
}

struct Links {
    prev: *const Node,
    next: *const Node,
    /// `Some` only while the node is in the list; so there is never one to be dropped with the node.
    waker: Option<Waker>,
}

/// Who has a `&mut List` has the lock.
pub(super) struct List {
    head: *const Node,
    pub(super) tail: *const Node,
    /// The first live node.
    pub(super) live: *const Node,
}

// SAFETY: a node is shared between its future and who holds the lock, by the table in the module head.
unsafe impl Send for Node {}
// SAFETY: as above; a shared future lets its state be read, nothing else.
unsafe impl Sync for Node {}

impl List {
    pub(super) const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
            live: ptr::null(),
        }
    }

    /// # Safety
    /// `node` is in no list and stays until it has left this one.
    #[inline]
    pub(super) unsafe fn push(&mut self, node: *const Node, waker: Option<Waker>) {
        let before = self.tail;
        // SAFETY: the caller's.
        let joining = unsafe { &*node };
        joining.links.with_mut(|links| {
            // SAFETY: a node that is in no list belongs to its future, who is the caller.
            let links = unsafe { &mut *links };
            links.write(Links {
                prev: before,
                next: ptr::null(),
                waker,
            });
        });
        // Relaxed: the lock orders it.
        joining.state.store(WAITING, Relaxed);
        if before.is_null() {
            self.head = node;
        } else {
            // SAFETY: `before` is in the list.
            unsafe { links(before, |links| links.next = node) };
        }
        self.tail = node;
        if self.live.is_null() {
            self.live = node;
        }
    }

    /// Takes a node out, sets its state and returns its waker. The node may be gone when this returns.
    ///
    /// # Safety
    /// `node` is in this list.
    #[inline]
    pub(super) unsafe fn notify(&mut self, node: *const Node, state: u8) -> Option<Waker> {
        // SAFETY: the caller's.
        let (prev, next, waker) =
            unsafe { links(node, |links| (links.prev, links.next, links.waker.take())) };
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
        if self.live == node {
            self.live = next;
        }
        // SAFETY: as above; the node is alive until the store below at least.
        let node = unsafe { &*node };
        // Release: with the Acquire of `Core::poll`; what we did to the node, and before, is done.
        node.state.store(state, Release);
        waker
    }

    /// Fills the batch with the wakers of nodes that are older than the call number `calls`. `true` if there are more.
    pub(super) fn take_wakers(&mut self, calls: u64, batch: &mut WakeBatch) -> bool {
        loop {
            let node = self.head;
            // Nodes lie in the order of their numbers. Those of a later call are woken by who made it.
            // SAFETY: the head is in the list, so it is alive; `calls` of a node never changes.
            if node.is_null() || node == self.live || unsafe { (*node).calls } >= calls {
                return false;
            }
            if batch.is_full() {
                return true;
            }
            // SAFETY: the head is in the list.
            if let Some(waker) = unsafe { self.notify(node, ALL) } {
                batch.push(waker);
            }
        }
    }
}

/// # Safety
/// The caller holds the lock of the list that `node` is in, and does not call this from `f`.
#[inline]
unsafe fn links<R>(node: *const Node, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: a node in the list is alive: it leaves the list before it goes.
    let node = unsafe { &*node };
    node.links.with_mut(|links| {
        // SAFETY: `links` of a node in the list belong to who holds the lock (module head).
        let links = unsafe { &mut *links };
        // SAFETY: `push` has written them.
        f(unsafe { links.assume_init_mut() })
    })
}

impl Node {
    /// A node for who has seen so many calls.
    #[inline]
    pub(super) fn new(calls: u64) -> Self {
        Self {
            state: AtomicU8::new(IDLE),
            calls,
            links: UnsafeCell::new(MaybeUninit::uninit()),
            _pinned: PhantomPinned,
        }
    }

    /// Makes the node's waker one that wakes what `waker` does: `true` if it is or now is, with what is to be dropped
    /// left in `replacement`; `false` if `replacement` has to bring one.
    ///
    /// # Safety
    /// The node is in a list, whose lock the caller holds.
    pub(super) unsafe fn exchange_waker(
        &self,
        waker: Option<&Waker>,
        replacement: &mut Option<Waker>,
    ) -> bool {
        let Some(waker) = waker else {
            return true;
        };
        let exchange = |links: &mut Links| {
            if links.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                return true;
            }
            match replacement.take() {
                Some(new) => {
                    *replacement = links.waker.replace(new);
                    true
                }
                None => false,
            }
        };
        // SAFETY: the caller's.
        unsafe { links(self, exchange) }
    }

    /// What `Debug` says.
    pub(super) fn name(&self) -> &'static str {
        match self.state.load(Relaxed) {
            IDLE => "idle",
            WAITING => "waiting",
            DONE => "done",
            _ => "notified",
        }
    }
}
