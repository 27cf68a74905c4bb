//! The future of `try_join!`: as that of `join!`, and over with the first error.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use rt_sync::wait;

use super::join::Order;
use super::{MaybeDone, Pair};

/// Futures of results that are polled together.
pub trait TryJoinTree<E> {
    /// Number of leaves.
    const LEAVES: usize;
    /// The values, in a tree of the same shape.
    type Output;

    /// Polls the leaves with these numbers, up to the first that fails; whether all of them are done.
    fn poll_range(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: usize,
        to: usize,
    ) -> Result<bool, E>;

    /// Takes the values, once every leaf is done and none has failed.
    fn take(self: Pin<&mut Self>) -> Self::Output;
}

impl<F: Future<Output = Result<T, E>>, T, E> TryJoinTree<E> for MaybeDone<F> {
    const LEAVES: usize = 1;
    type Output = T;

    #[inline]
    fn poll_range(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: usize,
        to: usize,
    ) -> Result<bool, E> {
        if from > 0 || to == 0 {
            return Ok(true);
        }
        if !self.as_mut().poll_done(cx) {
            return Ok(false);
        }
        match self.as_mut().output() {
            Some(Err(_)) => match MaybeDone::take(self) {
                Err(error) => Err(error),
                Ok(_) => unreachable!("it was an error before"),
            },
            _ => Ok(true),
        }
    }

    #[inline]
    fn take(self: Pin<&mut Self>) -> T {
        match MaybeDone::take(self) {
            Ok(value) => value,
            Err(_) => unreachable!("the first error ends a try_join"),
        }
    }
}

impl<A: TryJoinTree<E>, B: TryJoinTree<E>, E> TryJoinTree<E> for Pair<A, B> {
    const LEAVES: usize = A::LEAVES + B::LEAVES;
    type Output = (A::Output, B::Output);

    #[inline]
    fn poll_range(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: usize,
        to: usize,
    ) -> Result<bool, E> {
        let (left, right) = self.split();
        let left = left.poll_range(cx, from, to)?;
        let right = right.poll_range(
            cx,
            from.saturating_sub(A::LEAVES),
            to.saturating_sub(A::LEAVES),
        )?;
        Ok(left && right)
    }

    #[inline]
    fn take(self: Pin<&mut Self>) -> Self::Output {
        let (left, right) = self.split();
        (left.take(), right.take())
    }
}

pin_project! {
    /// Future of `try_join!`.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct TryJoin<T, E> {
        #[pin]
        tree: T,
        order: Order,
        error: PhantomData<fn() -> E>,
    }
}

/// Waits until every leaf is done, or one has failed.
#[inline]
pub fn try_join<T: TryJoinTree<E>, E>(tree: T, biased: bool) -> TryJoin<T, E> {
    TryJoin {
        tree,
        order: Order::new(biased),
        error: PhantomData,
    }
}

impl<T: TryJoinTree<E>, E> Future for TryJoin<T, E> {
    type Output = Result<T::Output, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        wait::of_parts(|| {
            let mut poll_range = |from, to| this.tree.as_mut().poll_range(cx, from, to);
            let first = this.order.first(T::LEAVES);
            let done = poll_range(first, T::LEAVES)
                .and_then(|later| poll_range(0, first).map(|earlier| later && earlier));
            match done {
                Ok(true) => Poll::Ready(Ok(this.tree.take())),
                Ok(false) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
    }
}
