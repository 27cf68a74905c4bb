//! An operation that is run until it does not have to wait.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::WaitKind;

use super::registered::Registered;
use super::wait_ready::WaitReady;

/// Future of [`Registered::async_io`].
#[must_use = "futures do nothing unless awaited"]
pub struct AsyncIo<'a, E: AsRawFd, F> {
    pub(super) io: &'a Registered<E>,
    pub(super) wait: WaitReady<'a>,
    pub(super) f: F,
}

impl<E: AsRawFd, F> AsyncIo<'_, E, F> {
    /// The kind that dumps show instead of [`WaitKind::Readiness`].
    pub(crate) fn shown_as(mut self, kind: WaitKind) -> Self {
        self.wait = self.wait.shown_as(kind);
        self
    }
}

// Nothing in here is pinned.
impl<E: AsRawFd, F> Unpin for AsyncIo<'_, E, F> {}

impl<E, F, R> Future for AsyncIo<'_, E, F>
where
    E: AsRawFd,
    F: FnMut(&E) -> io::Result<R>,
{
    type Output = io::Result<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let this = self.get_mut();
        this.wait.poll_op(this.io, cx, &mut this.f)
    }
}

impl<E: AsRawFd, F> fmt::Debug for AsyncIo<'_, E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncIo")
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
