//! Unix sockets that carry messages.

use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::os::unix::net;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::task::{Context, Poll};

use rt_sync::wait::WaitKind;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use super::address;
use crate::driver::{Interest, Registered};
use crate::net::descriptor::like_std;
use crate::net::message_methods::message_methods;
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

    message_methods!(SocketAddr);
    readiness_methods!(poll_recv_ready, poll_send_ready);

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

    /// [`send_to`](Self::send_to) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; those of `sendto`.
    pub fn try_send_to(&self, buf: &[u8], target: impl AsRef<Path>) -> io::Result<usize> {
        let target = address::raw(&address::of_path(target.as_ref())?)?;
        self.io
            .try_io(Interest::WRITABLE, |io| send_to(io, buf, &target))
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

like_std!(UnixDatagram, net::UnixDatagram);
