//! A TCP socket that accepts connections.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::{self, WaitKind};

use super::stream::TcpStream;
use crate::driver::Registered;
use crate::net::accept::Accepting;
use crate::net::addr::{EachAddr, ToSocketAddrs};
use crate::net::descriptor::like_std;
use crate::net::listener_methods::listener_methods;

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

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.io.get_ref(), f)
    }
}

fn accept_one(listener: &mio::net::TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, addr) = listener.accept()?;
    Ok((TcpStream::new(stream), addr))
}

listener_methods!(TcpListener, TcpStream, SocketAddr, accept_one);
like_std!(TcpListener, std::net::TcpListener);
