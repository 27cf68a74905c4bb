//! `TaskTracker` with what needs a runtime: spawning tracked tasks.

use std::future::Future;
use std::ops::Deref;

use rt_sync::task_tracker;

use super::local::spawn_local_meta;
use super::{JoinHandle, LocalSet, Meta};
use crate::runtime::Handle;

/// Waits for a number of tasks to end: made for a graceful shutdown.
///
/// Unlike a [`JoinSet`](super::JoinSet) it keeps nothing of its tasks, and it can be shared: clones track the same tasks.
/// [`wait`](task_tracker::TaskTracker::wait) ends when the tracker was [closed](task_tracker::TaskTracker::close) *and* no
/// task is left. It dereferences to [`rt_sync`'s tracker](task_tracker::TaskTracker), which has those methods and can track
/// any future; here are those that spawn.
///
/// A task counts until its future was dropped, whether it ended, panicked or was aborted; a closure of the blocking pool
/// until it was run or dropped.
///
/// # Examples
/// ```
/// use rt::sync::CancellationToken;
/// use rt::task::TaskTracker;
///
/// #[rt::main]
/// async fn main() {
///     let tracker = TaskTracker::new();
///     let token = CancellationToken::new();
///     for _ in 0..10 {
///         let token = token.clone();
///         tracker.spawn(async move { token.cancelled().await });
///     }
///     tracker.close();
///     token.cancel();
///     tracker.wait().await;
///     assert!(tracker.is_empty());
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct TaskTracker {
    tracker: task_tracker::TaskTracker,
}

impl TaskTracker {
    /// A tracker without tasks, not closed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task on the current runtime, as [`rt::spawn`](crate::spawn) does, and tracks it.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_on(future, &Handle::current())
    }

    /// Spawns a task on the runtime of `handle`, and tracks it.
    #[track_caller]
    pub fn spawn_on<F>(&self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        handle.spawn_meta(self.track_future(future), Meta::here())
    }

    /// Spawns a task on the current [`LocalSet`], or worker, as [`spawn_local`](super::spawn_local) does, and tracks it.
    ///
    /// # Panics
    /// Where [`spawn_local`](super::spawn_local) does.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        spawn_local_meta(self.track_future(future), Meta::here())
    }

    /// Spawns a task on `local_set`, and tracks it.
    #[track_caller]
    pub fn spawn_local_on<F>(&self, future: F, local_set: &LocalSet) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        local_set.spawn_meta(self.track_future(future), Meta::here())
    }

    /// Runs a closure on the blocking pool of the current runtime, as [`spawn_blocking`](super::spawn_blocking) does,
    /// and tracks it.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_blocking_on(f, &Handle::current())
    }

    /// Runs a closure on the blocking pool of the runtime of `handle`, and tracks it.
    #[track_caller]
    pub fn spawn_blocking_on<F, T>(&self, f: F, handle: &Handle) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let tracked = Tracked {
            f,
            _token: self.token(),
        };
        handle.spawn_blocking_meta(move || tracked.run(), Meta::here())
    }

    /// Whether both track the same tasks.
    #[must_use]
    pub fn ptr_eq(left: &TaskTracker, right: &TaskTracker) -> bool {
        task_tracker::TaskTracker::ptr_eq(&left.tracker, &right.tracker)
    }
}

impl Deref for TaskTracker {
    type Target = task_tracker::TaskTracker;

    fn deref(&self) -> &Self::Target {
        &self.tracker
    }
}

impl From<task_tracker::TaskTracker> for TaskTracker {
    fn from(tracker: task_tracker::TaskTracker) -> Self {
        Self { tracker }
    }
}

/// A closure, dropped before the token if it is not run.
struct Tracked<F> {
    f: F,
    _token: task_tracker::TaskTrackerToken,
}

impl<F> Tracked<F> {
    fn run<T>(self) -> T
    where
        F: FnOnce() -> T,
    {
        let Tracked { f, _token } = self;
        f()
    }
}
