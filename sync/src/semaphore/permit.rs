//! What a semaphore gives out: [`SemaphorePermit`], borrowed or owned.

use std::fmt;
use std::sync::Arc;

use super::{Held, Semaphore};

/// Permits of a [`Semaphore`]. Dropping it returns them.
#[must_use = "dropping the permit returns it"]
#[clippy::has_significant_drop]
pub struct SemaphorePermit<'a> {
    held: Held<&'a Semaphore>,
}

impl<'a> SemaphorePermit<'a> {
    #[inline]
    pub(super) fn new(semaphore: &'a Semaphore, permits: u32) -> Self {
        Self {
            held: Held {
                target: semaphore,
                permits,
            },
        }
    }

    /// Does not return the permits: the semaphore has so many less from now on.
    #[inline]
    pub fn forget(mut self) {
        self.held.permits = 0;
    }

    /// Takes the permits of `other` over, so that both are returned together.
    ///
    /// # Panics
    /// If `other` is of another semaphore, or both together are more than `u32::MAX` permits.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            std::ptr::eq(self.held.target, other.held.target),
            "permits of two semaphores cannot be merged: each must be returned to its own"
        );
        self.held.permits = add(self.held.permits, other.held.permits);
        other.held.permits = 0;
    }

    /// Splits `n` permits off, to be returned on their own; `None` if there are fewer.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        let n = u32::try_from(n).ok()?;
        self.held.permits = self.held.permits.checked_sub(n)?;
        Some(Self::new(self.held.target, n))
    }

    /// Where the permits belong to.
    #[inline]
    #[must_use]
    pub fn semaphore(&self) -> &'a Semaphore {
        self.held.target
    }

    /// How many permits these are.
    #[inline]
    #[must_use]
    pub fn num_permits(&self) -> usize {
        self.held.permits as usize
    }
}

/// Permits of a [`Semaphore`], which they keep alive. Dropping it returns them.
#[must_use = "dropping the permit returns it"]
#[clippy::has_significant_drop]
pub struct OwnedSemaphorePermit {
    held: Held<Arc<Semaphore>>,
}

impl OwnedSemaphorePermit {
    #[inline]
    pub(super) fn new(semaphore: Arc<Semaphore>, permits: u32) -> Self {
        Self {
            held: Held {
                target: semaphore,
                permits,
            },
        }
    }

    /// Does not return the permits: the semaphore has so many less from now on.
    #[inline]
    pub fn forget(mut self) {
        self.held.permits = 0;
    }

    /// Takes the permits of `other` over, so that both are returned together.
    ///
    /// # Panics
    /// If `other` is of another semaphore, or both together are more than `u32::MAX` permits.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            Arc::ptr_eq(&self.held.target, &other.held.target),
            "permits of two semaphores cannot be merged: each must be returned to its own"
        );
        self.held.permits = add(self.held.permits, other.held.permits);
        other.held.permits = 0;
    }

    /// Splits `n` permits off, to be returned on their own; `None` if there are fewer.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        let n = u32::try_from(n).ok()?;
        self.held.permits = self.held.permits.checked_sub(n)?;
        Some(Self::new(self.held.target.clone(), n))
    }

    /// Where the permits belong to.
    #[inline]
    #[must_use]
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.held.target
    }

    /// How many permits these are.
    #[inline]
    #[must_use]
    pub fn num_permits(&self) -> usize {
        self.held.permits as usize
    }
}

#[track_caller]
fn add(a: u32, b: u32) -> u32 {
    a.checked_add(b).unwrap_or_else(|| {
        panic!("{a} and {b} permits are more than one `SemaphorePermit` can hold (u32::MAX)")
    })
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit")
            .field("permits", &self.held.permits)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnedSemaphorePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSemaphorePermit")
            .field("permits", &self.held.permits)
            .finish_non_exhaustive()
    }
}
