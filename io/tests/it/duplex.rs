//! The pipe in memory.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use futures_lite::future::{block_on, zip};
use rt_io::util::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
use rt_sync::coop;

use crate::support::{Random, within_limit};

/// Counts its wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), Waker::from(count))
}

#[test]
fn any_chunks_arrive_in_order_in_both_directions() {
    within_limit(|| {
        for seed in 1..=60 {
            let mut random = Random::new(seed);
            let (one, two) = duplex(random.up_to(100));
            let (length, back_length) = (random.up_to(5_000), random.up_to(5_000));
            let (forth, back) = (random.bytes(length), random.bytes(back_length));
            let ends = [(one, forth.clone(), back.clone()), (two, back, forth)];
            let threads = ends.map(|(end, outgoing, expected)| {
                let mut sizes = Random::new(seed + outgoing.len() as u64);
                thread::spawn(move || {
                    let (mut reader, mut writer) = rt_io::util::split(end);
                    let mut write_sizes = Random::new(seed + 7);
                    let write = async {
                        let mut rest = &outgoing[..];
                        while !rest.is_empty() {
                            let chunk = &rest[..write_sizes.up_to(300).min(rest.len())];
                            let written = if chunk.len().is_multiple_of(3) {
                                let (head, tail) = chunk.split_at(chunk.len() / 2);
                                let parts = [IoSlice::new(head), IoSlice::new(tail)];
                                writer.write_vectored(&parts).await.unwrap()
                            } else {
                                writer.write(chunk).await.unwrap()
                            };
                            assert!((1..=chunk.len()).contains(&written));
                            rest = &rest[written..];
                        }
                        writer.close().await.unwrap();
                    };
                    let read = async {
                        let mut got: Vec<u8> = Vec::new();
                        let (mut first, mut second) = (vec![0; 300], vec![0; 300]);
                        loop {
                            let size = sizes.up_to(300);
                            let read = if size.is_multiple_of(3) {
                                let head = size / 2;
                                let mut parts = [
                                    IoSliceMut::new(&mut first[..head]),
                                    IoSliceMut::new(&mut second[..size - head]),
                                ];
                                let read = reader.read_vectored(&mut parts).await.unwrap();
                                got.extend(&first[..read.min(head)]);
                                got.extend(&second[..read.saturating_sub(head)]);
                                read
                            } else {
                                let read = reader.read(&mut first[..size]).await.unwrap();
                                got.extend(&first[..read]);
                                read
                            };
                            if read == 0 {
                                break got;
                            }
                        }
                    };
                    let ((), got) = block_on(zip(write, read));
                    assert!(got == expected, "seed {seed}: other bytes than were sent");
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}

#[test]
fn a_full_pipe_holds_its_writer_until_there_is_room() {
    let (mut one, mut two) = duplex(4);
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    let mut write = |bytes: &[u8]| Pin::new(&mut one).poll_write(&mut cx, bytes);

    assert!(matches!(write(b"abcdef"), Poll::Ready(Ok(4))));
    assert!(write(b"ef").is_pending());
    assert_eq!(count.0.load(SeqCst), 0);
    let mut got = [0; 3];
    block_on(two.read_exact(&mut got)).unwrap();
    assert_eq!(&got, b"abc");
    assert_eq!(count.0.load(SeqCst), 1, "room wakes the writer once");
    assert!(matches!(write(b"efgh"), Poll::Ready(Ok(3))));
    let mut rest = [0; 4];
    block_on(two.read_exact(&mut rest)).unwrap();
    assert_eq!(&rest, b"defg");
}

#[test]
fn a_dropped_end_leaves_its_bytes_then_eof_and_breaks_writes() {
    let (mut one, mut two) = duplex(16);
    block_on(one.write_all(b"last")).unwrap();
    drop(one);
    let mut got = Vec::new();
    block_on(two.read_to_end(&mut got)).unwrap();
    assert_eq!(got, b"last");
    let error = block_on(two.write(b"x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_drop_wakes_the_waiting_reader_and_the_waiting_writer() {
    for closes_only in [true, false] {
        let (mut one, mut two) = duplex(2);
        block_on(two.write_all(b"ab")).unwrap();
        let (count, waker) = counter();
        let mut cx = Context::from_waker(&waker);
        assert!(Pin::new(&mut two).poll_write(&mut cx, b"c").is_pending());
        let (read_count, read_waker) = counter();
        let mut read_cx = Context::from_waker(&read_waker);
        let mut buf = [0; 1];
        assert!(
            Pin::new(&mut two)
                .poll_read(&mut read_cx, &mut buf)
                .is_pending()
        );
        if closes_only {
            block_on(one.close()).unwrap();
            assert_eq!(count.0.load(SeqCst), 0, "its reader is still there");
        }
        let kept_alive = closes_only.then_some(one);
        assert_eq!(read_count.0.load(SeqCst), 1);
        let end = Pin::new(&mut two).poll_read(&mut read_cx, &mut buf);
        assert!(matches!(end, Poll::Ready(Ok(0))));
        drop(kept_alive);
        assert_eq!(count.0.load(SeqCst), 1);
    }
}

#[test]
fn an_end_that_goes_drops_the_wakers_it_stored() {
    let (mut one, two) = duplex(2);
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    let mut buf = [0; 1];
    assert!(Pin::new(&mut one).poll_read(&mut cx, &mut buf).is_pending());
    assert!(Pin::new(&mut one).poll_read(&mut cx, &mut buf).is_pending());
    assert_eq!(Arc::strong_count(&count), 3, "kept once beside ours");
    drop(one);
    assert_eq!(Arc::strong_count(&count), 2);
    drop(two);
}

#[test]
fn a_wake_may_use_the_pipe_it_came_from() {
    struct Reader(std::sync::Mutex<Option<rt_io::util::DuplexStream>>);
    impl Wake for Reader {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    within_limit(|| {
        let (mut one, mut two) = duplex(2);
        let reader = Arc::new(Reader(std::sync::Mutex::new(None)));
        let waker = Waker::from(reader.clone());
        let mut buf = [0; 1];
        let mut cx = Context::from_waker(&waker);
        assert!(Pin::new(&mut two).poll_read(&mut cx, &mut buf).is_pending());
        *reader.0.lock().unwrap() = Some(two);
        block_on(one.write(b"x")).unwrap();
        let error = block_on(one.write(b"y")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn endless_data_makes_a_task_give_way() {
    let (mut one, mut two) = duplex(8);
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    let saved = coop::start();
    let mut rounds = 0;
    let mut ping = pin!(async {
        loop {
            one.write_all(b"x").await.unwrap();
            two.read_exact(&mut [0]).await.unwrap();
            rounds += 1;
        }
    });
    let poll: Poll<()> = ping.as_mut().poll(&mut cx);
    coop::restore(saved);
    assert!(poll.is_pending());
    assert_eq!(count.0.load(SeqCst), 1, "it woke itself");
    assert_eq!(rounds, usize::from(coop::BUDGET) / 2);
}

#[test]
#[should_panic(expected = "0 bytes")]
fn a_pipe_without_room_is_refused() {
    let _ = duplex(0);
}

/// A waker that panics.
struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        panic!("a bad waker");
    }
}

#[test]
fn a_waker_that_panics_takes_no_bytes_along_and_keeps_nobody_asleep() {
    within_limit(|| {
        let bad = Waker::from(Arc::new(Bad));
        let mut bad = Context::from_waker(&bad);
        let (mut one, mut two) = duplex(1);
        block_on(one.write(b"a")).unwrap();
        assert!(Pin::new(&mut one).poll_write(&mut bad, b"b").is_pending());
        let mut buf = [0; 1];
        assert_eq!(block_on(two.read(&mut buf)).unwrap(), 1);
        assert_eq!(&buf, b"a");

        // The reader has a bad one, and the writer, at the same end, is told all the same when the other end goes.
        block_on(two.write(b"c")).unwrap();
        let (count, good) = counter();
        let mut good = Context::from_waker(&good);
        assert!(
            Pin::new(&mut two)
                .poll_read(&mut bad, &mut buf)
                .is_pending()
        );
        assert!(Pin::new(&mut two).poll_write(&mut good, b"d").is_pending());
        drop(one);
        assert_eq!(count.0.load(SeqCst), 1);
        assert_eq!(block_on(two.read(&mut buf)).unwrap(), 0);
    });
}
