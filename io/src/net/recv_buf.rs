//! Receiving messages into a buffer that grows: the same for UDP and Unix sockets.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::SocketAddr as UnixAddr;

use bytes::BufMut;
use rt_sync::wait::WaitKind;
use socket2::SockAddr;

use super::{UdpSocket, UnixDatagram};
use crate::driver::Interest;
use crate::util::buf;

macro_rules! recv_buf {
    ($socket:ident, $addr:ty, $convert:ident) => {
        impl $socket {
            /// [`recv`](Self::recv), appended to a buffer such as a `Vec<u8>` or a `BytesMut`. The message may be as long
            /// as what the buffer has room for; where it has none it grows by 64 bytes, so reserve first.
            ///
            /// # Errors
            /// As [`recv`](Self::recv).
            ///
            /// # Cancel safety
            /// Dropped early, no message was taken.
            #[track_caller]
            pub fn recv_buf<'a, B: BufMut>(
                &'a self,
                buf: &'a mut B,
            ) -> impl Future<Output = io::Result<usize>> + 'a {
                self.io
                    .async_io(Interest::READABLE, move |io| buf::recv(io, buf))
                    .shown_as(WaitKind::Read)
            }

            /// [`recv_from`](Self::recv_from), appended to a buffer as by [`recv_buf`](Self::recv_buf).
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            ///
            /// # Cancel safety
            /// Dropped early, no message was taken.
            #[track_caller]
            pub fn recv_buf_from<'a, B: BufMut>(
                &'a self,
                buf: &'a mut B,
            ) -> impl Future<Output = io::Result<(usize, $addr)>> + 'a {
                self.io
                    .async_io(Interest::READABLE, move |io| {
                        let (length, addr) = buf::recv_from(io, buf)?;
                        Ok((length, $convert(&addr)?))
                    })
                    .shown_as(WaitKind::Read)
            }

            /// [`recv_buf`](Self::recv_buf) without waiting.
            ///
            /// # Errors
            /// As [`try_recv`](Self::try_recv).
            pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.io.try_io(Interest::READABLE, |io| buf::recv(io, buf))
            }

            /// [`recv_buf_from`](Self::recv_buf_from) without waiting.
            ///
            /// # Errors
            /// As [`try_recv_from`](Self::try_recv_from).
            pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, $addr)> {
                self.io.try_io(Interest::READABLE, |io| {
                    let (length, addr) = buf::recv_from(io, buf)?;
                    Ok((length, $convert(&addr)?))
                })
            }
        }
    };
}

recv_buf!(UdpSocket, SocketAddr, of_internet);
recv_buf!(UnixDatagram, UnixAddr, of_unix);

fn of_internet(addr: &SockAddr) -> io::Result<SocketAddr> {
    addr.as_socket().ok_or_else(|| {
        io::Error::other("a message came from an address that is not of the Internet")
    })
}

/// A sender that has no address is unnamed.
fn of_unix(addr: &SockAddr) -> io::Result<UnixAddr> {
    match addr.as_unix() {
        Some(addr) => Ok(addr),
        None => UnixAddr::from_pathname(""),
    }
}
