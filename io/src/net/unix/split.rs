//! Halves that borrow their stream: no allocation, for use in one task.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::unix::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::UnixStream;
use super::stream::{read_stream, write_stream};
use crate::Interest;
use crate::driver::{Readable, WhenReady, Writable};

/// The reading half of [`UnixStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a UnixStream);

/// The writing half of [`UnixStream::split`]. Dropping it does not shut down writing; closing it does.
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a UnixStream);

pub(super) fn split(stream: &mut UnixStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(stream), WriteHalf(stream))
}

impl ReadHalf<'_> {
    #[inline]
    pub(crate) fn stream(&self) -> &UnixStream {
        self.0
    }
}

impl WriteHalf<'_> {
    #[inline]
    pub(crate) fn stream(&self) -> &UnixStream {
        self.0
    }

    fn close(&mut self) -> io::Result<()> {
        self.0.shutdown_write()
    }
}

/// The methods of a reading half, forwarded to the stream.
macro_rules! read_half_methods {
    () => {
        /// Waits until there is something to read: see [`UnixStream::readable`].
        ///
        /// # Cancel safety
        /// Nothing is lost.
        #[track_caller]
        pub fn readable(&self) -> Readable<'_> {
            self.stream().readable()
        }

        /// Waits for any part of `interest`: see [`UnixStream::ready`].
        ///
        /// # Cancel safety
        /// Nothing is lost.
        #[track_caller]
        pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
            self.stream().ready(interest)
        }

        /// Reads what is there without waiting: see [`UnixStream::try_read`].
        ///
        /// # Errors
        /// `WouldBlock` if nothing is there; those of `recv`.
        pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
            self.stream().try_read(buf)
        }

        /// [`try_read`](Self::try_read) into several buffers.
        ///
        /// # Errors
        /// As [`try_read`](Self::try_read).
        pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
            self.stream().try_read_vectored(bufs)
        }

        address_methods!();
    };
}

/// The methods of a writing half, forwarded to the stream.
macro_rules! write_half_methods {
    () => {
        /// Waits until there is room to write: see [`UnixStream::writable`].
        ///
        /// # Cancel safety
        /// Nothing is lost.
        #[track_caller]
        pub fn writable(&self) -> Writable<'_> {
            self.stream().writable()
        }

        /// Waits for any part of `interest`: see [`UnixStream::ready`].
        ///
        /// # Cancel safety
        /// Nothing is lost.
        #[track_caller]
        pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
            self.stream().ready(interest)
        }

        /// Writes what there is room for without waiting: see [`UnixStream::try_write`].
        ///
        /// # Errors
        /// `WouldBlock` if there is no room; those of `send`.
        pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
            self.stream().try_write(buf)
        }

        /// [`try_write`](Self::try_write) out of several buffers.
        ///
        /// # Errors
        /// As [`try_write`](Self::try_write).
        pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
            self.stream().try_write_vectored(bufs)
        }

        address_methods!();
    };
}

macro_rules! address_methods {
    () => {
        /// The address of this end.
        ///
        /// # Errors
        /// Those of `getsockname`.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            self.stream().local_addr()
        }

        /// The address of the other end.
        ///
        /// # Errors
        /// Those of `getpeername`.
        pub fn peer_addr(&self) -> io::Result<SocketAddr> {
            self.stream().peer_addr()
        }
    };
}

pub(super) use {address_methods, read_half_methods, write_half_methods};

impl ReadHalf<'_> {
    read_half_methods!();
}

impl WriteHalf<'_> {
    write_half_methods!();
}

read_stream!(ReadHalf<'_>);
write_stream!(WriteHalf<'_>);
