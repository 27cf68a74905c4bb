//! A TCP connection.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::{RecvFlags, SendFlags};
use socket2::SockRef;

use rt_sync::wait::WaitKind;

use super::connect::Connect;
use super::halves::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::driver::{Interest, Registered, WaitReady};
use crate::net::addr::ToSocketAddrs;
use crate::net::descriptor::like_std;
use crate::net::halves::{impl_read, impl_write};
use crate::net::readiness_methods::readiness_methods;
use crate::net::stream_methods::stream_methods;

/// A TCP connection.
///
/// Reading and writing is by [`AsyncRead`] and [`AsyncWrite`], also on `&TcpStream`, with one task for each direction
/// at a time. Any number of tasks may await [`readable`](Self::readable), [`writable`](Self::writable) and
/// [`ready`](Self::ready), and use the `try_` functions.
///
/// The connection registers with the runtime of the thread on which an operation first has to wait, and stays with it. Making one
/// needs no runtime.
///
/// # Examples
/// ```no_run
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use rt_io::net::TcpStream;
///
/// # async fn example() -> std::io::Result<()> {
/// let mut stream = TcpStream::connect("127.0.0.1:8080").await?;
/// stream.write_all(b"hello").await?;
/// let mut answer = [0; 64];
/// let n = stream.read(&mut answer).await?;
/// println!("{:?}", &answer[..n]);
/// # Ok(())
/// # }
/// ```
///
/// [`AsyncRead`]: futures_io::AsyncRead
/// [`AsyncWrite`]: futures_io::AsyncWrite
pub struct TcpStream {
    io: Registered<mio::net::TcpStream>,
}

impl TcpStream {
    /// Connects to the first of several addresses that answers.
    ///
    /// # Errors
    /// The last error, with its address, if none answers; those of a look-up; without a runtime, if the connection
    /// does not stand at once.
    ///
    /// # Cancel safety
    /// The attempt is given up when the future is dropped.
    #[track_caller]
    pub fn connect(addrs: impl ToSocketAddrs) -> Connect {
        Connect::new(addrs, Location::caller())
    }

    pub(super) fn new(stream: mio::net::TcpStream) -> Self {
        Self::from_registered(unregistered(stream))
    }

    pub(super) fn from_registered(io: Registered<mio::net::TcpStream>) -> Self {
        Self { io }
    }

    /// Takes a connection of std, and makes it non-blocking. Needs no runtime.
    ///
    /// # Errors
    /// If it cannot be made non-blocking.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(mio::net::TcpStream::from_std(stream)))
    }

    /// Gives the connection back as one of std. It stays non-blocking.
    ///
    /// # Errors
    /// None as it is.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        Ok(self.io.into_inner().into())
    }

    stream_methods!(SocketAddr);
    readiness_methods!(poll_read_ready, poll_write_ready);

    /// Reads without taking what was read from the stream.
    ///
    /// # Errors
    /// Those of reading.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn peek<'a>(&'a self, buf: &'a mut [u8]) -> Peek<'a> {
        Peek {
            stream: self,
            wait: self
                .io
                .wait_ready(Interest::READABLE)
                .shown_as(WaitKind::Read),
            buf,
        }
    }

    /// Reads, as the one task that reads, without taking what was read from the stream.
    ///
    /// # Errors
    /// Those of reading.
    #[track_caller]
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read_io(cx, |io| io.peek(buf))
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// That of the system.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.get_ref().nodelay()
    }

    /// Sends small writes at once, or collects them.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.get_ref().set_nodelay(nodelay)
    }

    /// Whether acknowledgements are sent at once (`TCP_QUICKACK`).
    ///
    /// # Errors
    /// That of the system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn quickack(&self) -> io::Result<bool> {
        Ok(rustix::net::sockopt::tcp_quickack(self)?)
    }

    /// Sends acknowledgements at once, for now: the system falls back by itself.
    ///
    /// # Errors
    /// That of the system.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_tcp_quickack(self, quickack)?)
    }

    /// How long a close goes on sending in the background (`SO_LINGER`).
    ///
    /// # Errors
    /// That of the system.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self).linger()
    }

    /// Sets how long closing *blocks the thread* while unsent data is left. Only zero, which resets the connection at
    /// close, is of use in async code.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(linger)
    }

    /// Makes closing reset the connection: what is not sent is thrown away.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
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

    #[cfg(any(feature = "tokio-io", feature = "hyper"))]
    pub(crate) fn registered(&self) -> &Registered<mio::net::TcpStream> {
        &self.io
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_read_priv(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_read_stream(cx, buf.len(), |io| recv(io, buf))
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_read_vectored_priv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = bufs.iter().take(MAX_BUFS).map(|buf| buf.len()).sum();
        self.io
            .poll_read_stream(cx, len, |mut io| io.read_vectored(bufs))
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_write_priv(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io.poll_write_stream(cx, buf.len(), |io| send(io, buf))
    }

    #[inline]
    #[track_caller]
    pub(super) fn poll_write_vectored_priv(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = bufs.iter().take(MAX_BUFS).map(|buf| buf.len()).sum();
        if len <= GATHER {
            return self
                .io
                .poll_write_stream(cx, len, |io| send_gathered(io, bufs, len));
        }
        self.io
            .poll_write_stream(cx, len, |mut io| io.write_vectored(bufs))
    }
}

/// A socket that will register when it first has to wait: for priority events too, since a read that is short because of
/// urgent data must not count as drained.
pub(super) const fn unregistered(stream: mio::net::TcpStream) -> Registered<mio::net::TcpStream> {
    let both = Interest::READABLE.add(Interest::WRITABLE);
    Registered::with_interest(stream, both.add(Interest::PRIORITY))
}

/// A vectored call takes no more buffers than this (`IOV_MAX`): what is behind them is no sign of a drained or full socket.
const MAX_BUFS: usize = 1024;

/// `recv` as a bare system call: that of the C library is a cancellation point of its threads, which costs 60
/// instructions a call.
#[inline]
fn recv(socket: &mio::net::TcpStream, buf: &mut [u8]) -> io::Result<usize> {
    let (received, _) = rustix::net::recv(socket, buf, RecvFlags::empty())?;
    Ok(received)
}

/// `send`, likewise.
#[inline]
fn send(socket: &mio::net::TcpStream, buf: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, buf, SendFlags::NOSIGNAL)?)
}

/// Up to so many bytes several buffers are copied into one: `writev` goes through the file layer of the kernel and costs
/// about 0.1 µs more than `send`, which is what 1 KiB takes to copy several times over (`benches/`, rows "http").
const GATHER: usize = 1024;

/// As many bytes as the answer to most requests has. Clearing room for [`GATHER`] of them costs more than copying these.
const GATHER_FEW: usize = 256;

#[inline]
fn send_gathered(
    socket: &mio::net::TcpStream,
    bufs: &[IoSlice<'_>],
    len: usize,
) -> io::Result<usize> {
    match bufs {
        [buf] => send(socket, buf),
        bufs if len <= GATHER_FEW => send_copied::<GATHER_FEW>(socket, bufs, len),
        bufs => send_copied::<GATHER>(socket, bufs, len),
    }
}

/// Of buffers which have `len` bytes in sum, `ROOM` at most.
fn send_copied<const ROOM: usize>(
    socket: &mio::net::TcpStream,
    bufs: &[IoSlice<'_>],
    len: usize,
) -> io::Result<usize> {
    let mut gathered = [0; ROOM];
    let mut filled = 0;
    for buf in bufs.iter().take(MAX_BUFS) {
        gathered[filled..filled + buf.len()].copy_from_slice(buf);
        filled += buf.len();
    }
    debug_assert_eq!(filled, len);
    send(socket, &gathered[..filled])
}

impl_read!(TcpStream, &TcpStream);
impl_write!(TcpStream, &TcpStream);
like_std!(TcpStream, std::net::TcpStream);

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.io.get_ref(), f)
    }
}

/// Future of [`TcpStream::peek`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Peek<'a> {
    stream: &'a TcpStream,
    wait: WaitReady<'a>,
    buf: &'a mut [u8],
}

impl Future for Peek<'_> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.wait
            .poll_op(&this.stream.io, cx, |io| io.peek(this.buf))
    }
}
