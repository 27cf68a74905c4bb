//! Work on each item, without outputs.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::flow::Flow;
use crate::future::IntoItems;

/// Calls `work` for each item of an iterator or a stream, and waits for the futures it returns, at most `limit` at a
/// time.
///
/// `None` as the limit means none: all items are taken at once. An item is taken only when there is room for its future.
/// The futures are polled by this task; to work on items in parallel, spawn in them
/// (`|item| async move { rt::spawn(work(item)).await }`).
///
/// # Panics
/// If the limit is 0.
///
/// # Cancel safety
/// Dropping the future drops the futures under way and what is left of the items.
///
/// # Examples
/// ```
/// use std::cell::Cell;
///
/// # #[rt::main]
/// # async fn main() {
/// let sum = Cell::new(0);
/// rt::for_each_concurrent(1..=100, 8, |n| {
///     let sum = &sum;
///     async move {
///         rt::task::yield_now().await;
///         sum.set(sum.get() + n);
///     }
/// })
/// .await;
/// assert_eq!(sum.get(), 5050);
/// # }
/// ```
#[track_caller]
pub fn for_each_concurrent<By, I, F, Fut>(
    items: I,
    limit: impl Into<Option<usize>>,
    work: F,
) -> ForEachConcurrent<I::Items, F, Fut>
where
    I: IntoItems<By>,
    F: FnMut(I::Item) -> Fut,
    Fut: Future<Output = ()>,
{
    ForEachConcurrent {
        flow: Flow::new(items.into_items(), limit.into(), work),
    }
}

/// As [`for_each_concurrent`], up to the first error.
///
/// The error is given at once; the futures under way are dropped with this one, and no further item is taken.
///
/// # Errors
/// That of the future that failed first.
///
/// # Panics
/// If the limit is 0.
///
/// # Cancel safety
/// As [`for_each_concurrent`].
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// let result = rt::try_for_each_concurrent(["1", "2", "x", "4"], 2, async |text: &str| {
///     text.parse::<u8>().map(|_| ())
/// })
/// .await;
/// assert!(result.is_err());
/// # }
/// ```
#[track_caller]
pub fn try_for_each_concurrent<By, I, F, Fut, E>(
    items: I,
    limit: impl Into<Option<usize>>,
    work: F,
) -> TryForEachConcurrent<I::Items, F, Fut>
where
    I: IntoItems<By>,
    F: FnMut(I::Item) -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    TryForEachConcurrent {
        flow: Flow::new(items.into_items(), limit.into(), work),
    }
}

pin_project! {
    /// Future of [`for_each_concurrent`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct ForEachConcurrent<S, F, Fut> {
        #[pin]
        flow: Flow<S, F, Fut>,
    }
}

impl<S, F, Fut> Future for ForEachConcurrent<S, F, Fut>
where
    S: Stream,
    F: FnMut(S::Item) -> Fut,
    Fut: Future<Output = ()>,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut flow = self.project().flow;
        while ready!(flow.as_mut().poll_next(cx, 0, |_| ())).is_some() {}
        Poll::Ready(())
    }
}

pin_project! {
    /// Future of [`try_for_each_concurrent`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct TryForEachConcurrent<S, F, Fut> {
        #[pin]
        flow: Flow<S, F, Fut>,
    }
}

impl<S, F, Fut, E> Future for TryForEachConcurrent<S, F, Fut>
where
    S: Stream,
    F: FnMut(S::Item) -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    type Output = Result<(), E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut flow = self.project().flow;
        while let Some((_, result)) = ready!(flow.as_mut().poll_next(cx, 0, |_| ())) {
            result?;
        }
        Poll::Ready(Ok(()))
    }
}
