//! I/O traits, adapters and helpers that need no selector.
//!
//! The traits are those of `futures-io`; the buffered adapters, and what the extension traits do, are those of
//! `futures-lite`. What is ours: [`AsyncReadExt`], [`AsyncWriteExt`] and [`AsyncBufReadExt`], whose futures know where they
//! were made ([`AtSite`]), the former with tokio's methods beside those of `futures-lite`;
//! [`copy`](copy()) and [`copy_buf`], which let other tasks run, [`copy_bidirectional`] for proxies, and
//! [`duplex`](duplex()), a pipe in memory.

mod at_site;
pub(crate) mod buf;
mod buf_read_ext;
mod copy;
mod copy_bidirectional;
mod duplex;
mod lines;
mod read_ext;
mod read_text;
mod write_ext;

pub use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result, SeekFrom};

pub use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
pub use futures_lite::io::{
    AssertAsync, AsyncSeekExt, BufReader, BufWriter, Bytes, Chain, Cursor, Empty, ReadHalf, Repeat,
    Sink, Take, WriteHalf, empty, repeat, sink, split,
};

pub use self::at_site::AtSite;
pub use self::buf_read_ext::AsyncBufReadExt;
pub use self::copy::{copy, copy_buf};
pub use self::copy_bidirectional::{copy_bidirectional, copy_bidirectional_with_sizes};
pub use self::duplex::{DuplexStream, SimplexStream, duplex, simplex};
pub use self::lines::{Lines, NextLine, NextSegment, Split};
pub use self::read_ext::{AsyncReadExt, ReadBufFuture, ReadNumberFuture};
pub use self::read_text::{ReadLineFuture, ReadToStringFuture};
pub use self::write_ext::{AsyncWriteExt, WriteAllBufFuture, WriteBufFuture, WriteNumberFuture};
