//! I/O traits, adapters and helpers that need no selector.
//!
//! The traits are those of `futures-io`; their extension traits and the buffered adapters are those of
//! `futures-lite`. What is ours: [`copy`](copy()) and [`copy_buf`], which let other tasks run, [`copy_bidirectional`]
//! for proxies, and [`duplex`](duplex()), a pipe in memory.

mod copy;
mod copy_bidirectional;
mod duplex;

pub use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result, SeekFrom};

pub use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
pub use futures_lite::io::{
    AssertAsync, AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, BufWriter,
    Bytes, Chain, Cursor, Empty, Lines, ReadHalf, Repeat, Sink, Split, Take, WriteHalf, empty,
    repeat, sink, split,
};

pub use self::copy::{copy, copy_buf};
pub use self::copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes};
pub use self::duplex::{DuplexStream, duplex};
