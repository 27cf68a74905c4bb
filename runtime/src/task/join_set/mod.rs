//! `JoinSet`: tasks that are awaited in the order in which they end.
//!
//! # How it works
//! Each task has a slot, and each slot a waker of its own, which is stored in the task when it joins the set. A task
//! that ends wakes it, which puts the slot's number into a queue (`wake_queue.rs`) and, if that was empty, wakes the
//! set's owner. So the end of a task costs one short lock and its output is found without a search, whatever the number
//! of tasks.
//!
//! Slots and their wakers are used again, so a set that keeps its size allocates nothing. A number in the queue is
//! only a hint: it may be there twice, or belong to a task that has left and whose slot is empty or used again. The
//! task is asked, and asking a task that is not over stores the waker once more.
//!
//! # User code
//! No lock is held, and the set is whole, when a task is aborted or its output, or a waker, is dropped.

mod builder;
mod slots;

use std::fmt;
use std::future::Future;
use std::panic::{self, Location};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

pub use self::builder::Builder;
use self::slots::Slots;
use super::local::spawn_local_meta;
use super::{AbortHandle, Id, JoinError, JoinHandle, LocalSet, Meta};
use crate::runtime::Handle;

/// A set of tasks, awaited in the order in which they end.
///
/// Dropping the set aborts all its tasks.
///
/// # Examples
/// ```
/// use rt::task::JoinSet;
///
/// # #[rt::main]
/// # async fn main() -> Result<(), rt::task::JoinError> {
/// let mut set = JoinSet::new();
/// for n in 0..10 {
///     set.spawn(async move { n * n });
/// }
/// let mut sum = 0;
/// while let Some(square) = set.join_next().await {
///     sum += square?;
/// }
/// assert_eq!(sum, 285);
/// # Ok(())
/// # }
/// ```
pub struct JoinSet<T> {
    slots: Slots<T>,
}

impl<T> JoinSet<T> {
    /// An empty set. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: Slots::new(),
        }
    }

    /// How many tasks are in the set. A task that is over is in it until it has been joined.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no task in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: 'static> JoinSet<T> {
    /// Gives the next task a name before it is spawned.
    pub fn build_task(&mut self) -> Builder<'_, T> {
        Builder::new(self)
    }

    /// Spawns a task on the current runtime, as [`rt::spawn`](crate::spawn) does.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.spawn_on(future, &Handle::current())
    }

    /// Spawns a task on the runtime of `handle`.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_meta(future, Meta::here()))
    }

    /// Spawns a task on the current [`LocalSet`], or worker, as [`spawn_local`](super::spawn_local) does.
    ///
    /// # Panics
    /// Where [`spawn_local`](super::spawn_local) does.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(spawn_local_meta(future, Meta::here()))
    }

    /// Spawns a task on `local_set`.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, future: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(local_set.spawn_meta(future, Meta::here()))
    }

    /// Runs a closure on the blocking pool of the current runtime, as
    /// [`spawn_blocking`](super::spawn_blocking) does. A closure that runs already cannot be aborted.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.spawn_blocking_on(f, &Handle::current())
    }

    /// Runs a closure on the blocking pool of the runtime of `handle`.
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_blocking_meta(f, Meta::here()))
    }

    pub(super) fn insert(&mut self, handle: JoinHandle<T>) -> AbortHandle {
        let abort = handle.abort_handle();
        self.slots.insert(handle);
        abort
    }

    /// Waits until a task is over, and takes it out of the set. `None` if the set is empty.
    ///
    /// # Cancel safety
    /// No output is lost when the future is dropped.
    #[track_caller]
    pub fn join_next(&mut self) -> JoinNext<'_, T> {
        JoinNext {
            set: self,
            site: Location::caller(),
        }
    }

    /// As [`join_next`](Self::join_next), with the task's number. The number of a task that failed is in the error.
    ///
    /// # Cancel safety
    /// No output is lost when the future is dropped.
    #[track_caller]
    pub fn join_next_with_id(&mut self) -> JoinNextWithId<'_, T> {
        JoinNextWithId {
            set: self,
            site: Location::caller(),
        }
    }

    /// Takes a task that is over out of the set. `None` if there is none, or the set is empty.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_join_next_with_id().map(without_id)
    }

    /// As [`try_join_next`](Self::try_join_next), with the task's number.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.slots.take_next()
    }

    /// Aborts every task, and waits until all are over. Their outputs and panics are dropped.
    ///
    /// # Cancel safety
    /// The tasks are aborted by the first poll; those that were not waited for stay in the set.
    #[track_caller]
    pub fn shutdown(&mut self) -> impl Future<Output = ()> + use<'_, T> {
        let site = Location::caller();
        async move {
            self.abort_all();
            while (JoinNext {
                set: &mut *self,
                site,
            })
            .await
            .is_some()
            {}
        }
    }

    /// Waits for every task; their outputs, in the order in which the tasks ended.
    ///
    /// # Panics
    /// If a task panicked: with the same payload. If a task was aborted, or its runtime closed. The other tasks are
    /// aborted then. Use [`join_next`](Self::join_next) to deal with failed tasks one by one.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the tasks that are left and loses the outputs.
    #[track_caller]
    pub fn join_all(mut self) -> impl Future<Output = Vec<T>> + use<T> {
        let site = Location::caller();
        async move {
            let mut outputs = Vec::with_capacity(self.len());
            while let Some(result) = (JoinNext {
                set: &mut self,
                site,
            })
            .await
            {
                match result.map_err(JoinError::try_into_panic) {
                    Ok(output) => outputs.push(output),
                    Err(Ok(payload)) => panic::resume_unwind(payload),
                    Err(Err(error)) => {
                        panic!("JoinSet::join_all at {site}: a task has no output: {error}")
                    }
                }
            }
            outputs
        }
    }

    /// Aborts every task. They stay in the set until they are joined.
    pub fn abort_all(&mut self) {
        self.slots.for_each(JoinHandle::abort);
    }

    /// Takes every task out of the set without aborting it.
    pub fn detach_all(&mut self) {
        self.slots.clear();
    }

    /// Polls for a task that is over: see [`join_next`](Self::join_next).
    ///
    /// `Ready(None)` says that the set is empty. `Pending` is also the answer when the budget of the current task is
    /// spent, which is woken then.
    #[track_caller]
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_next(cx, Location::caller())
            .map(|next| next.map(without_id))
    }

    /// As [`poll_join_next`](Self::poll_join_next), with the task's number.
    #[track_caller]
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.poll_next(cx, Location::caller())
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        let unit = ready!(coop::poll_proceed(cx));
        match self.slots.poll_next(cx) {
            Poll::Ready(result) => {
                unit.made_progress();
                Poll::Ready(Some(result))
            }
            Poll::Pending => {
                wait::record(WaitKind::Join, site);
                Poll::Pending
            }
        }
    }
}

fn without_id<T>(result: Result<(Id, T), JoinError>) -> Result<T, JoinError> {
    result.map(|(_, output)| output)
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.slots.for_each(JoinHandle::abort);
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Spawns every future on the current runtime.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        set.extend(futures);
        set
    }
}

/// Spawns every future on the current runtime.
impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        for future in futures {
            self.spawn(future);
        }
    }
}

/// Future of [`JoinSet::join_next`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct JoinNext<'a, T> {
    set: &'a mut JoinSet<T>,
    site: &'static Location<'static>,
}

impl<T: 'static> Future for JoinNext<'_, T> {
    type Output = Option<Result<T, JoinError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let site = self.site;
        self.set
            .poll_next(cx, site)
            .map(|next| next.map(without_id))
    }
}

/// Future of [`JoinSet::join_next_with_id`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct JoinNextWithId<'a, T> {
    set: &'a mut JoinSet<T>,
    site: &'static Location<'static>,
}

impl<T: 'static> Future for JoinNextWithId<'_, T> {
    type Output = Option<Result<(Id, T), JoinError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let site = self.site;
        self.set.poll_next(cx, site)
    }
}
