//! Structured concurrency: tasks that do not outlive the block that spawned them.
//!
//! [`TaskGroup::scope`] runs a block of async code, its *body*, with a group that it may spawn tasks into, its *children*.
//! The scope is over when the body and all children are. It is asyncio's `TaskGroup`, Trio's nursery, Kotlin's
//! `coroutineScope`.
//!
//! ```
//! use rt::task::TaskGroup;
//!
//! async fn price(of: &str) -> Result<u32, String> {
//!     match of {
//!         "tea" => Ok(3),
//!         "cake" => Ok(4),
//!         other => Err(format!("we have no {other}")),
//!     }
//! }
//!
//! # #[rt::main]
//! # async fn main() {
//! let sum = TaskGroup::scope(async |group| {
//!     let tea = group.spawn(price("tea"));
//!     let cake = group.spawn(price("cake"));
//!     Ok(tea.await.map_err(|e| e.to_string())? + cake.await.map_err(|e| e.to_string())?)
//! })
//! .await;
//! assert_eq!(sum.expect("both are there"), 7);
//! # }
//! ```
//!
//! # When something fails
//! A child fails when it returns an error or panics. The first failure cancels the other children *and* the body; all of
//! them are awaited; then the scope gives a [`GroupError`] with that failure and every other one that happened meanwhile.
//! So an error is neither lost nor late, and no task is left over.
//!
//! ```
//! # use rt::task::TaskGroup;
//! # #[rt::main]
//! # async fn main() {
//! let error = TaskGroup::scope(async |group| {
//!     group.spawn(std::future::pending::<Result<(), &str>>()); // is cancelled
//!     group.build_task().name("broken").spawn(async { Err::<(), _>("out of paper") });
//!     std::future::pending::<Result<(), &str>>().await // is cancelled too
//! })
//! .await
//! .expect_err("a child fails");
//! assert_eq!(error.failures().len(), 1);
//! assert_eq!(error.first().name(), Some("broken"));
//! assert_eq!(error.first().error(), Some(&"out of paper"));
//! # }
//! ```
//!
//! * An error that the **body** returns is a failure like any other.
//! * A **panic of a child** is a failure ([`Cause::Panic`]). A **panic of the body** is the caller's own: the children are
//!   cancelled and awaited, and then it goes on in the caller.
//! * A panic in the **destructor** of a child's future, or of the body, is a failure. Cleaning up may fail too.
//! * A child that **somebody aborts**, by its handle, is no failure. Its handle says so.
//! * **Groups nest.** A child, or the body, that runs a group of its own and returns its error adds one failure to the outer
//!   group, with the whole inner error in it. A failure in the outer group cancels the inner group with everything in it.
//!
//! ```
//! # use rt::task::{GroupError, TaskGroup};
//! # type Error = Box<dyn std::error::Error + Send + Sync>;
//! # #[rt::main]
//! # async fn main() {
//! let outer: GroupError<Error> = TaskGroup::scope(async |group| {
//!     group.spawn(async {
//!         TaskGroup::<Error>::scope(async |inner| {
//!             inner.spawn(async { Err::<(), Error>("first".into()) });
//!         })
//!         .await?;
//!         Ok(())
//!     });
//!     Ok::<_, Error>(())
//! })
//! .await
//! .expect_err("a child of the inner group fails");
//! let inner = outer.first().error().and_then(|error| error.downcast_ref::<GroupError<Error>>());
//! assert_eq!(inner.expect("a group error").failures().len(), 1);
//! # }
//! ```
//!
//! # What a child returns
//! `Result<T, E>`, where `E` is the error of the group, or nothing at all. Its handle, a plain
//! [`JoinHandle`], gives the `T`. Where all children and the body return nothing, the error has to be
//! named: `TaskGroup::<Infallible>::scope(..)`. A handle may be dropped: the group waits for the child all the same.
//!
//! # Spawning
//! Whoever has the group may spawn into it. It is a handle that can be cloned, so a child may take one along and add further
//! children. When the group has failed, or its scope is over, nobody is taken in any more: [`TaskGroup::try_spawn`] gives
//! the future back, and the handle that [`TaskGroup::spawn`] gives says [so](super::JoinError::is_refused).
//!
//! ```
//! use rt::task::TaskGroup;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! fn visit(group: TaskGroup<std::io::Error>, depth: u32, seen: Arc<AtomicU32>) {
//!     let next = group.clone();
//!     group.spawn(async move {
//!         seen.fetch_add(1, Ordering::Relaxed);
//!         if depth > 0 {
//!             visit(next.clone(), depth - 1, seen.clone());
//!             visit(next, depth - 1, seen);
//!         }
//!     });
//! }
//!
//! # #[rt::main]
//! # async fn main() -> std::io::Result<()> {
//! let seen = Arc::new(AtomicU32::new(0));
//! let count = seen.clone();
//! TaskGroup::scope(async |group| visit(group, 3, count)).await?;
//! assert_eq!(seen.load(Ordering::Relaxed), 15);
//! # Ok(())
//! # }
//! ```
//!
//! # Cancelling
//! A future is cancelled by dropping it, and a child by [aborting](super::JoinHandle::abort) its task. From that follows who
//! absorbs what:
//!
//! * **A group absorbs only its own cancellation**: that of the children it aborted. What cancels the *owner* (an abort of
//!   its task, an outer [`timeout`](crate::time::timeout), a `select!` that goes another way) drops the scope; the scope
//!   never returns, so it cannot turn that into something else, and what its children still do is nobody's business any
//!   more. An outer timeout thus beats an inner failure that is still being cleaned up.
//! * **Dropping the scope** drops the body and aborts the children. It cannot wait for them, since a destructor cannot await:
//!   each child ends when its current poll, if it is in one, is over, and the runtime drops its future. What has to be over
//!   before the next line is awaited, not dropped: use a request.
//! * **A request to end** ([`JoinHandle::cancel`](super::JoinHandle::cancel) of the owner) goes down the tree: the group
//!   hands it on to its children, now and later, whose own groups hand it on. Each task may answer it, by
//!   [`cancelled`](super::cancelled), and clean up with awaits. The scope waits for all of them; a child that fails during
//!   that is a failure as ever. Who has not answered when the grace is over is aborted, from the owner down.
//! * [`TaskGroup::abort_all`] ends the children without failure, and the body goes on.
//!
//! ```
//! use rt::task::{TaskGroup, cancelled};
//! use std::time::Duration;
//!
//! # #[rt::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = rt::spawn(TaskGroup::<std::io::Error>::scope(async |group| {
//!     for _connection in 0..3 {
//!         group.spawn(async {
//!             cancelled().await;
//!             rt::time::sleep(Duration::from_millis(1)).await; // says good-bye
//!         });
//!     }
//! }));
//! server.cancel(Duration::from_secs(10));
//! server.await??; // all three have said good-bye
//! # Ok(())
//! # }
//! ```
//!
//! # What it costs
//! A group is one allocation. A child is one task, with 32 bytes more than a bare one and no allocation more; when it is
//! over nothing of it is kept, so a group that has seen a million children is as small as a new one.
//!
//! # How it works
//! `core.rs`: the count, the list and the failures, with the races. `member.rs`: a child as a task. `scope.rs`: the owner.

mod builder;
mod core;
mod error;
pub(crate) mod member;
mod scope;

use std::fmt;
use std::future::{Future, pending};
use std::panic::Location;
use std::time::Duration;

use rt_sync::primitive::Arc;

pub use self::builder::Builder;
pub use self::error::{Cause, Failure, GroupError, SpawnError};
pub use self::scope::Scope;
pub use super::error::Refusal;

use self::core::Core;
use self::member::Refused;
pub(crate) use self::member::{Child, Entry, Member};
use super::local::spawn_local_member;
use super::schedule::new_task;
use super::{JoinHandle, Meta};
use crate::runtime::entry::{place_or_panic, spawn_member};

/// Tasks that belong together: see the [module](self) for the whole story.
///
/// The group itself is a handle to spawn with. It is made by [`scope`](Self::scope), which awaits the children.
///
/// # Examples
/// ```
/// use rt::task::TaskGroup;
///
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let squares = TaskGroup::<std::io::Error>::scope(async |group| {
///     let tasks: Vec<_> = (1..4).map(|n| group.spawn(async move { Ok(n * n) })).collect();
///     let mut sum = 0;
///     for task in tasks {
///         sum += task.await?;
///     }
///     Ok(sum)
/// })
/// .await?;
/// assert_eq!(squares, 14);
/// # Ok(())
/// # }
/// ```
pub struct TaskGroup<E> {
    core: Arc<Core<E>>,
}

/// What a child, and the body, of a group whose error is `E` may return: `Result<T, E>`, or nothing. It may
/// also never return.
#[diagnostic::on_unimplemented(
    message = "a child, or the body, of a `TaskGroup<{E}>` cannot return `{Self}`",
    note = "it returns `Result<T, {E}>`, or `()`: write `Ok(value)` to return a plain value"
)]
pub trait GroupOutput<E>: sealed::Sealed {
    /// What the child's handle, or the scope, gives.
    type Value;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, E>;
}

impl<T, E> GroupOutput<E> for Result<T, E> {
    type Value = T;

    #[inline]
    fn into_result(self) -> Result<T, E> {
        self
    }
}

impl<E> GroupOutput<E> for () {
    type Value = ();

    #[inline]
    fn into_result(self) -> Result<(), E> {
        Ok(())
    }
}

/// A child that never ends, such as a loop that accepts connections.
impl<E> GroupOutput<E> for sealed::Never {
    type Value = Self;

    fn into_result(self) -> Result<Self, E> {
        match self {}
    }
}

mod sealed {
    /// The type of what never returns, which has no name on stable Rust.
    pub(super) type Never = <fn() -> ! as Returns>::Output;

    pub trait Returns {
        type Output;
    }

    impl<T> Returns for fn() -> T {
        type Output = T;
    }

    pub trait Sealed {}
    impl Sealed for Never {}
    impl<T, E> Sealed for Result<T, E> {}
    impl Sealed for () {}
}

impl<E: Send + 'static> TaskGroup<E> {
    /// Runs `body` with a new group, and waits for it and for all children.
    ///
    /// The closure is called at once, the future that it gives is polled when the scope is.
    ///
    /// # Errors
    /// Every failure of a child or of the body: see the [module](self).
    ///
    /// # Panics
    /// If the body panics, after all children have ended. Failures of children are dropped then, and panics among them
    /// reported.
    ///
    /// # Cancel safety
    /// Dropping the scope drops the body and aborts the children, without waiting for them: see "Cancelling" in the
    /// [module](self).
    #[track_caller]
    pub fn scope<F, B>(body: F) -> Scope<B, <B::Output as GroupOutput<E>>::Value, E>
    where
        F: FnOnce(Self) -> B,
        B: Future,
        B::Output: GroupOutput<E>,
    {
        let site = Location::caller();
        let group = Self {
            core: Arc::new(Core::new()),
        };
        let core = group.core.clone();
        Scope::new(body(group), core, site)
    }

    /// Spawns a child on the current runtime, as [`rt::spawn`](crate::spawn) does.
    ///
    /// The handle gives the child's value. If the child fails, its error goes to the group and the handle gives a
    /// [`JoinError`](super::JoinError) for which [`is_in_group`](super::JoinError::is_in_group) holds; seldom does anyone
    /// see it, since the body and the other children are cancelled by then.
    ///
    /// If the group has failed or ended, the future is dropped and the handle says
    /// [so](super::JoinError::is_refused); [`try_spawn`](Self::try_spawn) gives an error instead.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    #[inline]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<<F::Output as GroupOutput<E>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: Send + 'static,
    {
        self.spawn_meta(future, Meta::here())
    }

    /// Spawns a child, as [`spawn`](Self::spawn) does, unless the group takes no more.
    ///
    /// # Errors
    /// The future, if the group has failed or ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn try_spawn<F>(
        &self,
        future: F,
    ) -> Result<JoinHandle<<F::Output as GroupOutput<E>>::Value>, SpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: Send + 'static,
    {
        self.try_spawn_meta(future, Meta::here())
    }

    /// Spawns a child whose future need not be [`Send`] on the current [`LocalSet`](super::LocalSet), or on the worker of
    /// the pinned task that runs here, as [`spawn_local`](super::spawn_local) does.
    ///
    /// The group waits for it, so something has to drive a set: await the scope inside
    /// [`LocalSet::run_until`](super::LocalSet::run_until), or in a task of the set.
    ///
    /// # Panics
    /// Where [`spawn_local`](super::spawn_local) does.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<<F::Output as GroupOutput<E>>::Value>
    where
        F: Future + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: 'static,
    {
        self.spawn_local_meta(future, Meta::here())
    }

    /// Gives the next child a name before it is spawned.
    pub fn build_task(&self) -> Builder<'_, E> {
        Builder::new(self)
    }

    /// Aborts all children. That is no failure: the body goes on, and may spawn others.
    ///
    /// A child that calls this aborts itself too.
    ///
    /// # Examples
    /// ```
    /// use rt::task::TaskGroup;
    /// use std::future::pending;
    ///
    /// # #[rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let fastest = TaskGroup::<std::io::Error>::scope(async |group| {
    ///     group.spawn(pending::<std::io::Result<u32>>());
    ///     let fast = group.spawn(async { Ok(1) }).await?;
    ///     group.abort_all();
    ///     Ok(fast)
    /// })
    /// .await?;
    /// assert_eq!(fastest, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn abort_all(&self) {
        self.core.abort_children();
    }

    /// Asks all children to end, and aborts those that are left when `grace` is over: see [`JoinHandle::cancel`].
    ///
    /// As with [`abort_all`](Self::abort_all) the body goes on, and may spawn others.
    pub fn cancel_all(&self, grace: Duration) {
        self.core.cancel_children(grace);
    }

    #[track_caller]
    #[inline]
    fn spawn_meta<F>(
        &self,
        future: F,
        meta: Meta,
    ) -> JoinHandle<<F::Output as GroupOutput<E>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: Send + 'static,
    {
        let place = place_or_panic("TaskGroup::spawn");
        match Entry::new(&self.core) {
            Ok(entry) => spawn_member(place, future, meta, entry),
            Err(why) => refused(why, meta),
        }
    }

    #[track_caller]
    fn try_spawn_meta<F>(
        &self,
        future: F,
        meta: Meta,
    ) -> Result<JoinHandle<<F::Output as GroupOutput<E>>::Value>, SpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: Send + 'static,
    {
        let place = place_or_panic("TaskGroup::try_spawn");
        match Entry::new(&self.core) {
            Ok(entry) => Ok(spawn_member(place, future, meta, entry)),
            Err(why) => Err(SpawnError { future, why }),
        }
    }

    #[track_caller]
    fn spawn_local_meta<F>(
        &self,
        future: F,
        meta: Meta,
    ) -> JoinHandle<<F::Output as GroupOutput<E>>::Value>
    where
        F: Future + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: 'static,
    {
        match Entry::new(&self.core) {
            Ok(entry) => {
                let child = Child::new(future, &entry);
                spawn_local_member(child, meta, entry)
            }
            Err(why) => refused(why, meta),
        }
    }
}

impl<E> TaskGroup<E> {
    /// How many children there are. Those that are over are not kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Whether there is no child.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the group takes no more children, since it has failed or ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }
}

/// A handle that says why there is no child.
#[cold]
fn refused<T: 'static>(why: Refusal, meta: Meta) -> JoinHandle<T> {
    // The `Runnable` is dropped, which ends the task.
    new_task(pending(), Refused(why), meta, false).handle
}

impl<E> Clone for TaskGroup<E> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

impl<E> fmt::Debug for TaskGroup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
