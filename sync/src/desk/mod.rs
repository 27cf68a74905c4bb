//! A lock with lines of waiters in front of it: what `Queue` and `Barrier` are built on.
//!
//! A [`WaitList`](crate::WaitList) has a lock of its own. Where a state decides who is served, and newcomers must not
//! overtake, state and lines change together: so here they lie under one lock, which is taken once an operation.
//!
//! # What it guarantees
//! A [`Place`] in a line is granted at most once, in order of arrival, and its owner finds the grant (a number with a
//! meaning of the owner's) when it comes back. A place that goes leaves its line; a grant that it was given and has not
//! taken, the state [passes on](Clerk::pass_on).
//!
//! # Who may touch what
//! The value of a node belongs to who holds the lock of its desk, whether the node is in a line or not; that is why a
//! place is looked at through [`Locked`], which checks that the place is of this desk. A node in a line is pinned, and
//! leaves the line at the latest when its place is dropped. `joined` is the place's own: unless it is set, the node has
//! never been in a line, or has left it for good, and the lock is not needed.
//!
//! # User code
//! None under the lock: wakers are cloned before it is taken, and woken or dropped by the caller after it was released.
#![expect(
    unsafe_code,
    reason = "nodes of the lines lie in pinned futures and are reached by pointer"
)]

mod wakes;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::ptr;
use std::task::Waker;

use crate::list::{self, List};
use crate::primitive::atomic::{AtomicBool, Ordering::Relaxed};
use crate::primitive::{ShortGuard, ShortMutex};
use crate::wake_batch::in_drop;

pub(crate) use self::wakes::Wakes;

/// A state and its lines of waiters, under one lock.
pub(crate) struct Desk<S, const LINES: usize> {
    inner: ShortMutex<Inner<S, LINES>>,
}

/// A state that knows what its grants stand for.
pub(crate) trait Clerk<const LINES: usize>: Sized {
    /// A place goes that was given `grant` in `line` and has not taken it. Returns who is to be woken instead.
    fn pass_on(desk: &mut Locked<'_, Self, LINES>, line: usize, grant: usize) -> Option<Waker>;
}

struct Inner<S, const LINES: usize> {
    state: S,
    lines: [Line; LINES],
}

/// A desk whose lock is held: dereferences to the state.
pub(crate) struct Locked<'a, S, const LINES: usize> {
    desk: &'a Desk<S, LINES>,
    inner: ShortGuard<'a, Inner<S, LINES>>,
}

/// A waiting future's place in one of the lines of a desk: lies pinned in the future.
pub(crate) struct Place<'a, S: Clerk<LINES>, const LINES: usize> {
    desk: &'a Desk<S, LINES>,
    joined: AtomicBool,
    node: Node,
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
    list: List<(), Visit>,
    len: usize,
}

type Node = list::Node<(), Visit>;

/// From joining a line to leaving it, or to taking the grant.
struct Visit {
    /// `Some` while in the line, and only then.
    waker: Option<Waker>,
    /// `Some` once it is out of the line.
    grant: Option<usize>,
    line: usize,
}

impl<S, const LINES: usize> Desk<S, LINES> {
    pub(crate) fn new(state: S) -> Self {
        const EMPTY: Line = Line {
            list: List::new(),
            len: 0,
        };
        Self {
            inner: ShortMutex::new(Inner {
                state,
                lines: [EMPTY; LINES],
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
}

impl<S: Clerk<LINES>, const LINES: usize> Desk<S, LINES> {
    /// A place in front of this desk, in no line yet.
    #[inline]
    pub(crate) fn place(&self) -> Place<'_, S, LINES> {
        Place {
            desk: self,
            joined: AtomicBool::new(false),
            node: Node::new(()),
        }
    }
}

impl<S, const LINES: usize> Locked<'_, S, LINES> {
    /// How many wait in this line.
    #[inline]
    pub(crate) fn waiting(&self, line: usize) -> usize {
        self.inner.lines[line].len
    }

    /// Gives who stands first in the line a grant. The waker is to be woken when the lock is not held; `None` if nobody
    /// stands there.
    #[inline]
    pub(crate) fn grant_first(&mut self, line: usize, grant: usize) -> Option<Waker> {
        let head = self.inner.lines[line].list.head();
        // SAFETY: we hold the lock, so who is in the line is alive.
        let node = unsafe { head.as_ref() }?;
        // SAFETY: it is in this line.
        unsafe { self.inner.lines[line].take_out(node) };
        // Its owner may come for the grant as soon as the lock is released.
        // SAFETY: it was in the line, and we hold the lock.
        unsafe {
            node.value(|visit| {
                visit.grant = Some(grant);
                visit.waker.take()
            })
        }
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
}

impl<S: Clerk<LINES>, const LINES: usize> Locked<'_, S, LINES> {
    /// Puts the place at the end of a line.
    pub(crate) fn join(&mut self, place: Pin<&Place<'_, S, LINES>>, line: usize, waker: Waker) {
        let place = place.get_ref();
        self.check(place);
        assert!(
            !place.joined(),
            "a place joins a line while it stands in one"
        );
        // Relaxed, here and elsewhere: only the owner of the place looks at it.
        place.joined.store(true, Relaxed);
        let visit = Visit {
            waker: Some(waker),
            grant: None,
            line,
        };
        let line = &mut self.inner.lines[line];
        // SAFETY: `joined` was not set, so the node is in no line. It is pinned, and dropping the place removes it; the
        // desk is borrowed until then.
        unsafe { line.list.push(&raw const place.node, visit) };
        line.len += 1;
    }

    /// How things stand with the place.
    #[inline]
    pub(crate) fn standing(&self, place: &Place<'_, S, LINES>) -> Standing {
        self.check(place);
        if !place.joined() {
            return Standing::Away;
        }
        // SAFETY: it was pushed when it joined, and we hold the lock of its desk.
        match unsafe { place.node.value(|visit| visit.grant) } {
            None => Standing::Waiting,
            Some(grant) => Standing::Granted(grant),
        }
    }

    /// Ends the place's time in its line, or takes its grant: it may join again afterwards. Returns how things stood,
    /// and a waker that is to be dropped when the lock is not held.
    pub(crate) fn leave(&mut self, place: &Place<'_, S, LINES>) -> (Standing, Option<Waker>) {
        let standing = self.standing(place);
        let waker = if standing == Standing::Waiting {
            // SAFETY: it was pushed when it joined, and we hold the lock of its desk.
            let (line, waker) =
                unsafe { place.node.value(|visit| (visit.line, visit.waker.take())) };
            // SAFETY: it is in this line.
            unsafe { self.inner.lines[line].take_out(&place.node) };
            waker
        } else {
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
        debug_assert_eq!(self.standing(place), Standing::Waiting);
        self.check(place);
        // SAFETY: it was pushed when it joined, and we hold the lock of its desk.
        unsafe {
            place
                .node
                .value(|visit| list::renew(&mut visit.waker, waker, spare))
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

impl Line {
    /// # Safety
    /// `node` is in this line.
    #[inline]
    unsafe fn take_out(&mut self, node: &Node) {
        // SAFETY: the caller's.
        unsafe { self.list.remove(node) };
        self.len -= 1;
    }
}

impl<'a, S: Clerk<LINES>, const LINES: usize> Place<'a, S, LINES> {
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
    #[inline(never)]
    fn leave_at_last(&self) {
        let mut desk = self.desk.lock();
        let (standing, stale) = desk.leave(self);
        let woken = match standing {
            Standing::Granted(grant) => {
                // SAFETY: it was pushed when it joined, and we hold the lock of its desk.
                let line = unsafe { self.node.value(|visit| visit.line) };
                S::pass_on(&mut desk, line, grant)
            }
            _ => None,
        };
        drop(desk);
        if let Some(waker) = woken {
            in_drop(|| waker.wake());
        }
        drop(stale);
    }
}

impl<S: Clerk<LINES>, const LINES: usize> Drop for Place<'_, S, LINES> {
    // `always`: as the polls of the futures that it lies in.
    #[inline(always)]
    fn drop(&mut self) {
        if self.joined() {
            self.leave_at_last();
        }
    }
}

impl<S: Clerk<LINES>, const LINES: usize> fmt::Debug for Place<'_, S, LINES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("joined", &self.joined())
            .finish_non_exhaustive()
    }
}
