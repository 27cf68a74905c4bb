//! What a wait for an [`AsyncFd`] gives: the readiness of that moment, to be used or cleared.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;

use super::AsyncFd;
use crate::driver::{Ready, ReadyEvent};

/// The methods of both guards. `$fd` is how `try_io` passes the descriptor.
macro_rules! guard_methods {
    ($fd:ty) => {
        /// Forgets the readiness, unless an event came since this guard was made.
        ///
        /// Call it only after an operation said `WouldBlock`; without that, the next wait may never end. Better
        /// [`try_io`](Self::try_io), which does just that.
        pub fn clear_ready(&mut self) {
            if let Some(event) = self.event.take() {
                self.fd.io.clear(event);
            }
        }

        /// [`clear_ready`](Self::clear_ready) for a part of the readiness.
        pub fn clear_ready_matching(&mut self, ready: Ready) {
            if let Some(event) = self.event {
                self.fd.io.clear(event.only(ready));
                self.event = Some(event.only(Ready::ALL - ready));
            }
        }

        /// Keeps the readiness: what dropping the guard does as well.
        pub fn retain_ready(&mut self) {
            self.event = None;
        }

        /// What the descriptor is ready for, of what was asked and not yet cleared.
        #[must_use]
        pub fn ready(&self) -> Ready {
            self.event.map_or(Ready::EMPTY, |event| event.ready())
        }

        /// Runs an operation. If it says `WouldBlock`, the readiness is cleared.
        ///
        /// # Errors
        /// [`TryIoError`] if the operation said `WouldBlock`: wait again.
        pub fn try_io<R>(
            &mut self,
            f: impl FnOnce($fd) -> io::Result<R>,
        ) -> Result<io::Result<R>, TryIoError> {
            match f(self.fd) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clear_ready();
                    Err(TryIoError(()))
                }
                result => Ok(result),
            }
        }
    };
}

/// The readiness of an [`AsyncFd`] at one moment.
#[must_use = "readiness says nothing until an operation is tried"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd> {
    pub(super) fd: &'a AsyncFd<T>,
    pub(super) event: Option<ReadyEvent>,
}

impl<'a, T: AsRawFd> AsyncFdReadyGuard<'a, T> {
    guard_methods!(&AsyncFd<T>);

    /// The object that is ready.
    #[must_use]
    pub const fn get_ref(&self) -> &'a AsyncFd<T> {
        self.fd
    }

    /// What it wraps.
    #[must_use]
    pub const fn get_inner(&self) -> &'a T {
        self.fd.get_ref()
    }
}

/// The readiness of an [`AsyncFd`] at one moment, with mutable access.
#[must_use = "readiness says nothing until an operation is tried"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd> {
    pub(super) fd: &'a mut AsyncFd<T>,
    pub(super) event: Option<ReadyEvent>,
}

impl<T: AsRawFd> AsyncFdReadyMutGuard<'_, T> {
    guard_methods!(&mut AsyncFd<T>);

    /// The object that is ready.
    #[must_use]
    pub const fn get_ref(&self) -> &AsyncFd<T> {
        self.fd
    }

    /// The object that is ready, mutably.
    pub const fn get_mut(&mut self) -> &mut AsyncFd<T> {
        self.fd
    }

    /// What it wraps.
    #[must_use]
    pub const fn get_inner(&self) -> &T {
        self.fd.get_ref()
    }

    /// What it wraps, mutably.
    pub const fn get_inner_mut(&mut self) -> &mut T {
        self.fd.get_mut()
    }
}

impl<T: AsRawFd + fmt::Debug> fmt::Debug for AsyncFdReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFdReadyGuard")
            .field("fd", self.fd)
            .field("ready", &self.ready())
            .finish()
    }
}

impl<T: AsRawFd + fmt::Debug> fmt::Debug for AsyncFdReadyMutGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFdReadyMutGuard")
            .field("fd", self.fd)
            .field("ready", &self.ready())
            .finish()
    }
}

/// An operation on a ready descriptor said `WouldBlock`, and the readiness was cleared.
#[derive(Debug, Clone, Copy)]
pub struct TryIoError(());

impl fmt::Display for TryIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operation would block; wait for readiness again")
    }
}

impl Error for TryIoError {}
