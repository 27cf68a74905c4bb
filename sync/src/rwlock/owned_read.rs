//! [`OwnedRwLockReadGuard`]: whole or mapped to a part, it is the same type.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permits protect"
)]

use std::sync::Arc;

use super::RwLock;
use crate::permits::{Held, leads_to, try_part};

/// An [`RwLock`] locked for reading, which it keeps alive, or a part of what it protects: dropping it unlocks.
#[must_use = "dropping the guard unlocks the lock"]
#[clippy::has_significant_drop]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    /// Leads to the value, or a part of it.
    part: *const U,
    held: Held<Arc<RwLock<T>>>,
}

// SAFETY: a guard is a `&U` and an `Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: a shared guard gives out `&U` and `&Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        Self {
            part: lock.value.get(),
            held: Held {
                target: lock,
                permits: 1,
            },
        }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// `part` leads to the value whose permit `held` is, or into it.
    #[inline]
    pub(super) fn of(part: *const U, held: Held<Arc<RwLock<T>>>) -> Self {
        Self { part, held }
    }

    /// A guard of a part of the value.
    ///
    /// When `f` panics, the lock is unlocked.
    #[inline]
    pub fn map<F, V: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, V>
    where
        F: FnOnce(&U) -> &V,
    {
        let part: *const V = f(&*this);
        OwnedRwLockReadGuard::of(part, this.held)
    }

    /// A guard of a part of the value, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, V>, Self>
    where
        F: FnOnce(&U) -> Option<&V>,
    {
        let (whole, part) = try_part(this, f)?;
        Ok(OwnedRwLockReadGuard::of(part, whole.held))
    }

    /// The lock that is locked.
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.target
    }
}

leads_to!([T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U> => U, |guard| guard.part);
