//! The halves of a stream, borrowed.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use super::stream::{Peek, TcpStream};
use crate::driver::{Interest, Readable, WhenReady, Writable};

/// The reading half of [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The writing half of [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

pub(super) fn split(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    let stream = &*stream;
    (ReadHalf(stream), WriteHalf(stream))
}

/// The methods that both reading halves have.
macro_rules! read_half {
    () => {
        /// See [`TcpStream::peek`].
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn peek<'b>(&'b mut self, buf: &'b mut [u8]) -> Peek<'b> {
            self.stream().peek(buf)
        }

        /// See [`TcpStream::poll_peek`].
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn poll_peek(
            &mut self,
            cx: &mut Context<'_>,
            buf: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.stream().poll_peek(cx, buf)
        }

        /// See [`TcpStream::readable`].
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn readable(&self) -> Readable<'_> {
            self.stream().readable()
        }

        /// See [`TcpStream::ready`].
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
            self.stream().ready(interest)
        }

        /// See [`TcpStream::try_read`].
        ///
        /// # Errors
        /// As there.
        pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
            self.stream().try_read(buf)
        }

        /// See [`TcpStream::try_read_vectored`].
        ///
        /// # Errors
        /// As there.
        pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
            self.stream().try_read_vectored(bufs)
        }

        /// See [`TcpStream::peer_addr`].
        ///
        /// # Errors
        /// As there.
        pub fn peer_addr(&self) -> io::Result<SocketAddr> {
            self.stream().peer_addr()
        }

        /// See [`TcpStream::local_addr`].
        ///
        /// # Errors
        /// As there.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            self.stream().local_addr()
        }
    };
}

/// The methods that both writing halves have.
macro_rules! write_half {
    () => {
        /// See [`TcpStream::writable`].
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn writable(&self) -> Writable<'_> {
            self.stream().writable()
        }

        /// See [`TcpStream::ready`].
        ///
        /// # Errors
        /// As there.
        #[track_caller]
        pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
            self.stream().ready(interest)
        }

        /// See [`TcpStream::try_write`].
        ///
        /// # Errors
        /// As there.
        pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
            self.stream().try_write(buf)
        }

        /// See [`TcpStream::try_write_vectored`].
        ///
        /// # Errors
        /// As there.
        pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
            self.stream().try_write_vectored(bufs)
        }

        /// See [`TcpStream::peer_addr`].
        ///
        /// # Errors
        /// As there.
        pub fn peer_addr(&self) -> io::Result<SocketAddr> {
            self.stream().peer_addr()
        }

        /// See [`TcpStream::local_addr`].
        ///
        /// # Errors
        /// As there.
        pub fn local_addr(&self) -> io::Result<SocketAddr> {
            self.stream().local_addr()
        }
    };
}

pub(super) use {read_half, write_half};

impl ReadHalf<'_> {
    read_half!();

    #[inline]
    pub(super) fn stream(&self) -> &TcpStream {
        self.0
    }
}

impl WriteHalf<'_> {
    write_half!();

    #[inline]
    pub(super) fn stream(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}
