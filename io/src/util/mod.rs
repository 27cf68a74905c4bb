//! I/O traits, adapters and helpers that need no selector.
//!
//! The traits are those of `futures-io`; the buffered adapters, and what the extension traits do, are those of
//! `futures-lite`. What is ours: [`AsyncReadExt`] and [`AsyncWriteExt`], which have tokio's methods beside those,
//! [`copy`](copy()) and [`copy_buf`], which let other tasks run, [`copy_bidirectional`] for proxies, and
//! [`duplex`](duplex()), a pipe in memory.

pub(crate) mod buf;
mod copy;
mod copy_bidirectional;
mod duplex;
mod read_ext;
mod write_ext;

pub use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result, SeekFrom};

pub use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
pub use futures_lite::io::{
    AssertAsync, AsyncBufReadExt, AsyncSeekExt, BufReader, BufWriter, Bytes, Chain, Cursor, Empty,
    Lines, ReadHalf, Repeat, Sink, Split, Take, WriteHalf, empty, repeat, sink, split,
};

pub use self::copy::{copy, copy_buf};
pub use self::copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes};
pub use self::duplex::{DuplexStream, SimplexStream, duplex, simplex};
pub use self::read_ext::{AsyncReadExt, ReadBufFuture, ReadNumberFuture};
pub use self::write_ext::{AsyncWriteExt, WriteAllBufFuture, WriteBufFuture, WriteNumberFuture};
