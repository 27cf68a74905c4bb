//! The extension traits: what they have beside the methods of `futures-lite`.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BufMut, BytesMut};
use futures_lite::StreamExt;
use futures_lite::future::{block_on, poll_once, zip};
use rt_io::net::{TcpListener, TcpStream, UnixStream};
use rt_io::util::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter,
    copy, copy_bidirectional, copy_buf, duplex, simplex,
};
use rt_sync::wait::{self, WaitKind};

use crate::exec::Owner;
use crate::support::within_limit;

/// Numbers that arrive byte by byte, through a pipe with room for one.
#[test]
fn numbers_are_whole_however_they_arrive() {
    within_limit(|| {
        block_on(async {
            let (mut one, mut two) = duplex(1);
            let write = async {
                one.write_u8(1).await?;
                one.write_i8(-1).await?;
                one.write_u16(0x0102).await?;
                one.write_u16_le(0x0102).await?;
                one.write_i32(-5).await?;
                one.write_i32_le(-6).await?;
                one.write_u64(u64::MAX - 1).await?;
                one.write_u128_le(u128::MAX / 3).await?;
                one.write_f32(1.5).await?;
                one.write_f64_le(-2.25).await?;
                one.write_all(&[9, 9]).await?;
                one.shutdown().await
            };
            let read = async {
                assert_eq!(two.read_u8().await?, 1);
                assert_eq!(two.read_i8().await?, -1);
                let mut bytes = [0; 4];
                two.read_exact(&mut bytes).await?;
                assert_eq!(bytes, [1, 2, 2, 1]);
                assert_eq!(two.read_i32().await?, -5);
                assert_eq!(two.read_i32_le().await?, -6);
                assert_eq!(two.read_u64().await?, u64::MAX - 1);
                assert_eq!(two.read_u128_le().await?, u128::MAX / 3);
                assert_eq!(two.read_f32().await?.to_bits(), 1.5_f32.to_bits());
                assert_eq!(two.read_f64_le().await?.to_bits(), (-2.25_f64).to_bits());
                let cut = two.read_u32().await.unwrap_err();
                assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
                io::Result::Ok(())
            };
            let (write, read) = zip(write, read).await;
            write.unwrap();
            read.unwrap();
        });
    });
}

/// Says more than it did.
struct Liar;

impl AsyncRead for Liar {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len() + 1))
    }
}

#[test]
fn read_buf_appends_and_grows() {
    block_on(async {
        let data: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let mut reader = &data[..];
        let mut got = BytesMut::new();
        while reader.read_buf(&mut got).await.unwrap() > 0 {}
        assert_eq!(got, data);

        // A buffer that cannot grow: what fits, then nothing, and the rest stays in the reader.
        let mut reader = &data[..];
        let mut room = [7; 10];
        let mut fixed = (&mut room[..]).limit(4);
        assert_eq!(reader.read_buf(&mut fixed).await.unwrap(), 4);
        assert_eq!(reader.read_buf(&mut fixed).await.unwrap(), 0);
        assert_eq!(reader.len(), data.len() - 4);
        assert_eq!(room, [0, 1, 2, 3, 7, 7, 7, 7, 7, 7]);

        // Dropped while it waits: the buffer is as before.
        let (mut one, mut two) = duplex(8);
        let mut kept = vec![1, 2];
        assert!(poll_once(two.read_buf(&mut kept)).await.is_none());
        assert_eq!(kept, [1, 2]);
        one.write_all(b"x").await.unwrap();
        assert_eq!(two.read_buf(&mut kept).await.unwrap(), 1);
        assert_eq!(kept, [1, 2, b'x']);
    });
}

#[test]
#[should_panic(expected = "a reader said that it had put")]
fn read_buf_does_not_believe_a_reader_that_lies() {
    let _ = block_on(Liar.read_buf(&mut Vec::new()));
}

/// Takes no more than so many bytes at a time.
struct Slow(Vec<u8>, VecDeque<usize>);

impl AsyncWrite for Slow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(most) = self.1.pop_front() else {
            return Poll::Ready(Ok(0));
        };
        let part = &buf[..buf.len().min(most)];
        self.0.extend_from_slice(part);
        Poll::Ready(Ok(part.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn write_buf_takes_out_of_the_buffer_what_was_written() {
    block_on(async {
        // In two parts.
        let mut buf = Buf::chain(&b"abc"[..], &b"defgh"[..]);
        let mut slow = Slow(Vec::new(), [2, 9, 1, 9].into());
        assert_eq!(slow.write_buf(&mut buf).await.unwrap(), 2);
        assert_eq!(buf.remaining(), 6);
        slow.write_all_buf(&mut buf).await.unwrap();
        assert_eq!(slow.0, b"abcdefgh");
        assert_eq!(slow.write_buf(&mut buf).await.unwrap(), 0);
        slow.write_all_buf(&mut buf).await.unwrap();

        // A writer that takes no more, and what is left is left.
        let mut buf = &b"xyz"[..];
        let mut slow = Slow(Vec::new(), [1].into());
        let error = slow.write_all_buf(&mut buf).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WriteZero);
        assert_eq!(buf, b"yz");
    });
}

/// The pattern of a program written for tokio: framed messages over a socket, behind buffers, ended by `shutdown`.
#[test]
fn shutdown_flushes_buffers_and_ends_the_writing_half_only() {
    within_limit(|| {
        Owner::new("ext").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let (server, _) = listener.accept().await.unwrap();
            let (read, write) = client.into_split();
            let (mut read, mut write) = (BufReader::new(read), BufWriter::new(write));
            let serve = async {
                let (mut read, mut write) = server.into_split();
                let mut all = BytesMut::with_capacity(4);
                while read.read_buf(&mut all).await? > 0 {}
                write.write_all_buf(&mut all).await?;
                write.shutdown().await
            };
            let ask = async {
                write.write_u32(5).await?;
                write.write_all(b"hello").await?;
                write.shutdown().await?;
                let length = read.read_u32().await?;
                let mut body = vec![0; length as usize];
                read.read_exact(&mut body).await?;
                assert_eq!(body, b"hello");
                assert_eq!(read.read(&mut [0]).await?, 0);
                io::Result::Ok(())
            };
            let (served, asked) = zip(serve, ask).await;
            served.unwrap();
            asked.unwrap();
        });
    });
}

#[test]
fn what_lies_in_a_socket_is_read_into_a_buffer_without_waiting() {
    within_limit(|| {
        Owner::new("ext").block_on(async {
            let (mut one, two) = UnixStream::pair().unwrap();
            let mut got = Vec::new();
            let nothing = two.try_read_buf(&mut got).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
            one.write_all(b"abc").await.unwrap();
            two.readable().await.unwrap();
            assert_eq!(two.try_read_buf(&mut got).unwrap(), 3);
            one.shutdown().await.unwrap();
            two.readable().await.unwrap();
            assert_eq!(two.try_read_buf(&mut got).unwrap(), 0);
            assert_eq!(got, b"abc");
        });
    });
}

#[test]
fn a_simplex_pipe_waits_when_full_and_ends_when_closed() {
    within_limit(|| {
        block_on(async {
            let (mut read, mut write) = simplex(4);
            let send = async {
                write.write_all(b"0123456789").await?;
                write.shutdown().await?;
                let late = write.write(b"x").await.unwrap_err();
                assert_eq!(late.kind(), ErrorKind::BrokenPipe);
                io::Result::Ok(())
            };
            let mut got = Vec::new();
            let (sent, received) = zip(send, read.read_to_end(&mut got)).await;
            sent.unwrap();
            assert_eq!(received.unwrap(), 10);
            assert_eq!(got, b"0123456789");

            let (mut read, mut write) = simplex(4);
            assert!(poll_once(read.read(&mut [0])).await.is_none());
            assert!(poll_once(write.write_all(b"12345")).await.is_none());
            let mut four = [0; 8];
            assert_eq!(read.read(&mut four).await.unwrap(), 4);
        });
    });
}

#[test]
#[should_panic(expected = "a pipe of 0 bytes can never carry anything")]
fn a_simplex_pipe_has_room() {
    let _ = simplex(0);
}

/// Polls a future once, which waits; what it says that it waits for has to be of this kind, at this line.
/// A reader that brings one of these at a time.
struct Parts(VecDeque<io::Result<&'static [u8]>>);

impl AsyncRead for Parts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let part = self.0.pop_front().unwrap_or(Ok(b""))?;
        buf[..part.len()].copy_from_slice(part);
        Poll::Ready(Ok(part.len()))
    }
}

#[test]
fn lines_come_one_by_one_and_are_whole_after_an_error() {
    let failed = || Err(ErrorKind::TimedOut.into());
    let parts = [
        Ok(&b"o"[..]),
        failed(),
        Ok(b"ne\r\n\nth\xff"),
        Ok(b"\nlast\r"),
    ];
    block_on(async {
        let mut lines = BufReader::new(Parts(parts.into())).lines();
        let error = lines.next_line().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("one"));
        assert_eq!(lines.next().await.unwrap().unwrap(), "");
        let error = lines.next_line().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("last\r"));
        assert_eq!(lines.next_line().await.unwrap(), None);
        assert!(lines.get_ref().buffer().is_empty());

        let mut parts = BufReader::new(&b"a;;b"[..]).split(b';');
        assert_eq!(parts.next_segment().await.unwrap().unwrap(), b"a");
        assert_eq!(parts.next().await.unwrap().unwrap(), b"");
        assert_eq!(parts.next_segment().await.unwrap().unwrap(), b"b");
        assert_eq!(parts.next_segment().await.unwrap(), None);
    });
}

#[test]
fn text_is_appended_to_what_a_string_holds() {
    let failed = || Err(ErrorKind::ConnectionReset.into());
    let parts = [Ok(&b"one\ntw"[..]), Ok(b"o\nthr"), failed(), Ok(b"\xff\n")];
    block_on(async {
        let mut reader = BufReader::new(Parts(parts.into()));
        let mut text = String::from("> ");
        assert_eq!(reader.read_line(&mut text).await.unwrap(), 4);
        assert_eq!(reader.read_line(&mut text).await.unwrap(), 4);
        assert_eq!(text, "> one\ntwo\n");
        let error = reader.read_line(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(text, "> one\ntwo\nthr");
        let error = reader.read_line(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(reader.read_line(&mut text).await.unwrap(), 0);
        assert_eq!(text, "> one\ntwo\nthr");

        let parts = [
            Ok(&b"fo"[..]),
            Ok(b"ur"),
            failed(),
            Ok(b"\xc3"),
            Ok(b"\xa4"),
        ];
        let mut reader = Parts(parts.into());
        let error = reader.read_to_string(&mut text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(reader.read_to_string(&mut text).await.unwrap(), 2);
        assert_eq!(text, "> one\ntwo\nthrfourä");
    });
}

macro_rules! waits_here {
    ($kind:ident, $future:expr) => {{
        let _ = wait::take();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!($future).poll(&mut cx).is_pending());
        let wait = wait::take();
        let site = wait.site.expect("a site");
        assert_eq!(
            (wait.kind, site.file(), site.line()),
            (WaitKind::$kind, file!(), line!())
        );
    }};
}

#[test]
fn a_wait_is_told_with_the_line_of_the_users_call() {
    let (mut one, _two) = duplex(1);
    let mut bytes = [0; 4];
    waits_here!(Read, one.read(&mut bytes));
    waits_here!(Read, one.read_exact(&mut bytes));
    waits_here!(Read, one.read_to_end(&mut Vec::new()));
    waits_here!(Read, one.read_to_string(&mut String::new()));
    waits_here!(Read, one.read_buf(&mut Vec::new()));
    waits_here!(Read, one.read_u16());
    waits_here!(Read, one.read_i64_le());
    waits_here!(Read, copy(&mut one, &mut Vec::new()));

    waits_here!(Write, one.write_all(b"more than one"));
    waits_here!(Write, one.write(b"more"));
    waits_here!(Write, one.write_buf(&mut &b"more"[..]));
    waits_here!(Write, one.write_all_buf(&mut &b"more"[..]));
    waits_here!(Write, one.write_u32(7));
    waits_here!(Write, copy(&b"more"[..], &mut one));

    let mut lines = BufReader::new(&mut one);
    waits_here!(Read, lines.read_line(&mut String::new()));
    waits_here!(Read, lines.read_until(b';', &mut Vec::new()));
    waits_here!(Read, lines.fill_buf());
    waits_here!(Read, copy_buf(&mut lines, &mut Vec::new()));
    waits_here!(Read, lines.lines().next());
    let (mut a, _a) = duplex(1);
    let (mut b, _b) = duplex(1);
    waits_here!(Read, copy_bidirectional(&mut a, &mut b));
}
