//! [`AsyncWriteExt`]: what one does with a writer.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use futures_io::AsyncWrite;
use futures_lite::io as lite;

use super::AtSite;

/// How many parts of a buffer go into one call: enough for a head, a body and what is between.
const PARTS: usize = 16;

/// Writes a number of a type, and returns a [`WriteNumberFuture`].
macro_rules! numbers {
    ($($be:ident $(or $le:ident)?: $number:ident;)*) => {$(
        #[doc = concat!("Writes a `", stringify!($number), "`, the highest byte first.")]
        ///
        /// # Errors
        /// As [`write_all`](Self::write_all).
        ///
        /// # Cancel safety
        /// A part of it may be written.
        #[track_caller]
        fn $be(&mut self, n: $number) -> AtSite<WriteNumberFuture<'_, Self, { size_of::<$number>() }>>
        where
            Self: Unpin,
        {
            AtSite::here(WriteNumberFuture::new(self, n.to_be_bytes()))
        }

        $(
            #[doc = concat!("Writes a `", stringify!($number), "`, the lowest byte first.")]
            ///
            /// # Errors
            /// As [`write_all`](Self::write_all).
            ///
            /// # Cancel safety
            /// A part of it may be written.
            #[track_caller]
            fn $le(&mut self, n: $number) -> AtSite<WriteNumberFuture<'_, Self, { size_of::<$number>() }>>
            where
                Self: Unpin,
            {
                AtSite::here(WriteNumberFuture::new(self, n.to_le_bytes()))
            }
        )?
    )*};
}

/// What one does with an [`AsyncWrite`].
///
/// The methods are those of `futures-lite` and, under tokio's names, [`shutdown`](Self::shutdown),
/// [`write_buf`](Self::write_buf), [`write_all_buf`](Self::write_all_buf) and numbers. Do not import the trait of the
/// same name of another crate beside this one: the calls would be ambiguous.
///
/// # Examples
/// ```
/// use rt_io::util::{AsyncReadExt, AsyncWriteExt, duplex};
///
/// # futures_lite::future::block_on(async {
/// let (mut one, mut two) = duplex(64);
/// one.write_u16(5).await?;
/// one.write_all(b"hello").await?;
/// one.shutdown().await?;
/// let mut got = Vec::new();
/// two.read_to_end(&mut got).await?;
/// assert_eq!(got, b"\0\x05hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncWriteExt: AsyncWrite {
    /// Writes once; returns how much went.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was written.
    #[track_caller]
    fn write<'a>(&'a mut self, buf: &'a [u8]) -> AtSite<lite::WriteFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncWriteExt::write(self, buf))
    }

    /// [`write`](Self::write) out of several buffers.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was written.
    #[track_caller]
    fn write_vectored<'a>(
        &'a mut self,
        bufs: &'a [IoSlice<'a>],
    ) -> AtSite<lite::WriteVectoredFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncWriteExt::write_vectored(self, bufs))
    }

    /// Writes once, and takes what went out of the buffer; returns how much that was.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was written.
    #[track_caller]
    fn write_buf<'a, B>(&'a mut self, buf: &'a mut B) -> AtSite<WriteBufFuture<'a, Self, B>>
    where
        Self: Unpin,
        B: Buf + ?Sized,
    {
        AtSite::here(WriteBufFuture { writer: self, buf })
    }

    /// Writes all of the buffer, and takes it out of it.
    ///
    /// # Errors
    /// As [`write_all`](Self::write_all).
    ///
    /// # Cancel safety
    /// What is left in the buffer was not written: the same call again goes on.
    #[track_caller]
    fn write_all_buf<'a, B>(&'a mut self, buf: &'a mut B) -> AtSite<WriteAllBufFuture<'a, Self, B>>
    where
        Self: Unpin,
        B: Buf + ?Sized,
    {
        AtSite::here(WriteAllBufFuture { writer: self, buf })
    }

    /// Writes all.
    ///
    /// # Errors
    /// `WriteZero` if the writer takes no more; those of the writer.
    ///
    /// # Cancel safety
    /// A part of it may be written, and nothing says how much.
    #[track_caller]
    fn write_all<'a>(&'a mut self, buf: &'a [u8]) -> AtSite<lite::WriteAllFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncWriteExt::write_all(self, buf))
    }

    /// Waits until what was written has left the buffers of the writer.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    fn flush(&mut self) -> AtSite<lite::FlushFuture<'_, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncWriteExt::flush(self))
    }

    /// Flushes, and sends the end of the stream. A socket can still be read.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Cancel safety
    /// Nothing is lost; the end may be sent or not.
    #[track_caller]
    fn close(&mut self) -> AtSite<lite::CloseFuture<'_, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncWriteExt::close(self))
    }

    /// The same as [`close`](Self::close), under tokio's name.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Cancel safety
    /// As [`close`](Self::close).
    #[track_caller]
    fn shutdown(&mut self) -> AtSite<lite::CloseFuture<'_, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncWriteExt::close(self))
    }

    /// Boxes the writer and forgets its type.
    fn boxed_writer<'a>(self) -> Pin<Box<dyn AsyncWrite + Send + 'a>>
    where
        Self: Sized + Send + 'a,
    {
        Box::pin(self)
    }

    numbers! {
        write_u8: u8;
        write_i8: i8;
        write_u16 or write_u16_le: u16;
        write_i16 or write_i16_le: i16;
        write_u32 or write_u32_le: u32;
        write_i32 or write_i32_le: i32;
        write_u64 or write_u64_le: u64;
        write_i64 or write_i64_le: i64;
        write_u128 or write_u128_le: u128;
        write_i128 or write_i128_le: i128;
        write_f32 or write_f32_le: f32;
        write_f64 or write_f64_le: f64;
    }
}

impl<W: AsyncWrite + ?Sized> AsyncWriteExt for W {}

/// One write out of a buffer.
fn poll_write_buf<W, B>(
    writer: &mut W,
    cx: &mut Context<'_>,
    buf: &mut B,
) -> Poll<io::Result<usize>>
where
    W: AsyncWrite + Unpin + ?Sized,
    B: Buf + ?Sized,
{
    let writer = Pin::new(writer);
    let written = if buf.chunk().len() == buf.remaining() {
        ready!(writer.poll_write(cx, buf.chunk()))?
    } else {
        let mut parts = [IoSlice::new(&[]); PARTS];
        let filled = buf.chunks_vectored(&mut parts);
        ready!(writer.poll_write_vectored(cx, &parts[..filled]))?
    };
    buf.advance(written);
    Poll::Ready(Ok(written))
}

/// Future of [`AsyncWriteExt::write_buf`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WriteBufFuture<'a, W: ?Sized, B: ?Sized> {
    writer: &'a mut W,
    buf: &'a mut B,
}

impl<W, B> Future for WriteBufFuture<'_, W, B>
where
    W: AsyncWrite + Unpin + ?Sized,
    B: Buf + ?Sized,
{
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.buf.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        poll_write_buf(this.writer, cx, this.buf)
    }
}

/// Future of [`AsyncWriteExt::write_all_buf`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAllBufFuture<'a, W: ?Sized, B: ?Sized> {
    writer: &'a mut W,
    buf: &'a mut B,
}

impl<W, B> Future for WriteAllBufFuture<'_, W, B>
where
    W: AsyncWrite + Unpin + ?Sized,
    B: Buf + ?Sized,
{
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.buf.has_remaining() {
            match ready!(poll_write_buf(this.writer, cx, this.buf)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Future of [`AsyncWriteExt::write_u8`] and its likes.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteNumberFuture<'a, W: ?Sized, const N: usize> {
    writer: &'a mut W,
    bytes: [u8; N],
    written: usize,
}

impl<'a, W: ?Sized, const N: usize> WriteNumberFuture<'a, W, N> {
    fn new(writer: &'a mut W, bytes: [u8; N]) -> Self {
        Self {
            writer,
            bytes,
            written: 0,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized, const N: usize> Future for WriteNumberFuture<'_, W, N> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.written < N {
            let left = &this.bytes[this.written..];
            match ready!(Pin::new(&mut *this.writer).poll_write(cx, left)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => this.written += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: ?Sized, const N: usize> fmt::Debug for WriteNumberFuture<'_, W, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteNumberFuture")
            .field("left", &&self.bytes[self.written..])
            .finish_non_exhaustive()
    }
}
