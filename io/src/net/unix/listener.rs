//! A Unix socket that accepts connections.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net;
use std::os::unix::net::SocketAddr;
use std::panic::Location;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::{self, WaitKind};

use super::{UnixStream, address};
use crate::context::BoxFuture;
use crate::driver::{Interest, Registered, WaitReady};
use crate::net::accept::Accepting;

/// A Unix socket that accepts connections.
///
/// Dropping it leaves its path in the file system.
///
/// # Examples
/// ```no_run
/// use rt_io::net::unix::UnixListener;
///
/// # async fn serve() -> std::io::Result<()> {
/// let listener = UnixListener::bind("/run/service.sock")?;
/// loop {
///     let (stream, _) = listener.accept().await?;
///     println!("peer {:?}", stream.peer_cred()?);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct UnixListener {
    io: Registered<net::UnixListener>,
    accepting: Accepting,
}

impl UnixListener {
    /// Listens at a path, which must not exist yet.
    ///
    /// # Errors
    /// Those of `bind` and `listen`.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        Self::bind_addr(&address::of_path(path.as_ref())?)
    }

    /// Listens at an address.
    ///
    /// # Errors
    /// Those of `bind` and `listen`.
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<UnixListener> {
        Self::from_std(net::UnixListener::bind_addr(addr)?)
    }

    /// Takes a socket of the standard library, and makes it non-blocking.
    ///
    /// # Errors
    /// If that is refused.
    pub fn from_std(listener: net::UnixListener) -> io::Result<UnixListener> {
        listener.set_nonblocking(true)?;
        Ok(UnixListener {
            io: Registered::new(listener),
            accepting: Accepting::new(),
        })
    }

    /// Deregisters and gives the socket back; it stays non-blocking.
    ///
    /// # Errors
    /// None today.
    pub fn into_std(self) -> io::Result<net::UnixListener> {
        Ok(self.io.into_inner())
    }

    /// Waits for a connection. Any number of tasks may wait.
    ///
    /// When the process is out of descriptors or memory, this waits 10 ms to 1 s before each new attempt, and says so
    /// once on standard error: connections stay in the backlog meanwhile.
    ///
    /// # Errors
    /// Those of the listener itself; if there is no runtime to wait in, or it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost: a connection is accepted only in the poll that returns it.
    #[track_caller]
    pub fn accept(&self) -> Accept<'_> {
        Accept {
            listener: self,
            wait: self
                .io
                .wait_ready(Interest::READABLE)
                .shown_as(WaitKind::Accept),
            sleep: None,
            site: Location::caller(),
        }
    }

    /// Polls [`accept`](Self::accept), for one task: the last one that polled is woken.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    #[track_caller]
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        let site = Location::caller();
        let result = self
            .accepting
            .poll_shared(cx, |cx| self.io.poll_read_io(cx, accept_one));
        if result.is_pending() {
            wait::record(WaitKind::Accept, site);
        }
        result
    }

    /// The address listened at.
    ///
    /// # Errors
    /// Those of `getsockname`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// Takes the pending error of the socket.
    ///
    /// # Errors
    /// Those of `getsockopt`.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.get_ref().take_error()
    }
}

fn accept_one(listener: &net::UnixListener) -> io::Result<(UnixStream, SocketAddr)> {
    let (stream, addr) = listener.accept()?;
    Ok((UnixStream::from_std(stream)?, addr))
}

/// Future of [`UnixListener::accept`].
#[must_use = "futures do nothing unless awaited"]
pub struct Accept<'a> {
    listener: &'a UnixListener,
    wait: WaitReady<'a>,
    sleep: Option<BoxFuture<()>>,
    site: &'static Location<'static>,
}

impl Future for Accept<'_> {
    type Output = io::Result<(UnixStream, SocketAddr)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let io = &this.listener.io;
        let result = this.listener.accepting.poll(cx, &mut this.sleep, |cx| {
            this.wait.poll_op(io, cx, accept_one)
        });
        if result.is_pending() {
            wait::record(WaitKind::Accept, this.site);
        }
        result
    }
}

impl fmt::Debug for Accept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accept")
            .field("listener", &self.listener)
            .field("backing_off", &self.sleep.is_some())
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.get_ref().as_fd()
    }
}

impl AsRawFd for UnixListener {
    fn as_raw_fd(&self) -> RawFd {
        self.io.get_ref().as_raw_fd()
    }
}

impl TryFrom<net::UnixListener> for UnixListener {
    type Error = io::Error;

    /// Same as [`UnixListener::from_std`].
    fn try_from(listener: net::UnixListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}

impl From<UnixListener> for OwnedFd {
    fn from(listener: UnixListener) -> OwnedFd {
        listener.io.into_inner().into()
    }
}
