//! Blocking closures with back-pressure: [`admit_blocking`].
//!
//! [`spawn_blocking`](crate::spawn_blocking) takes whatever comes, and its queue has no end. Here a slot is awaited first.
//! Slots are the permits of a semaphore, as many as closures may run or wait; a closure holds its slot until it is over.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use rt_sync::semaphore::{AcquireOwned, OwnedSemaphorePermit, TryAcquireError};

use super::BlockingPriority;
use crate::runtime::Handle;
use crate::task::{JoinHandle, Meta};

/// Waits until the blocking pool has room for one more closure.
///
/// There is room for the closures that run, as many as
/// [`max_blocking_threads`](crate::runtime::Builder::max_blocking_threads), and for as many in the queue as
/// [`blocking_queue`](crate::runtime::Builder::blocking_queue). Slots are given out in the order of the calls. Closures of
/// [`spawn_blocking`](crate::spawn_blocking) wait for no slot and take none, so this limits programs that use it for all
/// that comes from outside.
///
/// To limit closures of one kind, use [`spawn_blocking_limited`](crate::spawn_blocking_limited).
///
/// # Errors
/// If the runtime is closed, or closes meanwhile.
///
/// # Panics
/// If the thread is in no runtime.
///
/// # Cancel safety
/// Dropping the future loses the place in line; nothing else is lost.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let slot = rt::admit_blocking().await?;
/// let text = slot.spawn(|| std::fs::read_to_string("Cargo.toml")).await??;
/// assert!(text.contains("[package]"));
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn admit_blocking() -> AdmitBlocking {
    Handle::current().admit_blocking()
}

/// Takes a slot if there is one and nobody waits for it: see [`admit_blocking`].
///
/// # Errors
/// If there is none, or the runtime is closed.
///
/// # Panics
/// If the thread is in no runtime.
///
/// # Examples
/// A server that says "too busy" instead of letting requests pile up:
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let answer = match rt::try_admit_blocking() {
///     Ok(slot) => slot.spawn(|| "done".to_owned()).await?,
///     Err(error) => error.to_string(),
/// };
/// assert_eq!(answer, "done");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn try_admit_blocking() -> Result<BlockingSlot, AdmitError> {
    Handle::current().try_admit_blocking()
}

impl Handle {
    /// Waits for a slot of this runtime: see [`rt::admit_blocking`](crate::admit_blocking).
    #[track_caller]
    pub fn admit_blocking(&self) -> AdmitBlocking {
        AdmitBlocking {
            permit: self.shared.admission.clone().acquire_owned(),
            handle: self.clone(),
        }
    }

    /// Takes a slot of this runtime: see [`rt::try_admit_blocking`](crate::try_admit_blocking).
    ///
    /// # Errors
    /// If there is none, or the runtime is closed.
    pub fn try_admit_blocking(&self) -> Result<BlockingSlot, AdmitError> {
        match self.shared.admission.clone().try_acquire_owned() {
            Ok(permit) => Ok(BlockingSlot::new(permit, self)),
            Err(why) => Err(AdmitError::new(self, why == TryAcquireError::NoPermits)),
        }
    }
}

/// The right to give the blocking pool one closure. Dropped without one, it goes to who waits next.
#[must_use = "the slot goes back at once when it is not used"]
pub struct BlockingSlot {
    permit: OwnedSemaphorePermit,
    handle: Handle,
    priority: BlockingPriority,
}

impl BlockingSlot {
    fn new(permit: OwnedSemaphorePermit, handle: &Handle) -> Self {
        Self {
            permit,
            handle: handle.clone(),
            priority: BlockingPriority::Normal,
        }
    }

    /// Which closures the one in this slot overtakes while it waits for a thread.
    pub fn priority(self, priority: BlockingPriority) -> Self {
        Self { priority, ..self }
    }

    /// Runs a closure on the pool of the runtime that gave the slot: see [`rt::spawn_blocking`](crate::spawn_blocking).
    ///
    /// The slot is free again when the closure is over, also by a panic, or is aborted before it starts.
    #[track_caller]
    pub fn spawn<F, R>(self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let Self {
            permit,
            handle,
            priority,
        } = self;
        let closure = move || {
            let _permit = permit;
            f()
        };
        handle.spawn_blocking_as(closure, Meta::here(), priority)
    }
}

impl fmt::Debug for BlockingSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingSlot")
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`admit_blocking`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct AdmitBlocking {
        #[pin]
        permit: AcquireOwned,
        handle: Handle,
    }
}

impl Future for AdmitBlocking {
    type Output = Result<BlockingSlot, AdmitError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.permit.poll(cx)) {
            Ok(permit) => Ok(BlockingSlot::new(permit, this.handle)),
            Err(_closed) => Err(AdmitError::new(this.handle, false)),
        })
    }
}

impl fmt::Debug for AdmitBlocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmitBlocking").finish_non_exhaustive()
    }
}

/// Why there is no slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmitError {
    runtime: Arc<str>,
    full: bool,
}

impl AdmitError {
    fn new(handle: &Handle, full: bool) -> Self {
        Self {
            runtime: handle.shared.name.clone(),
            full,
        }
    }

    /// All slots are taken, or others wait for them. Only of [`try_admit_blocking`].
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The runtime is closed.
    #[must_use]
    pub fn is_runtime_closed(&self) -> bool {
        !self.full
    }
}

impl fmt::Display for AdmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.runtime;
        if self.full {
            write!(
                f,
                "the blocking pool of runtime '{name}' has no room for another closure: wait with admit_blocking, or \
                 raise max_blocking_threads or blocking_queue"
            )
        } else {
            write!(
                f,
                "runtime '{name}' is closed and runs no more blocking closures"
            )
        }
    }
}

impl Error for AdmitError {}
