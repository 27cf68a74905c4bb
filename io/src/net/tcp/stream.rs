//! A TCP connection.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BufMut;
use rustix::net::{RecvFlags, SendFlags};
use socket2::SockRef;

use rt_sync::wait::WaitKind;

use super::connect::Connect;
use super::halves::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::driver::{AsyncIo, Interest, Readable, Registered, WaitReady, WhenReady, Writable};
use crate::net::addr::ToSocketAddrs;
use crate::net::halves::{impl_read, impl_write};

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

    /// The address of this side.
    ///
    /// # Errors
    /// That of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// The address of the other side.
    ///
    /// # Errors
    /// `NotConnected` if the connection was reset.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().peer_addr()
    }

    /// Takes the error that is pending on the socket.
    ///
    /// # Errors
    /// That of the system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.get_ref().take_error()
    }

    /// Waits until the connection is readable. Any number of tasks may wait.
    ///
    /// # Errors
    /// If this thread has no runtime, or it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost: a readiness that was not used stays.
    #[track_caller]
    pub fn readable(&self) -> Readable<'_> {
        self.io.readable()
    }

    /// Waits until the connection is writable. Any number of tasks may wait.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn writable(&self) -> Writable<'_> {
        self.io.writable()
    }

    /// Waits until the connection is ready for any part of `interest`, and says for which.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
        self.io.ready(interest)
    }

    /// Waits, as the one task that reads, until the connection is readable.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx).map_ok(drop)
    }

    /// Waits, as the one task that writes, until the connection is writable.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(drop)
    }

    /// Reads what is there, without waiting. `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.try_io(Interest::READABLE, |mut io| io.read(buf))
    }

    /// [`try_read`](Self::try_read) into a buffer such as a `Vec<u8>` or a `BytesMut`, which grows where it can.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, |io| crate::util::buf::recv(io, buf))
    }

    /// Reads what is there into several buffers, without waiting.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, |mut io| io.read_vectored(bufs))
    }

    /// Writes what fits into the socket's buffer, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if nothing fits.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |mut io| io.write(buf))
    }

    /// Writes what fits from several buffers, without waiting.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, |mut io| io.write_vectored(bufs))
    }

    /// Runs an operation of your own on the socket if it may be ready for it.
    ///
    /// The operation must say `WouldBlock` if and only if the socket did: readiness is cleared then.
    ///
    /// # Errors
    /// `WouldBlock` if the connection is not ready; those of the operation.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.try_io(interest, |_| f())
    }

    /// Runs an operation of your own on the socket, again and again until it does not say `WouldBlock`.
    ///
    /// # Errors
    /// Those of the operation, and of [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// As safe as the operation: it has not run, or its result is returned.
    #[track_caller]
    pub fn async_io<'a, R, F>(
        &'a self,
        interest: Interest,
        mut f: F,
    ) -> AsyncIo<
        'a,
        mio::net::TcpStream,
        impl FnMut(&mio::net::TcpStream) -> io::Result<R> + use<'a, R, F>,
    >
    where
        F: FnMut() -> io::Result<R>,
    {
        self.io.async_io(interest, move |_| f())
    }

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

    /// Splits into halves that borrow the connection.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        halves::split(self)
    }

    /// Splits into halves that share the connection and may go to different tasks.
    ///
    /// Dropping the writing half sends the end of the stream, unless it is [forgotten](OwnedWriteHalf::forget).
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        halves::into_split(self)
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

    /// Ends the writing direction. A connection that the peer has reset needs no end.
    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        match self.io.get_ref().shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }

    fn close(&self) -> io::Result<()> {
        self.shutdown_write()
    }

    /// The stream of this type, as for its halves.
    #[inline]
    pub(crate) const fn stream(&self) -> &TcpStream {
        self
    }

    pub(super) fn forget_reader(&self) {
        self.io.forget_reader();
    }

    pub(super) fn forget_writer(&self) {
        self.io.forget_writer();
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

fn send_gathered(
    socket: &mio::net::TcpStream,
    bufs: &[IoSlice<'_>],
    len: usize,
) -> io::Result<usize> {
    if let [buf] = bufs {
        return send(socket, buf);
    }
    let mut gathered = [0; GATHER];
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

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.get_ref().as_fd()
    }
}

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        self.io.get_ref().as_raw_fd()
    }
}

impl TryFrom<std::net::TcpStream> for TcpStream {
    type Error = io::Error;

    fn try_from(stream: std::net::TcpStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

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
