//! Reading into a [`BufMut`], whose memory need not be initialised.
//!
//! # Who may touch what
//! Everything in here holds the buffer by `&mut` for the whole time between `chunk_mut` and `advance_mut`.
#![expect(
    unsafe_code,
    reason = "a `BufMut` hands out uninitialised memory and believes what was filled"
)]

use std::io;
use std::os::fd::AsFd;
use std::slice;
use std::task::{Poll, ready};

use bytes::BufMut;
use socket2::{SockAddr, SockRef};

/// How much room is offered to one read: it is cleared first, which should not cost more than the read.
const MOST: usize = 16 * 1024;

/// Lets `read` fill a part of the room; what it reports is then part of the content.
///
/// # Panics
/// If `read` reports more than the room that it was given.
pub(super) fn fill<B: BufMut + ?Sized>(
    buf: &mut B,
    read: impl FnOnce(&mut [u8]) -> Poll<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    let chunk = buf.chunk_mut();
    let room = chunk.len().min(MOST);
    let start = chunk.as_mut_ptr();
    // SAFETY: the chunk has at least `room` bytes, which are ours to write.
    unsafe { start.write_bytes(0, room) };
    // SAFETY: as above, and they are initialised by now.
    let slice = unsafe { slice::from_raw_parts_mut(start, room) };
    let read = ready!(read(slice))?;
    assert!(
        read <= room,
        "a reader said that it had put {read} bytes into a buffer of {room}"
    );
    // SAFETY: all of `room` is initialised.
    unsafe { buf.advance_mut(read) };
    Poll::Ready(Ok(read))
}

/// Receives what is there, or one message, straight into the buffer.
pub(crate) fn recv<B: BufMut>(socket: &impl AsFd, buf: &mut B) -> io::Result<usize> {
    // SAFETY: nothing that is initialised is made uninitialised; `recv` writes bytes of the message only.
    let chunk = unsafe { buf.chunk_mut().as_uninit_slice_mut() };
    let read = SockRef::from(socket).recv(chunk)?;
    // SAFETY: `recv` has initialised as many bytes as it reports.
    unsafe { buf.advance_mut(read) };
    Ok(read)
}

/// The same, with the address of the sender.
pub(crate) fn recv_from<B: BufMut>(
    socket: &impl AsFd,
    buf: &mut B,
) -> io::Result<(usize, SockAddr)> {
    // SAFETY: as in `recv`.
    let chunk = unsafe { buf.chunk_mut().as_uninit_slice_mut() };
    let (read, addr) = SockRef::from(socket).recv_from(chunk)?;
    // SAFETY: as in `recv`.
    unsafe { buf.advance_mut(read) };
    Ok((read, addr))
}
