//! A Unix socket before it becomes a stream, a listener or a datagram socket.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::Location;
use std::path::Path;

use socket2::{Domain, Socket, Type};

use super::{UnixDatagram, UnixListener, UnixStream, address, stream};

/// A Unix socket that is neither connected nor listening yet: to bind it before it connects, or to choose the backlog.
///
/// # Examples
/// ```
/// use rt_io::net::UnixSocket;
///
/// # let folder = std::env::temp_dir().join(format!("rt-unix-socket-{}", std::process::id()));
/// # let _ = std::fs::remove_file(&folder);
/// # let path = &folder;
/// let socket = UnixSocket::new_stream()?;
/// socket.bind(path)?;
/// let listener = socket.listen(16)?;
/// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
/// # std::fs::remove_file(path)?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct UnixSocket {
    socket: Socket,
    is_stream: bool,
}

impl UnixSocket {
    /// A socket for [`UnixDatagram`].
    ///
    /// # Errors
    /// That of the system.
    pub fn new_datagram() -> io::Result<UnixSocket> {
        Self::new(Type::DGRAM)
    }

    /// A socket for [`UnixStream`] or [`UnixListener`].
    ///
    /// # Errors
    /// That of the system.
    pub fn new_stream() -> io::Result<UnixSocket> {
        Self::new(Type::STREAM)
    }

    fn new(kind: Type) -> io::Result<UnixSocket> {
        let socket = Socket::new(Domain::UNIX, kind, None)?;
        socket.set_nonblocking(true)?;
        Ok(UnixSocket {
            socket,
            is_stream: kind == Type::STREAM,
        })
    }

    /// Binds to a path, which must not exist yet, or to an abstract name.
    ///
    /// # Errors
    /// Those of `bind`.
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let addr = address::raw(&address::of_path(path.as_ref())?)?;
        Ok(rustix::net::bind(&self.socket, &addr)?)
    }

    /// Listens, with room for `backlog` connections that are not accepted yet.
    ///
    /// # Errors
    /// `InvalidInput` for a datagram socket; those of `listen`.
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.must_be(true, "listen")?;
        self.socket.listen(backlog.try_into().unwrap_or(i32::MAX))?;
        UnixListener::from_std(OwnedFd::from(self.socket).into())
    }

    /// Connects to a path; while the backlog of the listener is full, it tries again from time to time.
    ///
    /// # Errors
    /// `InvalidInput` for a datagram socket; those of [`UnixStream::connect`].
    ///
    /// # Cancel safety
    /// The socket is closed.
    #[track_caller]
    pub fn connect(self, path: impl AsRef<Path>) -> impl Future<Output = io::Result<UnixStream>> {
        let addr = address::of_path(path.as_ref());
        let site = Location::caller();
        async move {
            self.must_be(true, "connect")?;
            stream::connect(|| Ok(self.socket.into()), &addr?, site).await
        }
    }

    /// The socket as one for datagrams.
    ///
    /// # Errors
    /// `InvalidInput` for a stream socket.
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.must_be(false, "carry datagrams")?;
        UnixDatagram::from_std(OwnedFd::from(self.socket).into())
    }

    fn must_be(&self, stream: bool, to: &str) -> io::Result<()> {
        if self.is_stream == stream {
            return Ok(());
        }
        let (is, needed) = if stream {
            ("a datagram", "new_stream")
        } else {
            ("a stream", "new_datagram")
        };
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{is} socket cannot {to}: make it by `UnixSocket::{needed}`"),
        ))
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UnixSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl From<UnixSocket> for OwnedFd {
    fn from(socket: UnixSocket) -> OwnedFd {
        socket.socket.into()
    }
}
