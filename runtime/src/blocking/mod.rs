//! Threads for closures that block: `spawn_blocking` and `spawn_compute`.
//!
//! A closure becomes a task of one poll, in one allocation, so that its handle is a [`JoinHandle`](crate::task::JoinHandle)
//! like any other. Its `Runnable` goes into an unbounded crossbeam channel, one for each priority (`waiting.rs`), which only
//! stores: nobody ever waits in it. Who takes it out is agreed in `tickets.rs`, the handshake between submitters, idle
//! threads and shutdown, which has a model in `loom-tests/tests/blocking.rs`. `pool.rs` puts the two together with real
//! threads, `config.rs` says what a pool is made of, and `follow_up.rs` what a thread does after its closure.
//!
//! # How many threads
//! tokio's users count on 512 threads, and a small cap turns programs that work there into deadlocks: closures that
//! wait for each other, or that never return, need a thread each. So the cap is 512 here as well. What makes pools of that
//! size harmful is growing to it at once for closures that are about to end anyway: there a pool grows by at most one
//! thread a millisecond beyond four threads a core, and only while something waits. See `DEFAULT_PACE`.
//!
//! The queue has no end, since `spawn_blocking` neither waits nor refuses. `admit.rs` is for who wants an end.
//!
//! `spawn_compute` is for closures that keep a core busy: the same type with as many threads as cores.
//!
//! # What it costs
//! A round trip is one allocation, two wake-ups across threads (the pool's thread, and whoever awaits the handle), one
//! short lock at either end, and one clock read for the age of the closure. A task that awaits one closure after the other
//! while its worker has nothing else to do pays for neither wake-up but the first: see `follow_up.rs`.

mod admit;
mod config;
pub(crate) mod follow_up;
mod limited;
mod pool;
mod running;
pub mod tickets;
mod waiting;

pub use self::admit::{
    AdmitBlocking, AdmitError, BlockingSlot, admit_blocking, try_admit_blocking,
};
pub use self::config::{Config, Inhibit, Later, Run, Start};
pub use self::config::{
    DEFAULT_EAGER_PER_CORE, DEFAULT_KEEP_ALIVE, DEFAULT_MAX_THREADS, DEFAULT_PACE,
};
pub use self::limited::{SpawnBlockingLimited, spawn_blocking_limited};
pub use self::pool::{Metrics, Pool};
pub use self::running::Running;
pub use self::waiting::{BlockingPriority, ByPriority, Ticket};

#[cfg(all(test, not(rt_loom)))]
mod tests;
