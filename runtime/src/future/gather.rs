//! `gather` and `try_gather`: all outputs, in the order of the arguments.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::{self, WaitKind};

use super::pool::Pool;

/// Waits for all futures of an iterator, and gives their outputs in the order of the iterator.
///
/// Futures that give a [`Result`] are waited for whether or not they fail: errors are values like others, at their
/// places in the list. To end with the first of them use [`try_gather`].
///
/// No future gives an empty list, at once. The futures are polled by this task when they are woken; of handles of
/// tasks, the tasks run by themselves (see the [module](crate::future) for what that means when the caller is cancelled).
///
/// # Cancel safety
/// Dropping the future drops all of the futures and the outputs that are there. Tasks whose handles were given run on.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// let squares = rt::gather((1..=3).map(|n| async move { n * n })).await;
/// assert_eq!(squares, [1, 4, 9]);
///
/// let tasks: Vec<_> = ["1", "x"].map(|text| rt::spawn(async { text.parse::<u8>() })).into();
/// let numbers = rt::gather(tasks).await;
/// assert_eq!(numbers[0].as_ref().unwrap(), &Ok(1));
/// assert!(numbers[1].as_ref().unwrap().is_err());
/// # }
/// ```
#[track_caller]
pub fn gather<I>(futures: I) -> Gather<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture>,
{
    Gather {
        all: All::new(futures),
    }
}

/// Waits for all futures of an iterator, up to the first error.
///
/// Gives the values in the order of the iterator, or the first error at once. The futures that are not done then are
/// dropped with this one; a task whose handle was given is not cancelled by that, and how it ends is ignored.
///
/// # Errors
/// That of the future that failed first.
///
/// # Cancel safety
/// As [`gather`].
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// let parse = |text: &'static str| async move { text.parse::<u8>() };
/// assert_eq!(rt::try_gather(["1", "2"].map(parse)).await, Ok(vec![1, 2]));
/// assert!(rt::try_gather(["1", "x"].map(parse)).await.is_err());
/// # }
/// ```
#[track_caller]
pub fn try_gather<I, T, E>(futures: I) -> TryGather<<I::Item as IntoFuture>::IntoFuture, T>
where
    I: IntoIterator<Item: IntoFuture<Output = Result<T, E>>>,
{
    TryGather {
        all: All::new(futures),
    }
}

/// Futures, and what those that are done have given.
struct All<F, T> {
    pool: Pool<F>,
    outputs: Vec<Option<T>>,
    site: &'static Location<'static>,
}

impl<F: Future, T> All<F, T> {
    #[track_caller]
    fn new<I>(futures: I) -> Self
    where
        I: IntoIterator<Item: IntoFuture<IntoFuture = F>>,
    {
        let futures = futures.into_iter();
        let mut pool = Pool::with_capacity(futures.size_hint().0);
        for future in futures {
            // Nothing was taken out: the number is that of the argument.
            pool.push(future.into_future());
        }
        Self {
            outputs: Vec::new(),
            pool,
            site: Location::caller(),
        }
    }

    /// Takes in outputs until all are there, or `value` does not take one for a value.
    fn poll<E>(
        &mut self,
        cx: &mut Context<'_>,
        value: impl FnMut(F::Output) -> Result<T, E>,
    ) -> Poll<Result<Vec<T>, E>> {
        let site = self.site;
        wait::around(WaitKind::Other, site, || self.poll_inside(cx, value))
    }

    fn poll_inside<E>(
        &mut self,
        cx: &mut Context<'_>,
        mut value: impl FnMut(F::Output) -> Result<T, E>,
    ) -> Poll<Result<Vec<T>, E>> {
        if self.outputs.is_empty() {
            self.outputs.resize_with(self.pool.len(), || None);
        }
        loop {
            match self.pool.poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => break,
                Poll::Ready(Some((number, output))) => {
                    self.outputs[number as usize] = Some(value(output)?);
                }
            }
        }
        let outputs = std::mem::take(&mut self.outputs);
        let count = outputs.len();
        let outputs: Vec<T> = outputs.into_iter().flatten().collect();
        assert_eq!(
            outputs.len(),
            count,
            "the gather made at {} was polled after it had failed",
            self.site
        );
        Poll::Ready(Ok(outputs))
    }
}

impl<F, T> fmt::Debug for All<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("All")
            .field("open", &self.pool.len())
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}

/// Future of [`gather`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Gather<F: Future> {
    all: All<F, F::Output>,
}

// Futures are pinned in boxes of their own, and outputs are not pinned.
impl<F: Future> Unpin for Gather<F> {}

impl<F: Future> Future for Gather<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.all
            .poll(cx, Ok::<_, std::convert::Infallible>)
            .map(|Ok(outputs)| outputs)
    }
}

/// Future of [`try_gather`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct TryGather<F, T> {
    all: All<F, T>,
}

// Futures are pinned in boxes of their own, and outputs are not pinned.
impl<F, T> Unpin for TryGather<F, T> {}

impl<F: Future<Output = Result<T, E>>, T, E> Future for TryGather<F, T> {
    type Output = Result<Vec<T>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.all.poll(cx, |result| result)
    }
}
