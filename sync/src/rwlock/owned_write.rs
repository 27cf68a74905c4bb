//! [`OwnedRwLockWriteGuard`] and [`OwnedRwLockMappedWriteGuard`].
//!
//! A guard is made of what returns the permits when it is dropped ([`Held`]), and a way to the value. It has no
//! destructor of its own, so that `map` can take it apart.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permits protect"
)]

use std::marker::PhantomData;
use std::sync::Arc;

use super::{OwnedRwLockReadGuard, RwLock};
use crate::permits::{Held, PermitsRef, leads_to_mut, try_part, try_part_mut};

/// An [`RwLock`] locked for writing, which it keeps alive: dropping it unlocks.
#[must_use = "dropping the guard unlocks the lock"]
#[clippy::has_significant_drop]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    held: Held<Arc<RwLock<T>>>,
    /// Neither `Send` nor `Sync` by itself: what they need is said below.
    _value: PhantomData<*mut T>,
}

// SAFETY: a guard is a `&mut T`, and a `Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync> Send for OwnedRwLockWriteGuard<T> {}
// SAFETY: a shared guard gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedRwLockWriteGuard<T> {}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        Self {
            held: Held {
                permits: lock.max_readers,
                target: lock,
            },
            _value: PhantomData,
        }
    }

    /// A guard of a part of the value, still locked for writing.
    ///
    /// When `f` panics, the lock is unlocked.
    #[inline]
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let part: *mut U = f(&mut *this);
        OwnedRwLockMappedWriteGuard::new(this, part)
    }

    /// A guard of a part of the value, locked for reading from now on: no other writer gets in between.
    ///
    /// `f` gets a shared reference, as readers may be there when it is used. When it panics, the lock is unlocked.
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> OwnedRwLockReadGuard<T, U>
    where
        F: FnOnce(&T) -> &U,
    {
        let part: *const U = f(&*this);
        this.into_read(part)
    }

    /// A guard of a part of the value, still locked for writing, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(OwnedRwLockMappedWriteGuard::new(whole, part))
    }

    /// A guard of a part of the value, locked for reading from now on, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back, still locked for writing, if `f` returns `None`.
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockReadGuard<T, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        let (whole, part) = try_part(this, f)?;
        Ok(whole.into_read(part))
    }

    /// The whole value as a mapped guard, for where one is asked for.
    #[inline]
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        let part = this.held.target.value.get();
        OwnedRwLockMappedWriteGuard::new(this, part)
    }

    /// Locked for reading from now on: no other writer gets in between. Readers that are first in line get in.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::rwlock::RwLock;
    ///
    /// let lock = std::sync::Arc::new(RwLock::new(1));
    /// let mut writes = lock.clone().try_write_owned()?;
    /// *writes += 1;
    /// let reads = writes.downgrade();
    /// assert_eq!((*reads, *lock.try_read()?), (2, 2));
    /// # Ok::<(), rt_sync::rwlock::TryLockError>(())
    /// ```
    #[inline]
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        let part = self.held.target.value.get();
        self.into_read(part)
    }

    /// `part` leads to the value, or into it.
    #[inline]
    fn into_read<U: ?Sized>(mut self, part: *const U) -> OwnedRwLockReadGuard<T, U> {
        // First, so that the rest is returned once, whatever a waker does.
        let returned = self.held.permits - 1;
        self.held.permits = 1;
        self.held.target.permits().release(returned as usize);
        OwnedRwLockReadGuard::of(part, self.held)
    }

    /// The lock that is locked.
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.target
    }
}

leads_to_mut!([T: ?Sized] OwnedRwLockWriteGuard<T> => T, |guard| guard.held.target.value.get());

/// A part of what an [`RwLock`] protects, which is locked for writing and kept alive: dropping it unlocks.
#[must_use = "dropping the guard unlocks the lock"]
#[clippy::has_significant_drop]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    /// Leads to the value, or a part of it.
    part: *mut U,
    held: Held<Arc<RwLock<T>>>,
}

// SAFETY: a guard is a `&mut U` and an `Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Send
    for OwnedRwLockMappedWriteGuard<T, U>
{
}
// SAFETY: a shared guard gives out `&U` and `&Arc<RwLock<T>>`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync
    for OwnedRwLockMappedWriteGuard<T, U>
{
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    /// `part` leads to the value that `whole` protects, or into it.
    #[inline]
    fn new(whole: OwnedRwLockWriteGuard<T>, part: *mut U) -> Self {
        Self {
            part,
            held: whole.held,
        }
    }

    /// A guard of a part of the part.
    ///
    /// When `f` panics, the lock is unlocked.
    #[inline]
    pub fn map<F, V: ?Sized>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, V>
    where
        F: FnOnce(&mut U) -> &mut V,
    {
        let part: *mut V = f(&mut *this);
        OwnedRwLockMappedWriteGuard {
            part,
            held: this.held,
        }
    }

    /// A guard of a part of the part, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(
        this: Self,
        f: F,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(OwnedRwLockMappedWriteGuard {
            part,
            held: whole.held,
        })
    }

    /// The lock that is locked.
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.target
    }
}

leads_to_mut!([T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U> => U, |guard| guard.part);
