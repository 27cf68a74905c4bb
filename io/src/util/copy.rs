//! Copying from a reader to a writer.
//!
//! # What it guarantees
//! Bytes are written in the order they were read, and all that was read is written before the next read: a read error
//! never eats bytes that came before it. A writer that buffers is flushed when the reader has nothing more for now, so
//! that no byte waits in a buffer while its sender waits for the answer to it.
//!
//! Each round spends one unit of the coop budget, since neither side need spend any (a cursor, a sink).

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncBufRead, AsyncRead, AsyncWrite};
use rt_sync::coop;

use super::AtSite;

/// First size of a copy buffer: tokio's. Enough for most messages, small enough for a proxy with many idle connections.
pub(super) const FIRST_SIZE: usize = 8 * 1024;

/// A buffer that a read filled to the end is doubled up to this size: bulk data costs an eighth of the calls, and a
/// connection that carries little stays small.
const LARGEST_SIZE: usize = 64 * 1024;

/// One direction of a copy: what was read and not yet written.
#[derive(Debug)]
pub(super) struct CopyBuffer {
    bytes: Box<[u8]>,
    /// `bytes[start..end]` was read and is still to be written.
    start: usize,
    end: usize,
    /// How far the buffer may grow.
    limit: usize,
    copied: u64,
    /// Something was written since the last flush.
    dirty: bool,
    eof: bool,
}

impl CopyBuffer {
    /// A buffer that starts small and grows while reads fill it.
    pub(super) fn growing() -> Self {
        Self::with_limit(FIRST_SIZE, LARGEST_SIZE)
    }

    /// A buffer of just this size.
    pub(super) fn fixed(size: usize) -> Self {
        Self::with_limit(size, size)
    }

    fn with_limit(size: usize, limit: usize) -> Self {
        Self {
            bytes: vec![0; size].into_boxed_slice(),
            start: 0,
            end: 0,
            limit,
            copied: 0,
            dirty: false,
            eof: false,
        }
    }

    /// Copies until the reader ends; then the writer is flushed, not closed.
    pub(super) fn poll_copy<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + ?Sized,
        W: AsyncWrite + ?Sized,
    {
        loop {
            let unit = ready!(coop::poll_proceed(cx));
            if self.start < self.end {
                ready!(self.poll_write(cx, writer.as_mut()))?;
                unit.made_progress();
            } else if self.eof {
                ready!(writer.as_mut().poll_flush(cx))?;
                return Poll::Ready(Ok(self.copied));
            } else if self.poll_fill(cx, reader.as_mut())?.is_ready() {
                unit.made_progress();
            } else {
                if self.dirty {
                    ready!(writer.as_mut().poll_flush(cx))?;
                    self.dirty = false;
                }
                return Poll::Pending;
            }
        }
    }

    fn poll_fill<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + ?Sized,
    {
        debug_assert_eq!(self.start, self.end);
        if self.end == self.bytes.len() && self.end < self.limit {
            // The last read filled the buffer and all of it was written.
            let size = self.limit.min(self.bytes.len() * 2);
            self.bytes = vec![0; size].into_boxed_slice();
        }
        // Also if the read is pending: the condition above is about the read just before.
        self.start = 0;
        self.end = 0;
        loop {
            match ready!(reader.as_mut().poll_read(cx, &mut self.bytes)) {
                Ok(read) => {
                    assert!(
                        read <= self.bytes.len(),
                        "a reader said that it had put {read} bytes into a buffer of {}",
                        self.bytes.len()
                    );
                    self.end = read;
                    self.eof = read == 0;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_write<W>(
        &mut self,
        cx: &mut Context<'_>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<()>>
    where
        W: AsyncWrite + ?Sized,
    {
        while self.start < self.end {
            let rest = &self.bytes[self.start..self.end];
            let written = match ready!(writer.as_mut().poll_write(cx, rest)) {
                Ok(0) => return Poll::Ready(Err(write_zero(rest.len()))),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Poll::Ready(Err(error)),
            };
            self.start += written;
            self.copied += written as u64;
            self.dirty = true;
        }
        Poll::Ready(Ok(()))
    }
}

fn write_zero(left: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::WriteZero,
        format!("the writer took 0 of {left} bytes, so it will take no more"),
    )
}

/// Copies everything from `reader` to `writer` until the reader ends, and flushes the writer. Returns the number of
/// bytes.
///
/// Readers and writers can be passed by value or as `&mut`. The writer is not closed.
///
/// # Errors
/// The first error of either side, except `Interrupted`, which is retried; `WriteZero` if the writer takes nothing.
/// What was read before an error of the reader has been written.
///
/// # Cancel safety
/// Dropped early, it loses the bytes that were read and not yet written.
///
/// # Examples
/// ```
/// # futures_lite::future::block_on(async {
/// let mut target = Vec::new();
/// let copied = rt_io::util::copy(&b"hello"[..], &mut target).await?;
/// assert_eq!((copied, &target[..]), (5, &b"hello"[..]));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn copy<R, W>(mut reader: R, mut writer: W) -> impl Future<Output = io::Result<u64>>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    AtSite::here(async move {
        let mut buffer = CopyBuffer::growing();
        poll_fn(|cx| buffer.poll_copy(cx, Pin::new(&mut reader), Pin::new(&mut writer))).await
    })
}

/// Copies as [`copy`] does, straight out of the buffer that the reader has.
///
/// # Errors
/// As for [`copy`].
///
/// # Cancel safety
/// Nothing is lost: a byte is consumed only once it has been written.
#[track_caller]
pub fn copy_buf<R, W>(mut reader: R, mut writer: W) -> impl Future<Output = io::Result<u64>>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut copied = 0;
    let mut dirty = false;
    AtSite::here(poll_fn(move |cx| {
        loop {
            let unit = ready!(coop::poll_proceed(cx));
            let Poll::Ready(filled) = Pin::new(&mut reader).poll_fill_buf(cx) else {
                if dirty {
                    ready!(Pin::new(&mut writer).poll_flush(cx))?;
                    dirty = false;
                }
                return Poll::Pending;
            };
            let written = match filled {
                Ok([]) => {
                    ready!(Pin::new(&mut writer).poll_flush(cx))?;
                    return Poll::Ready(Ok(copied));
                }
                Ok(bytes) => match ready!(Pin::new(&mut writer).poll_write(cx, bytes)) {
                    Ok(0) => return Poll::Ready(Err(write_zero(bytes.len()))),
                    other => other,
                },
                Err(error) => Err(error),
            };
            match written {
                Ok(written) => {
                    Pin::new(&mut reader).consume(written);
                    copied += written as u64;
                    dirty = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            unit.made_progress();
        }
    }))
}
