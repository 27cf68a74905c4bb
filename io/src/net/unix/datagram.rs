//! Unix sockets that carry messages.

use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::task::{Context, Poll};

use rt_sync::wait::WaitKind;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use super::address;
use crate::driver::{Interest, Registered};
use crate::net::readiness_methods::readiness_methods;

/// A Unix socket for messages, each of which arrives whole or not at all, in order.
///
/// A message that is longer than the buffer is cut off.
///
/// Linux does not tell an unconnected sender when the queue of a full receiver has room again, only when a message *of
/// this sender* was taken out of it: to send a lot to a socket that others send to as well, connect first.
///
/// # Examples
/// ```
/// use rt_io::net::unix::UnixDatagram;
///
/// # futures_lite::future::block_on(async {
/// let (one, two) = UnixDatagram::pair()?;
/// one.send(b"hello").await?;
/// let mut buf = [0; 16];
/// let length = two.recv(&mut buf).await?;
/// assert_eq!(&buf[..length], b"hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct UnixDatagram {
    pub(in crate::net) io: Registered<net::UnixDatagram>,
}

impl UnixDatagram {
    /// A socket bound to a path, which must not exist yet.
    ///
    /// # Errors
    /// Those of `bind`.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        let addr = address::of_path(path.as_ref())?;
        Self::from_std(net::UnixDatagram::bind_addr(&addr)?)
    }

    /// A socket without an address: it can send, and receive once it is connected by [`pair`](Self::pair).
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn unbound() -> io::Result<UnixDatagram> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        Ok(UnixDatagram {
            io: Registered::new(socket.into()),
        })
    }

    /// Two sockets connected to each other.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (one, two) = net::UnixDatagram::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(two)?))
    }

    /// Connects to a path: [`send`](Self::send) goes there, [`recv`](Self::recv) takes only what comes from there.
    ///
    /// # Errors
    /// Those of `connect`.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let addr = address::of_path(path.as_ref())?;
        self.io.get_ref().connect_addr(&addr)
    }

    /// Takes a socket of the standard library, and makes it non-blocking.
    ///
    /// # Errors
    /// If that is refused.
    pub fn from_std(socket: net::UnixDatagram) -> io::Result<UnixDatagram> {
        socket.set_nonblocking(true)?;
        Ok(UnixDatagram {
            io: Registered::new(socket),
        })
    }

    /// Deregisters and gives the socket back; it stays non-blocking.
    ///
    /// # Errors
    /// None today.
    pub fn into_std(self) -> io::Result<net::UnixDatagram> {
        Ok(self.io.into_inner())
    }

    readiness_methods!(poll_recv_ready, poll_send_ready);

    /// Sends a message to the address that the socket is connected to.
    ///
    /// # Errors
    /// Those of `send`.
    ///
    /// # Cancel safety
    /// Dropped early, the message was not sent.
    #[track_caller]
    pub fn send<'a>(&'a self, buf: &'a [u8]) -> impl Future<Output = io::Result<usize>> + 'a {
        self.io
            .async_io(Interest::WRITABLE, |io| io.send(buf))
            .shown_as(WaitKind::Write)
    }

    /// Sends a message to a path.
    ///
    /// # Errors
    /// Those of `sendto`.
    ///
    /// # Cancel safety
    /// Dropped early, the message was not sent.
    #[track_caller]
    pub fn send_to<'a>(
        &'a self,
        buf: &'a [u8],
        target: impl AsRef<Path>,
    ) -> impl Future<Output = io::Result<usize>> + 'a {
        let target = address::of_path(target.as_ref()).and_then(|addr| address::raw(&addr));
        let mut wait = self
            .io
            .wait_ready(Interest::WRITABLE)
            .shown_as(WaitKind::Write);
        async move {
            let target = target?;
            poll_fn(|cx| wait.poll_op(&self.io, cx, |io| send_to(io, buf, &target))).await
        }
    }

    /// Receives a message; returns its length, or that of the buffer if it was cut off.
    ///
    /// # Errors
    /// Those of `recv`.
    ///
    /// # Cancel safety
    /// Dropped early, no message was taken.
    #[track_caller]
    pub fn recv<'a>(&'a self, buf: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + 'a {
        self.io
            .async_io(Interest::READABLE, move |io| io.recv(buf))
            .shown_as(WaitKind::Read)
    }

    /// Receives a message, and says where it came from.
    ///
    /// # Errors
    /// Those of `recvfrom`.
    ///
    /// # Cancel safety
    /// Dropped early, no message was taken.
    #[track_caller]
    pub fn recv_from<'a>(
        &'a self,
        buf: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, SocketAddr)>> + 'a {
        self.io
            .async_io(Interest::READABLE, move |io| io.recv_from(buf))
            .shown_as(WaitKind::Read)
    }

    /// [`send`](Self::send) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; those of `send`.
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |io| io.send(buf))
    }

    /// [`send_to`](Self::send_to) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; those of `sendto`.
    pub fn try_send_to(&self, buf: &[u8], target: impl AsRef<Path>) -> io::Result<usize> {
        let target = address::raw(&address::of_path(target.as_ref())?)?;
        self.io
            .try_io(Interest::WRITABLE, |io| send_to(io, buf, &target))
    }

    /// [`recv`](Self::recv) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no message; those of `recv`.
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, |io| io.recv(buf))
    }

    /// [`recv_from`](Self::recv_from) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no message; those of `recvfrom`.
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.try_io(Interest::READABLE, |io| io.recv_from(buf))
    }

    /// Polls [`send`](Self::send), for one task: the last one that polled is woken.
    ///
    /// # Errors
    /// Those of `send`.
    #[track_caller]
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_write_io(cx, |io| io.send(buf))
    }

    /// Polls [`send_to`](Self::send_to), for one task.
    ///
    /// # Errors
    /// Those of `sendto`.
    #[track_caller]
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: impl AsRef<Path>,
    ) -> Poll<io::Result<usize>> {
        let target = address::raw(&address::of_path(target.as_ref())?)?;
        self.io.poll_write_io(cx, |io| send_to(io, buf, &target))
    }

    /// Polls [`recv`](Self::recv), for one task.
    ///
    /// # Errors
    /// Those of `recv`.
    #[track_caller]
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read_io(cx, |io| io.recv(buf))
    }

    /// Polls [`recv_from`](Self::recv_from), for one task.
    ///
    /// # Errors
    /// Those of `recvfrom`.
    #[track_caller]
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.io.poll_read_io(cx, |io| io.recv_from(buf))
    }

    /// The address of this end.
    ///
    /// # Errors
    /// Those of `getsockname`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// The address that the socket is connected to.
    ///
    /// # Errors
    /// `NotConnected` if it is not; those of `getpeername`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().peer_addr()
    }

    /// Takes the pending error of the socket.
    ///
    /// # Errors
    /// Those of `getsockopt`.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.get_ref().take_error()
    }

    /// Shuts down reading, writing or both.
    ///
    /// # Errors
    /// Those of `shutdown`.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.get_ref().shutdown(how)
    }
}

fn send_to(
    io: &net::UnixDatagram,
    buf: &[u8],
    target: &rustix::net::SocketAddrUnix,
) -> io::Result<usize> {
    Ok(rustix::net::sendto(io, buf, SendFlags::NOSIGNAL, target)?)
}

impl AsFd for UnixDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.get_ref().as_fd()
    }
}

impl AsRawFd for UnixDatagram {
    fn as_raw_fd(&self) -> RawFd {
        self.io.get_ref().as_raw_fd()
    }
}

impl TryFrom<net::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    /// Same as [`UnixDatagram::from_std`].
    fn try_from(socket: net::UnixDatagram) -> io::Result<Self> {
        Self::from_std(socket)
    }
}

impl From<UnixDatagram> for OwnedFd {
    fn from(socket: UnixDatagram) -> OwnedFd {
        socket.io.into_inner().into()
    }
}
