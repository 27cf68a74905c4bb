//! The three orders in which a queue gives its items back.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::panic::{self, AssertUnwindSafe};

/// Where a queue keeps its items: [`Fifo`], [`Lifo`] or [`Heap`].
///
/// Not to be implemented elsewhere: it says how the queue's futures are named, nothing else.
pub trait Store: sealed::Store {}

impl<S: sealed::Store> Store for S {}

pub(super) mod sealed {
    use super::{Panicked, Refused};

    pub trait Store {
        type Item;

        fn new() -> Self;

        fn len(&self) -> usize;

        /// `Err`: a comparison panicked; nothing has changed.
        fn push(&mut self, item: Self::Item) -> Result<(), Refused<Self::Item>>;

        /// `Err`: a comparison panicked; nothing has changed.
        fn pop(&mut self) -> Result<Option<Self::Item>, Panicked>;
    }
}

/// What a comparison left when it panicked.
pub(crate) type Panicked = Box<dyn Any + Send>;

/// An item that was not stored, since a comparison panicked.
#[derive(Debug)]
pub struct Refused<T> {
    pub(super) item: T,
    pub(super) panicked: Panicked,
}

/// First in, first out.
#[derive(Debug)]
pub struct Fifo<T>(VecDeque<T>);

/// Last in, first out.
#[derive(Debug)]
pub struct Lifo<T>(Vec<T>);

/// Smallest first, and the oldest of those that are equal.
///
/// `std`'s heap is not used, because what it does with an item when a comparison panics (to leave it, or to drop it
/// there and then, under our lock) is not ours to choose. Here every step is a swap, and the swaps of an operation that
/// panics are taken back.
#[derive(Debug)]
pub struct Heap<T> {
    entries: Vec<Entry<T>>,
    /// Of the next item.
    number: u64,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    number: u64,
}

impl<T> sealed::Store for Fifo<T> {
    type Item = T;

    fn new() -> Self {
        Self(VecDeque::new())
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn push(&mut self, item: T) -> Result<(), Refused<T>> {
        self.0.push_back(item);
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<T>, Panicked> {
        Ok(self.0.pop_front())
    }
}

impl<T> sealed::Store for Lifo<T> {
    type Item = T;

    fn new() -> Self {
        Self(Vec::new())
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn push(&mut self, item: T) -> Result<(), Refused<T>> {
        self.0.push(item);
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<T>, Panicked> {
        Ok(self.0.pop())
    }
}

impl<T: Ord> sealed::Store for Heap<T> {
    type Item = T;

    fn new() -> Self {
        Self {
            entries: Vec::new(),
            number: 0,
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn push(&mut self, item: T) -> Result<(), Refused<T>> {
        let last = self.entries.len();
        self.entries.push(Entry {
            item,
            number: self.number,
        });
        let mut at = last;
        let rising = panic::catch_unwind(AssertUnwindSafe(|| {
            while at > 0 && self.before(at, parent(at)) {
                self.entries.swap(at, parent(at));
                at = parent(at);
            }
        }));
        let Err(panicked) = rising else {
            self.number += 1;
            return Ok(());
        };
        // Back down the way that leads to `last`.
        self.rotate_down(at, last);
        let item = self.entries.pop().expect("it was pushed above").item;
        Err(Refused { item, panicked })
    }

    fn pop(&mut self) -> Result<Option<T>, Panicked> {
        let Some(last) = self.entries.len().checked_sub(1) else {
            return Ok(None);
        };
        self.entries.swap(0, last);
        // From here on the heap is `..last`; its first entry may have to sink.
        let mut at = 0;
        let sinking = panic::catch_unwind(AssertUnwindSafe(|| {
            loop {
                let left = 2 * at + 1;
                if left >= last {
                    break;
                }
                let right = left + 1;
                let child = if right < last && self.before(right, left) {
                    right
                } else {
                    left
                };
                if !self.before(child, at) {
                    break;
                }
                self.entries.swap(at, child);
                at = child;
            }
        }));
        if let Err(panicked) = sinking {
            while at > 0 {
                self.entries.swap(at, parent(at));
                at = parent(at);
            }
            self.entries.swap(0, last);
            return Err(panicked);
        }
        Ok(self.entries.pop().map(|entry| entry.item))
    }
}

impl<T: Ord> Heap<T> {
    /// Whether the entry at `a` comes out before that at `b`. User code.
    #[inline]
    fn before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.entries[a], &self.entries[b]);
        a.item
            .cmp(&b.item)
            .then_with(|| a.number.cmp(&b.number))
            .is_lt()
    }

    /// Takes back the swaps that brought an entry from `last` up to `at`.
    fn rotate_down(&mut self, at: usize, last: usize) {
        // The way up from `last`. This allocates; only a panic brings us here.
        let mut way = vec![last];
        let mut top = last;
        while top != at {
            top = parent(top);
            way.push(top);
        }
        for pair in way.windows(2).rev() {
            self.entries.swap(pair[1], pair[0]);
        }
    }
}

#[inline]
fn parent(at: usize) -> usize {
    (at - 1) / 2
}

/// Takes everything out, for who drops it without the lock.
pub(super) fn take_all<S: Store>(store: &mut S) -> S {
    mem::replace(store, S::new())
}
