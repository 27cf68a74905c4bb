//! The I/O traits of other libraries on our streams: tokio's (feature `tokio-io`) and hyper's (feature `hyper`).
//!
//! Both hand over memory that need not be initialised. [`ReadInto`] lets the operating system write straight into it,
//! so neither bridge copies or clears a byte.
//!
//! What a task waits for is told with the line that called the trait's method: it lies in the other library, since that is
//! who reads and writes. The task's own lines are told where it spawns, and by the methods of our own traits.
#![expect(
    unsafe_code,
    reason = "the buffers of tokio and hyper hand out uninitialised memory and believe what was filled"
)]

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

mod source;

/// A stream that reads into memory which need not be initialised.
///
/// # Safety
/// `Ready(Ok(n))` means that the first `n` bytes of `buf` are initialised. No byte of `buf` is ever de-initialised.
unsafe trait ReadInto {
    /// Same as [`AsyncRead::poll_read`](futures_io::AsyncRead::poll_read) but for the buffer.
    #[track_caller]
    fn poll_read_into(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>>;
}

/// Calls `$read!` with the types that read, and `$write!` with those that write.
macro_rules! for_each_stream {
    ($read:ident, $write:ident) => {
        $read! {
            crate::net::tcp::TcpStream,
            crate::net::tcp::ReadHalf<'_>,
            crate::net::tcp::OwnedReadHalf,
            crate::net::unix::UnixStream,
            crate::net::unix::ReadHalf<'_>,
            crate::net::unix::OwnedReadHalf,
            crate::net::unix::pipe::Receiver,
            crate::stdio::Stdin,
            crate::util::DuplexStream,
        }
        $write! {
            crate::net::tcp::TcpStream,
            crate::net::tcp::WriteHalf<'_>,
            crate::net::tcp::OwnedWriteHalf,
            crate::net::unix::UnixStream,
            crate::net::unix::WriteHalf<'_>,
            crate::net::unix::OwnedWriteHalf,
            crate::net::unix::pipe::Sender,
            crate::stdio::Stdout,
            crate::stdio::Stderr,
            crate::util::DuplexStream,
        }
    };
}

#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "tokio-io")]
mod tokio;
