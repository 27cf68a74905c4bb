//! Locks of the standard library without their poison: no code of ours leaves anything half done under one when it panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks until the lock is held.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
