//! Halves that own their stream together: for use in two tasks.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::unix::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::UnixStream;
use super::split::{address_methods, read_half_methods, write_half_methods};
use super::stream::{read_stream, write_stream};
use crate::Interest;
use crate::driver::{Readable, WhenReady, Writable};

/// The reading half of [`UnixStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<UnixStream>,
}

/// The writing half of [`UnixStream::into_split`]. Dropping it shuts down writing, unless it was
/// [forgotten](Self::forget).
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<UnixStream>,
    shutdown_on_drop: bool,
}

pub(super) fn split(stream: UnixStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    let read = OwnedReadHalf {
        stream: stream.clone(),
    };
    let write = OwnedWriteHalf {
        stream,
        shutdown_on_drop: true,
    };
    (read, write)
}

/// Two halves that are not of the same stream; they are given back.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "halves of different Unix streams cannot be reunited: pass those of one `into_split`",
        )
    }
}

impl Error for ReuniteError {}

fn reunite(read: OwnedReadHalf, mut write: OwnedWriteHalf) -> Result<UnixStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.shutdown_on_drop = false;
    let stream = Arc::clone(&read.stream);
    drop((read, write));
    Ok(Arc::into_inner(stream).expect("a stream has two halves, and both were just dropped"))
}

impl OwnedReadHalf {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    /// If they are of different streams.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<UnixStream, ReuniteError> {
        reunite(self, other)
    }

    #[inline]
    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    read_half_methods!();
}

impl OwnedWriteHalf {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    /// If they are of different streams.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<UnixStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops this half without shutting down writing.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }

    #[inline]
    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    fn close(&mut self) -> io::Result<()> {
        self.stream.shutdown_write()?;
        self.shutdown_on_drop = false;
        Ok(())
    }

    write_half_methods!();
}

read_stream!(OwnedReadHalf);
write_stream!(OwnedWriteHalf);

impl Drop for OwnedReadHalf {
    fn drop(&mut self) {
        // The stream lives on with the other half; the task that read need not.
        self.stream.io.forget_reader();
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        self.stream.io.forget_writer();
        if self.shutdown_on_drop {
            // Nobody is left to hear of an error.
            let _ = self.stream.shutdown_write();
        }
    }
}
