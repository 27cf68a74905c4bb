//! [`RwLockWriteGuard`] and [`RwLockMappedWriteGuard`].
//!
//! A guard is made of what returns the permits when it is dropped ([`Held`]), and a way to the value. It has no
//! destructor of its own, so that `map` can take it apart.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permits protect"
)]

use std::marker::PhantomData;
use std::mem;

use super::{RwLock, RwLockReadGuard};
use crate::permits::{Held, Permits, PermitsRef, leads_to_mut, try_part, try_part_mut};

/// An [`RwLock`] locked for writing: dropping it unlocks.
#[must_use = "dropping the guard unlocks the lock"]
#[clippy::has_significant_drop]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    held: Held<&'a RwLock<T>>,
    /// Neither `Send` nor `Sync` by itself: what they need is said below.
    _value: PhantomData<*mut T>,
}

// SAFETY: a guard is a `&mut T`, and a `&RwLock<T>`.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockWriteGuard<'_, T> {}
// SAFETY: a shared guard gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
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
    pub fn map<F, U: ?Sized>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        F: FnOnce(&mut T) -> &mut U,
    {
        let part: *mut U = f(&mut *this);
        RwLockMappedWriteGuard::new(this, part)
    }

    /// A guard of a part of the value, locked for reading from now on: no other writer gets in between.
    ///
    /// `f` gets a shared reference, as readers may be there when it is used. When it panics, the lock is unlocked.
    #[inline]
    pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> RwLockReadGuard<'a, U>
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
    pub fn try_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(RwLockMappedWriteGuard::new(whole, part))
    }

    /// A guard of a part of the value, locked for reading from now on, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back, still locked for writing, if `f` returns `None`.
    #[inline]
    pub fn try_downgrade_map<F, U: ?Sized>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        F: FnOnce(&T) -> Option<&U>,
    {
        let (whole, part) = try_part(this, f)?;
        Ok(whole.into_read(part))
    }

    /// The whole value as a mapped guard, for where one is asked for.
    #[inline]
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        let part = this.held.target.value.get();
        RwLockMappedWriteGuard::new(this, part)
    }

    /// Locked for reading from now on: no other writer gets in between. Readers that are first in line get in.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::rwlock::RwLock;
    ///
    /// let lock = RwLock::new(1);
    /// let mut writes = lock.try_write()?;
    /// *writes += 1;
    /// let reads = writes.downgrade();
    /// assert_eq!((*reads, *lock.try_read()?), (2, 2));
    /// # Ok::<(), rt_sync::rwlock::TryLockError>(())
    /// ```
    #[inline]
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let part = self.held.target.value.get();
        self.into_read(part)
    }

    /// `part` leads to the value, or into it.
    #[inline]
    fn into_read<U: ?Sized>(mut self, part: *const U) -> RwLockReadGuard<'a, U> {
        // First, so that the rest is returned once, whatever a waker does.
        let returned = self.held.permits - 1;
        self.held.permits = 1;
        self.held.target.permits().release(returned as usize);
        RwLockReadGuard::of(part, narrow(self.held))
    }
}

leads_to_mut!([T: ?Sized] RwLockWriteGuard<'_, T> => T, |guard| guard.held.target.value.get());

/// A part of what an [`RwLock`] protects, which is locked for writing: dropping it unlocks.
#[must_use = "dropping the guard unlocks the lock"]
#[clippy::has_significant_drop]
pub struct RwLockMappedWriteGuard<'a, U: ?Sized> {
    /// Leads to the value, or a part of it.
    part: *mut U,
    held: Held<&'a Permits>,
    _value: PhantomData<&'a mut U>,
}

// SAFETY: a guard is a `&mut U`; the permits may be returned from any thread.
unsafe impl<U: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, U> {}
// SAFETY: a shared guard gives out `&U`.
unsafe impl<U: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, U> {}

/// The same permits, without the type that they protect.
#[inline]
fn narrow<'a, T: ?Sized>(held: Held<&'a RwLock<T>>) -> Held<&'a Permits> {
    let (lock, permits): (&'a RwLock<T>, u32) = (held.target, held.permits);
    // They go on with what is returned; there is nothing else to drop in a reference.
    mem::forget(held);
    Held {
        target: &lock.permits,
        permits,
    }
}

impl<'a, U: ?Sized> RwLockMappedWriteGuard<'a, U> {
    /// `part` leads to the value that `whole` protects, or into it.
    #[inline]
    fn new<T: ?Sized>(whole: RwLockWriteGuard<'a, T>, part: *mut U) -> Self {
        Self {
            part,
            held: narrow(whole.held),
            _value: PhantomData,
        }
    }

    /// A guard of a part of the part.
    ///
    /// When `f` panics, the lock is unlocked.
    #[inline]
    pub fn map<F, V: ?Sized>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, V>
    where
        F: FnOnce(&mut U) -> &mut V,
    {
        let part: *mut V = f(&mut *this);
        RwLockMappedWriteGuard {
            part,
            held: this.held,
            _value: PhantomData,
        }
    }

    /// A guard of a part of the part, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<F, V: ?Sized>(this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, V>, Self>
    where
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(RwLockMappedWriteGuard {
            part,
            held: whole.held,
            _value: PhantomData,
        })
    }
}

leads_to_mut!([U: ?Sized] RwLockMappedWriteGuard<'_, U> => U, |guard| guard.part);
