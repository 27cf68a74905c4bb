//! How each of our streams reads into uninitialised memory.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::RecvFlags;

use super::ReadInto;
use crate::net::{tcp, unix};
use crate::stdio::Stdin;
use crate::util::DuplexStream;

/// `recv`, which initialises as many bytes as it reports.
#[inline]
fn recv(socket: impl AsFd, buf: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let ((filled, _), _) = rustix::net::recv(socket, buf, RecvFlags::empty())?;
    Ok(filled.len())
}

macro_rules! read_tcp {
    ($($type:ty, |$this:ident| $stream:expr;)*) => {$(
        // SAFETY: `recv` initialises as many bytes as it reports, and writes none that are not.
        unsafe impl ReadInto for $type {
            #[inline]
            #[track_caller]
            fn poll_read_into(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [MaybeUninit<u8>],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                let stream: &tcp::TcpStream = $stream;
                let io = stream.registered();
                io.poll_read_stream(cx, buf.len(), |io| recv(io, buf))
            }
        }
    )*};
}

read_tcp! {
    tcp::TcpStream, |this| this;
    tcp::ReadHalf<'_>, |this| this.as_ref();
    tcp::OwnedReadHalf, |this| this.as_ref();
}

macro_rules! read_unix {
    ($($stream:ty,)*) => {$(
        // SAFETY: `recv` initialises as many bytes as it reports, and writes none that are not.
        unsafe impl ReadInto for $stream {
            #[inline]
            #[track_caller]
            fn poll_read_into(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [MaybeUninit<u8>],
            ) -> Poll<io::Result<usize>> {
                let io = &self.stream().io;
                // Not "drained" by a short read: see `net/unix/stream.rs`.
                io.poll_read_io(cx, |io| recv(io, buf))
            }
        }
    )*};
}

read_unix! {
    unix::UnixStream,
    unix::ReadHalf<'_>,
    unix::OwnedReadHalf,
}

// SAFETY: `read` initialises as many bytes as it reports, and writes none that are not.
unsafe impl ReadInto for unix::pipe::Receiver {
    #[inline]
    #[track_caller]
    fn poll_read_into(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, buf.len(), |fd| {
            let (filled, _) = rustix::io::read(fd, &mut *buf)?;
            Ok(filled.len())
        })
    }
}

// SAFETY: `copy_into` initialises as many bytes as it reports, and writes none that are not.
unsafe impl ReadInto for DuplexStream {
    #[track_caller]
    fn poll_read_into(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, buf.len(), |bytes| {
            let (head, tail) = bytes.as_slices();
            let copied = copy_into(head, buf);
            let copied = copied + copy_into(tail, &mut buf[copied..]);
            bytes.drain(..copied);
            copied
        })
    }
}

/// Copies as much as fits.
fn copy_into(from: &[u8], to: &mut [MaybeUninit<u8>]) -> usize {
    let count = from.len().min(to.len());
    for (to, &from) in to.iter_mut().zip(from) {
        to.write(from);
    }
    count
}

// SAFETY: what is copied out of `chunk` is initialised, and nothing else is written.
unsafe impl ReadInto for Stdin {
    /// By way of a small buffer: a read may come from the thread that reads files, and input by hand is no hot path.
    #[track_caller]
    fn poll_read_into(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        let mut chunk = [0; 4096];
        let room = buf.len().min(chunk.len());
        let read = ready!(futures_io::AsyncRead::poll_read(
            self,
            cx,
            &mut chunk[..room]
        ))?;
        Poll::Ready(Ok(copy_into(&chunk[..read], buf)))
    }
}
