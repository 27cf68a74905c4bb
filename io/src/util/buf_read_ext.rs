//! [`AsyncBufReadExt`]: what one does with a reader that has a buffer.

use futures_io::AsyncBufRead;
use futures_lite::io as lite;

use super::{AtSite, Lines, ReadLineFuture, Split};

/// What one does with an [`AsyncBufRead`], such as a [`BufReader`](super::BufReader).
///
/// The methods are those of `futures-lite`, and the streams have tokio's names for the next item too. Do not import the
/// trait of the same name of another crate beside this one: the calls would be ambiguous.
///
/// # Examples
/// ```
/// use futures_lite::StreamExt;
/// use rt_io::util::AsyncBufReadExt;
///
/// # futures_lite::future::block_on(async {
/// let mut text: &[u8] = b"head\none\ntwo\n";
/// let mut head = String::new();
/// text.read_line(&mut head).await?;
/// assert_eq!(head, "head\n");
///
/// let lines: Vec<String> = text.lines().try_collect().await?;
/// assert_eq!(lines, ["one", "two"]);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncBufReadExt: AsyncBufRead {
    /// What is in the buffer, after a read if it was empty; nothing is the end.
    ///
    /// # Errors
    /// Those of the reader.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    #[track_caller]
    fn fill_buf(&mut self) -> AtSite<lite::FillBuf<'_, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncBufReadExt::fill_buf(self))
    }

    /// Takes the first `amount` bytes out of the buffer.
    fn consume(&mut self, amount: usize)
    where
        Self: Unpin,
    {
        lite::AsyncBufReadExt::consume(self, amount);
    }

    /// Appends everything up to this byte, and the byte; returns how much that was. Without the byte, it is the end.
    ///
    /// # Errors
    /// Those of the reader; what was read before is in the buffer.
    ///
    /// # Cancel safety
    /// What was read is in the buffer: the same call again goes on.
    #[track_caller]
    fn read_until<'a>(
        &'a mut self,
        byte: u8,
        buf: &'a mut Vec<u8>,
    ) -> AtSite<lite::ReadUntilFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(lite::AsyncBufReadExt::read_until(self, byte, buf))
    }

    /// Appends a line, with its end; returns how much that was. Without an end of the line, it is that of the reader.
    ///
    /// # Errors
    /// `InvalidData` if it is not UTF-8; then it is lost. Those of the reader; what was read before is in the string.
    ///
    /// # Cancel safety
    /// What was read of the line is lost. [`lines`](Self::lines) loses nothing.
    #[track_caller]
    fn read_line<'a>(&'a mut self, buf: &'a mut String) -> AtSite<ReadLineFuture<'a, Self>>
    where
        Self: Unpin,
    {
        AtSite::here(ReadLineFuture::new(self, buf))
    }

    /// A stream of lines, without their ends; or await one after the other with [`Lines::next_line`].
    #[track_caller]
    fn lines(self) -> Lines<Self>
    where
        Self: Unpin + Sized,
    {
        Lines::new(self)
    }

    /// A stream of what lies between two such bytes; or await one after the other with [`Split::next_segment`].
    #[track_caller]
    fn split(self, byte: u8) -> Split<Self>
    where
        Self: Sized,
    {
        Split::new(self, byte)
    }
}

impl<R: AsyncBufRead + ?Sized> AsyncBufReadExt for R {}
