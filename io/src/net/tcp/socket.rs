//! A TCP socket before it becomes a stream or a listener, when its options are set.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::Location;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::connect::Connect;
use super::listener::TcpListener;

/// A TCP socket that is neither connected nor listening yet.
///
/// # Examples
/// ```
/// use rt_io::net::TcpSocket;
///
/// let socket = TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// socket.set_recv_buffer_size(64 * 1024)?;
/// socket.bind("127.0.0.1:0".parse().unwrap())?;
/// let listener = socket.listen(128)?;
/// assert_ne!(listener.local_addr()?.port(), 0);
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    socket: Socket,
}

impl TcpSocket {
    /// A socket for IPv4.
    ///
    /// # Errors
    /// That of the system.
    pub fn new_v4() -> io::Result<Self> {
        Self::new(Domain::IPV4)
    }

    /// A socket for IPv6.
    ///
    /// # Errors
    /// That of the system.
    pub fn new_v6() -> io::Result<Self> {
        Self::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Takes a socket that std has as a stream but that is not connected yet, and makes it non-blocking.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub fn from_std_stream(stream: std::net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            socket: stream.into(),
        })
    }

    /// Binds to an address.
    ///
    /// # Errors
    /// That of the system, with the address.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.socket
            .bind(&addr.into())
            .map_err(|error| crate::error::with_addr("bind a TCP socket to", addr, &error))
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`TcpStream::connect`](super::TcpStream::connect).
    ///
    /// # Cancel safety
    /// The attempt is given up when the future is dropped.
    #[track_caller]
    pub fn connect(self, addr: SocketAddr) -> Connect {
        let begun = match self.socket.connect(&addr.into()) {
            Err(error) if !is_in_progress(&error) => Err(error),
            _ => Ok(mio::net::TcpStream::from_std(self.socket.into())),
        };
        Connect::begun(begun, addr, Location::caller())
    }

    /// Starts listening, with room for `backlog` connections that are not accepted yet.
    ///
    /// # Errors
    /// That of the system.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.socket.listen(backlog.try_into().unwrap_or(i32::MAX))?;
        let listener = mio::net::TcpListener::from_std(self.socket.into());
        Ok(TcpListener::new(listener))
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// That of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let addr = self.socket.local_addr()?;
        addr.as_socket().ok_or_else(|| {
            io::Error::other("the socket has an address that is not of the Internet")
        })
    }

    /// Takes the error that is pending on the socket.
    ///
    /// # Errors
    /// That of the system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// Whether the other side is asked for a sign of life now and then (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// That of the system.
    pub fn keepalive(&self) -> io::Result<bool> {
        self.socket.keepalive()
    }

    /// Sets `SO_KEEPALIVE`.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.socket.set_keepalive(keepalive)
    }

    /// Whether an address may be bound while old connections of it linger (`SO_REUSEADDR`).
    ///
    /// # Errors
    /// That of the system.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.socket.reuse_address()
    }

    /// Sets `SO_REUSEADDR`.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.socket.set_reuse_address(reuseaddr)
    }

    /// Whether several sockets may listen on one port (`SO_REUSEPORT`).
    ///
    /// # Errors
    /// That of the system.
    pub fn reuseport(&self) -> io::Result<bool> {
        self.socket.reuse_port()
    }

    /// Sets `SO_REUSEPORT`.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.socket.set_reuse_port(reuseport)
    }

    /// The size of the sending buffer, as the system counts it (Linux: twice what was set).
    ///
    /// # Errors
    /// That of the system.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.socket.send_buffer_size().map(saturate)
    }

    /// Sets the size of the sending buffer.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_send_buffer_size(size as usize)
    }

    /// The size of the receiving buffer, as the system counts it (Linux: twice what was set).
    ///
    /// # Errors
    /// That of the system.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.socket.recv_buffer_size().map(saturate)
    }

    /// Sets the size of the receiving buffer: to take effect on the window, before connecting or listening.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_recv_buffer_size(size as usize)
    }

    /// How long a close goes on sending in the background (`SO_LINGER`).
    ///
    /// # Errors
    /// That of the system.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.socket.linger()
    }

    /// Sets `SO_LINGER`; see [`TcpStream::set_linger`](super::TcpStream::set_linger).
    ///
    /// # Errors
    /// That of the system.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.socket.set_linger(linger)
    }

    /// Makes closing reset the connection.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// That of the system.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.socket.tcp_nodelay()
    }

    /// Sets `TCP_NODELAY`.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.set_tcp_nodelay(nodelay)
    }

    /// The type of service of packets (`IP_TOS`).
    ///
    /// # Errors
    /// That of the system.
    pub fn tos(&self) -> io::Result<u32> {
        self.socket.tos_v4()
    }

    /// Sets `IP_TOS`.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.socket.set_tos_v4(tos)
    }

    /// The network device that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// That of the system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        self.socket.device()
    }

    /// Binds to a network device, or ends that with `None`.
    ///
    /// # Errors
    /// That of the system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        self.socket.bind_device(interface)
    }
}

/// Also `WouldBlock`, which some systems say.
fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}

fn saturate(size: usize) -> u32 {
    size.try_into().unwrap_or(u32::MAX)
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl From<TcpSocket> for OwnedFd {
    fn from(socket: TcpSocket) -> OwnedFd {
        socket.socket.into()
    }
}
