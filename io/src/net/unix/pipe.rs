//! Pipes, anonymous ([`pipe()`](pipe())) and named (FIFOs, [`OpenOptions`]).
//!
//! A pipe has no close of its own: closing or shutting down a [`Sender`] does nothing, dropping it ends the stream.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::pipe::PipeFlags;

use crate::driver::{Interest, Readable, Registered, WhenReady, Writable};
use crate::net::descriptor::descriptor;

mod open;

pub use self::open::OpenOptions;

/// Makes a pipe that lives only in this process and in those that inherit it.
///
/// # Errors
/// If the system has no more descriptors.
///
/// # Examples
/// ```
/// use rt_io::net::unix::pipe;
/// use rt_io::util::{AsyncReadExt, AsyncWriteExt};
///
/// # futures_lite::future::block_on(async {
/// let (mut sender, mut receiver) = pipe::pipe()?;
/// sender.write_all(b"hello").await?;
/// drop(sender);
/// let mut got = String::new();
/// receiver.read_to_string(&mut got).await?;
/// assert_eq!(got, "hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
    Ok((Sender::new(write), Receiver::new(read, true)))
}

fn is_pipe(fd: impl AsFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::Fifo)
}

/// Checks that `fd` is a pipe that can be used for `access`, and makes it non-blocking.
fn check(fd: &OwnedFd, access: OFlags) -> io::Result<()> {
    let invalid = |what: &str| {
        let text = format!("descriptor {} is {what}", fd.as_raw_fd());
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    };
    if !is_pipe(fd)? {
        return invalid("no pipe");
    }
    let flags = fcntl_getfl(fd)?;
    let mode = flags & OFlags::RWMODE;
    if mode != access && mode != OFlags::RDWR {
        return invalid(if access == OFlags::RDONLY {
            "the sending end of a pipe, not the receiving end"
        } else {
            "the receiving end of a pipe, not the sending end"
        });
    }
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

fn set_blocking(fd: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(fd, fcntl_getfl(fd)? - OFlags::NONBLOCK)?)
}

/// The sending end of a pipe. Writes fail with `BrokenPipe` once the last receiver is gone.
#[derive(Debug)]
pub struct Sender {
    io: Registered<OwnedFd>,
}

impl Sender {
    const fn new(fd: OwnedFd) -> Self {
        Self {
            io: Registered::with_interest(fd, Interest::WRITABLE),
        }
    }

    /// Takes a file, which must be the sending end of a pipe, and makes it non-blocking. That also concerns others who
    /// share it, as a child process may.
    ///
    /// # Errors
    /// `InvalidInput` if it is something else.
    pub fn from_file(file: File) -> io::Result<Sender> {
        Self::from_owned_fd(file.into())
    }

    /// Same as [`from_file`](Self::from_file), for a descriptor.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_owned_fd(fd: OwnedFd) -> io::Result<Sender> {
        check(&fd, OFlags::WRONLY)?;
        Ok(Self::new(fd))
    }

    /// Takes a file that is known to be writable and non-blocking, and that a selector can watch.
    ///
    /// # Errors
    /// None today.
    pub fn from_file_unchecked(file: File) -> io::Result<Sender> {
        Self::from_owned_fd_unchecked(file.into())
    }

    /// Same as [`from_file_unchecked`](Self::from_file_unchecked), for a descriptor.
    ///
    /// # Errors
    /// None today.
    pub fn from_owned_fd_unchecked(fd: OwnedFd) -> io::Result<Sender> {
        Ok(Self::new(fd))
    }

    /// Waits until there is room to write, or the receiver is gone. Any number of tasks may wait.
    ///
    /// # Errors
    /// If there is no runtime to wait in, or it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn writable(&self) -> Writable<'_> {
        self.io.writable()
    }

    /// Waits until any part of `interest` is met, and says which.
    ///
    /// # Errors
    /// As [`writable`](Self::writable).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
        self.io.ready(interest)
    }

    /// Polls for writability, for one task: the last one that asked is woken.
    ///
    /// # Errors
    /// As [`writable`](Self::writable).
    #[track_caller]
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_write_ready(cx).map_ok(drop)
    }

    /// Writes what there is room for without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; those of `write`.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.try_io(Interest::WRITABLE, |fd| write(fd, buf))
    }

    /// [`try_write`](Self::try_write) out of several buffers.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::WRITABLE, |fd| Ok(rustix::io::writev(fd, bufs)?))
    }

    /// Runs a writing operation of yours on the descriptor if it may be ready.
    ///
    /// # Errors
    /// `WouldBlock` if it is not ready; those of the operation.
    pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.io.try_io(Interest::WRITABLE, |_| f())
    }

    /// Gives the descriptor back, blocking.
    ///
    /// # Errors
    /// If the flag cannot be set.
    pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
        let fd = self.io.into_inner();
        set_blocking(&fd)?;
        Ok(fd)
    }

    /// Gives the descriptor back, non-blocking as it is.
    ///
    /// # Errors
    /// None today.
    pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
        Ok(self.io.into_inner())
    }
}

fn write(fd: &OwnedFd, buf: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(fd, buf)?)
}

impl AsyncWrite for Sender {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_stream(cx, buf.len(), |fd| write(fd, buf))
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_io(cx, |fd| Ok(rustix::io::writev(fd, bufs)?))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The receiving end of a pipe. Reads see the end once the last sender is gone.
#[derive(Debug)]
pub struct Receiver {
    io: Registered<OwnedFd>,
    /// Whether a read that brings less than was asked for says that no more is there. So it is in a pipe of our own.
    /// One from elsewhere may be in packet mode (`O_DIRECT`, which only the sending end shows), and what is unchecked
    /// may be a terminal: there a read ends early with more behind it.
    drains: bool,
}

impl Receiver {
    const fn new(fd: OwnedFd, drains: bool) -> Self {
        Self {
            io: Registered::with_interest(fd, Interest::READABLE),
            drains,
        }
    }

    /// Takes a file, which must be the receiving end of a pipe, and makes it non-blocking. That also concerns others
    /// who share it, as a child process may.
    ///
    /// # Errors
    /// `InvalidInput` if it is something else.
    pub fn from_file(file: File) -> io::Result<Receiver> {
        Self::from_owned_fd(file.into())
    }

    /// Same as [`from_file`](Self::from_file), for a descriptor.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_owned_fd(fd: OwnedFd) -> io::Result<Receiver> {
        check(&fd, OFlags::RDONLY)?;
        Ok(Self::new(fd, false))
    }

    /// Takes a file that is known to be readable and non-blocking, and that a selector can watch.
    ///
    /// # Errors
    /// None today.
    pub fn from_file_unchecked(file: File) -> io::Result<Receiver> {
        Self::from_owned_fd_unchecked(file.into())
    }

    /// Same as [`from_file_unchecked`](Self::from_file_unchecked), for a descriptor.
    ///
    /// # Errors
    /// As [`from_file_unchecked`](Self::from_file_unchecked).
    pub fn from_owned_fd_unchecked(fd: OwnedFd) -> io::Result<Receiver> {
        Ok(Self::new(fd, false))
    }

    /// Waits until there is something to read, or the last sender is gone. Any number of tasks may wait.
    ///
    /// # Errors
    /// If there is no runtime to wait in, or it is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn readable(&self) -> Readable<'_> {
        self.io.readable()
    }

    /// Waits until any part of `interest` is met, and says which.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
        self.io.ready(interest)
    }

    /// Polls for readability, for one task: the last one that asked is woken.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_read_ready(cx).map_ok(drop)
    }

    /// Reads what is there without waiting; 0 is the end.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; those of `read`.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, buf)?))
    }

    /// [`try_read`](Self::try_read) into several buffers.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io
            .try_io(Interest::READABLE, |fd| Ok(rustix::io::readv(fd, bufs)?))
    }

    /// Runs a reading operation of yours on the descriptor if it may be ready.
    ///
    /// # Errors
    /// `WouldBlock` if it is not ready; those of the operation.
    pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.io.try_io(Interest::READABLE, |_| f())
    }

    /// Gives the descriptor back, blocking.
    ///
    /// # Errors
    /// If the flag cannot be set.
    pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
        let fd = self.io.into_inner();
        set_blocking(&fd)?;
        Ok(fd)
    }

    /// Gives the descriptor back, non-blocking as it is.
    ///
    /// # Errors
    /// None today.
    pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
        Ok(self.io.into_inner())
    }

    /// One read of at most `len` bytes by an operation that does it.
    #[inline]
    pub(crate) fn poll_read_with(
        &self,
        cx: &mut Context<'_>,
        len: usize,
        read: impl FnMut(&OwnedFd) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        // A length of 0 is never undercut.
        let len = if self.drains { len } else { 0 };
        self.io.poll_read_stream(cx, len, read)
    }
}

impl AsyncRead for Receiver {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, buf.len(), |fd| Ok(rustix::io::read(fd, &mut *buf)?))
    }

    #[inline]
    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, 0, |fd| Ok(rustix::io::readv(fd, bufs)?))
    }
}

descriptor!(Sender, Receiver);
