//! A connected Unix socket that carries a stream of bytes.
//!
//! A read that brings less than was asked for is *not* taken as "drained", as it is for TCP: on Unix sockets a read
//! also ends where the sender's credentials change or where descriptors were passed, with more data behind it. The
//! price is one `recv` more before a task waits.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::os::unix::net::SocketAddr;
use std::panic::Location;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, UCred, WriteHalf, address, halves};
use crate::context;
use crate::driver::Registered;
use crate::net::descriptor::like_std;
use crate::net::halves::{impl_read, impl_write};
use crate::net::readiness_methods::readiness_methods;
use crate::net::stream_methods::stream_methods;

/// First and longest pause between attempts to connect while the backlog of the listener is full: the system has no
/// event for that.
const CONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// A connected Unix socket.
///
/// Reading and writing are those of [`AsyncRead`] and [`AsyncWrite`], on the stream and on its halves. Closing shuts
/// down the writing side.
///
/// # Examples
/// ```
/// use rt_io::net::unix::UnixStream;
/// use rt_io::util::{AsyncReadExt, AsyncWriteExt};
///
/// # futures_lite::future::block_on(async {
/// let (mut one, mut two) = UnixStream::pair()?;
/// one.write_all(b"hello").await?;
/// one.close().await?;
/// let mut got = String::new();
/// two.read_to_string(&mut got).await?;
/// assert_eq!(got, "hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// [`AsyncRead`]: futures_io::AsyncRead
/// [`AsyncWrite`]: futures_io::AsyncWrite
#[derive(Debug)]
pub struct UnixStream {
    pub(crate) io: Registered<net::UnixStream>,
}

impl UnixStream {
    /// Connects to the socket at a path.
    ///
    /// While the backlog of the listener is full, it tries again from time to time.
    ///
    /// # Errors
    /// Those of `connect`; `WouldBlock` if the backlog is full and there is no runtime whose timer could be waited for.
    ///
    /// # Cancel safety
    /// A connection that is not returned is closed.
    #[track_caller]
    pub fn connect(path: impl AsRef<Path>) -> impl Future<Output = io::Result<UnixStream>> {
        let addr = address::of_path(path.as_ref());
        let site = Location::caller();
        async move { connect(new_socket, &addr?, site).await }
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); `InvalidInput` if the address is unnamed.
    ///
    /// # Cancel safety
    /// As [`connect`](Self::connect).
    #[track_caller]
    pub fn connect_addr(addr: &SocketAddr) -> impl Future<Output = io::Result<UnixStream>> {
        connect(new_socket, addr, Location::caller())
    }

    /// Two sockets connected to each other.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, two) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(two)?))
    }

    /// Takes a socket of the standard library, and makes it non-blocking.
    ///
    /// # Errors
    /// If that is refused.
    pub fn from_std(stream: net::UnixStream) -> io::Result<UnixStream> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(stream))
    }

    /// For a socket that is non-blocking.
    pub(super) const fn new(stream: net::UnixStream) -> UnixStream {
        UnixStream {
            io: Registered::new(stream),
        }
    }

    /// Deregisters and gives the socket back; it stays non-blocking.
    ///
    /// # Errors
    /// None today.
    pub fn into_std(self) -> io::Result<net::UnixStream> {
        Ok(self.io.into_inner())
    }

    /// Who is at the other end: the process that called `connect`, `listen` or `socketpair`.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let cred = rustix::net::sockopt::socket_peercred(self)?;
            Ok(UCred {
                pid: Some(cred.pid.as_raw_nonzero().get()),
                uid: cred.uid.as_raw(),
                gid: cred.gid.as_raw(),
            })
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the credentials of a peer are only read on Linux",
            ))
        }
    }

    stream_methods!(SocketAddr);
    readiness_methods!(poll_read_ready, poll_write_ready);

    #[inline]
    #[track_caller]
    pub(super) fn poll_read_priv(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_read_io(cx, |mut io| io.read(buf))
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_read_vectored_priv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_read_io(cx, |mut io| io.read_vectored(bufs))
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_write_priv(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_stream(cx, buf.len(), |mut io| io.write(buf))
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_write_vectored_priv(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Not every buffer may go with one call, so less than all is no sign of a full socket.
        self.io.poll_write_io(cx, |mut io| io.write_vectored(bufs))
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(socket)
}

/// Connects a non-blocking socket.
pub(super) async fn connect(
    socket: impl FnOnce() -> io::Result<OwnedFd>,
    addr: &SocketAddr,
    site: &'static Location<'static>,
) -> io::Result<UnixStream> {
    // A connection stands at once, or there is none: nothing else spends budget here.
    coop::consume_budget().await;
    let socket = socket()?;
    let raw = address::raw(addr)?;
    let (mut pause, longest) = CONNECT_PAUSES;
    loop {
        match rustix::net::connect(&socket, &raw) {
            Ok(()) => return Ok(UnixStream::new(socket.into())),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let Some(mut sleep) = context::sleep(pause) else {
                    return Err(backlog_full(addr));
                };
                poll_fn(|cx| {
                    let polled = sleep.as_mut().poll(cx);
                    if polled.is_pending() {
                        wait::record(WaitKind::Connect, site);
                    }
                    polled
                })
                .await;
                pause = longest.min(pause * 2);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn backlog_full(addr: &SocketAddr) -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        format!(
            "the backlog of the listener at {addr:?} is full, and without a runtime there is no timer to try again later"
        ),
    )
}

impl_read!(UnixStream);
impl_write!(UnixStream);
like_std!(UnixStream, net::UnixStream);
