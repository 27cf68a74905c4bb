//! The futures of [`Mutex::lock`] and [`Mutex::lock_owned`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{Mutex, MutexGuard, OwnedMutexGuard, Wait};

pin_project! {
    /// Future of [`Mutex::lock`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Lock<'a, T: ?Sized> {
        #[pin]
        wait: Wait<&'a Mutex<T>>,
    }
}

impl<'a, T: ?Sized> Lock<'a, T> {
    #[inline]
    pub(super) fn new(wait: Wait<&'a Mutex<T>>) -> Self {
        Self { wait }
    }
}

impl<'a, T: ?Sized> Future for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().wait.poll(cx)) {
            Ok(mutex) => Poll::Ready(MutexGuard::new(mutex)),
            Err(()) => unreachable!("a mutex is never closed"),
        }
    }
}

pin_project! {
    /// Future of [`Mutex::lock_owned`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct LockOwned<T: ?Sized> {
        #[pin]
        wait: Wait<Arc<Mutex<T>>>,
    }
}

impl<T: ?Sized> LockOwned<T> {
    #[inline]
    pub(super) fn new(wait: Wait<Arc<Mutex<T>>>) -> Self {
        Self { wait }
    }
}

impl<T: ?Sized> Future for LockOwned<T> {
    type Output = OwnedMutexGuard<T>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().wait.poll(cx)) {
            Ok(mutex) => Poll::Ready(OwnedMutexGuard::new(mutex)),
            Err(()) => unreachable!("a mutex is never closed"),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Lock<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lock").field(&self.wait).finish()
    }
}

impl<T: ?Sized> fmt::Debug for LockOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockOwned").field(&self.wait).finish()
    }
}
