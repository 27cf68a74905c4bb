//! The halves of a TCP stream: borrowed for use in one task, or owned together for use in two.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::stream::{Peek, TcpStream};
use crate::driver::{Interest, Readable, WhenReady, Writable};
use crate::net::halves::halves;

halves!(TcpStream, SocketAddr, "TCP");

macro_rules! peek {
    ($($half:ty),*) => {$(
        impl $half {
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
        }
    )*};
}

peek!(ReadHalf<'_>, OwnedReadHalf);
