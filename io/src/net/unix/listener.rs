//! A Unix socket that accepts connections.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::unix::net;
use std::os::unix::net::SocketAddr;
use std::panic::Location;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::{self, WaitKind};

use super::{UnixStream, address};
use crate::driver::Registered;
use crate::net::accept::Accepting;
use crate::net::descriptor::like_std;
use crate::net::listener_methods::listener_methods;

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

listener_methods!(UnixListener, UnixStream, SocketAddr, accept_one);
like_std!(UnixListener, net::UnixListener);
