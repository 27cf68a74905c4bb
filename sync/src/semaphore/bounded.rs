//! [`BoundedSemaphore`]: a semaphore that never has more permits than it began with.
#![expect(
    unsafe_code,
    reason = "vouches for references to semaphores, as `PermitsRef` asks"
)]

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{AcquireError, TryAcquireError, count};
use crate::permits::{self, Held, Permits, PermitsRef, Wait};
use crate::primitive::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::wait::WaitKind;

/// A [`Semaphore`](super::Semaphore) that notices when more is given back than was taken.
///
/// A permit returns when its guard is dropped. Who gives it back in another place, maybe after a hand-over to code that
/// knows nothing of guards, [forgets](BoundedPermit::forget) it and calls [`release`](Self::release) there. So there are
/// never more permits than in the beginning; one release too many is an error, and changes nothing.
///
/// # Examples
/// ```
/// use rt_sync::semaphore::BoundedSemaphore;
///
/// let semaphore = BoundedSemaphore::new(1);
/// assert!(semaphore.release(1).is_err());
/// semaphore.try_acquire()?.forget();
/// assert_eq!(semaphore.available_permits(), 0);
/// assert!(semaphore.release(1).is_ok());
/// assert_eq!(semaphore.available_permits(), 1);
/// # Ok::<(), rt_sync::semaphore::TryAcquireError>(())
/// ```
pub struct BoundedSemaphore {
    permits: Permits,
    bound: usize,
    /// How many permits were forgotten and have not been released.
    forgotten: AtomicUsize,
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl PermitsRef for &BoundedSemaphore {
    const KIND: WaitKind = WaitKind::Semaphore;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

// SAFETY: what an `Arc` leads to stays where it is.
unsafe impl PermitsRef for Arc<BoundedSemaphore> {
    const KIND: WaitKind = WaitKind::Semaphore;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

impl BoundedSemaphore {
    /// A semaphore with so many permits, and never more.
    ///
    /// # Panics
    /// If that is more than [`Semaphore::MAX_PERMITS`](super::Semaphore::MAX_PERMITS).
    #[must_use]
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        assert!(
            permits <= permits::MAX,
            "a semaphore may not have more than MAX_PERMITS permits ({}), and {permits} were asked for",
            permits::MAX
        );
        Self {
            permits: Permits::new(permits),
            bound: permits,
            forgotten: AtomicUsize::new(0),
        }
    }

    /// How many permits there were in the beginning.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// How many permits a newcomer could acquire now: none while others wait.
    #[must_use]
    pub fn available_permits(&self) -> usize {
        self.permits.available()
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
    pub fn acquire(&self) -> AcquireBounded<'_> {
        self.acquire_many(1)
    }

    /// Waits for `n` permits, and takes them at once. More than the [bound](Self::bound) never come: who asks for so many
    /// waits until the semaphore is closed, and so does everybody behind.
    ///
    /// # Errors
    /// If the semaphore is or gets [closed](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, n: u32) -> AcquireBounded<'_> {
        AcquireBounded {
            wait: Wait::new(self, count(n)),
        }
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
    pub fn acquire_many_owned(self: Arc<Self>, n: u32) -> AcquireBoundedOwned {
        AcquireBoundedOwned {
            wait: Wait::new(self, count(n)),
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
    pub fn acquire_owned(self: Arc<Self>) -> AcquireBoundedOwned {
        self.acquire_many_owned(1)
    }

    /// Takes a permit if there is one and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError::Closed`] or [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire(&self) -> Result<BoundedPermit<'_>, TryAcquireError> {
        self.permits.try_take(1)?;
        Ok(BoundedPermit {
            held: Held {
                target: self,
                permits: 1,
            },
        })
    }

    /// [`try_acquire`](Self::try_acquire) for a permit that keeps the semaphore alive.
    ///
    /// # Errors
    /// [`TryAcquireError::Closed`] or [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedBoundedPermit, TryAcquireError> {
        self.permits.try_take(1)?;
        Ok(OwnedBoundedPermit {
            held: Held {
                target: self,
                permits: 1,
            },
        })
    }

    /// Gives permits back that were [forgotten](BoundedPermit::forget); they go to who waits first.
    ///
    /// # Errors
    /// If fewer were: then there would be more than in the beginning. Nothing is given back.
    pub fn release(&self, n: usize) -> Result<(), ReleaseError> {
        // Relaxed: a number. What goes along with the permits is ordered by `Permits::release`.
        self.forgotten
            .fetch_update(Relaxed, Relaxed, |forgotten| forgotten.checked_sub(n))
            .map_err(|forgotten| ReleaseError {
                released: n,
                forgotten,
            })?;
        self.permits.release(n);
        Ok(())
    }

    /// Gives no permits out any more: who waits and who comes gets an error.
    pub fn close(&self) {
        self.permits.close();
    }

    /// Whether [`close`](Self::close) has been called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    fn forget(&self, permits: u32) {
        // Relaxed: as in `release`.
        self.forgotten.fetch_add(permits as usize, Relaxed);
    }
}

impl fmt::Debug for BoundedSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedSemaphore")
            .field("available", &self.available_permits())
            .field("bound", &self.bound)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Permits of a [`BoundedSemaphore`]. Dropping it returns them.
#[must_use = "dropping the permit returns it"]
#[clippy::has_significant_drop]
pub struct BoundedPermit<'a> {
    held: Held<&'a BoundedSemaphore>,
}

impl BoundedPermit<'_> {
    /// Does not return the permits: [`BoundedSemaphore::release`] has to.
    #[inline]
    pub fn forget(mut self) {
        self.held.target.forget(self.held.permits);
        self.held.permits = 0;
    }

    /// How many permits these are.
    #[inline]
    #[must_use]
    pub fn num_permits(&self) -> usize {
        self.held.permits as usize
    }
}

impl fmt::Debug for BoundedPermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedPermit")
            .field("permits", &self.held.permits)
            .finish_non_exhaustive()
    }
}

/// Permits of a [`BoundedSemaphore`], which they keep alive. Dropping it returns them.
#[must_use = "dropping the permit returns it"]
#[clippy::has_significant_drop]
pub struct OwnedBoundedPermit {
    held: Held<Arc<BoundedSemaphore>>,
}

impl OwnedBoundedPermit {
    /// Does not return the permits: [`BoundedSemaphore::release`] has to.
    #[inline]
    pub fn forget(mut self) {
        self.held.target.forget(self.held.permits);
        self.held.permits = 0;
    }

    /// How many permits these are.
    #[inline]
    #[must_use]
    pub fn num_permits(&self) -> usize {
        self.held.permits as usize
    }
}

impl fmt::Debug for OwnedBoundedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedBoundedPermit")
            .field("permits", &self.held.permits)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`BoundedSemaphore::acquire`] and [`BoundedSemaphore::acquire_many`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireBounded<'a> {
        #[pin]
        wait: Wait<&'a BoundedSemaphore>,
    }
}

impl<'a> Future for AcquireBounded<'a> {
    type Output = Result<BoundedPermit<'a>, AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wait = self.project().wait;
        let polled = ready!(wait.as_mut().poll(cx));
        Poll::Ready(match polled {
            Ok(target) => Ok(BoundedPermit {
                held: Held {
                    target,
                    permits: wait.needed() as u32,
                },
            }),
            Err(()) => Err(AcquireError(())),
        })
    }
}

pin_project! {
    /// Future of [`BoundedSemaphore::acquire_owned`] and [`BoundedSemaphore::acquire_many_owned`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireBoundedOwned {
        #[pin]
        wait: Wait<Arc<BoundedSemaphore>>,
    }
}

impl Future for AcquireBoundedOwned {
    type Output = Result<OwnedBoundedPermit, AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wait = self.project().wait;
        let polled = ready!(wait.as_mut().poll(cx));
        Poll::Ready(match polled {
            Ok(target) => Ok(OwnedBoundedPermit {
                held: Held {
                    target,
                    permits: wait.needed() as u32,
                },
            }),
            Err(()) => Err(AcquireError(())),
        })
    }
}

/// More permits were to be released than had been taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseError {
    released: usize,
    forgotten: usize,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} permits released, but {} are out: `release` is for permits that were taken and forgotten; a permit that \
             is dropped returns by itself",
            self.released, self.forgotten
        )
    }
}

impl Error for ReleaseError {}
