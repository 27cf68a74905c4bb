//! The halves of a stream, owned: they share it and may live in different tasks.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::split::{read_half, write_half};
use super::stream::{Peek, TcpStream};
use crate::driver::{Interest, Readable, WhenReady, Writable};

/// The reading half of [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<TcpStream>,
}

/// The writing half of [`TcpStream::into_split`]. Dropping it sends the end of the stream, unless it was
/// [forgotten](Self::forget) or closed before.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    shutdown_on_drop: bool,
}

pub(super) fn into_split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    let read = OwnedReadHalf {
        stream: Arc::clone(&stream),
    };
    let write = OwnedWriteHalf {
        stream,
        shutdown_on_drop: true,
    };
    (read, write)
}

fn reunite(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.forget();
    let stream = Arc::clone(&read.stream);
    drop(read);
    // The halves were the only owners.
    Ok(Arc::into_inner(stream).expect("a half of a stream was cloned"))
}

impl OwnedReadHalf {
    read_half!();

    /// Puts the halves of one stream together again.
    ///
    /// # Errors
    /// Gives the halves back if they are not of one stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }

    #[inline]
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

impl OwnedWriteHalf {
    write_half!();

    /// Puts the halves of one stream together again.
    ///
    /// # Errors
    /// Gives the halves back if they are not of one stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops this half without sending the end of the stream.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }

    #[inline]
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends the end of the stream, now instead of at drop.
    pub(super) fn shutdown(&mut self) -> io::Result<()> {
        let result = self.stream.shutdown_std(Shutdown::Write);
        if result.is_ok() {
            self.shutdown_on_drop = false;
        }
        result
    }
}

impl Drop for OwnedReadHalf {
    /// The stream may live on, but nobody reads: the reader's waker goes.
    fn drop(&mut self) {
        self.stream.registered().forget_reader();
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        self.stream.registered().forget_writer();
        if self.shutdown_on_drop {
            let _ = self.stream.shutdown_std(Shutdown::Write);
        }
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

/// The halves were not of one stream; here they are.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tried to put together two halves that are not of the same TCP stream")
    }
}

impl Error for ReuniteError {}
