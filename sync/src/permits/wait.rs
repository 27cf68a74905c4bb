//! The future that waits for permits, and the guard that returns them.
#![expect(
    unsafe_code,
    reason = "says what a reference to permits must keep to; projects a pin"
)]

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use super::queue::{GRANTED, IDLE, Node};
use super::{MAX, Permits};
use crate::coop;
use crate::grants;
use crate::wait::{self, WaitKind};

/// How a future or a guard reaches its permits: by reference, or by whatever keeps them alive.
///
/// # Safety
/// `permits` always returns the same ones, and these stay where they are for as long as `self` exists, wherever `self`
/// is moved.
pub(crate) unsafe trait PermitsRef {
    /// What a task that waits is said to wait for.
    const KIND: WaitKind;
    /// Whether there is one permit at most, and it is all that is ever needed.
    const ONLY: bool = false;

    fn permits(&self) -> &Permits;

    /// Returns permits that were granted and are not wanted any more.
    #[inline]
    fn give_back(&self, n: usize) {
        self.permits().release(n);
    }
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl PermitsRef for &Permits {
    const KIND: WaitKind = WaitKind::Lock;

    #[inline]
    fn permits(&self) -> &Permits {
        self
    }
}

/// Waits for permits, and hands out the reference to them, with which they have to be returned.
///
/// `Err` if they are refused. Dropping it leaves the queue; permits that were granted and not handed out go on to the
/// next.
pub(crate) struct Wait<R: PermitsRef> {
    /// `None` once it is over.
    target: Option<R>,
    site: &'static Location<'static>,
    /// Pinned, the others are not.
    node: Node,
}

impl<R: PermitsRef> Drop for Wait<R> {
    // `always`: as `poll`.
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(target) = &self.target
            && self.node.state() != IDLE
        {
            give_up(target, &self.node);
        }
    }
}

/// The future of `node` goes before it is over.
#[cold]
#[inline(never)]
fn give_up<R: PermitsRef>(target: &R, node: &Node) {
    if grants::is_on() {
        grants::over(node);
    }
    if target.permits().leave(node) {
        target.give_back(node.needed());
    }
}

impl<R: PermitsRef> Wait<R> {
    #[inline]
    #[track_caller]
    pub(crate) fn new(target: R, needed: usize) -> Self {
        Self::made_at(target, needed, Location::caller())
    }

    /// [`new`](Self::new) for a future that was made by another one, which knows where.
    #[inline]
    pub(crate) fn made_at(target: R, needed: usize, site: &'static Location<'static>) -> Self {
        debug_assert!(needed <= MAX);
        Self {
            target: Some(target),
            site,
            node: Node::needing(needed),
        }
    }

    // `always`: what is left of a future that is made, polled and dropped in one place is the exchange and the budget; a
    // call in between costs twice that.
    #[inline(always)]
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<R, ()>> {
        // SAFETY: nothing is moved out of `node`, of which only a shared reference is used.
        let this = unsafe { self.get_unchecked_mut() };
        let unit = ready!(coop::poll_proceed(cx));
        if let Some(target) = this.target.as_ref()
            && target.permits().take_at_once(&this.node, R::ONLY)
            && let Some(target) = this.target.take()
        {
            unit.made_progress();
            return Poll::Ready(Ok(target));
        }
        let polled = Self::poll_queued(&mut this.target, &this.node, cx.waker());
        if polled.is_ready() {
            unit.made_progress();
        } else {
            if grants::is_on() {
                grants::waits(&this.node, R::KIND, this.site, cx.waker());
                // Before it was listed.
                if this.node.state() == GRANTED {
                    grants::granted::<Node>(&this.node);
                }
            }
            wait::record(R::KIND, this.site);
        }
        polled
    }

    #[inline(never)]
    fn poll_queued(slot: &mut Option<R>, node: &Node, waker: &Waker) -> Poll<Result<R, ()>> {
        let Some(target) = slot.as_ref() else {
            panic!("a future of a lock or semaphore was polled after it was ready");
        };
        let Poll::Ready(result) = target.permits().poll(node, waker) else {
            return Poll::Pending;
        };
        if grants::is_on() {
            grants::over(node);
        }
        let Some(target) = slot.take() else {
            unreachable!("it was there a moment ago");
        };
        Poll::Ready(result.map(|()| target))
    }

    /// How many permits it waits for.
    #[inline]
    pub(crate) fn needed(&self) -> usize {
        self.node.needed()
    }
}

impl<R: PermitsRef> fmt::Debug for Wait<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait")
            .field("over", &self.target.is_none())
            .finish_non_exhaustive()
    }
}

/// Permits that are held; dropping it returns them.
pub(crate) struct Held<R: PermitsRef> {
    pub(crate) target: R,
    pub(crate) permits: u32,
}

impl<R: PermitsRef> Drop for Held<R> {
    #[inline]
    fn drop(&mut self) {
        self.target.permits().release(self.permits as usize);
    }
}

/// [`Held`] for the only permit there is.
pub(crate) struct HeldOnly<R: PermitsRef> {
    pub(crate) target: R,
}

impl<R: PermitsRef> Drop for HeldOnly<R> {
    #[inline]
    fn drop(&mut self) {
        self.target.permits().release_only();
    }
}
