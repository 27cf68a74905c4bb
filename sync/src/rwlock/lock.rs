//! The futures of [`RwLock::read`], [`RwLock::write`] and their owned forms.

use std::sync::Arc;

use super::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use crate::permits::lock_future;

lock_future! {
    /// Future of [`RwLock::read`].
    Read<'a, T>, &'a RwLock<T> => RwLockReadGuard<'a, T>
}

lock_future! {
    /// Future of [`RwLock::write`].
    Write<'a, T>, &'a RwLock<T> => RwLockWriteGuard<'a, T>
}

lock_future! {
    /// Future of [`RwLock::read_owned`].
    ReadOwned<T>, Arc<RwLock<T>> => OwnedRwLockReadGuard<T>
}

lock_future! {
    /// Future of [`RwLock::write_owned`].
    WriteOwned<T>, Arc<RwLock<T>> => OwnedRwLockWriteGuard<T>
}
