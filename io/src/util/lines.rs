//! The lines of a reader that has a buffer, and its parts between other bytes: streams, whose items can also be awaited one
//! by one.
//!
//! What was read of a line that is not complete lies in the stream, not in the future that waits for it: so giving up the
//! wait, or an error of the reader in the middle of a line, loses nothing.

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_io::AsyncBufRead;
use futures_lite::io as lite;
use pin_project_lite::pin_project;
use rt_sync::wait;

pin_project! {
    /// The stream of [`AsyncBufReadExt::split`](super::AsyncBufReadExt::split).
    #[must_use = "streams do nothing unless polled"]
    pub struct Split<R> {
        #[pin]
        reader: R,
        end: u8,
        // What was read of the next part.
        begun: Vec<u8>,
        site: &'static Location<'static>,
    }
}

impl<R> Split<R> {
    #[track_caller]
    pub(super) fn new(reader: R, end: u8) -> Self {
        Self {
            reader,
            end,
            begun: Vec::new(),
            site: Location::caller(),
        }
    }

    /// Waits for the next part; `None` is the end. The same as the next item of the stream.
    ///
    /// # Errors
    /// Those of the reader.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was read of the part comes with the next call.
    pub fn next_segment(&mut self) -> NextSegment<'_, R> {
        NextSegment { parts: self }
    }
}

impl<R: AsyncBufRead> Split<R> {
    /// The next part, with the byte that ends it unless it is the last.
    fn poll_part(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        let mut this = self.project();
        // One that is given up leaves in `begun` what it has read.
        let read = lite::AsyncBufReadExt::read_until(&mut this.reader, *this.end, this.begun);
        match pin!(read).poll(cx) {
            Poll::Ready(result) => result?,
            Poll::Pending => {
                wait::record_site(this.site);
                return Poll::Pending;
            }
        };
        let part = mem::take(this.begun);
        Poll::Ready(Ok((!part.is_empty()).then_some(part)))
    }
}

impl<R: AsyncBufRead> Stream for Split<R> {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let end = self.end;
        let part = ready!(self.poll_part(cx));
        Poll::Ready(part.transpose().map(|part| {
            part.map(|mut part| {
                part.pop_if(|last| *last == end);
                part
            })
        }))
    }
}

impl<R: fmt::Debug> fmt::Debug for Split<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split")
            .field("reader", &self.reader)
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The stream of [`AsyncBufReadExt::lines`](super::AsyncBufReadExt::lines).
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Lines<R> {
        #[pin]
        parts: Split<R>,
    }
}

impl<R> Lines<R> {
    #[track_caller]
    pub(super) fn new(reader: R) -> Self {
        Self {
            parts: Split::new(reader, b'\n'),
        }
    }

    /// Waits for the next line; `None` is the end. The same as the next item of the stream.
    ///
    /// # Errors
    /// `InvalidData` if it is not UTF-8, which the next call leaves behind; those of the reader.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was read of the line comes with the next call.
    ///
    /// # Examples
    /// ```
    /// use rt_io::util::AsyncBufReadExt;
    ///
    /// # futures_lite::future::block_on(async {
    /// let mut lines = (&b"one\r\ntwo"[..]).lines();
    /// while let Some(line) = lines.next_line().await? {
    ///     assert_eq!(line.len(), 3);
    /// }
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub fn next_line(&mut self) -> NextLine<'_, R> {
        NextLine { lines: self }
    }

    /// The reader.
    pub fn get_ref(&self) -> &R {
        &self.parts.reader
    }

    /// The reader. What is read from it is missing in the lines.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.parts.reader
    }

    /// The reader. What was read of a line that is not complete is lost.
    pub fn into_inner(self) -> R {
        self.parts.reader
    }
}

impl<R: AsyncBufRead> Stream for Lines<R> {
    type Item = io::Result<String>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = ready!(self.project().parts.poll_part(cx));
        Poll::Ready(part.transpose().map(|part| line(part?)))
    }
}

/// A line without its end.
fn line(mut bytes: Vec<u8>) -> io::Result<String> {
    if bytes.pop_if(|last| *last == b'\n').is_some() {
        bytes.pop_if(|last| *last == b'\r');
    }
    String::from_utf8(bytes).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a line is not UTF-8: {error}"),
        )
    })
}

/// Future of [`Lines::next_line`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct NextLine<'a, R> {
    lines: &'a mut Lines<R>,
}

impl<R: AsyncBufRead + Unpin> Future for NextLine<'_, R> {
    type Output = io::Result<Option<String>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.lines)
            .poll_next(cx)
            .map(Option::transpose)
    }
}

/// Future of [`Split::next_segment`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct NextSegment<'a, R> {
    parts: &'a mut Split<R>,
}

impl<R: AsyncBufRead + Unpin> Future for NextSegment<'_, R> {
    type Output = io::Result<Option<Vec<u8>>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.parts)
            .poll_next(cx)
            .map(Option::transpose)
    }
}
