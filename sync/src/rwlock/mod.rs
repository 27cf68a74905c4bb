//! A lock that many readers or one writer hold, first come first served.
//!
//! # What it guarantees
//! Whoever waits gets the lock before anybody who comes later, reader or writer: a stream of readers does not starve a
//! writer, nor a stream of writers a reader. Readers that wait one after the other get in together. There is no
//! poisoning: when the code under the lock panics, the guard unlocks like any other.
//!
//! How it waits is told in `permits/mod.rs`: a reader takes one permit, a writer all there are.
//!
//! # Who may touch what
//! `value`: who has a permit may read it, who has all may write it. Guards stand for permits.
#![expect(
    unsafe_code,
    reason = "guards give out references to what the permits protect"
)]

// Not that of `primitive`: guards give references out for longer than a closure. Models put a cell of loom's inside.
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

use crate::blocking;
use crate::permits::{Permits, PermitsRef, Wait};
use crate::wait::WaitKind;

mod lock;
mod owned_read;
mod owned_write;
mod read;
mod write;

pub use self::lock::{Read, ReadOwned, Write, WriteOwned};
pub use self::owned_read::OwnedRwLockReadGuard;
pub use self::owned_write::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard};
pub use self::read::RwLockReadGuard;
pub use self::write::{RwLockMappedWriteGuard, RwLockWriteGuard};

pub use crate::mutex::TryLockError;

/// How many readers there may be at a time, unless `with_max_readers` says less: tokio's number.
const MAX_READERS: u32 = u32::MAX >> 3;

/// A lock for many readers or one writer, that tasks wait for without blocking their thread.
///
/// Fair: who waits is not overtaken. So a task that holds a read guard and asks for another one waits for ever if a
/// writer got in line between the two.
///
/// # Examples
/// ```
/// use rt_sync::rwlock::RwLock;
///
/// # futures_lite::future::block_on(async {
/// let lock = RwLock::new(5);
/// {
///     let (one, two) = (lock.read().await, lock.read().await);
///     assert_eq!(*one + *two, 10);
/// }
/// *lock.write().await += 1;
/// assert_eq!(*lock.read().await, 6);
/// # });
/// ```
pub struct RwLock<T: ?Sized> {
    permits: Permits,
    /// How many permits there are.
    max_readers: u32,
    value: UnsafeCell<T>,
}

// SAFETY: the value goes from thread to thread with a writer.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above, and readers share it between threads.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl<T: ?Sized> PermitsRef for &RwLock<T> {
    const KIND: WaitKind = WaitKind::Lock;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

// SAFETY: what an `Arc` leads to stays where it is.
unsafe impl<T: ?Sized> PermitsRef for Arc<RwLock<T>> {
    const KIND: WaitKind = WaitKind::Lock;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }
}

impl<T> RwLock<T> {
    /// A lock that is free.
    #[inline]
    pub fn new(value: T) -> Self {
        Self {
            permits: Permits::new(MAX_READERS as usize),
            max_readers: MAX_READERS,
            value: UnsafeCell::new(value),
        }
    }

    /// A lock for at most so many readers at a time.
    ///
    /// # Panics
    /// If `max_reads` is 0 or more than `u32::MAX >> 3`.
    #[track_caller]
    pub fn with_max_readers(value: T, max_reads: u32) -> Self {
        assert!(
            (1..=MAX_READERS).contains(&max_reads),
            "an RwLock has room for 1 to {MAX_READERS} readers, and {max_reads} were asked for"
        );
        Self {
            permits: Permits::new(max_reads as usize),
            max_readers: max_reads,
            value: UnsafeCell::new(value),
        }
    }

    /// [`new`](Self::new) for statics.
    #[cfg(not(rt_loom))]
    pub const fn const_new(value: T) -> Self {
        Self::const_with_max_readers(value, MAX_READERS)
    }

    /// [`with_max_readers`](Self::with_max_readers) for statics.
    ///
    /// # Panics
    /// As [`with_max_readers`](Self::with_max_readers); for a constant, when it is compiled.
    #[cfg(not(rt_loom))]
    #[track_caller]
    pub const fn const_with_max_readers(value: T, max_reads: u32) -> Self {
        assert!(
            max_reads >= 1 && max_reads <= MAX_READERS,
            "an RwLock has room for 1 to `u32::MAX >> 3` readers"
        );
        Self {
            permits: Permits::new(max_reads as usize),
            max_readers: max_reads,
            value: UnsafeCell::new(value),
        }
    }

    /// The value.
    #[inline]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// How many permits a writer takes.
    #[inline]
    fn all(&self) -> usize {
        self.max_readers as usize
    }

    /// Waits until this task may read. Dropping the guard unlocks.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Read<'_, T> {
        Read::new(Wait::new(self, 1))
    }

    /// Waits until this task may write. Dropping the guard unlocks.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> Write<'_, T> {
        Write::new(Wait::new(self, self.all()))
    }

    /// Takes a read lock if nobody writes and nobody waits.
    ///
    /// # Errors
    /// If somebody does.
    #[inline]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        match self.permits.try_take(1) {
            Ok(()) => Ok(RwLockReadGuard::new(self)),
            Err(_) => Err(TryLockError::new()),
        }
    }

    /// Takes the write lock if nobody has the lock and nobody waits for it.
    ///
    /// # Errors
    /// If somebody does.
    #[inline]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        match self.permits.try_take(self.all()) {
            Ok(()) => Ok(RwLockWriteGuard::new(self)),
            Err(_) => Err(TryLockError::new()),
        }
    }

    /// Blocks this thread until it may read. In a task, use [`read`](Self::read).
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        blocking::forbid_in_task("RwLock::blocking_read", "read");
        match self.try_read() {
            Ok(guard) => guard,
            Err(_) => blocking::block_on(self.read()),
        }
    }

    /// Blocks this thread until it may write. In a task, use [`write`](Self::write).
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        blocking::forbid_in_task("RwLock::blocking_write", "write");
        match self.try_write() {
            Ok(guard) => guard,
            Err(_) => blocking::block_on(self.write()),
        }
    }

    /// [`read`](Self::read) for a guard that keeps the lock alive.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn read_owned(self: Arc<Self>) -> ReadOwned<T> {
        ReadOwned::new(Wait::new(self, 1))
    }

    /// [`write`](Self::write) for a guard that keeps the lock alive.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn write_owned(self: Arc<Self>) -> WriteOwned<T> {
        let all = self.all();
        WriteOwned::new(Wait::new(self, all))
    }

    /// [`try_read`](Self::try_read) for a guard that keeps the lock alive.
    ///
    /// # Errors
    /// If somebody writes or waits.
    #[inline]
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        match self.permits.try_take(1) {
            Ok(()) => Ok(OwnedRwLockReadGuard::new(self)),
            Err(_) => Err(TryLockError::new()),
        }
    }

    /// [`try_write`](Self::try_write) for a guard that keeps the lock alive.
    ///
    /// # Errors
    /// If somebody has the lock or waits for it.
    #[inline]
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        match self.permits.try_take(self.all()) {
            Ok(()) => Ok(OwnedRwLockWriteGuard::new(self)),
            Err(_) => Err(TryLockError::new()),
        }
    }

    /// The value, which the caller alone can reach: no lock is needed.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => f.field("data", &&*guard),
            Err(_) => f.field("data", &format_args!("<locked>")),
        };
        f.finish()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
