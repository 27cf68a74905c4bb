//! Synchronisation primitives of the `rt` runtime.
//!
//! Everything here needs nothing but [wakers](std::task::Waker) and so runs on any executor. Users depend on the
//! facade crate `rt`, which re-exports what is public.

pub mod atomic_waker;
mod backoff;
pub mod barrier;
mod blocking;
pub mod broadcast;
pub mod cancellation_token;
pub mod condition;
pub mod coop;
mod desk;
pub mod event;
#[doc(hidden)]
pub mod grants;
mod list;
pub mod mpsc;
pub mod mutex;
pub mod notify;
pub mod once_cell;
mod once_value;
pub mod oneshot;
mod permits;
pub mod primitive;
pub mod queue;
pub mod rwlock;
pub mod semaphore;
pub mod set_once;
pub mod task_tracker;
#[cfg(all(test, not(rt_loom)))]
mod testing;
pub mod wait;
pub mod wait_list;
pub mod wake_batch;
mod waker_words;
pub mod watch;

pub use self::atomic_waker::AtomicWaker;
pub use self::wait_list::WaitList;
pub use self::wake_batch::WakeBatch;
