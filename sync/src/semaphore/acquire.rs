//! The futures of [`Semaphore::acquire`] and its like.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, Wait};

pin_project! {
    /// Future of [`Semaphore::acquire`] and [`Semaphore::acquire_many`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Acquire<'a> {
        #[pin]
        wait: Wait<&'a Semaphore>,
    }
}

impl<'a> Acquire<'a> {
    #[inline]
    pub(super) fn new(wait: Wait<&'a Semaphore>) -> Self {
        Self { wait }
    }
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<SemaphorePermit<'a>, AcquireError>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wait = self.project().wait;
        let polled = ready!(wait.as_mut().poll(cx));
        Poll::Ready(match polled {
            Ok(semaphore) => Ok(SemaphorePermit::new(semaphore, wait.needed() as u32)),
            Err(()) => Err(AcquireError(())),
        })
    }
}

pin_project! {
    /// Future of [`Semaphore::acquire_owned`] and [`Semaphore::acquire_many_owned`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireOwned {
        #[pin]
        wait: Wait<Arc<Semaphore>>,
    }
}

impl AcquireOwned {
    #[inline]
    pub(super) fn new(wait: Wait<Arc<Semaphore>>) -> Self {
        Self { wait }
    }
}

impl Future for AcquireOwned {
    type Output = Result<OwnedSemaphorePermit, AcquireError>;

    // `always`: as `Wait::poll`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wait = self.project().wait;
        let polled = ready!(wait.as_mut().poll(cx));
        Poll::Ready(match polled {
            Ok(semaphore) => Ok(OwnedSemaphorePermit::new(semaphore, wait.needed() as u32)),
            Err(()) => Err(AcquireError(())),
        })
    }
}
