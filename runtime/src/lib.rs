//! `rt`: a multi-threaded async runtime.
//!
//! Every worker thread turns its own selector and its own ready queue; idle workers steal; sync code runs on a blocking
//! pool. Names and meanings are tokio's wherever tokio has the thing.
//!
//! ```
//! #[rt::main]
//! async fn main() -> Result<(), rt::task::JoinError> {
//!     let answer = rt::spawn(async { 6 * 7 });
//!     rt::time::sleep(std::time::Duration::from_millis(5)).await;
//!     assert_eq!(answer.await?, 42);
//!     Ok(())
//! }
//! ```

// Doc examples name the crate as its users do, and so do the macros.
extern crate self as rt;

mod blocking;
mod context;
mod debug;
pub mod dump;
pub mod future;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(all(unix, feature = "inspect"))]
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod internals;
#[doc(hidden)]
pub mod macros;
pub mod runtime;
mod scheduler;
pub mod signal;
pub mod task;
#[cfg(all(test, not(rt_loom)))]
mod testing;
pub mod time;
pub mod trace;
mod unpoisoned;

/// Sockets, pipes and name look-up.
pub mod net {
    pub use rt_io::net::*;
}

/// Reading and writing: traits, helpers, standard streams.
pub mod io {
    pub use rt_io::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
    pub use rt_io::util::*;
    pub use rt_io::{Interest, Ready};

    /// Descriptors of other libraries.
    pub mod unix {
        pub use rt_io::{
            AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
        };
    }
}

/// Channels, locks and queues.
pub mod sync {
    pub use rt_sync::barrier::{Barrier, BarrierWait, BarrierWaitResult};
    pub use rt_sync::cancellation_token::{CancellationToken, DropGuard, DropGuardRef};
    pub use rt_sync::condition::{Condition, ConditionGuard};
    pub use rt_sync::event::Event;
    pub use rt_sync::notify::Notify;
    pub use rt_sync::once_cell::{OnceCell, SetError};
    pub use rt_sync::queue::{
        LifoQueue, PriorityQueue, Queue, QueueEmpty, QueueFull, QueueShutDown, Shutdown,
        TaskDoneError,
    };
    pub use rt_sync::set_once::{SetOnce, SetOnceError};
    pub use rt_sync::{barrier, cancellation_token, condition, event, queue};
    pub use rt_sync::{broadcast, watch};

    /// Futures that have to be named now and then.
    pub mod futures {
        pub use rt_sync::notify::{Notified, OwnedNotified};
    }

    pub use rt_sync::mutex::{
        MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
    };
    pub use rt_sync::rwlock::{
        OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
        RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
    };
    pub use rt_sync::semaphore::{
        AcquireError, BoundedPermit, BoundedSemaphore, CapacityLimiter, CapacityToken,
        OwnedBoundedPermit, OwnedCapacityToken, OwnedSemaphorePermit, ReleaseError, Semaphore,
        SemaphorePermit, TryAcquireError,
    };
    pub use rt_sync::{mpsc, mutex, oneshot, rwlock, semaphore};
}

pub use crate::blocking::{
    AdmitBlocking, AdmitError, BlockingPriority, BlockingSlot, SpawnBlockingLimited,
    admit_blocking, spawn_blocking_limited, try_admit_blocking,
};
pub use crate::dump::dump;
pub use crate::future::{
    ReturnWhen, as_completed, for_each_concurrent, gather, map_concurrent,
    map_concurrent_unordered, shield, try_for_each_concurrent, try_gather, wait, wait_until,
};
pub use crate::runtime::{
    block_in_place, bridge, spawn, spawn_blocking, spawn_compute, spawn_pinned, try_bridge,
};
pub use rt_macros::{main, test};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
