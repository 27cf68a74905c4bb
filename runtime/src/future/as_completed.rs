//! `as_completed`: one output after the other, in the order in which they come.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use rt_sync::wait::{self, WaitKind};

use super::deadline::Deadline;
use super::pool::Pool;
use crate::time::Instant;
use crate::time::error::Elapsed;

/// Waits for all futures of an iterator and gives one output after the other, in the order in which they come.
///
/// The result is asked for the next output by [`next`](AsCompleted::next), and is a [`Stream`] too. The futures are
/// polled while it is asked, and not otherwise; tasks whose handles were given run on by themselves.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// # #[rt::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let mut results = rt::as_completed([30, 10, 20].map(|ms| async move {
///     rt::time::sleep(Duration::from_millis(ms)).await;
///     ms
/// }));
/// let mut order = Vec::new();
/// while let Some(ms) = results.next().await {
///     order.push(ms);
/// }
/// assert_eq!(order, [10, 20, 30]);
/// # }
/// ```
pub fn as_completed<I>(futures: I) -> AsCompleted<<I::Item as IntoFuture>::IntoFuture>
where
    I: IntoIterator<Item: IntoFuture>,
{
    let futures = futures.into_iter();
    let mut pool = Pool::with_capacity(futures.size_hint().0);
    for future in futures {
        // Nothing was taken out: the number is that of the argument.
        pool.push(future.into_future());
    }
    AsCompleted { pool }
}

/// Futures of which one output after the other is given: see [`as_completed`].
///
/// Dropping it drops the futures that are not done. The tasks of handles run on.
#[must_use = "futures do nothing unless awaited"]
pub struct AsCompleted<F> {
    pool: Pool<F>,
}

impl<F> AsCompleted<F> {
    /// How many futures are not done.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// Whether all futures are done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pool.is_empty()
    }

    /// Gives all outputs together a time limit, counted from this call.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// # #[rt::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let tasks = [1, 1000].map(|s| rt::spawn(rt::time::sleep(Duration::from_secs(s))));
    /// let mut results = rt::as_completed(tasks).within(Duration::from_secs(5));
    /// assert!(matches!(results.next().await, Some(Ok(_))));
    /// assert!(matches!(results.next().await, Some(Err(_))));
    /// assert!(results.next().await.is_none());
    /// let left = results.into_rest();
    /// assert!(!left[0].is_finished());
    /// # }
    /// ```
    pub fn within(self, limit: Duration) -> AsCompletedWithin<F> {
        AsCompletedWithin {
            pool: self.pool,
            deadline: Deadline::At(Instant::now().saturating_add(limit)),
            over: false,
        }
    }

    /// The futures that are not done, in the order of the arguments.
    #[must_use]
    pub fn into_rest(mut self) -> Vec<F>
    where
        F: Unpin,
    {
        let rest = self.pool.take_rest();
        rest.into_iter().map(|(_, future)| future).collect()
    }
}

impl<F: Future> AsCompleted<F> {
    /// Waits for the next output. `None`: all futures are done.
    ///
    /// # Cancel safety
    /// No output is lost when the future is dropped.
    #[expect(
        clippy::should_implement_trait,
        reason = "the name that streams and iterators have for it"
    )]
    #[track_caller]
    pub fn next(&mut self) -> NextCompleted<'_, F> {
        NextCompleted {
            pool: &mut self.pool,
            site: Location::caller(),
        }
    }
}

impl<F: Future> Stream for AsCompleted<F> {
    type Item = F::Output;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let next = self.pool.poll_next(cx);
        next.map(|next| next.map(|(_, output)| output))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl<F> fmt::Debug for AsCompleted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsCompleted")
            .field("open", &self.len())
            .finish_non_exhaustive()
    }
}

/// Future of [`AsCompleted::next`].
#[must_use = "futures do nothing unless awaited"]
pub struct NextCompleted<'a, F> {
    pool: &'a mut Pool<F>,
    site: &'static Location<'static>,
}

impl<F: Future> Future for NextCompleted<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let next = wait::around(WaitKind::Other, self.site, || self.pool.poll_next(cx));
        next.map(|next| next.map(|(_, output)| output))
    }
}

impl<F> fmt::Debug for NextCompleted<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextCompleted")
            .field("open", &self.pool.len())
            .finish_non_exhaustive()
    }
}

/// Futures of which one output after the other is given, up to a deadline: see [`AsCompleted::within`].
///
/// When the deadline has passed and no output is ready, the next item is `Err`, once, and the last. The futures that are
/// not done are kept until this is dropped, or given back by [`into_rest`](Self::into_rest).
#[must_use = "futures do nothing unless awaited"]
pub struct AsCompletedWithin<F> {
    pool: Pool<F>,
    deadline: Deadline,
    over: bool,
}

impl<F> AsCompletedWithin<F> {
    /// The futures that are not done, in the order of the arguments.
    #[must_use]
    pub fn into_rest(mut self) -> Vec<F>
    where
        F: Unpin,
    {
        let rest = self.pool.take_rest();
        rest.into_iter().map(|(_, future)| future).collect()
    }
}

impl<F: Future> AsCompletedWithin<F> {
    /// Waits for the next output. `None`: all futures are done, or the deadline has passed and was told of.
    ///
    /// # Errors
    /// [`Elapsed`] once, when the deadline has passed and no output is ready.
    ///
    /// # Panics
    /// The future panics if it has to wait outside a runtime.
    ///
    /// # Cancel safety
    /// No output is lost when the future is dropped.
    #[expect(
        clippy::should_implement_trait,
        reason = "the name that streams and iterators have for it"
    )]
    #[track_caller]
    pub fn next(&mut self) -> NextWithin<'_, F> {
        NextWithin {
            all: self,
            site: Location::caller(),
        }
    }

    fn poll_at(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<Option<Result<F::Output, Elapsed>>> {
        if self.over {
            return Poll::Ready(None);
        }
        match self.pool.poll_next(cx) {
            Poll::Ready(next) => Poll::Ready(next.map(|(_, output)| Ok(output))),
            Poll::Pending if self.deadline.poll(cx, site) => {
                self.over = true;
                Poll::Ready(Some(Err(Elapsed::new())))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<F: Future> Stream for AsCompletedWithin<F> {
    type Item = Result<F::Output, Elapsed>;

    #[track_caller]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_at(cx, Location::caller())
    }
}

impl<F> fmt::Debug for AsCompletedWithin<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsCompletedWithin")
            .field("open", &self.pool.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Future of [`AsCompletedWithin::next`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct NextWithin<'a, F> {
    all: &'a mut AsCompletedWithin<F>,
    site: &'static Location<'static>,
}

impl<F: Future> Future for NextWithin<'_, F> {
    type Output = Option<Result<F::Output, Elapsed>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let site = self.site;
        wait::around(WaitKind::Other, site, || self.all.poll_at(cx, site))
    }
}
