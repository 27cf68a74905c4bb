//! Any descriptor that a selector can watch, with an operation of the user's own.
//!
//! Readiness is a hint. The guards tie it to the operation that uses it: [`AsyncFdReadyGuard::try_io`] runs the
//! operation and clears the readiness exactly when the operation says `WouldBlock`, and clearing never loses an event
//! that came after the guard was made, since the guard knows which event it is from.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use crate::driver::{Interest, Registered};

mod check;
mod guard;

pub use self::guard::{AsyncFdReadyGuard, AsyncFdReadyMutGuard, TryIoError};

/// A descriptor whose readiness can be awaited.
///
/// The descriptor must be non-blocking. It registers with the runtime on which it is first awaited, stays registered
/// as long as this object lives, and is closed by the inner value, not by this object.
///
/// # Examples
/// ```no_run
/// use std::io::{self, Read};
/// use std::os::unix::net::UnixStream;
/// use rt_io::AsyncFd;
///
/// # async fn read(stream: UnixStream) -> io::Result<()> {
/// stream.set_nonblocking(true)?;
/// let fd = AsyncFd::new(stream)?;
/// let mut buf = [0; 64];
/// loop {
///     let mut guard = fd.readable().await?;
///     match guard.try_io(|fd| fd.get_ref().read(&mut buf)) {
///         Ok(result) => break println!("{} bytes", result?),
///         // Readiness was a false alarm, and is cleared.
///         Err(_would_block) => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct AsyncFd<T: AsRawFd> {
    io: Registered<T>,
}

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl<T: AsRawFd> AsyncFd<T> {
    /// Wraps a descriptor, for reading and writing. Needs no runtime.
    ///
    /// # Errors
    /// `PermissionDenied` for files and directories, which no selector can watch; those of `fstat`.
    pub fn new(inner: T) -> io::Result<Self> {
        Self::with_interest(inner, BOTH)
    }

    /// Wraps a descriptor, for what `interest` names.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<Self> {
        Self::try_with_interest(inner, interest).map_err(io::Error::from)
    }

    /// Same as [`new`](Self::new), but gives the value back when it fails.
    ///
    /// # Errors
    /// As [`new`](Self::new), with the value.
    pub fn try_new(inner: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::try_with_interest(inner, BOTH)
    }

    /// Same as [`with_interest`](Self::with_interest), but gives the value back when it fails.
    ///
    /// # Errors
    /// As [`new`](Self::new), with the value.
    pub fn try_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        match check::check(&inner) {
            Ok(()) => Ok(Self {
                io: Registered::with_interest(inner, interest),
            }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }

    /// What is wrapped.
    pub const fn get_ref(&self) -> &T {
        self.io.get_ref()
    }

    /// What is wrapped, mutably. It must keep its descriptor.
    pub const fn get_mut(&mut self) -> &mut T {
        self.io.get_mut()
    }

    /// Deregisters, and gives back what was wrapped.
    pub fn into_inner(self) -> T {
        self.io.into_inner()
    }

    /// Waits until the descriptor is readable. Any number of tasks may wait.
    ///
    /// # Errors
    /// If there is no runtime to wait in, it is closed, or its selector refuses the descriptor.
    ///
    /// # Cancel safety
    /// Nothing is lost: readiness that no guard cleared stays.
    #[track_caller]
    pub fn readable(
        &self,
    ) -> impl Future<Output = io::Result<AsyncFdReadyGuard<'_, T>>> + use<'_, T> {
        self.ready(Interest::READABLE)
    }

    /// [`readable`](Self::readable), with a guard that gives mutable access.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until the descriptor is writable. Any number of tasks may wait.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn writable(
        &self,
    ) -> impl Future<Output = io::Result<AsyncFdReadyGuard<'_, T>>> + use<'_, T> {
        self.ready(Interest::WRITABLE)
    }

    /// [`writable`](Self::writable), with a guard that gives mutable access.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    /// Waits until any part of `interest` is met.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn ready(
        &self,
        interest: Interest,
    ) -> impl Future<Output = io::Result<AsyncFdReadyGuard<'_, T>>> + use<'_, T> {
        let wait = self.io.wait_ready(interest);
        async move {
            let event = wait.await?;
            Ok(AsyncFdReadyGuard {
                fd: self,
                event: Some(event),
            })
        }
    }

    /// [`ready`](Self::ready), with a guard that gives mutable access.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let event = self.io.wait_ready(interest).await?;
        Ok(AsyncFdReadyMutGuard {
            fd: self,
            event: Some(event),
        })
    }

    /// Polls for readability, for one task: the last one that asked is woken.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_read_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = Some(ready!(self.io.poll_read_ready(cx))?);
        Poll::Ready(Ok(AsyncFdReadyGuard { fd: self, event }))
    }

    /// Polls for readability, with a guard that gives mutable access.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_read_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = Some(ready!(self.io.poll_read_ready(cx))?);
        Poll::Ready(Ok(AsyncFdReadyMutGuard { fd: self, event }))
    }

    /// Polls for writability, for one task: the last one that asked is woken.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_write_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let event = Some(ready!(self.io.poll_write_ready(cx))?);
        Poll::Ready(Ok(AsyncFdReadyGuard { fd: self, event }))
    }

    /// Polls for writability, with a guard that gives mutable access.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_write_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let event = Some(ready!(self.io.poll_write_ready(cx))?);
        Poll::Ready(Ok(AsyncFdReadyMutGuard { fd: self, event }))
    }

    /// Runs an operation until it says something else than `WouldBlock`, waiting for `interest` in between.
    ///
    /// # Errors
    /// Those of the operation and of [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As safe as the operation: it has not run, or its result is returned.
    #[track_caller]
    pub fn async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut(&T) -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        self.io.async_io(interest, f)
    }

    /// [`async_io`](Self::async_io), with mutable access.
    ///
    /// # Errors
    /// As [`async_io`](Self::async_io).
    ///
    /// # Cancel safety
    /// As [`async_io`](Self::async_io).
    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut f: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let mut guard = self.ready_mut(interest).await?;
            if let Ok(result) = guard.try_io(|fd| f(fd.get_mut())) {
                return result;
            }
        }
    }

    /// Runs an operation if the descriptor may be ready for it; clears that readiness if it says `WouldBlock`.
    ///
    /// # Errors
    /// `WouldBlock` if it is not ready; those of the operation.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.try_io(interest, f)
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.get_ref().as_raw_fd()
    }
}

impl<T: AsRawFd + AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl<T: AsRawFd + fmt::Debug> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd")
            .field("inner", self.get_ref())
            .finish_non_exhaustive()
    }
}

/// A value that cannot be wrapped by [`AsyncFd::try_new`], and why not.
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

impl<T> AsyncFdRegisterError<T> {
    /// The value, and why it was refused.
    #[must_use]
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFdRegisterError")
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> io::Error {
        error.cause
    }
}
