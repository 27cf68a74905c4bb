//! Copying both ways between two streams, as a proxy does.
//!
//! Each direction runs on its own: when one side ends, the other is closed for writing and the opposite direction
//! goes on until it ends too. So a half-closed peer still gets its whole answer.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};

use super::AtSite;
use super::copy::CopyBuffer;

/// How far one direction has come.
#[derive(Debug)]
enum Direction {
    Copying(CopyBuffer),
    Closing(u64),
    Done(u64),
}

impl Direction {
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
    ) -> Poll<io::Result<u64>>
    where
        R: AsyncRead + Unpin + ?Sized,
        W: AsyncWrite + Unpin + ?Sized,
    {
        loop {
            *self = match self {
                Direction::Copying(buffer) => {
                    let copied = ready!(buffer.poll_copy(
                        cx,
                        Pin::new(&mut *reader),
                        Pin::new(&mut *writer)
                    ))?;
                    Direction::Closing(copied)
                }
                Direction::Closing(copied) => {
                    ready!(Pin::new(&mut *writer).poll_close(cx))?;
                    Direction::Done(*copied)
                }
                Direction::Done(copied) => return Poll::Ready(Ok(*copied)),
            };
        }
    }
}

/// Copies from `a` to `b` and from `b` to `a` until both have ended. Returns the bytes of each way, in that order.
///
/// When one stream ends, the other is closed for writing ([`poll_close`](AsyncWrite::poll_close), which shuts down
/// the write half of a socket); the opposite direction goes on. The buffers start at 8 KiB and grow to 64 KiB in a
/// direction whose reads fill them.
///
/// # Errors
/// The first error of a read, write, flush or close, except `Interrupted`, which is retried. The other direction is
/// then abandoned: what it had read may not have been written.
///
/// # Cancel safety
/// Dropped early, it loses the bytes that were read and not yet written.
#[track_caller]
pub fn copy_bidirectional<A, B>(
    a: &mut A,
    b: &mut B,
) -> impl Future<Output = io::Result<(u64, u64)>>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    // Made at the first poll, so that what is never awaited has no buffers.
    AtSite::here(async { both(a, b, CopyBuffer::growing(), CopyBuffer::growing()).await })
}

/// [`copy_bidirectional`] with buffers of fixed sizes.
///
/// # Errors
/// As for [`copy_bidirectional`].
///
/// # Panics
/// If a size is 0.
///
/// # Cancel safety
/// As for [`copy_bidirectional`].
#[track_caller]
pub fn copy_bidirectional_with_sizes<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b_buf_size: usize,
    b_to_a_buf_size: usize,
) -> impl Future<Output = io::Result<(u64, u64)>>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    assert!(
        a_to_b_buf_size > 0 && b_to_a_buf_size > 0,
        "a copy needs a buffer: sizes are {a_to_b_buf_size} (a to b) and {b_to_a_buf_size} (b to a)"
    );
    AtSite::here(async move {
        let a_to_b = CopyBuffer::fixed(a_to_b_buf_size);
        both(a, b, a_to_b, CopyBuffer::fixed(b_to_a_buf_size)).await
    })
}

async fn both<A, B>(
    a: &mut A,
    b: &mut B,
    a_to_b: CopyBuffer,
    b_to_a: CopyBuffer,
) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin + ?Sized,
    B: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    let mut a_to_b = Direction::Copying(a_to_b);
    let mut b_to_a = Direction::Copying(b_to_a);
    poll_fn(|cx| {
        let forth = a_to_b.poll(cx, a, b)?;
        let back = b_to_a.poll(cx, b, a)?;
        match (forth, back) {
            (Poll::Ready(forth), Poll::Ready(back)) => Poll::Ready(Ok((forth, back))),
            _ => Poll::Pending,
        }
    })
    .await
}
