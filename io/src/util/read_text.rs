//! Futures that append what is read to a `String`. Those of `futures-lite` put it in the place of what the string held.

use std::future::Future;
use std::io;
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_io::{AsyncBufRead, AsyncRead};
use futures_lite::io as lite;

/// Future of [`AsyncBufReadExt::read_line`](super::AsyncBufReadExt::read_line).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct ReadLineFuture<'a, R: ?Sized> {
    reader: &'a mut R,
    buf: &'a mut String,
    bytes: Vec<u8>,
}

impl<'a, R: ?Sized> ReadLineFuture<'a, R> {
    pub(super) fn new(reader: &'a mut R, buf: &'a mut String) -> Self {
        Self {
            reader,
            buf,
            bytes: Vec::new(),
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadLineFuture<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // One that is given up leaves in `bytes` what it has read.
        let read = lite::AsyncBufReadExt::read_until(this.reader, b'\n', &mut this.bytes);
        let result = ready!(pin!(read).poll(cx));
        Poll::Ready(append(this.buf, &mut this.bytes, result))
    }
}

/// Future of [`AsyncReadExt::read_to_string`](super::AsyncReadExt::read_to_string).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct ReadToStringFuture<'a, R: ?Sized> {
    reader: &'a mut R,
    buf: &'a mut String,
    bytes: Vec<u8>,
}

impl<'a, R: ?Sized> ReadToStringFuture<'a, R> {
    pub(super) fn new(reader: &'a mut R, buf: &'a mut String) -> Self {
        Self {
            reader,
            buf,
            bytes: Vec::new(),
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToStringFuture<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // One that is given up leaves in `bytes` what it has read.
        let read = lite::AsyncReadExt::read_to_end(this.reader, &mut this.bytes);
        let result = ready!(pin!(read).poll(cx));
        Poll::Ready(append(this.buf, &mut this.bytes, result))
    }
}

/// Appends what was read, also before an error of the reader, if it is text. Returns how many bytes that are.
fn append(buf: &mut String, bytes: &mut Vec<u8>, result: io::Result<usize>) -> io::Result<usize> {
    match String::from_utf8(mem::take(bytes)) {
        Ok(text) => {
            let length = text.len();
            if buf.is_empty() {
                *buf = text;
            } else {
                buf.push_str(&text);
            }
            result.map(|_| length)
        }
        Err(error) => result.and_then(|_| {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("what was read is not UTF-8: {error}"),
            ))
        }),
    }
}
