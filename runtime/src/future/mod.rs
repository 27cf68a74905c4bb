//! Many futures at once: `gather`, `wait`, `as_completed`, `shield`, and bounded concurrency.
//!
//! | function | gives | at the first error |
//! |---|---|---|
//! | [`gather`] | all outputs, in the order of the arguments | goes on: errors are values |
//! | [`try_gather`] | all values, in the order of the arguments | ends with it |
//! | [`wait`], [`wait_until`] | what is done and what is not; nothing is cancelled | as asked for |
//! | [`as_completed`] | one output after the other, as they come | goes on |
//! | [`for_each_concurrent`] | nothing, with at most so many at a time | (futures without output) |
//! | [`try_for_each_concurrent`] | nothing, with at most so many at a time | ends with it |
//! | [`map_concurrent`] | a stream in the order of the input | goes on |
//! | [`map_concurrent_unordered`] | a stream in the order in which they end | goes on |
//!
//! For a number of futures that is known when the program is written there are the macros [`join!`](crate::join!),
//! [`try_join!`](crate::try_join!) and [`select!`](crate::select!), which allocate nothing.
//!
//! # Futures and tasks
//! All functions take futures, and a future does not run by itself: it is polled by the task that awaits the result, on
//! one thread. A [`JoinHandle`](crate::task::JoinHandle) is a future too; its task runs by itself, in parallel.
//! Dropping a future cancels it; dropping the handle of a task does not. That is the whole difference between
//! `gather(futures)` and `gather(handles)` when the caller is cancelled or an error ends the wait early. Tasks that
//! should be cancelled together with who waits for them are spawned in a [`TaskGroup`](crate::task::TaskGroup).
//!
//! # What it costs
//! A wake-up of one of a thousand futures polls that one alone (`pool.rs`).

mod as_completed;
mod concurrent;
mod deadline;
mod gather;
mod items;
pub(crate) mod pool;
mod shield;
mod slab;
mod wait;

pub use self::as_completed::{
    AsCompleted, AsCompletedWithin, NextCompleted, NextWithin, as_completed,
};
pub use self::concurrent::{
    Collect, ForEachConcurrent, MapConcurrent, MapConcurrentUnordered, Next, TryForEachConcurrent,
    for_each_concurrent, map_concurrent, map_concurrent_unordered, try_for_each_concurrent,
};
pub use self::gather::{Gather, TryGather, gather, try_gather};
pub use self::items::{ByIterator, ByStream, FromIterator, IntoItems};
pub use self::shield::{Shield, shield};
pub use self::wait::{Done, Enough, NothingToWaitFor, ReturnWhen, Until, Wait, wait, wait_until};
