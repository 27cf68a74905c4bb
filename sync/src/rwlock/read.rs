//! [`RwLockReadGuard`]: whole or mapped to a part, it is the same type.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permits protect"
)]

use std::marker::PhantomData;

use super::RwLock;
use crate::permits::{Held, Permits, leads_to, try_part};

/// An [`RwLock`] locked for reading, or a part of what it protects: dropping it unlocks.
#[must_use = "dropping the guard unlocks the lock"]
#[clippy::has_significant_drop]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    /// Leads to the value, or a part of it.
    part: *const T,
    held: Held<&'a Permits>,
    _value: PhantomData<&'a T>,
}

// SAFETY: a guard is a `&T`; the permit may be returned from any thread.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: a shared guard gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
        let held = Held {
            target: &lock.permits,
            permits: 1,
        };
        Self::of(lock.value.get(), held)
    }

    /// `part` leads to the value whose permit `held` is, or into it.
    #[inline]
    pub(super) fn of(part: *const T, held: Held<&'a Permits>) -> Self {
        Self {
            part,
            held,
            _value: PhantomData,
        }
    }

    /// A guard of a part of the value.
    ///
    /// When `f` panics, the lock is unlocked.
    #[inline]
    pub fn map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let part: *const U = f(&*this);
        RwLockReadGuard::of(part, this.held)
    }

    /// A guard of a part of the value, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        let (whole, part) = try_part(this, f)?;
        Ok(RwLockReadGuard::of(part, whole.held))
    }
}

leads_to!([T: ?Sized] RwLockReadGuard<'_, T> => T, |guard| guard.part);
