//! Queues between tasks: [`Queue`], [`PriorityQueue`] and [`LifoQueue`], with asyncio's names and meaning.
//!
//! # What it guarantees
//! An item that was put comes out of one get, or is dropped with the queue or by an immediate shutdown; a put that
//! fails gives it back. Getters are served in the order of their arrival, and so are putters; who comes later does not
//! overtake them, not even with `try_get` or `try_put`. A get or put that is dropped, at whatever moment, has taken
//! nothing and put nothing, and who stands behind it goes on.
//!
//! # How it works
//! One desk (`desk/mod.rs`): the items and three lines (getters, putters, joiners) under one short lock. A grant is not
//! the item but the right to it: the item stays in the queue until the getter runs. So a getter that is dropped has
//! nothing to put back, and the order of items is what the kind of queue says at any time. The invariants, whenever the
//! lock is free:
//!
//! 1. While getters wait, every item belongs to a getter that was granted one (`len <= getting`).
//! 2. While putters wait, every place is taken, or belongs to a putter that was granted it (`len + putting >= max`).
//! 3. After shutdown no putter waits, and no getter once the queue is empty.
//! 4. No joiner waits while nothing is outstanding.
//!
//! An item costs one lock on each side, and no allocation (but for the growing of the store). A waiting side is woken
//! once for the first item or place; what comes until it runs it finds without waiting.
//!
//! # User code
//! None under the lock but the comparisons of a [`PriorityQueue`]: they must not touch the queue, or they hang. When
//! one panics, the operation is undone: the item of a put is dropped, that of a get stays, and the panic goes on to the
//! caller of that operation. The queue is as it was, for everybody else too. A waker that panics keeps nobody else from being
//! woken, and a getter from nothing: out of a get its panic does not go on, as it would take the item along. The panic hook
//! has told of it.

mod base;
mod error;
mod futures;
mod state;
mod store;

use std::fmt;
use std::ops::Deref;

pub use self::base::{BaseQueue, Shutdown};
pub use self::error::{
    QueueEmpty, QueueFull, QueueShutDown, TaskDoneError, TryGetError, TryPutError,
};
pub use self::futures::{Get, Items, Join, Next, Put};
pub use self::store::{Fifo, Heap, Lifo, Store};

/// A queue: first in, first out. Shared by `Arc` or by reference; see [`BaseQueue`] for its methods.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use rt_sync::queue::{Queue, Shutdown};
///
/// # futures_lite::future::block_on(async {
/// let jobs = Arc::new(Queue::new(10));
/// jobs.put("first").await?;
/// jobs.put("second").await?;
/// assert_eq!(jobs.get().await?, "first");
/// jobs.task_done()?;
///
/// jobs.shutdown(Shutdown::Draining);
/// while let Some(job) = jobs.next().await {
///     assert_eq!(job, "second");
///     jobs.task_done()?;
/// }
/// jobs.join().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Queue<T>(BaseQueue<Fifo<T>>);

/// A queue that gives the smallest item first, and of equal items the oldest. See [`BaseQueue`] for its methods.
///
/// Wrap items in [`std::cmp::Reverse`] to get the largest first.
///
/// Items are compared under the queue's lock: `Ord` should be short, and must not touch the queue. When it panics, the
/// `put` or `get` that needed it panics, and the queue is as it was before that.
///
/// # Examples
/// ```
/// use rt_sync::queue::PriorityQueue;
///
/// # futures_lite::future::block_on(async {
/// let queue = PriorityQueue::unbounded();
/// for item in [(2, "tea"), (1, "water"), (2, "cake")] {
///     queue.put(item).await?;
/// }
/// assert_eq!(queue.get().await?, (1, "water"));
/// assert_eq!(queue.get().await?, (2, "cake"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct PriorityQueue<T: Ord>(BaseQueue<Heap<T>>);

/// A queue that gives the newest item first. See [`BaseQueue`] for its methods.
///
/// # Examples
/// ```
/// use rt_sync::queue::LifoQueue;
///
/// # futures_lite::future::block_on(async {
/// let queue = LifoQueue::unbounded();
/// queue.put(1).await?;
/// queue.put(2).await?;
/// assert_eq!(queue.get().await?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct LifoQueue<T>(BaseQueue<Lifo<T>>);

macro_rules! kind {
    ($name:ident, $store:ident $(, $bound:ident)?) => {
        impl<T $(: $bound)?> $name<T> {
            /// A queue for at most `max_size` items; 0 means that there is no limit, as in asyncio.
            #[must_use]
            pub fn new(max_size: usize) -> Self {
                Self(BaseQueue::with_max_size(max_size))
            }

            /// A queue without a limit: a put never waits.
            #[must_use]
            pub fn unbounded() -> Self {
                Self::new(0)
            }
        }

        impl<T $(: $bound)?> Default for $name<T> {
            /// Without a limit.
            fn default() -> Self {
                Self::unbounded()
            }
        }

        impl<T $(: $bound)?> Deref for $name<T> {
            type Target = BaseQueue<$store<T>>;

            #[inline]
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<T $(: $bound)?> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt_as(stringify!($name), f)
            }
        }
    };
}

kind!(Queue, Fifo);
kind!(PriorityQueue, Heap, Ord);
kind!(LifoQueue, Lifo);

#[cfg(all(test, not(rt_loom)))]
mod tests;
