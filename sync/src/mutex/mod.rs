//! A lock whose waiters are tasks, first come first served.
//!
//! # What it guarantees
//! Whoever waits gets the lock before anybody who comes later. A guard that is dropped hands the lock to the first in
//! line, with one wake; a future that is dropped after that passes it on. There is no poisoning: when the code under
//! the lock panics, the guard unlocks like any other.
//!
//! How it waits is told in `permits/mod.rs`: a mutex is one permit and a value.
//!
//! # Who may touch what
//! `value`: who has the permit. A guard stands for it, and there is one at most.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permit protects"
)]

// Not that of `primitive`: guards give references out for longer than a closure. Models put a cell of loom's inside.
use std::cell::UnsafeCell;
use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::blocking;
use crate::permits::{Permits, PermitsRef, Wait};
use crate::wait::WaitKind;

mod guard;
mod lock;

pub use self::guard::{MappedMutexGuard, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
pub use self::lock::{Lock, LockOwned};

/// A lock that tasks wait for without blocking their thread, and that may be held across an `.await`.
///
/// Where it is never held across one, a mutex of the standard library is the better one.
///
/// # Examples
/// ```
/// use rt_sync::mutex::Mutex;
///
/// # futures_lite::future::block_on(async {
/// let count = Mutex::new(1);
/// *count.lock().await += 1;
/// assert_eq!(*count.lock().await, 2);
/// # });
/// ```
pub struct Mutex<T: ?Sized> {
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: the value goes from thread to thread, one at a time.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; the permit is what makes it one at a time.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl<T: ?Sized> PermitsRef for &Mutex<T> {
    const KIND: WaitKind = WaitKind::Lock;
    const ONLY: bool = true;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

// SAFETY: what an `Arc` leads to stays where it is.
unsafe impl<T: ?Sized> PermitsRef for Arc<Mutex<T>> {
    const KIND: WaitKind = WaitKind::Lock;
    const ONLY: bool = true;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

impl<T> Mutex<T> {
    /// A mutex that is free.
    #[inline]
    pub fn new(value: T) -> Self {
        Self {
            permits: Permits::new(1),
            value: UnsafeCell::new(value),
        }
    }

    /// [`new`](Self::new) for statics.
    #[cfg(not(rt_loom))]
    pub const fn const_new(value: T) -> Self {
        Self {
            permits: Permits::new(1),
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    #[inline]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the lock is this task's. Dropping the guard unlocks.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Lock<'_, T> {
        Lock::new(Wait::new(self, 1))
    }

    /// [`lock`](Self::lock) for a future of another primitive, which was made at `site`.
    #[inline]
    pub(crate) fn lock_at(&self, site: &'static Location<'static>) -> Lock<'_, T> {
        Lock::new(Wait::made_at(self, 1, site))
    }

    /// [`lock_owned`](Self::lock_owned), likewise.
    #[inline]
    pub(crate) fn lock_owned_at(self: Arc<Self>, site: &'static Location<'static>) -> LockOwned<T> {
        LockOwned::new(Wait::made_at(self, 1, site))
    }

    /// Takes the lock if it is free and nobody waits for it.
    ///
    /// # Errors
    /// If it is not.
    #[inline]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        if self.permits.try_take_only() {
            Ok(MutexGuard::new(self))
        } else {
            Err(TryLockError::new())
        }
    }

    /// Blocks this thread until the lock is its. In a task, use [`lock`](Self::lock).
    ///
    /// # Panics
    /// Inside a task.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::mutex::Mutex;
    ///
    /// let name = Mutex::new("a".to_string());
    /// name.blocking_lock().push('b');
    /// assert_eq!(*name.blocking_lock(), "ab");
    /// ```
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        blocking::forbid_in_task("Mutex::blocking_lock", "lock");
        match self.try_lock() {
            Ok(guard) => guard,
            Err(_) => blocking::block_on(self.lock()),
        }
    }

    /// [`lock`](Self::lock) for a guard that keeps the mutex alive.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> LockOwned<T> {
        LockOwned::new(Wait::new(self, 1))
    }

    /// [`try_lock`](Self::try_lock) for a guard that keeps the mutex alive.
    ///
    /// # Errors
    /// If it is locked, or others wait for it.
    #[inline]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        if self.permits.try_take_only() {
            Ok(OwnedMutexGuard::new(self))
        } else {
            Err(TryLockError::new())
        }
    }

    /// [`blocking_lock`](Self::blocking_lock) for a guard that keeps the mutex alive.
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        blocking::forbid_in_task("Mutex::blocking_lock_owned", "lock_owned");
        blocking::block_on(self.lock_owned())
    }

    /// The value, which the caller alone can reach: no lock is needed.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => f.field("data", &&*guard),
            Err(_) => f.field("data", &format_args!("<locked>")),
        };
        f.finish()
    }
}

/// The lock is not to be had at once: somebody holds it, or waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryLockError(());

impl TryLockError {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is held, or others wait for it; awaiting it gets in line")
    }
}

impl Error for TryLockError {}

#[cfg(all(test, not(rt_loom)))]
mod tests;
