//! An output for each item: in the order of the items, or in that in which they come.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::flow::Flow;
use crate::future::IntoItems;

/// Makes a future of each item of an iterator or a stream and gives the outputs in the order of the items, with at most
/// `limit` futures at a time.
///
/// `None` as the limit means none: all items are taken at once. An output that waits for an earlier one counts towards
/// the limit, so a slow item at the front holds back what comes `limit` places behind it. Where the order is not needed, see
/// [`map_concurrent_unordered`].
///
/// The result is a [`Stream`], with [`next`](MapConcurrent::next) and [`collect`](MapConcurrent::collect) of its own. The
/// futures are polled while it is asked for an output, and not otherwise.
///
/// # Panics
/// If the limit is 0.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// # #[rt::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let outputs = rt::map_concurrent([30, 10, 20], 2, async |ms| {
///     rt::time::sleep(Duration::from_millis(ms)).await;
///     ms + 1
/// });
/// assert_eq!(outputs.collect().await, [31, 11, 21]);
/// # }
/// ```
#[track_caller]
pub fn map_concurrent<By, I, F, Fut>(
    items: I,
    limit: impl Into<Option<usize>>,
    f: F,
) -> MapConcurrent<I::Items, F, Fut>
where
    I: IntoItems<By>,
    F: FnMut(I::Item) -> Fut,
    Fut: Future,
{
    MapConcurrent {
        flow: Flow::new(items.into_items(), limit.into(), f),
        line: Line {
            sequence: Vec::new(),
            outputs: VecDeque::new(),
            given: 0,
            ready: 0,
        },
    }
}

/// As [`map_concurrent`], with the outputs in the order in which they come.
///
/// # Panics
/// If the limit is 0.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// # #[rt::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let mut outputs = rt::map_concurrent_unordered([30, 10, 5], 2, async |ms| {
///     rt::time::sleep(Duration::from_millis(ms)).await;
///     ms
/// });
/// assert_eq!(outputs.next().await, Some(10));
/// assert_eq!(outputs.collect().await, [5, 30]);
/// # }
/// ```
#[track_caller]
pub fn map_concurrent_unordered<By, I, F, Fut>(
    items: I,
    limit: impl Into<Option<usize>>,
    f: F,
) -> MapConcurrentUnordered<I::Items, F, Fut>
where
    I: IntoItems<By>,
    F: FnMut(I::Item) -> Fut,
    Fut: Future,
{
    MapConcurrentUnordered {
        flow: Flow::new(items.into_items(), limit.into(), f),
    }
}

/// Outputs that wait for their turn.
struct Line<T> {
    /// For each place of the pool: which item its future was made of, counted from the first one.
    sequence: Vec<u64>,
    /// The outputs of the items from `given` on.
    outputs: VecDeque<Option<T>>,
    given: u64,
    /// How many of them are there.
    ready: usize,
}

impl<T> Line<T> {
    fn next(&mut self) -> Option<T> {
        let output = self.outputs.front_mut()?.take()?;
        self.outputs.pop_front();
        self.given += 1;
        self.ready -= 1;
        Some(output)
    }

    fn put(&mut self, place: u32, output: T) {
        let index = self.sequence[place as usize] - self.given;
        self.outputs[index as usize] = Some(output);
        self.ready += 1;
    }
}

pin_project! {
    /// Stream of [`map_concurrent`].
    #[must_use = "streams do nothing unless polled"]
    pub struct MapConcurrent<S, F, Fut: Future> {
        #[pin]
        flow: Flow<S, F, Fut>,
        line: Line<Fut::Output>,
    }
}

pin_project! {
    /// Stream of [`map_concurrent_unordered`].
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct MapConcurrentUnordered<S, F, Fut> {
        #[pin]
        flow: Flow<S, F, Fut>,
    }
}

impl<S, F, Fut> Stream for MapConcurrent<S, F, Fut>
where
    S: Stream,
    F: FnMut(S::Item) -> Fut,
    Fut: Future,
{
    type Item = Fut::Output;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Fut::Output>> {
        let mut this = self.project();
        let line = this.line;
        loop {
            if let Some(output) = line.next() {
                return Poll::Ready(Some(output));
            }
            let Line {
                sequence,
                outputs,
                given,
                ready,
            } = &mut *line;
            let started = |place: u32| {
                let place = place as usize;
                if sequence.len() <= place {
                    sequence.resize(place + 1, 0);
                }
                sequence[place] = *given + outputs.len() as u64;
                outputs.push_back(None);
            };
            match ready!(this.flow.as_mut().poll_next(cx, *ready, started)) {
                Some((place, output)) => line.put(place, output),
                // Nothing is under way: the line is empty.
                None => return Poll::Ready(None),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.flow.size_hint();
        let ready = self.line.ready;
        (
            least.saturating_add(ready),
            most.and_then(|most| most.checked_add(ready)),
        )
    }
}

impl<S, F, Fut> Stream for MapConcurrentUnordered<S, F, Fut>
where
    S: Stream,
    F: FnMut(S::Item) -> Fut,
    Fut: Future,
{
    type Item = Fut::Output;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Fut::Output>> {
        let next = self.project().flow.poll_next(cx, 0, |_| ());
        next.map(|next| next.map(|(_, output)| output))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.flow.size_hint()
    }
}

impl<S, F, Fut: Future> fmt::Debug for MapConcurrent<S, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapConcurrent")
            .field("flow", &self.flow)
            .field("ready", &self.line.ready)
            .finish_non_exhaustive()
    }
}

macro_rules! next_and_collect {
    ($stream:ident) => {
        impl<S, F, Fut> $stream<S, F, Fut>
        where
            S: Stream,
            F: FnMut(S::Item) -> Fut,
            Fut: Future,
        {
            /// Waits for the next output. `None`: all items are done.
            ///
            /// A stream that is not `Unpin` is pinned before, with [`pin!`](crate::pin!). Made of an iterator it is `Unpin`.
            ///
            /// # Cancel safety
            /// No output is lost when the future is dropped.
            #[expect(
                clippy::should_implement_trait,
                reason = "the name that streams and iterators have for it"
            )]
            pub fn next(&mut self) -> Next<'_, Self>
            where
                Self: Unpin,
            {
                Next { stream: self }
            }

            /// Waits for all outputs that are left.
            ///
            /// # Cancel safety
            /// Dropping the future drops the futures under way, the outputs that are there, and what is left of the items.
            pub fn collect(self) -> Collect<Self> {
                Collect {
                    outputs: Vec::with_capacity(self.size_hint().0),
                    stream: self,
                }
            }
        }
    };
}

next_and_collect!(MapConcurrent);
next_and_collect!(MapConcurrentUnordered);

/// Future of `next`: of [`MapConcurrent::next`], for instance.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'a, S> {
    stream: &'a mut S,
}

impl<S: Stream + Unpin> Future for Next<'_, S> {
    type Output = Option<S::Item>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.stream).poll_next(cx)
    }
}

pin_project! {
    /// Future of `collect`: of [`MapConcurrent::collect`], for instance.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Collect<S: Stream> {
        #[pin]
        stream: S,
        outputs: Vec<S::Item>,
    }
}

impl<S: Stream> Future for Collect<S> {
    type Output = Vec<S::Item>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        while let Some(output) = ready!(this.stream.as_mut().poll_next(cx)) {
            this.outputs.push(output);
        }
        Poll::Ready(std::mem::take(this.outputs))
    }
}

impl<S: Stream + fmt::Debug> fmt::Debug for Collect<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collect")
            .field("stream", &self.stream)
            .field("outputs", &self.outputs.len())
            .finish()
    }
}
