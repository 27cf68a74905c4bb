//! A TCP socket that accepts connections.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::{self, WaitKind};

use super::stream::TcpStream;
use crate::context::BoxFuture;
use crate::driver::{Interest, Registered, WaitReady};
use crate::net::accept::Accepting;
use crate::net::addr::{EachAddr, ToSocketAddrs};

/// A TCP socket that accepts connections.
///
/// Any number of tasks may [`accept`](Self::accept). Making one needs no runtime.
///
/// # Examples
/// ```no_run
/// use rt_io::net::TcpListener;
///
/// # async fn example() -> std::io::Result<()> {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// println!("listening on {}", listener.local_addr()?);
/// loop {
///     let (stream, peer) = listener.accept().await?;
///     println!("{peer} is there");
///     drop(stream);
/// }
/// # }
/// ```
pub struct TcpListener {
    io: Registered<mio::net::TcpListener>,
    accepting: Accepting,
}

impl TcpListener {
    /// Binds to the first of several addresses that is free, with `SO_REUSEADDR` and a backlog of 1024.
    ///
    /// # Errors
    /// The last error, with its address, if none is free; those of a look-up.
    ///
    /// # Cancel safety
    /// Nothing is left when the future is dropped.
    #[track_caller]
    pub fn bind(addrs: impl ToSocketAddrs) -> EachAddr<TcpListener> {
        EachAddr::new(
            addrs,
            "bind a TCP listener to",
            Location::caller(),
            |addr| mio::net::TcpListener::bind(addr).map(Self::new),
        )
    }

    pub(super) fn new(listener: mio::net::TcpListener) -> Self {
        Self {
            io: Registered::new(listener),
            accepting: Accepting::new(),
        }
    }

    /// Takes a listener of std, and makes it non-blocking. Needs no runtime.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self::new(mio::net::TcpListener::from_std(listener)))
    }

    /// Gives the listener back as one of std. It stays non-blocking.
    ///
    /// # Errors
    /// None as it is.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        Ok(self.io.into_inner().into())
    }

    /// Waits for a connection. Any number of tasks may wait.
    ///
    /// When the process is out of descriptors or memory, this waits 10 ms to 1 s before each new attempt, and says so
    /// once on standard error: connections stay in the backlog meanwhile. Connections that fail before they are
    /// accepted are skipped.
    ///
    /// # Errors
    /// Those of the listener itself; if this thread has no runtime, or it is closed.
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

    /// Same as [`accept`](Self::accept), for one task at a time.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    #[track_caller]
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let site = Location::caller();
        let result = self.accepting.poll_shared(cx, |cx| {
            self.io.poll_read_io(cx, mio::net::TcpListener::accept)
        });
        if result.is_pending() {
            wait::record(WaitKind::Accept, site);
        }
        result.map_ok(|(stream, addr)| (TcpStream::new(stream), addr))
    }

    /// The address that the listener is bound to; tells the port when 0 was asked for.
    ///
    /// # Errors
    /// That of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// The time-to-live of packets.
    ///
    /// # Errors
    /// That of the system.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.get_ref().ttl()
    }

    /// Sets the time-to-live of packets.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_ttl(ttl)
    }

    /// Takes the error that is pending on the socket.
    ///
    /// # Errors
    /// That of the system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.get_ref().take_error()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.get_ref().as_fd()
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.io.get_ref().as_raw_fd()
    }
}

impl TryFrom<std::net::TcpListener> for TcpListener {
    type Error = io::Error;

    fn try_from(listener: std::net::TcpListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.io.get_ref(), f)
    }
}

/// Future of [`TcpListener::accept`].
#[must_use = "futures do nothing unless awaited"]
pub struct Accept<'a> {
    listener: &'a TcpListener,
    wait: WaitReady<'a>,
    sleep: Option<BoxFuture<()>>,
    site: &'static Location<'static>,
}

impl Future for Accept<'_> {
    type Output = io::Result<(TcpStream, SocketAddr)>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let io = &this.listener.io;
        let result = this.listener.accepting.poll(cx, &mut this.sleep, |cx| {
            this.wait.poll_op(io, cx, mio::net::TcpListener::accept)
        });
        if result.is_pending() {
            wait::record(WaitKind::Accept, this.site);
        }
        result.map_ok(|(stream, addr)| (TcpStream::new(stream), addr))
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
