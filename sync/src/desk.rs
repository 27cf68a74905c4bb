//! A lock with lines of waiters in front of it: what `Queue` and `Barrier` are built on.
//!
//! A [`WaitList`](crate::WaitList) has a lock of its own. Where a state decides who is served, and newcomers must not
//! overtake, state and lines change together: so here they lie under one lock, which is taken once an operation.
//!
//! # What it guarantees
//! A [`Place`] in a line is granted at most once, in order of arrival, and its owner finds the grant (a number with a
//! meaning of the owner's) when it comes back. A place that goes leaves its line; what to do with a grant that it was
//! given is for its owner to say, before the place goes.
//!
//! # Who may touch what
//! `links` of a node belong to who holds the lock of its desk, whether the node is in a line or not; that is why a place
//! is looked at through [`Locked`], which checks that the place is of this desk. A node in a line is pinned, and leaves
//! the line at the latest when its place is dropped. `joined` is the place's own: unless it is set, the node has never
//! been in a line, or has left it for good, and the lock is not needed.
//!
//! # User code
//! None under the lock: wakers are cloned before it is taken, and woken or dropped by the caller after it was released.
#![expect(
    unsafe_code,
    reason = "an intrusive list: its nodes lie in pinned futures and are reached by pointer"
)]

use std::any::Any;
use std::fmt;
use std::marker::PhantomPinned;
use std::ops::{Deref, DerefMut};
use std::panic;
use std::pin::Pin;
use std::ptr;
use std::task::Waker;

use crate::primitive::atomic::{AtomicBool, Ordering::Relaxed};
use crate::primitive::cell::UnsafeCell;
use crate::primitive::{Mutex, MutexGuard};
use crate::wake_batch::{self, WakeBatch};

/// A state and its lines of waiters, under one lock.
pub(crate) struct Desk<S, const LINES: usize> {
    inner: Mutex<Inner<S, LINES>>,
}

struct Inner<S, const LINES: usize> {
    state: S,
    lines: [Line; LINES],
}

/// A desk whose lock is held: dereferences to the state.
pub(crate) struct Locked<'a, S, const LINES: usize> {
    desk: &'a Desk<S, LINES>,
    inner: MutexGuard<'a, Inner<S, LINES>>,
}

/// A waiting future's place in one of the lines of a desk: lies pinned in the future.
pub(crate) struct Place<'a, S, const LINES: usize> {
    desk: &'a Desk<S, LINES>,
    joined: AtomicBool,
    node: Node,
    _pinned: PhantomPinned,
}

/// How things stand with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// In no line, and without a grant.
    Away,
    /// In a line.
    Waiting,
    /// Out of the line again, with a grant.
    Granted(usize),
}

struct Line {
    head: *const Node,
    tail: *const Node,
    len: usize,
}

struct Node {
    links: UnsafeCell<Links>,
}

struct Links {
    prev: *const Node,
    next: *const Node,
    waker: Option<Waker>,
    standing: Standing,
    line: usize,
}

// SAFETY: the pointers lead to nodes that are reached only under the lock, from whatever thread holds it; what is in
// them (a waker) may go from thread to thread.
unsafe impl Send for Line {}
// SAFETY: `links` are reached only under the lock (module head).
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl<S, const LINES: usize> Desk<S, LINES> {
    pub(crate) fn new(state: S) -> Self {
        Self {
            inner: Mutex::new(Inner {
                state,
                lines: [const { Line::new() }; LINES],
            }),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, S, LINES> {
        Locked {
            desk: self,
            inner: self.inner.lock(),
        }
    }

    /// For `Debug`, which must not wait.
    pub(crate) fn try_lock(&self) -> Option<Locked<'_, S, LINES>> {
        let inner = self.inner.try_lock()?;
        Some(Locked { desk: self, inner })
    }

    /// A place in front of this desk, in no line yet.
    #[inline]
    pub(crate) fn place(&self) -> Place<'_, S, LINES> {
        Place {
            desk: self,
            joined: AtomicBool::new(false),
            node: Node {
                links: UnsafeCell::new(Links {
                    prev: ptr::null(),
                    next: ptr::null(),
                    waker: None,
                    standing: Standing::Away,
                    line: 0,
                }),
            },
            _pinned: PhantomPinned,
        }
    }
}

impl<S, const LINES: usize> Locked<'_, S, LINES> {
    /// How many wait in this line.
    #[inline]
    pub(crate) fn waiting(&self, line: usize) -> usize {
        self.inner.lines[line].len
    }

    /// Puts the place at the end of a line.
    pub(crate) fn join(&mut self, place: Pin<&Place<'_, S, LINES>>, line: usize, waker: Waker) {
        let place = place.get_ref();
        self.check(place);
        assert!(
            !place.joined.load(Relaxed),
            "a place joins a line while it stands in one"
        );
        // Relaxed, here and elsewhere: only the owner of the place looks at it.
        place.joined.store(true, Relaxed);
        let node = &raw const place.node;
        let before = self.inner.lines[line].tail;
        // SAFETY: we hold the lock of the node's desk.
        unsafe {
            links(node, |links| {
                links.prev = before;
                links.next = ptr::null();
                links.waker = Some(waker);
                links.standing = Standing::Waiting;
                links.line = line;
            });
        }
        if before.is_null() {
            self.inner.lines[line].head = node;
        } else {
            // SAFETY: the same; `before` is in the line.
            unsafe { links(before, |links| links.next = node) };
        }
        self.inner.lines[line].tail = node;
        self.inner.lines[line].len += 1;
    }

    /// How things stand with the place.
    #[inline]
    pub(crate) fn standing(&self, place: &Place<'_, S, LINES>) -> Standing {
        self.check(place);
        // SAFETY: we hold the lock of the node's desk.
        unsafe { links(&raw const place.node, |links| links.standing) }
    }

    /// Ends the place's time in its line, or takes its grant: it may join again afterwards. Returns how things stood,
    /// and a waker that is to be dropped when the lock is not held.
    pub(crate) fn leave(&mut self, place: &Place<'_, S, LINES>) -> (Standing, Option<Waker>) {
        let standing = self.standing(place);
        let node = &raw const place.node;
        let waker = if standing == Standing::Waiting {
            // SAFETY: we hold the lock, and the node is in a line.
            unsafe { self.cut(node, Standing::Away) }
        } else {
            // SAFETY: we hold the lock of the node's desk.
            unsafe { links(node, |links| links.standing = Standing::Away) };
            None
        };
        place.joined.store(false, Relaxed);
        (standing, waker)
    }

    /// Sees to it that the waiting place's waker wakes the task of `waker`. If `false`, come again with a clone in
    /// `spare`. What is left in `spare` is to be dropped when the lock is not held.
    pub(crate) fn refresh(
        &mut self,
        place: &Place<'_, S, LINES>,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        self.check(place);
        // SAFETY: we hold the lock of the node's desk; the closure runs no user code.
        unsafe {
            links(&raw const place.node, |links| {
                if links.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
                    return true;
                }
                match spare.take() {
                    Some(new) => {
                        *spare = links.waker.replace(new);
                        true
                    }
                    None => false,
                }
            })
        }
    }

    /// Gives who stands first in the line a grant. The waker is to be woken when the lock is not held; `None` if nobody
    /// stands there.
    #[inline]
    pub(crate) fn grant_first(&mut self, line: usize, grant: usize) -> Option<Waker> {
        let head = self.inner.lines[line].head;
        if head.is_null() {
            return None;
        }
        // SAFETY: we hold the lock, and the node is in a line.
        unsafe { self.cut(head, Standing::Granted(grant)) }
    }

    /// Gives everybody in the line a grant: `grant` of their number in it.
    pub(crate) fn grant_all(
        &mut self,
        line: usize,
        mut grant: impl FnMut(usize) -> usize,
        wakes: &mut Wakes,
    ) {
        let mut number = 0;
        while let Some(waker) = self.grant_first(line, grant(number)) {
            wakes.push(waker);
            number += 1;
        }
    }

    #[inline]
    #[track_caller]
    fn check(&self, place: &Place<'_, S, LINES>) {
        assert!(
            ptr::eq(self.desk, place.desk),
            "a place is looked at under the lock of another desk"
        );
    }

    /// Takes a node out of its line. When the standing is a grant, its owner may come for it as soon as the lock is
    /// released.
    ///
    /// # Safety
    /// The node is in a line of this desk.
    unsafe fn cut(&mut self, node: *const Node, standing: Standing) -> Option<Waker> {
        // SAFETY: the caller's, and we hold the lock.
        let (prev, next, line, waker) = unsafe {
            links(node, |links| {
                links.standing = standing;
                (links.prev, links.next, links.line, links.waker.take())
            })
        };
        let line = &mut self.inner.lines[line];
        line.len -= 1;
        if prev.is_null() {
            line.head = next;
        } else {
            // SAFETY: a neighbour in the line.
            unsafe { links(prev, |links| links.next = next) };
        }
        if next.is_null() {
            line.tail = prev;
        } else {
            // SAFETY: a neighbour in the line.
            unsafe { links(next, |links| links.prev = prev) };
        }
        waker
    }
}

impl<S, const LINES: usize> Deref for Locked<'_, S, LINES> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.inner.state
    }
}

impl<S, const LINES: usize> DerefMut for Locked<'_, S, LINES> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        &mut self.inner.state
    }
}

/// # Safety
/// The caller holds the lock of the node's desk, the node is alive (it is in a line, or the caller has its place), and
/// `f` does not call this with the same node.
#[inline]
unsafe fn links<R>(node: *const Node, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: the caller's.
    let node = unsafe { &*node };
    node.links.with_mut(|links| {
        // SAFETY: `links` belong to who holds the lock (module head).
        f(unsafe { &mut *links })
    })
}

impl Line {
    const fn new() -> Self {
        Self {
            head: ptr::null(),
            tail: ptr::null(),
            len: 0,
        }
    }
}

impl<'a, S, const LINES: usize> Place<'a, S, LINES> {
    /// The desk it is in front of.
    #[inline]
    pub(crate) fn desk(&self) -> &'a Desk<S, LINES> {
        self.desk
    }

    /// Whether it stands in a line, or has a grant to be taken. No lock.
    #[inline]
    pub(crate) fn joined(&self) -> bool {
        self.joined.load(Relaxed)
    }

    /// For a place that is dropped. Most have never been in a line.
    #[cold]
    fn leave_at_last(&self) {
        let mut locked = self.desk.lock();
        let (_, waker) = locked.leave(self);
        drop(locked);
        drop(waker);
    }
}

impl<S, const LINES: usize> Drop for Place<'_, S, LINES> {
    #[inline]
    fn drop(&mut self) {
        if self.joined() {
            self.leave_at_last();
        }
    }
}

/// Wakers of grants, collected under the lock and woken after it; more than a [`WakeBatch`] has room for.
pub(crate) struct Wakes {
    batch: WakeBatch,
    more: Vec<Waker>,
}

impl Wakes {
    pub(crate) const fn new() -> Self {
        Self {
            batch: WakeBatch::new(),
            more: Vec::new(),
        }
    }

    fn push(&mut self, waker: Waker) {
        if self.batch.is_full() {
            self.more.push(waker);
        } else {
            self.batch.push(waker);
        }
    }

    /// Wakes all, in order.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    pub(crate) fn wake_all(self) {
        let Wakes { mut batch, more } = self;
        let mut first = batch.wake_all_caught();
        for waker in more {
            if batch.is_full() {
                keep_first(&mut first, batch.wake_all_caught());
            }
            batch.push(waker);
        }
        keep_first(&mut first, batch.wake_all_caught());
        if let Some(payload) = first {
            panic::resume_unwind(payload);
        }
    }
}

/// The first panic is the one that goes on.
fn keep_first(first: &mut Option<Box<dyn Any + Send>>, next: Option<Box<dyn Any + Send>>) {
    if first.is_none() {
        *first = next;
    } else if let Some(payload) = next {
        wake_batch::discard(payload);
    }
}

impl<S, const LINES: usize> fmt::Debug for Place<'_, S, LINES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("joined", &self.joined())
            .finish_non_exhaustive()
    }
}
