//! Handles: how a runtime is reached from anywhere.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::RuntimeMetrics;
use crate::blocking::BlockingPriority;
use crate::context::{self, Phase};
use crate::dump::Dump;
use crate::scheduler::guest::Refused;
use crate::scheduler::{Entered, Shared};
use crate::task::{JoinHandle, Meta};

/// Reaches a runtime without owning it.
///
/// Cheap to clone, works from any thread. After the runtime's end a handle still works: what is spawned ends at once
/// with "runtime closed".
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

/// Which kind of runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// No threads: everything runs inside `block_on`.
    CurrentThread,
    /// Workers that steal from each other.
    MultiThread,
}

impl Handle {
    /// The runtime of this thread.
    ///
    /// # Panics
    /// If the thread is in none: neither inside a task, nor inside `block_on`, nor entered by [`Handle::enter`].
    #[must_use]
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// The runtime of this thread.
    ///
    /// # Errors
    /// If the thread is in none.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        context::current()
            .map(|shared| Self { shared })
            .ok_or(TryCurrentError(()))
    }

    /// Spawns a task: see [`rt::spawn`](crate::spawn).
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_meta(future, Meta::here())
    }

    /// As `spawn`, with name and site.
    #[inline]
    pub(crate) fn spawn_meta<F>(&self, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if size_of::<F>() > BOX_FROM {
            self.shared.spawn(Box::pin(future), meta)
        } else {
            self.shared.spawn(future, meta)
        }
    }

    /// Runs a closure that blocks: see [`rt::spawn_blocking`](crate::spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_blocking_meta(f, Meta::here())
    }

    pub(crate) fn spawn_blocking_meta<F, R>(&self, f: F, meta: Meta) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.shared.blocking.spawn(f, meta)
    }

    pub(crate) fn spawn_blocking_as<F, R>(
        &self,
        f: F,
        meta: Meta,
        priority: BlockingPriority,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.shared.blocking.spawn_as(f, meta, priority)
    }

    /// Runs a closure that computes: see [`rt::spawn_compute`](crate::spawn_compute).
    #[track_caller]
    pub fn spawn_compute<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.shared.compute.spawn(f, Meta::here())
    }

    /// Spawns a task that never leaves one worker: see [`rt::spawn_pinned`](crate::spawn_pinned).
    ///
    /// # Errors
    /// If there is no such worker, or the runtime is closed.
    #[track_caller]
    pub fn spawn_pinned<M, F>(&self, worker: usize, make: M) -> io::Result<JoinHandle<F::Output>>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        self.shared.spawn_pinned(worker, make, Meta::here())
    }

    /// Runs `future` on this thread: see [`Runtime::block_on`](super::Runtime::block_on).
    ///
    /// # Panics
    /// Inside a task or a root future, where blocking would stall the loop; and if the runtime is closed or closes
    /// meanwhile. [`try_block_on`](Self::try_block_on) gives errors instead.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let done = if size_of::<F>() > BOX_FROM {
            self.try_block_on(Box::pin(future))
        } else {
            self.try_block_on(future)
        };
        match done {
            Ok(output) => output,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `future` on this thread.
    ///
    /// # Errors
    /// Inside a task or a root future, where blocking would stall the loop; if the runtime is closed or closes
    /// meanwhile, which drops the future; if no selector can be made.
    #[track_caller]
    pub fn try_block_on<F: Future>(&self, future: F) -> Result<F::Output, BlockOnError> {
        self.block_on_at(Location::caller(), future)
    }

    /// As [`try_block_on`](Self::try_block_on), called at `site`.
    pub(super) fn block_on_at<F: Future>(
        &self,
        site: &'static Location<'static>,
        future: F,
    ) -> Result<F::Output, BlockOnError> {
        let done = if size_of::<F>() > BOX_FROM {
            self.shared.block_on(site, Box::pin(future))
        } else {
            self.shared.block_on(site, future)
        };
        let refused = match done {
            Ok(output) => return Ok(output),
            Err(refused) => refused,
        };
        let runtime = self.shared.name.clone();
        Err(match refused {
            Refused::Nested => BlockOnError {
                runtime,
                kind: Kind::Nested,
            },
            Refused::Closed => BlockOnError {
                runtime,
                kind: Kind::Closed,
            },
            Refused::Seat(error) => BlockOnError {
                runtime,
                kind: Kind::Io(error),
            },
        })
    }

    /// Makes this the runtime of the thread until the guard is dropped: `rt::spawn` and its like use it, and sockets and
    /// timers that are polled on this thread, by whatever executor, belong to it.
    pub fn enter(&self) -> EnterGuard<'_> {
        // Inside a task of this very runtime there is nothing to enter: the task keeps its seat.
        let inside = context::with(|cx| {
            cx.is_some_and(|cx| {
                Arc::ptr_eq(&cx.shared, &self.shared) && cx.phase.get() != Phase::Entered
            })
        });
        EnterGuard {
            _entered: (!inside).then(|| self.shared.enter_here()),
            _handle: PhantomData,
        }
    }

    /// Which kind of runtime it is.
    #[must_use]
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        if self.shared.is_current_thread() {
            RuntimeFlavor::CurrentThread
        } else {
            RuntimeFlavor::MultiThread
        }
    }

    /// The number of the runtime, unique in the process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The name of the runtime.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Every task of the runtime and what it waits for, and what its workers do: see [`rt::dump`](crate::dump()).
    #[must_use]
    pub fn dump(&self) -> Dump {
        Dump::of(&self.shared)
    }

    /// What the runtime has counted so far.
    #[must_use]
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::of(&self.shared)
    }
}

/// Above this size, in bytes, a future is boxed before it goes through the calls of a spawn or of `block_on`, so that it
/// never lies on the stack twice. A memory copy of 2 kB costs about as much as the second allocation.
pub(super) const BOX_FROM: usize = 2048;

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.shared).finish()
    }
}

/// Leaves a runtime that was entered, when dropped.
#[must_use = "the runtime is left at once when the guard is not kept"]
pub struct EnterGuard<'a> {
    _entered: Option<Entered>,
    /// A guard must not outlive its runtime, nor leave its thread.
    _handle: PhantomData<(&'a Handle, *const ())>,
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}

/// The thread is in no runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryCurrentError(());

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this thread is in no rt runtime: call this from a task, from inside `block_on`, or after \
             `let _guard = handle.enter();`; `#[rt::main]` makes a runtime and runs `main` in it",
        )
    }
}

impl Error for TryCurrentError {}

/// Why a future could not be run to its end on this thread.
#[derive(Debug)]
pub struct BlockOnError {
    runtime: Arc<str>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Nested,
    Closed,
    Io(io::Error),
}

impl BlockOnError {
    /// The runtime is closed, or closed before the future was done.
    #[must_use]
    pub fn is_runtime_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed)
    }

    /// A task or a root future is being polled on this thread.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        matches!(self.kind, Kind::Nested)
    }
}

impl fmt::Display for BlockOnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runtime = &self.runtime;
        match &self.kind {
            Kind::Nested => write!(
                f,
                "block_on of runtime '{runtime}' was called inside async code, whose loop it would stall: use `.await`, or \
                 from a sync function below a task `rt::bridge(future)`, or move the code to `rt::spawn_blocking`"
            ),
            Kind::Closed => write!(
                f,
                "runtime '{runtime}' is closed, and the future of block_on was not done"
            ),
            Kind::Io(error) => write!(
                f,
                "block_on of runtime '{runtime}' cannot have a selector: {error}"
            ),
        }
    }
}

impl Error for BlockOnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Io(error) => Some(error),
            Kind::Nested | Kind::Closed => None,
        }
    }
}
