//! The future of `join!`.
//!
//! # Fairness
//! Each poll begins with another branch than the one before and goes round. A branch that spends the whole coop budget
//! of the task leaves nothing to those polled behind it, and is itself behind each of them in turn.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::{MaybeDone, Pair};

/// Futures that are polled together.
pub trait JoinTree {
    /// Number of leaves.
    const LEAVES: usize;
    /// The outputs, in a tree of the same shape.
    type Output;

    /// Polls the leaves with these numbers; whether all of them are done.
    fn poll_range(self: Pin<&mut Self>, cx: &mut Context<'_>, from: usize, to: usize) -> bool;

    /// Takes the outputs, once every leaf is done.
    fn take(self: Pin<&mut Self>) -> Self::Output;
}

impl<F: Future> JoinTree for MaybeDone<F> {
    const LEAVES: usize = 1;
    type Output = F::Output;

    #[inline]
    fn poll_range(self: Pin<&mut Self>, cx: &mut Context<'_>, from: usize, to: usize) -> bool {
        from > 0 || to == 0 || self.poll_done(cx)
    }

    #[inline]
    fn take(self: Pin<&mut Self>) -> F::Output {
        MaybeDone::take(self)
    }
}

impl<A: JoinTree, B: JoinTree> JoinTree for Pair<A, B> {
    const LEAVES: usize = A::LEAVES + B::LEAVES;
    type Output = (A::Output, B::Output);

    #[inline]
    fn poll_range(self: Pin<&mut Self>, cx: &mut Context<'_>, from: usize, to: usize) -> bool {
        let (left, right) = self.split();
        let left = left.poll_range(cx, from, to);
        let right = right.poll_range(
            cx,
            from.saturating_sub(A::LEAVES),
            to.saturating_sub(A::LEAVES),
        );
        left && right
    }

    #[inline]
    fn take(self: Pin<&mut Self>) -> Self::Output {
        let (left, right) = self.split();
        (left.take(), right.take())
    }
}

pin_project! {
    /// Future of `join!`.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Join<T> {
        #[pin]
        tree: T,
        order: Order,
    }
}

/// Waits until every leaf is done.
#[inline]
pub fn join<T: JoinTree>(tree: T, biased: bool) -> Join<T> {
    Join {
        tree,
        order: Order::new(biased),
    }
}

/// Which leaf the next poll begins with.
#[derive(Debug)]
pub(super) struct Order(u32);

impl Order {
    const BIASED: u32 = u32::MAX;

    #[inline]
    pub(super) fn new(biased: bool) -> Order {
        Order(if biased { Order::BIASED } else { 0 })
    }

    /// The leaf that this poll begins with; the next one begins with the one behind it.
    #[inline]
    pub(super) fn first(&mut self, leaves: usize) -> usize {
        if self.0 == Order::BIASED || leaves == 1 {
            return 0;
        }
        let now = self.0 as usize;
        self.0 = if now + 1 == leaves { 0 } else { self.0 + 1 };
        now
    }
}

impl<T: JoinTree> Future for Join<T> {
    type Output = T::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        let mut this = self.project();
        let first = this.order.first(T::LEAVES);
        let later = this.tree.as_mut().poll_range(cx, first, T::LEAVES);
        let earlier = this.tree.as_mut().poll_range(cx, 0, first);
        if later && earlier {
            Poll::Ready(this.tree.take())
        } else {
            Poll::Pending
        }
    }
}
