//! Bounded concurrency: work on many items, with at most so many futures at a time.
//!
//! `flow.rs` takes items, makes futures of them and polls those; `for_each.rs` and `map.rs` say what becomes of the
//! outputs.

mod flow;
mod for_each;
mod map;

pub use self::for_each::{
    ForEachConcurrent, TryForEachConcurrent, for_each_concurrent, try_for_each_concurrent,
};
pub use self::map::{
    Collect, MapConcurrent, MapConcurrentUnordered, Next, map_concurrent, map_concurrent_unordered,
};
