//! A counting semaphore: permits that tasks acquire, and wait for in line.
//!
//! How it works is told in `permits/mod.rs`. Here are the names, which are tokio's, and two relatives:
//! [`BoundedSemaphore`] and [`CapacityLimiter`].
#![expect(
    unsafe_code,
    reason = "vouches for references to semaphores, as `PermitsRef` asks"
)]

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::blocking;
use crate::permits::{self, Held, Permits, PermitsRef, Refusal, Wait};
use crate::wait::WaitKind;

mod acquire;
mod bounded;
mod capacity;
mod permit;

pub use self::acquire::{Acquire, AcquireOwned};
pub use self::bounded::{
    AcquireBounded, AcquireBoundedOwned, BoundedPermit, BoundedSemaphore, OwnedBoundedPermit,
    ReleaseError,
};
pub use self::capacity::{
    AcquireCapacity, AcquireCapacityOwned, CapacityLimiter, CapacityToken, OwnedCapacityToken,
};
pub use self::permit::{OwnedSemaphorePermit, SemaphorePermit};

/// Permits for a limited number of things at a time.
///
/// Fair: permits go to who has waited longest. While it waits, for however many, nobody who comes later overtakes it, not
/// even with [`try_acquire`](Self::try_acquire).
///
/// # Examples
/// ```
/// use rt_sync::semaphore::{Semaphore, TryAcquireError};
///
/// # futures_lite::future::block_on(async {
/// let connections = Semaphore::new(2);
/// let first = connections.acquire().await?;
/// let second = connections.acquire().await?;
/// assert_eq!(connections.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
/// drop(first);
/// assert_eq!(connections.available_permits(), 1);
/// # drop(second);
/// # Ok::<(), rt_sync::semaphore::AcquireError>(())
/// # }).unwrap();
/// ```
pub struct Semaphore {
    permits: Permits,
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl PermitsRef for &Semaphore {
    const KIND: WaitKind = WaitKind::Semaphore;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

// SAFETY: what an `Arc` leads to stays where it is.
unsafe impl PermitsRef for Arc<Semaphore> {
    const KIND: WaitKind = WaitKind::Semaphore;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

impl Semaphore {
    /// The most permits that a semaphore can have: `usize::MAX >> 3`.
    pub const MAX_PERMITS: usize = permits::MAX;

    /// A semaphore with so many permits.
    ///
    /// # Panics
    /// If `permits` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        assert!(
            permits <= Self::MAX_PERMITS,
            "a semaphore may not have more than MAX_PERMITS permits ({}), and {permits} were asked for",
            Self::MAX_PERMITS
        );
        Self {
            permits: Permits::new(permits),
        }
    }

    /// [`new`](Self::new) for statics.
    ///
    /// # Panics
    /// As [`new`](Self::new); for a constant, when it is compiled.
    #[cfg(not(rt_loom))]
    #[must_use]
    #[track_caller]
    pub const fn const_new(permits: usize) -> Self {
        assert!(
            permits <= Self::MAX_PERMITS,
            "a semaphore may not have more than MAX_PERMITS permits"
        );
        Self {
            permits: Permits::new(permits),
        }
    }

    /// How many permits a newcomer could acquire now: none while others wait, also if there are some, but too few for
    /// who is first in line.
    #[inline]
    #[must_use]
    pub fn available_permits(&self) -> usize {
        self.permits.available()
    }

    /// Adds permits, which go to who waits first.
    ///
    /// # Panics
    /// If there were more than [`MAX_PERMITS`](Self::MAX_PERMITS) then.
    #[inline]
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        assert!(
            self.permits.add(n),
            "{n} more permits would make more than MAX_PERMITS ({})",
            Self::MAX_PERMITS
        );
    }

    /// Removes up to `n` of the permits that are available; returns how many these were.
    #[inline]
    pub fn forget_permits(&self, n: usize) -> usize {
        self.permits.forget(n)
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> Acquire<'_> {
        Acquire::new(Wait::new(self, 1))
    }

    /// Waits for `n` permits, and takes them at once. Who asks for many is not overtaken by who asks for few.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, n: u32) -> Acquire<'_> {
        Acquire::new(Wait::new(self, count(n)))
    }

    /// Takes a permit if there is one and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError::Closed`] or [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `n` permits if there are so many and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError::Closed`] or [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.permits.try_take(count(n))?;
        Ok(SemaphorePermit::new(self, n))
    }

    /// Blocks this thread until there is a permit for it. In a task, use [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.blocking_acquire_many(1)
    }

    /// Blocks this thread until there are `n` permits for it. In a task, use [`acquire_many`](Self::acquire_many).
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        blocking::forbid_in_task("Semaphore::blocking_acquire", "acquire");
        match self.try_acquire_many(n) {
            Ok(permit) => Ok(permit),
            Err(_) => blocking::block_on(self.acquire_many(n)),
        }
    }

    /// [`acquire`](Self::acquire) for a permit that keeps the semaphore alive.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire_owned(self: Arc<Self>) -> AcquireOwned {
        AcquireOwned::new(Wait::new(self, 1))
    }

    /// [`acquire_many`](Self::acquire_many) for permits that keep the semaphore alive.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> AcquireOwned {
        AcquireOwned::new(Wait::new(self, count(n)))
    }

    /// [`try_acquire`](Self::try_acquire) for a permit that keeps the semaphore alive.
    ///
    /// # Errors
    /// [`TryAcquireError::Closed`] or [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// [`try_acquire_many`](Self::try_acquire_many) for permits that keep the semaphore alive.
    ///
    /// # Errors
    /// [`TryAcquireError::Closed`] or [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.permits.try_take(count(n))?;
        Ok(OwnedSemaphorePermit::new(self, n))
    }

    /// [`blocking_acquire`](Self::blocking_acquire) for a permit that keeps the semaphore alive.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.blocking_acquire_many_owned(1)
    }

    /// [`blocking_acquire_many`](Self::blocking_acquire_many) for permits that keep the semaphore alive.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        blocking::forbid_in_task("Semaphore::blocking_acquire_owned", "acquire_owned");
        blocking::block_on(self.acquire_many_owned(n))
    }

    /// Gives no permits out any more: who waits and who comes gets an error. Permits that are held stay valid, as does
    /// one that was granted to a future which has not been polled since.
    pub fn close(&self) {
        self.permits.close();
    }

    /// Whether [`close`](Self::close) has been called.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }
}

/// Permits as the word counts them.
#[inline]
fn count(n: u32) -> usize {
    const _: () = assert!(usize::BITS >= 64, "a `u32` fits into MAX_PERMITS");
    n as usize
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available_permits())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The semaphore was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcquireError(());

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("semaphore closed: `close` was called, and it gives no permits out any more")
    }
}

impl Error for AcquireError {}

/// Why permits could not be taken at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore was closed.
    Closed,
    /// There are too few permits, or others wait for them.
    NoPermits,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryAcquireError::Closed => {
                "semaphore closed: `close` was called, and it gives no permits out any more"
            }
            TryAcquireError::NoPermits => {
                "no permits: too few are available, or others wait for them; `acquire` waits in line"
            }
        })
    }
}

impl Error for TryAcquireError {}

impl From<Refusal> for TryAcquireError {
    #[inline]
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Closed => TryAcquireError::Closed,
            Refusal::TooFew => TryAcquireError::NoPermits,
        }
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
