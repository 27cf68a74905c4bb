//! Where combinators with bounded concurrency take their items from: an iterator, or a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

/// An iterator or a [`Stream`] of items. `By` tells the two apart and is found by the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an iterator nor a stream",
    label = "expected something that gives items one after the other",
    note = "a collection, an iterator or a `futures_core::Stream` gives items; a receiver of a channel is none of these"
)]
pub trait IntoItems<By> {
    /// What there is to work on.
    type Item;
    /// The items as a stream.
    type Items: Stream<Item = Self::Item>;

    /// The items as a stream.
    fn into_items(self) -> Self::Items;
}

/// The items come from an iterator.
#[derive(Debug)]
pub enum ByIterator {}

/// The items come from a stream.
#[derive(Debug)]
pub enum ByStream {}

impl<I: IntoIterator> IntoItems<ByIterator> for I {
    type Item = I::Item;
    type Items = FromIterator<I::IntoIter>;

    fn into_items(self) -> Self::Items {
        FromIterator(self.into_iter())
    }
}

impl<S: Stream> IntoItems<ByStream> for S {
    type Item = S::Item;
    type Items = S;

    fn into_items(self) -> S {
        self
    }
}

/// The stream of an iterator: its items are always ready.
#[derive(Debug, Clone)]
pub struct FromIterator<I>(I);

// Nothing in it is pinned.
impl<I> Unpin for FromIterator<I> {}

impl<I: Iterator> Stream for FromIterator<I> {
    type Item = I::Item;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
