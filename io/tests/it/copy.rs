//! `copy`, `copy_buf` and `copy_bidirectional`.

use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures_lite::future::{block_on, zip};
use rt_io::util::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter, copy,
    copy_bidirectional, copy_bidirectional_with_sizes, copy_buf, duplex, repeat, sink,
};
use rt_sync::coop;

use crate::support::{Random, within_limit};

/// Gives what it is told to, one step a read.
struct Script(Vec<io::Result<&'static [u8]>>);

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.0.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let bytes = self.0.remove(0)?;
        buf[..bytes.len()].copy_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
}

#[test]
fn what_came_before_a_read_error_is_written_and_interrupts_are_retried() {
    let script = Script(vec![
        Ok(b"ab"),
        Err(ErrorKind::Interrupted.into()),
        Ok(b"cd"),
        Err(ErrorKind::ConnectionReset.into()),
    ]);
    let mut target = Vec::new();
    let error = block_on(copy(script, &mut target)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(target, b"abcd");
}

#[test]
fn a_writer_that_takes_nothing_is_an_error() {
    let mut room = [0; 3];
    let error = block_on(copy(&b"abcd"[..], rt_io::util::Cursor::new(&mut room[..]))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!(&room, b"abc");
}

#[test]
fn large_data_is_copied_whole_while_the_buffer_grows() {
    within_limit(|| {
        let data = Random::new(5).bytes(1_000_000);
        let (mut one, mut two) = duplex(200_000);
        let mut target = Vec::new();
        let send = async {
            let copied = copy(&data[..], &mut one).await.unwrap();
            one.close().await.unwrap();
            copied
        };
        let (sent, received) = block_on(zip(send, copy(&mut two, &mut target)));
        assert_eq!((sent, received.unwrap()), (1_000_000, 1_000_000));
        assert!(target == data, "other bytes than were sent");
    });
}

#[test]
fn a_buffering_writer_is_flushed_before_the_copy_waits() {
    fn check<F: Future>(copying: F, far: &mut (impl AsyncRead + Unpin)) {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(pin!(copying).poll(&mut cx).is_pending());
        let mut got = [0; 5];
        let poll = Pin::new(far).poll_read(&mut cx, &mut got);
        assert!(matches!(poll, Poll::Ready(Ok(5))), "kept back: {poll:?}");
        assert_eq!(&got, b"hello");
    }
    let (mut source, near) = duplex(64);
    let (out, mut far) = duplex(64);
    block_on(source.write_all(b"hello")).unwrap();
    check(copy(near, BufWriter::new(out)), &mut far);

    let (mut source, near) = duplex(64);
    let (out, mut far) = duplex(64);
    block_on(source.write_all(b"hello")).unwrap();
    check(
        copy_buf(BufReader::new(near), BufWriter::new(out)),
        &mut far,
    );
}

#[test]
fn an_endless_copy_gives_way() {
    let mut cx = Context::from_waker(Waker::noop());
    for buffered in [false, true] {
        let saved = coop::start();
        let poll = if buffered {
            pin!(copy_buf(BufReader::new(repeat(1)), sink())).poll(&mut cx)
        } else {
            pin!(copy(repeat(1), sink())).poll(&mut cx)
        };
        coop::restore(saved);
        assert!(poll.is_pending());
    }
}

#[test]
fn copy_buf_consumes_only_what_was_written() {
    let mut reader = BufReader::new(&b"abcdef"[..]);
    let mut cx = Context::from_waker(Waker::noop());
    let (mut out, mut far) = duplex(2);
    {
        let mut copying = pin!(copy_buf(&mut reader, &mut out));
        assert!(copying.as_mut().poll(&mut cx).is_pending());
    }
    let mut rest = Vec::new();
    block_on(reader.read_to_end(&mut rest)).unwrap();
    assert_eq!(rest, b"cdef");
    let mut got = [0; 2];
    block_on(far.read_exact(&mut got)).unwrap();
    assert_eq!(&got, b"ab");
}

#[test]
fn a_half_closed_client_still_gets_its_answer() {
    within_limit(|| {
        for sizes in [None, Some((1, 3))] {
            let (mut client, mut near_client) = duplex(8);
            let (mut near_server, mut server) = duplex(8);
            let proxy = async {
                match sizes {
                    None => copy_bidirectional(&mut near_client, &mut near_server).await,
                    Some((forth, back)) => {
                        copy_bidirectional_with_sizes(
                            &mut near_client,
                            &mut near_server,
                            forth,
                            back,
                        )
                        .await
                    }
                }
            };
            let ask = async {
                client.write_all(b"question").await.unwrap();
                client.close().await.unwrap();
                let mut answer = String::new();
                client.read_to_string(&mut answer).await.unwrap();
                assert_eq!(answer, "a rather long answer to: question");
            };
            let serve = async {
                let mut question = String::new();
                server.read_to_string(&mut question).await.unwrap();
                let answer = format!("a rather long answer to: {question}");
                server.write_all(answer.as_bytes()).await.unwrap();
                server.close().await.unwrap();
            };
            let (counts, ((), ())) = block_on(zip(proxy, zip(ask, serve)));
            assert_eq!(counts.unwrap(), (8, 33));
        }
    });
}

#[test]
fn an_error_of_one_side_ends_both_directions() {
    let (client, mut near_client) = duplex(8);
    let (mut near_server, server) = duplex(8);
    let mut cx = Context::from_waker(Waker::noop());
    let mut client = client;
    block_on(client.write_all(b"x")).unwrap();
    drop(server);
    let poll = pin!(copy_bidirectional(&mut near_client, &mut near_server)).poll(&mut cx);
    let Poll::Ready(Err(error)) = poll else {
        panic!("expected an error: {poll:?}");
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert!(
        Pin::new(&mut near_client)
            .poll_write(&mut cx, b"y")
            .is_ready()
    );
}

#[test]
#[should_panic(expected = "a reader said that it had put 9000000 bytes into a buffer of 8192")]
fn a_reader_that_boasts_is_told_so() {
    struct Boaster;
    impl AsyncRead for Boaster {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(9_000_000))
        }
    }
    let _ = block_on(copy(Boaster, sink()));
}
