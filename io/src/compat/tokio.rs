//! `tokio::io::{AsyncRead, AsyncWrite}`. tokio is here without its runtime: for the traits only.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::AsyncWrite as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ReadInto;

macro_rules! bridge_read {
    ($($stream:ty,)*) => {$(
        impl AsyncRead for $stream {
            #[inline]
            #[track_caller]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                // SAFETY: `ReadInto` de-initialises nothing, which is all that `unfilled_mut` asks for.
                let unfilled = unsafe { buf.unfilled_mut() };
                let read = ready!(self.poll_read_into(cx, unfilled))?;
                // SAFETY: `ReadInto` says that this many bytes at the head of `unfilled` are initialised.
                unsafe { buf.assume_init(read) };
                buf.advance(read);
                Poll::Ready(Ok(()))
            }
        }
    )*};
}

macro_rules! bridge_write {
    ($($stream:ty,)*) => {$(
        impl AsyncWrite for $stream {
            #[inline]
            #[track_caller]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write(self, cx, buf)
            }

            #[inline]
            #[track_caller]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                true
            }

            #[inline]
            #[track_caller]
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                futures_io::AsyncWrite::poll_flush(self, cx)
            }

            #[inline]
            #[track_caller]
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_close(cx)
            }
        }
    )*};
}

for_each_stream!(bridge_read, bridge_write);
