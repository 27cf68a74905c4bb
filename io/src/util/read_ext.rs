//! [`AsyncReadExt`]: what one does with a reader.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use futures_io::AsyncRead;
use futures_lite::io as lite;

use super::{AtSite, ReadToStringFuture, buf};

/// Reads a number of a type, and returns a [`ReadNumberFuture`].
macro_rules! numbers {
    ($($be:ident $(or $le:ident)?: $number:ident;)*) => {$(
        #[doc = concat!("Reads a `", stringify!($number), "`, the highest byte first.")]
        ///
        /// # Errors
        /// As [`read_exact`](Self::read_exact).
        ///
        /// # Cancel safety
        /// Bytes that were read are lost.
        #[track_caller]
        fn $be(&mut self) -> AtSite<ReadNumberFuture<'_, Self, $number, { size_of::<$number>() }>>
        where
            Self: Unpin,
        {
            AtSite::here(ReadNumberFuture::new(self, $number::from_be_bytes))
        }

        $(
            #[doc = concat!("Reads a `", stringify!($number), "`, the lowest byte first.")]
            ///
            /// # Errors
            /// As [`read_exact`](Self::read_exact).
            ///
            /// # Cancel safety
            /// Bytes that were read are lost.
            #[track_caller]
            fn $le(&mut self) -> AtSite<ReadNumberFuture<'_, Self, $number, { size_of::<$number>() }>>
            where
                Self: Unpin,
            {
                AtSite::here(ReadNumberFuture::new(self, $number::from_le_bytes))
            }
        )?
    )*};
}

/// What one does with an [`AsyncRead`].
///
/// The methods are those of `futures-lite` and, under tokio's names, [`read_buf`](Self::read_buf) and numbers. Do not
/// import the trait of the same name of another crate beside this one: the calls would be ambiguous.
///
/// # Examples
/// ```
/// use rt_io::util::AsyncReadExt;
///
/// # futures_lite::future::block_on(async {
/// let mut message: &[u8] = &[0, 3, b'a', b'b', b'c', b'd'];
/// let mut body = vec![0; message.read_u16().await?.into()];
/// message.read_exact(&mut body).await?;
/// assert_eq!(body, b"abc");
///
/// let mut rest = Vec::new();
/// while message.read_buf(&mut rest).await? > 0 {}
/// assert_eq!(rest, b"d");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncReadExt: AsyncRead {
    /// Reads once; `Ok(0)` is the end, or the buffer has no room.
    ///
    /// # Errors
    /// Those of the reader.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was read.
    #[track_caller]
    fn read<'a>(&'a mut self, buf: &'a mut [u8]) -> AtSite<lite::ReadFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncReadExt::read(self, buf))
    }

    /// [`read`](Self::read) into several buffers.
    ///
    /// # Errors
    /// Those of the reader.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was read.
    #[track_caller]
    fn read_vectored<'a>(
        &'a mut self,
        bufs: &'a mut [IoSliceMut<'a>],
    ) -> AtSite<lite::ReadVectoredFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncReadExt::read_vectored(self, bufs))
    }

    /// Reads once, and appends to a buffer such as a `Vec<u8>` or a `BytesMut`, which grows where it can; at most
    /// 16 KiB. `Ok(0)` is the end, or the buffer has no room and cannot grow.
    ///
    /// # Errors
    /// Those of the reader.
    ///
    /// # Cancel safety
    /// Dropped early, nothing was read.
    #[track_caller]
    fn read_buf<'a, B>(&'a mut self, buf: &'a mut B) -> AtSite<ReadBufFuture<'a, Self, B>>
    where
        Self: Unpin,
        B: BufMut + ?Sized,
    {
        AtSite::here(ReadBufFuture { reader: self, buf })
    }

    /// Fills the buffer.
    ///
    /// # Errors
    /// `UnexpectedEof` if the end comes before; those of the reader.
    ///
    /// # Cancel safety
    /// What was read is in the buffer, and nothing says how much it was.
    #[track_caller]
    fn read_exact<'a>(&'a mut self, buf: &'a mut [u8]) -> AtSite<lite::ReadExactFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncReadExt::read_exact(self, buf))
    }

    /// Appends everything up to the end to the buffer; returns how much that was.
    ///
    /// # Errors
    /// Those of the reader; what was read before is in the buffer.
    ///
    /// # Cancel safety
    /// What was read is in the buffer, which may end in bytes that were not.
    #[track_caller]
    fn read_to_end<'a>(
        &'a mut self,
        buf: &'a mut Vec<u8>,
    ) -> AtSite<lite::ReadToEndFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncReadExt::read_to_end(self, buf))
    }

    /// Appends everything up to the end to the string; returns how much that was.
    ///
    /// # Errors
    /// `InvalidData` if it is not UTF-8; then it is lost. Those of the reader; what was read before is in the string.
    ///
    /// # Cancel safety
    /// What was read is lost.
    #[track_caller]
    fn read_to_string<'a>(&'a mut self, buf: &'a mut String) -> AtSite<ReadToStringFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(ReadToStringFuture::new(self, buf))
    }

    /// A reader that ends after `limit` bytes of this one.
    fn take(self, limit: u64) -> lite::Take<Self>
    where
        Self: Sized,
    {
        lite::AsyncReadExt::take(self, limit)
    }

    /// A stream of single bytes.
    #[track_caller]
    fn bytes(self) -> AtSite<lite::Bytes<Self>>
    where
        Self: Sized,
    {
        AtSite::here(lite::AsyncReadExt::bytes(self))
    }

    /// A reader that goes on with `next` after the end of this one.
    fn chain<R: AsyncRead>(self, next: R) -> lite::Chain<Self, R>
    where
        Self: Sized,
    {
        lite::AsyncReadExt::chain(self, next)
    }

    /// Boxes the reader and forgets its type.
    fn boxed_reader<'a>(self) -> Pin<Box<dyn AsyncRead + Send + 'a>>
    where
        Self: Sized + Send + 'a,
    {
        Box::pin(self)
    }

    numbers! {
        read_u8: u8;
        read_i8: i8;
        read_u16 or read_u16_le: u16;
        read_i16 or read_i16_le: i16;
        read_u32 or read_u32_le: u32;
        read_i32 or read_i32_le: i32;
        read_u64 or read_u64_le: u64;
        read_i64 or read_i64_le: i64;
        read_u128 or read_u128_le: u128;
        read_i128 or read_i128_le: i128;
        read_f32 or read_f32_le: f32;
        read_f64 or read_f64_le: f64;
    }
}

impl<R: AsyncRead + ?Sized> AsyncReadExt for R {}

/// Future of [`AsyncReadExt::read_buf`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct ReadBufFuture<'a, R: ?Sized, B: ?Sized> {
    reader: &'a mut R,
    buf: &'a mut B,
}

impl<R, B> Future for ReadBufFuture<'_, R, B>
where
    R: AsyncRead + Unpin + ?Sized,
    B: BufMut + ?Sized,
{
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.buf.has_remaining_mut() {
            return Poll::Ready(Ok(0));
        }
        let mut reader = Pin::new(&mut *this.reader);
        buf::fill(this.buf, |room| reader.as_mut().poll_read(cx, room))
    }
}

/// Future of [`AsyncReadExt::read_u8`] and its likes.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadNumberFuture<'a, R: ?Sized, T, const N: usize> {
    reader: &'a mut R,
    bytes: [u8; N],
    filled: usize,
    convert: fn([u8; N]) -> T,
}

impl<'a, R: ?Sized, T, const N: usize> ReadNumberFuture<'a, R, T, N> {
    fn new(reader: &'a mut R, convert: fn([u8; N]) -> T) -> Self {
        Self {
            reader,
            bytes: [0; N],
            filled: 0,
            convert,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized, T, const N: usize> Future for ReadNumberFuture<'_, R, T, N> {
    type Output = io::Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let this = self.get_mut();
        while this.filled < N {
            let room = &mut this.bytes[this.filled..];
            match ready!(Pin::new(&mut *this.reader).poll_read(cx, room)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => this.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok((this.convert)(this.bytes)))
    }
}

impl<R: ?Sized, T, const N: usize> fmt::Debug for ReadNumberFuture<'_, R, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadNumberFuture")
            .field("bytes", &&self.bytes[..self.filled])
            .finish_non_exhaustive()
    }
}
