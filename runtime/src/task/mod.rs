//! Tasks: a future on the heap with everything a scheduler, a waker and a handle need, in one allocation.
//!
//! # Who may touch what
//! Every right comes from the state word (`state.rs`, with its truth table). The rules that the `unsafe` blocks of this
//! folder refer to:
//!
//! 1. **Header.** `vtable`, `id`, `site` and the scheduler are written before the task is shared and only read
//!    afterwards. The other header fields are atomics, but for the waker slot (rule 3).
//! 2. **Stage.** The place of the future and the output belongs to one at a time, until that one gives it back by the end of
//!    a poll, or sets `COMPLETE`: to who starts a poll (one `Runnable` exists while `SCHEDULED` is set), or to who sets
//!    `CLAIMED` in order to drop the future (shutdown, an abort, a `Runnable` that is dropped).
//! 3. **Waker slot.** It is the handle's while neither `JOIN_WAKER` nor `COMPLETE` is set, and while `COMPLETE` is set
//!    without `JOIN_WAKER`. Setting `JOIN_WAKER` hands it to whoever completes the task; the handle gets it back only
//!    by clearing the bit, which fails once the task is complete.
//! 4. **Output.** Once `COMPLETE` is set the stage is the handle's, if `JOIN_INTEREST` was set at that moment, or else
//!    the completer's.
//! 5. **Threads.** A future that is not `Send` is polled and dropped on one thread: its scheduler hands the `Runnable`
//!    to that thread only, and shuts tasks down there only.
//!
//! References: the live list holds one (if the scheduler keeps a list), the handle one, a `Runnable` one, each waker
//! one. The last to go frees the task.
//!
//! # What it costs
//! A spawn is one allocation, or the memory of a task that is gone (`stock.rs`); a poll is one exchange, at its end, and
//! borrows its waker; a wake is one exchange.
//!
//! # Where it comes from
//! The layout and the idea of a typed vtable over an untyped header are tokio's and async-task's.

mod builder;
mod cancelled;
mod cell;
pub(crate) mod cold;
pub mod coop;
mod done;
pub(crate) mod error;
pub(crate) mod grace;
pub mod group;
mod harness;
pub(crate) mod header;
mod id;
mod info;
mod join;
pub mod join_set;
pub(crate) mod local;
pub(crate) mod memory;
pub(crate) mod raw;
pub(crate) mod schedule;
mod state;
mod steps;
pub(crate) mod stock;
mod task_local;
mod tracker;
mod transition;
pub(crate) mod wake_queue;
mod waker;
mod yield_now;

pub use self::builder::Builder;
pub use self::cancelled::{Cancelled, cancelled, is_cancelled};
pub use self::coop::{Unconstrained, consume_budget, unconstrained};
pub use self::done::{Done, Outcome};
pub use self::error::{JoinError, Refusal};
pub use self::group::{GroupError, TaskGroup};
pub use self::id::{Id, id, try_id};
pub use self::info::{Activity, TaskInfo, all_tasks, current, try_current};
pub use self::join::{AbortHandle, JoinHandle};
pub use self::join_set::JoinSet;
pub use self::local::{LocalEnterGuard, LocalSet, RunUntil, spawn_local};
pub use self::task_local::{AccessError, LocalKey};
pub use self::tracker::TaskTracker;
pub use self::yield_now::{YieldNow, yield_now};
pub use crate::runtime::{block_in_place, spawn, spawn_blocking, spawn_result};
pub use rt_sync::wait::WaitKind;

pub(crate) use self::error::PanicReport;
pub(crate) use self::header::{Header, Links};
pub(crate) use self::id::{current_report, ends_with_poll, keep_failure};
pub(crate) use self::raw::{Runnable, TaskRef};
pub(crate) use self::schedule::{Meta, NewTask, Schedule, new_task, spawn_listed};

/// Futures of this module, at tokio's path.
pub mod futures {
    pub use super::task_local::TaskLocalFuture;
    pub use rt_sync::task_tracker::{TaskTrackerToken, TaskTrackerWait, TrackedFuture};
}

#[cfg(test)]
mod tests;
