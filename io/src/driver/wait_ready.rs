//! Futures that wait until a source is ready, for any number of tasks at a time.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::readiness::{Key, Seen};
use super::ready::{Interest, Ready};
use super::registered::Registered;
use super::registration::Target;
use crate::context;

/// What a source was ready for, and when: needed to clear that readiness later
/// ([`Registered::clear`](super::Registered::clear)).
#[derive(Debug, Clone, Copy)]
pub struct ReadyEvent {
    pub(super) ready: Ready,
    pub(super) seen: Seen,
}

impl ReadyEvent {
    /// What the source was ready for, of what was asked.
    #[must_use]
    pub fn ready(&self) -> Ready {
        self.ready
    }

    /// The same moment, for these bits only.
    pub(crate) fn only(self, bits: Ready) -> ReadyEvent {
        ReadyEvent {
            ready: self.ready & bits,
            seen: self.seen,
        }
    }
}

/// Future of [`Registered::wait_ready`](super::Registered::wait_ready).
#[must_use = "futures do nothing unless awaited"]
pub struct WaitReady<'a> {
    target: Target<'a>,
    interest: Interest,
    kind: WaitKind,
    site: &'static Location<'static>,
    key: Option<Key>,
}

impl<'a> WaitReady<'a> {
    pub(super) fn new(
        target: Target<'a>,
        interest: Interest,
        site: &'static Location<'static>,
    ) -> Self {
        Self {
            target,
            interest,
            kind: WaitKind::Readiness,
            site,
            key: None,
        }
    }

    /// The kind that dumps show instead of [`WaitKind::Readiness`].
    pub(crate) fn shown_as(mut self, kind: WaitKind) -> Self {
        self.kind = kind;
        self
    }

    /// Runs an operation on the source that this waits for, until it does not say `WouldBlock`: the body of leaf futures
    /// that any number of tasks may await at a time.
    pub(crate) fn poll_op<E: AsRawFd, R>(
        &mut self,
        io: &Registered<E>,
        cx: &mut Context<'_>,
        mut f: impl FnMut(&E) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let unit = ready!(coop::poll_proceed(cx));
            match io.try_io(self.interest, &mut f) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    drop(unit);
                    ready!(Pin::new(&mut *self).poll(cx))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    unit.made_progress();
                    return Poll::Ready(result);
                }
            }
        }
    }

    /// Leaves the list.
    fn forget(&mut self) {
        if let Some(key) = self.key.take()
            && let Some(source) = self.target.get()
        {
            source.readiness.forget(key);
        }
    }
}

impl Future for WaitReady<'_> {
    type Output = io::Result<ReadyEvent>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let unit = ready!(coop::poll_proceed(cx));
        let source = this.target.source(Ready::EMPTY, this.site)?;
        let mask = this.interest.mask();
        let mut seen = source.readiness.load();
        if !seen.has(mask) {
            match source.readiness.wait(&mut this.key, mask, cx.waker()) {
                Some(now) => seen = now,
                None => {
                    context::waits(source, this.site);
                    wait::record(this.kind, this.site);
                    return Poll::Pending;
                }
            }
        }
        unit.made_progress();
        this.forget();
        if seen.is_closed() {
            return Poll::Ready(Err(source.handle.closed_error()));
        }
        Poll::Ready(Ok(ReadyEvent {
            ready: seen.ready() & mask,
            seen,
        }))
    }
}

impl Drop for WaitReady<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl fmt::Debug for WaitReady<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitReady")
            .field("interest", &self.interest)
            .field("waiting", &self.key.is_some())
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

/// Future of `readable()`.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Readable<'a>(pub(super) WaitReady<'a>);

/// Future of `writable()`.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Writable<'a>(pub(super) WaitReady<'a>);

/// Future of `ready()`.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WhenReady<'a>(pub(super) WaitReady<'a>);

impl Future for Readable<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll(cx).map_ok(drop)
    }
}

impl Future for Writable<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll(cx).map_ok(drop)
    }
}

impl Future for WhenReady<'_> {
    type Output = io::Result<Ready>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        Pin::new(&mut self.0).poll(cx).map_ok(|event| event.ready())
    }
}
