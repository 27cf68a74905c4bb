//! The futures of [`Mutex::lock`] and [`Mutex::lock_owned`].

use std::sync::Arc;

use super::{Mutex, MutexGuard, OwnedMutexGuard};
use crate::permits::lock_future;

lock_future! {
    /// Future of [`Mutex::lock`].
    Lock<'a, T>, &'a Mutex<T> => MutexGuard<'a, T>
}

lock_future! {
    /// Future of [`Mutex::lock_owned`].
    LockOwned<T>, Arc<Mutex<T>> => OwnedMutexGuard<T>
}
