//! The futures of [`RwLock::read`], [`RwLock::write`] and their owned forms.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, Wait,
};

pin_project! {
    /// Future of [`RwLock::read`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Read<'a, T: ?Sized> {
        #[pin]
        wait: Wait<&'a RwLock<T>>,
    }
}

impl<'a, T: ?Sized> Read<'a, T> {
    #[inline]
    pub(super) fn new(wait: Wait<&'a RwLock<T>>) -> Self {
        Self { wait }
    }
}

impl<'a, T: ?Sized> Future for Read<'a, T> {
    type Output = RwLockReadGuard<'a, T>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().wait.poll(cx)) {
            Ok(lock) => Poll::Ready(RwLockReadGuard::new(lock)),
            Err(()) => unreachable!("an RwLock is never closed"),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Read<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Read").field(&self.wait).finish()
    }
}

pin_project! {
    /// Future of [`RwLock::write`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Write<'a, T: ?Sized> {
        #[pin]
        wait: Wait<&'a RwLock<T>>,
    }
}

impl<'a, T: ?Sized> Write<'a, T> {
    #[inline]
    pub(super) fn new(wait: Wait<&'a RwLock<T>>) -> Self {
        Self { wait }
    }
}

impl<'a, T: ?Sized> Future for Write<'a, T> {
    type Output = RwLockWriteGuard<'a, T>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().wait.poll(cx)) {
            Ok(lock) => Poll::Ready(RwLockWriteGuard::new(lock)),
            Err(()) => unreachable!("an RwLock is never closed"),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Write<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Write").field(&self.wait).finish()
    }
}

pin_project! {
    /// Future of [`RwLock::read_owned`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct ReadOwned<T: ?Sized> {
        #[pin]
        wait: Wait<Arc<RwLock<T>>>,
    }
}

impl<T: ?Sized> ReadOwned<T> {
    #[inline]
    pub(super) fn new(wait: Wait<Arc<RwLock<T>>>) -> Self {
        Self { wait }
    }
}

impl<T: ?Sized> Future for ReadOwned<T> {
    type Output = OwnedRwLockReadGuard<T>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().wait.poll(cx)) {
            Ok(lock) => Poll::Ready(OwnedRwLockReadGuard::new(lock)),
            Err(()) => unreachable!("an RwLock is never closed"),
        }
    }
}

impl<T: ?Sized> fmt::Debug for ReadOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadOwned").field(&self.wait).finish()
    }
}

pin_project! {
    /// Future of [`RwLock::write_owned`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct WriteOwned<T: ?Sized> {
        #[pin]
        wait: Wait<Arc<RwLock<T>>>,
    }
}

impl<T: ?Sized> WriteOwned<T> {
    #[inline]
    pub(super) fn new(wait: Wait<Arc<RwLock<T>>>) -> Self {
        Self { wait }
    }
}

impl<T: ?Sized> Future for WriteOwned<T> {
    type Output = OwnedRwLockWriteGuard<T>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(self.project().wait.poll(cx)) {
            Ok(lock) => Poll::Ready(OwnedRwLockWriteGuard::new(lock)),
            Err(()) => unreachable!("an RwLock is never closed"),
        }
    }
}

impl<T: ?Sized> fmt::Debug for WriteOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteOwned").field(&self.wait).finish()
    }
}
