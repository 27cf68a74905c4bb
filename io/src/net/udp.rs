//! UDP sockets.
//!
//! Any number of tasks may send and receive on one socket at a time; the `poll_` methods have room for one task in each
//! direction.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{self, SocketAddr};
use std::panic::Location;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::addr::{EachAddr, Resolve, ToSocketAddrs, no_addresses};
use super::descriptor::like_std;
use super::message_methods::message_methods;
use super::readiness_methods::readiness_methods;
use crate::driver::{Interest, Registered};

mod options;

/// A UDP socket.
///
/// Messages longer than the buffer are cut off. Making one from an address that needs no look-up, or from a socket of
/// the standard library, needs no runtime; it registers with the runtime on which it first has to wait.
///
/// # Examples
/// ```no_run
/// use rt_io::net::UdpSocket;
///
/// # async fn echo() -> std::io::Result<()> {
/// let socket = UdpSocket::bind("127.0.0.1:4000").await?;
/// let mut buf = [0; 2048];
/// loop {
///     let (length, peer) = socket.recv_from(&mut buf).await?;
///     socket.send_to(&buf[..length], peer).await?;
/// }
/// # }
/// ```
pub struct UdpSocket {
    pub(super) io: Registered<net::UdpSocket>,
    /// Whether the system cuts long messages, as far as is known: see `udp_batch.rs`.
    pub(super) cuts: AtomicBool,
}

impl UdpSocket {
    /// Binds to the first of the addresses that can be bound.
    ///
    /// # Errors
    /// The last error, with its address, if none can; those of a look-up.
    ///
    /// # Cancel safety
    /// Nothing is left when the future is dropped.
    #[track_caller]
    pub fn bind(addr: impl ToSocketAddrs) -> EachAddr<UdpSocket> {
        EachAddr::new(addr, "bind a UDP socket to", Location::caller(), |addr| {
            Self::from_std(net::UdpSocket::bind(addr)?)
        })
    }

    /// Takes a socket of the standard library, and makes it non-blocking. Needs no runtime.
    ///
    /// # Errors
    /// If that is refused.
    pub fn from_std(socket: net::UdpSocket) -> io::Result<UdpSocket> {
        socket.set_nonblocking(true)?;
        Ok(UdpSocket {
            io: Registered::new(socket),
            cuts: AtomicBool::new(true),
        })
    }

    /// Deregisters and gives the socket back; it stays non-blocking.
    ///
    /// # Errors
    /// None today.
    pub fn into_std(self) -> io::Result<net::UdpSocket> {
        Ok(self.io.into_inner())
    }

    /// Connects to the first of the addresses that works: [`send`](Self::send) goes there, and only what comes from
    /// there is received.
    ///
    /// # Errors
    /// The last error, with its address, if none works; those of a look-up.
    ///
    /// # Cancel safety
    /// Dropped early, the socket is not connected.
    #[track_caller]
    pub fn connect<'a>(
        &'a self,
        addr: impl ToSocketAddrs,
    ) -> impl Future<Output = io::Result<()>> + 'a {
        let addrs = resolved(Resolve::new(addr), Location::caller());
        async move {
            coop::consume_budget().await;
            let mut last = no_addresses();
            for addr in addrs.await? {
                match self.io.get_ref().connect(addr) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        last = crate::error::with_addr("connect a UDP socket to", addr, &error);
                    }
                }
            }
            Err(last)
        }
    }

    message_methods!(SocketAddr);
    readiness_methods!(poll_recv_ready, poll_send_ready);

    /// Sends a message to the first of the addresses.
    ///
    /// # Errors
    /// Those of `sendto`; those of a look-up.
    ///
    /// # Cancel safety
    /// Dropped early, the message was not sent.
    #[track_caller]
    pub fn send_to<'a>(
        &'a self,
        buf: &'a [u8],
        target: impl ToSocketAddrs,
    ) -> impl Future<Output = io::Result<usize>> + 'a {
        let addrs = resolved(Resolve::new(target), Location::caller());
        let mut wait = self
            .io
            .wait_ready(Interest::WRITABLE)
            .shown_as(WaitKind::Write);
        async move {
            let target = addrs.await?.next().ok_or_else(no_addresses)?;
            poll_fn(|cx| wait.poll_op(&self.io, cx, |io| io.send_to(buf, target))).await
        }
    }

    /// [`recv`](Self::recv) that leaves the message in the queue.
    ///
    /// # Errors
    /// Those of `recv`.
    ///
    /// # Cancel safety
    /// Nothing is taken in any case.
    #[track_caller]
    pub fn peek<'a>(&'a self, buf: &'a mut [u8]) -> impl Future<Output = io::Result<usize>> + 'a {
        self.io
            .async_io(Interest::READABLE, move |io| io.peek(buf))
            .shown_as(WaitKind::Read)
    }

    /// [`recv_from`](Self::recv_from) that leaves the message in the queue.
    ///
    /// # Errors
    /// Those of `recvfrom`.
    ///
    /// # Cancel safety
    /// Nothing is taken in any case.
    #[track_caller]
    pub fn peek_from<'a>(
        &'a self,
        buf: &'a mut [u8],
    ) -> impl Future<Output = io::Result<(usize, SocketAddr)>> + 'a {
        self.io
            .async_io(Interest::READABLE, move |io| io.peek_from(buf))
            .shown_as(WaitKind::Read)
    }

    /// Waits for a message, and says where it came from; the message stays in the queue.
    ///
    /// # Errors
    /// Those of `recvfrom`.
    ///
    /// # Cancel safety
    /// Nothing is taken in any case.
    #[track_caller]
    pub fn peek_sender(&self) -> impl Future<Output = io::Result<SocketAddr>> + '_ {
        self.io
            .async_io(Interest::READABLE, peek_sender)
            .shown_as(WaitKind::Read)
    }

    /// [`send_to`](Self::send_to) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; those of `sendto`.
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, |io| io.send_to(buf, target))
    }

    /// [`peek`](Self::peek) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no message; those of `recv`.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, |io| io.peek(buf))
    }

    /// [`peek_from`](Self::peek_from) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no message; those of `recvfrom`.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.try_io(Interest::READABLE, |io| io.peek_from(buf))
    }

    /// [`peek_sender`](Self::peek_sender) without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no message; those of `recvfrom`.
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.try_io(Interest::READABLE, peek_sender)
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
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write_io(cx, |io| io.send_to(buf, target))
    }

    /// Polls [`peek`](Self::peek), for one task.
    ///
    /// # Errors
    /// Those of `recv`.
    #[track_caller]
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read_io(cx, |io| io.peek(buf))
    }

    /// Polls [`peek_from`](Self::peek_from), for one task.
    ///
    /// # Errors
    /// Those of `recvfrom`.
    #[track_caller]
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.io.poll_read_io(cx, |io| io.peek_from(buf))
    }

    /// Polls [`peek_sender`](Self::peek_sender), for one task.
    ///
    /// # Errors
    /// Those of `recvfrom`.
    #[track_caller]
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_read_io(cx, peek_sender)
    }
}

/// The addresses; what is waited for is the resolver.
fn resolved(
    mut resolve: Resolve,
    site: &'static Location<'static>,
) -> impl Future<Output = io::Result<impl Iterator<Item = SocketAddr> + Send>> + Send {
    poll_fn(move |cx| {
        let addrs = resolve.poll_addrs(cx);
        if addrs.is_pending() {
            wait::record(WaitKind::Blocking, site);
        }
        addrs
    })
}

fn peek_sender(io: &net::UdpSocket) -> io::Result<SocketAddr> {
    let (_, sender) = io.peek_from(&mut [0])?;
    Ok(sender)
}

like_std!(UdpSocket, net::UdpSocket);

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.get_ref().fmt(f)
    }
}
