//! The guards of a [`Mutex`]: borrowed or owned, whole or mapped to a part.
//!
//! A guard is made of what returns the permit when it is dropped ([`HeldOnly`]), and a way to the value. It has no
//! destructor of its own, so that `map` can take it apart.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permit protects"
)]

use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use super::Mutex;
use crate::permits::{HeldOnly, Permits, leads_to_mut, try_part_mut};

/// A locked [`Mutex`]: leads to its value, and unlocks it when dropped.
#[must_use = "dropping the guard unlocks the mutex"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'a, T: ?Sized> {
    held: HeldOnly<&'a Mutex<T>>,
    /// Neither `Send` nor `Sync` by itself: what they need is said below.
    _value: PhantomData<*mut T>,
}

// SAFETY: a guard is a `&mut T`, and a `&Mutex<T>`, which asks for `T: Send` too.
unsafe impl<T: ?Sized + Send> Send for MutexGuard<'_, T> {}
// SAFETY: a shared guard gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline]
    pub(super) fn new(mutex: &'a Mutex<T>) -> Self {
        Self {
            held: HeldOnly { target: mutex },
            _value: PhantomData,
        }
    }

    /// A guard of a part of the value.
    ///
    /// When `f` panics, the mutex is unlocked.
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let part: *mut U = f(&mut *this);
        MappedMutexGuard::new(this, part)
    }

    /// A guard of a part of the value, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(MappedMutexGuard::new(whole, part))
    }

    /// The mutex that is locked.
    #[inline]
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.held.target
    }
}

leads_to_mut!([T: ?Sized] MutexGuard<'_, T> => T, |guard| guard.held.target.value.get());

/// A part of what a locked [`Mutex`] protects: made by [`MutexGuard::map`]. Dropping it unlocks the mutex.
#[must_use = "dropping the guard unlocks the mutex"]
#[clippy::has_significant_drop]
pub struct MappedMutexGuard<'a, U: ?Sized> {
    /// Leads to a part of the value.
    part: *mut U,
    held: HeldOnly<&'a Permits>,
    _value: PhantomData<&'a mut U>,
}

// SAFETY: a guard is a `&mut U`; the permit may be returned from any thread.
unsafe impl<U: ?Sized + Send> Send for MappedMutexGuard<'_, U> {}
// SAFETY: a shared guard gives out `&U`.
unsafe impl<U: ?Sized + Sync> Sync for MappedMutexGuard<'_, U> {}

impl<'a, U: ?Sized> MappedMutexGuard<'a, U> {
    /// `part` comes from the value that `whole` protects.
    #[inline]
    fn new<T: ?Sized>(whole: MutexGuard<'a, T>, part: *mut U) -> Self {
        let mutex: &'a Mutex<T> = whole.held.target;
        // The permit goes on with the new guard; there is nothing else to drop in a reference.
        mem::forget(whole.held);
        Self {
            part,
            held: HeldOnly {
                target: &mutex.permits,
            },
            _value: PhantomData,
        }
    }

    /// A guard of a part of the part.
    ///
    /// When `f` panics, the mutex is unlocked.
    #[inline]
    pub fn map<V, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, V>
    where
        V: ?Sized,
        F: FnOnce(&mut U) -> &mut V,
    {
        let part: *mut V = f(&mut *this);
        MappedMutexGuard {
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
    pub fn try_map<V, F>(this: Self, f: F) -> Result<MappedMutexGuard<'a, V>, Self>
    where
        V: ?Sized,
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(MappedMutexGuard {
            part,
            held: whole.held,
            _value: PhantomData,
        })
    }
}

leads_to_mut!([U: ?Sized] MappedMutexGuard<'_, U> => U, |guard| guard.part);

/// A locked [`Mutex`], which it keeps alive: leads to its value, and unlocks it when dropped.
#[must_use = "dropping the guard unlocks the mutex"]
#[clippy::has_significant_drop]
pub struct OwnedMutexGuard<T: ?Sized> {
    held: HeldOnly<Arc<Mutex<T>>>,
    /// Neither `Send` nor `Sync` by itself: what they need is said below.
    _value: PhantomData<*mut T>,
}

// SAFETY: a guard is a `&mut T`, and a `Arc<Mutex<T>>`, which asks for `T: Send` too.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: a shared guard gives out `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

impl<T: ?Sized> OwnedMutexGuard<T> {
    #[inline]
    pub(super) fn new(mutex: Arc<Mutex<T>>) -> Self {
        Self {
            held: HeldOnly { target: mutex },
            _value: PhantomData,
        }
    }

    /// A guard of a part of the value.
    ///
    /// When `f` panics, the mutex is unlocked.
    #[inline]
    pub fn map<U, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let part: *mut U = f(&mut *this);
        OwnedMappedMutexGuard::new(this, part)
    }

    /// A guard of a part of the value, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<U, F>(this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(OwnedMappedMutexGuard::new(whole, part))
    }

    /// The mutex that is locked.
    #[inline]
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        &this.held.target
    }
}

leads_to_mut!([T: ?Sized] OwnedMutexGuard<T> => T, |guard| guard.held.target.value.get());

/// A part of what a locked [`Mutex`] protects, and the mutex kept alive: made by [`OwnedMutexGuard::map`]. Dropping it
/// unlocks the mutex.
#[must_use = "dropping the guard unlocks the mutex"]
#[clippy::has_significant_drop]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    /// Leads to a part of the value.
    part: *mut U,
    held: HeldOnly<Arc<Mutex<T>>>,
}

// SAFETY: a guard is a `&mut U`, and an `Arc<Mutex<T>>`.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: a shared guard gives out `&U`.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// `part` comes from the value that `whole` protects.
    #[inline]
    fn new(whole: OwnedMutexGuard<T>, part: *mut U) -> Self {
        Self {
            part,
            held: whole.held,
        }
    }

    /// A guard of a part of the part.
    ///
    /// When `f` panics, the mutex is unlocked.
    #[inline]
    pub fn map<V, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, V>
    where
        V: ?Sized,
        F: FnOnce(&mut U) -> &mut V,
    {
        let part: *mut V = f(&mut *this);
        OwnedMappedMutexGuard {
            part,
            held: this.held,
        }
    }

    /// A guard of a part of the part, if `f` finds it.
    ///
    /// # Errors
    /// Gives the guard back if `f` returns `None`.
    #[inline]
    pub fn try_map<V, F>(this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, V>, Self>
    where
        V: ?Sized,
        F: FnOnce(&mut U) -> Option<&mut V>,
    {
        let (whole, part) = try_part_mut(this, f)?;
        Ok(OwnedMappedMutexGuard {
            part,
            held: whole.held,
        })
    }
}

leads_to_mut!([T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U> => U, |guard| guard.part);
