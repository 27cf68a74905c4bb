//! Readiness: who is woken by what, and that nothing is lost or mixed up.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use futures_lite::future::{poll_fn, zip};
use rt_io::driver::Registered;
use rt_io::{Interest, Ready};

use crate::driver::pair;
use crate::exec::{Background, Counter, Owner};
use crate::support::{Random, within_limit};

#[test]
fn single_bytes_at_random_gaps_all_arrive() {
    const BYTES: usize = 100_000;
    within_limit(|| {
        let background = Background::new("bytes");
        let (io, mut peer) = pair();
        let writer = thread::spawn(move || {
            let mut random = Random::new(1);
            for number in 0..BYTES {
                peer.write_all(&[number as u8]).unwrap();
                for _ in 0..random.up_to(64) {
                    std::hint::spin_loop();
                }
            }
        });
        background.block_on(async {
            let mut seen = 0;
            let mut buf = [0; 7];
            while seen < BYTES {
                io.readable().await.unwrap();
                match io.try_io(Interest::READABLE, |mut io| io.read(&mut buf)) {
                    Ok(n) => {
                        for byte in &buf[..n] {
                            assert_eq!(*byte, seen as u8);
                            seen += 1;
                        }
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
        });
        writer.join().unwrap();
    });
}

#[test]
fn a_short_read_saves_the_read_that_would_block() {
    within_limit(|| {
        let mut owner = Owner::new("short");
        let (io, mut peer) = pair();
        owner.block_on(async { io.register().unwrap() });
        let mut reads = 0;
        for round in 0..10 {
            let counter = Counter::new(None);
            let mut buf = [0; 64];
            let mut read = pin!(poll_fn(|cx| {
                io.poll_read_stream(cx, 64, |mut io| {
                    reads += 1;
                    io.read(&mut buf)
                })
            }));
            if round == 0 {
                // Before its first event a source that was registered by hand is ready for nothing.
                assert!(owner.poll(read.as_mut(), &counter).is_pending());
            }
            peer.write_all(b"hello").unwrap();
            assert_eq!(owner.block_on(read).unwrap(), 5);
        }
        assert_eq!(reads, 10);
    });
}

#[test]
fn any_number_of_tasks_may_wait_and_those_that_go_are_forgotten() {
    within_limit(|| {
        let mut owner = Owner::new("many");
        let (io, mut peer) = pair();
        let counters: Vec<_> = (0..5).map(|_| Counter::new(None)).collect();
        let mut waits: Vec<_> = (0..5).map(|_| Box::pin(io.readable())).collect();
        for (wait, counter) in waits.iter_mut().zip(&counters) {
            assert!(owner.poll(wait.as_mut(), counter).is_pending());
        }
        let mut writable = pin!(io.ready(Interest::WRITABLE));
        let gone = Counter::new(None);
        drop(waits.swap_remove(4));
        owner.settle();
        let ready = owner.block_on(writable.as_mut()).unwrap();
        assert_eq!(ready, Ready::WRITABLE);
        assert!(counters.iter().all(|counter| counter.wakes() == 0));
        {
            let mut short = pin!(io.readable());
            assert!(owner.poll(short.as_mut(), &gone).is_pending());
            assert_eq!(Arc::strong_count(&gone), 2);
        }
        assert_eq!(
            Arc::strong_count(&gone),
            1,
            "a stored waker outlives its future"
        );
        peer.write_all(b"x").unwrap();
        owner.settle();
        for counter in &counters[..4] {
            assert_eq!(counter.wakes(), 1);
        }
        assert_eq!(counters[4].wakes(), 0);
        assert_eq!(Arc::strong_count(&counters[4]), 1);
        for (wait, counter) in waits.iter_mut().zip(&counters) {
            assert!(owner.poll(wait.as_mut(), counter).is_ready());
        }
    });
}

#[test]
fn a_half_closed_peer_wakes_the_reader_and_never_makes_the_writer_spin() {
    within_limit(|| {
        let mut owner = Owner::new("half");
        let (io, peer) = pair();
        let block = vec![7; 1 << 16];
        let counter = Counter::new(None);
        let reader = Counter::new(None);
        // Fill the buffer until the writer parks.
        let mut write = pin!(poll_fn(|cx| {
            loop {
                match io.poll_write_stream(cx, block.len(), |mut io| io.write(&block)) {
                    std::task::Poll::Ready(result) => {
                        result.unwrap();
                    }
                    std::task::Poll::Pending => return std::task::Poll::<()>::Pending,
                }
            }
        }));
        assert!(owner.poll(write.as_mut(), &counter).is_pending());
        let mut buf = [0; 8];
        let mut read = pin!(poll_fn(|cx| {
            io.poll_read_io(cx, |mut io| io.read(&mut buf))
        }));
        // Whatever the selector has to say about a full socket is said now.
        owner.settle();
        assert!(owner.poll(write.as_mut(), &counter).is_pending());
        assert!(owner.poll(read.as_mut(), &reader).is_pending());
        let before = counter.wakes();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        owner.settle();
        assert_eq!(reader.wakes(), 1);
        let std::task::Poll::Ready(result) = owner.poll(read.as_mut(), &reader) else {
            panic!("the end of the stream is not seen")
        };
        assert_eq!(result.unwrap(), 0);
        assert!(counter.wakes() - before <= 1);
        let parked = counter.wakes();
        assert!(owner.poll(write.as_mut(), &counter).is_pending());
        owner.settle();
        assert_eq!(counter.wakes(), parked, "the writer spins");
        // And the writer goes on when there is room.
        let mut sink = vec![0; 1 << 20];
        let mut peer = peer;
        let _ = peer.read(&mut sink).unwrap();
        owner.settle();
        assert!(counter.wakes() > parked);
    });
}

#[test]
fn the_end_of_a_pipe_wakes_its_writer() {
    within_limit(|| {
        let mut owner = Owner::new("pipe");
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let io = Registered::new(std::fs::File::from(writer));
        let mut filled = 0;
        let error = loop {
            match io.get_ref().write(&[0; 4096]) {
                Ok(n) => filled += n,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(filled > 0);
        let counter = Counter::new(None);
        let mut waiting = pin!(io.ready(Interest::WRITABLE));
        assert!(owner.poll(waiting.as_mut(), &counter).is_pending());
        owner.settle();
        drop(reader);
        let ready = owner.block_on(waiting).unwrap();
        assert!(ready.is_writable() && ready.is_write_closed(), "{ready:?}");
        let error = owner
            .block_on(io.async_io(Interest::WRITABLE, |mut io| io.write(b"x")))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_reader_and_a_writer_on_different_threads_share_one_source() {
    const ROUNDS: usize = 2_000;
    within_limit(|| {
        for round in 0..20 {
            let one = Background::new("one");
            let (io, peer) = pair();
            let (io, mut back) = (Arc::new(io), peer.try_clone().unwrap());
            let echo = thread::spawn(move || {
                let mut peer = peer;
                let mut buf = [0; 512];
                loop {
                    match peer.read(&mut buf).unwrap() {
                        0 => return,
                        n => back.write_all(&buf[..n]).unwrap(),
                    }
                }
            });
            let writing = {
                let io = Arc::clone(&io);
                let two = Background::new("two");
                thread::spawn(move || {
                    two.block_on(async {
                        for number in 0..ROUNDS {
                            let bytes = (number as u32).to_ne_bytes();
                            io.async_io(Interest::WRITABLE, |mut io| io.write(&bytes))
                                .await
                                .unwrap();
                        }
                    });
                    // Its driver is whoever waited first; it has to live on.
                    two
                })
            };
            one.block_on(async {
                let mut seen = 0;
                let mut buf = [0; 4 * 97];
                let mut left = 0;
                while seen < ROUNDS {
                    let n = poll_fn(|cx| {
                        let room = &mut buf[left..];
                        io.poll_read_stream(cx, room.len(), |mut io| io.read(room))
                    })
                    .await
                    .unwrap();
                    let full = left + n;
                    for bytes in buf[..full / 4 * 4].chunks(4) {
                        let number = u32::from_ne_bytes(bytes.try_into().unwrap());
                        assert_eq!(number, seen as u32, "round {round}");
                        seen += 1;
                    }
                    left = full % 4;
                    buf.copy_within(full - left..full, 0);
                }
            });
            let two = writing.join().unwrap();
            io.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
            echo.join().unwrap();
            drop(io);
            assert_eq!(one.handle.registrations() + two.handle.registrations(), 0);
        }
    });
}

#[test]
fn recycled_descriptors_and_slots_do_not_mix() {
    const SOCKETS: usize = 50_000;
    within_limit(|| {
        let background = Background::new("recycled");
        // Peers that write to descriptors which are closed while they do.
        let (give, take) = std::sync::mpsc::sync_channel::<(UnixStream, u8)>(64);
        let writer = thread::spawn(move || {
            for (mut peer, byte) in take {
                // The other end may be gone already.
                let _ = peer.write_all(&[byte]);
            }
        });
        // A source that lives through it all, and must hear of nothing that is not its own.
        let (quiet, quiet_peer) = pair();
        let counter = Counter::new(None);
        let mut silence = pin!(quiet.readable());
        let _context = rt_io::context::enter(Some(Arc::clone(&background.handle)), false);
        let waker = counter.waker();
        assert!(
            silence
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        for number in 0..SOCKETS {
            let (io, peer) = pair();
            io.register().unwrap();
            let byte = number as u8;
            give.send((peer, byte)).unwrap();
            if number % 3 == 0 {
                // Closed with its event under way.
                continue;
            }
            let mut buf = [0; 4];
            let read = futures_lite::future::block_on(poll_fn(|cx| {
                io.poll_read_stream(cx, 4, |mut io| io.read(&mut buf))
            }));
            assert_eq!(read.unwrap(), 1);
            assert_eq!(buf[0], byte, "bytes of another socket");
        }
        drop(give);
        writer.join().unwrap();
        assert_eq!(counter.wakes(), 0, "woken by the event of another socket");
        assert_eq!(background.handle.registrations(), 1);
        (&quiet_peer).write_all(b"x").unwrap();
        futures_lite::future::block_on(silence).unwrap();
    });
}

/// Two events in one batch, and who hears of the one closes the source of the other and makes a new one, which gets its slot and
/// its descriptor (pains D3).
#[test]
fn a_source_that_takes_a_place_within_a_batch_hears_nothing_of_its_predecessor() {
    struct Swap {
        handle: Arc<rt_io::driver::Handle>,
        old: Mutex<Option<Registered<UnixStream>>>,
        new: Mutex<Option<(Registered<UnixStream>, UnixStream)>>,
        counter: Arc<Counter>,
    }
    impl Wake for Swap {
        fn wake(self: Arc<Self>) {
            drop(self.old.lock().unwrap().take());
            let (io, peer) = pair();
            assert!(reads_nothing(&io, &self.handle, &self.counter.waker()));
            *self.new.lock().unwrap() = Some((io, peer));
        }
    }
    /// Registers, and waits.
    fn reads_nothing(
        io: &Registered<UnixStream>,
        handle: &Arc<rt_io::driver::Handle>,
        waker: &Waker,
    ) -> bool {
        let _context = rt_io::context::enter(Some(Arc::clone(handle)), true);
        let mut cx = Context::from_waker(waker);
        io.poll_read_stream(&mut cx, 1, |mut io| io.read(&mut [0]))
            .is_pending()
    }
    within_limit(|| {
        for closed_first in [false, true] {
            let mut owner = Owner::new("batch");
            let (closes, mut closes_peer) = pair();
            let (old, mut old_peer) = pair();
            let bystander = Counter::new(None);
            assert!(reads_nothing(&old, &owner.handle, &bystander.waker()));
            let swap = Arc::new(Swap {
                handle: Arc::clone(&owner.handle),
                old: Mutex::new(Some(old)),
                new: Mutex::new(None),
                counter: Counter::new(None),
            });
            assert!(reads_nothing(
                &closes,
                &owner.handle,
                &Arc::clone(&swap).into()
            ));
            owner.settle();
            let mut peers = [&mut closes_peer, &mut old_peer];
            if closed_first {
                peers.reverse();
            }
            for peer in peers {
                peer.write_all(b"x").unwrap();
            }
            assert_eq!(owner.driver.turn(None).unwrap().events, 2);
            let (new, mut new_peer) = swap.new.lock().unwrap().take().expect("it was woken");
            owner.settle();
            assert_eq!(
                swap.counter.wakes(),
                0,
                "woken by an event of another source"
            );
            assert!(reads_nothing(&new, &owner.handle, &swap.counter.waker()));
            new_peer.write_all(b"y").unwrap();
            while swap.counter.wakes() == 0 {
                owner.driver.turn(None).unwrap();
            }
            assert!(!reads_nothing(&new, &owner.handle, &swap.counter.waker()));
        }
    });
}

#[test]
fn a_waker_that_panics_does_not_keep_others_from_being_woken() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("boom");
        }
    }
    within_limit(|| {
        let mut owner = Owner::new("bomb");
        let (io, mut peer) = pair();
        let bomb = Arc::new(Bomb).into();
        let counter = Counter::new(None);
        let mut first = pin!(io.readable());
        let mut second = pin!(io.readable());
        {
            let _context = rt_io::context::enter(Some(Arc::clone(&owner.handle)), true);
            let mut cx = Context::from_waker(&bomb);
            assert!(first.as_mut().poll(&mut cx).is_pending());
        }
        assert!(owner.poll(second.as_mut(), &counter).is_pending());
        peer.write_all(b"x").unwrap();
        let turned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            owner.driver.turn(None).unwrap();
        }));
        assert!(turned.is_err());
        assert_eq!(counter.wakes(), 1);
        let (a, b) = owner.block_on(zip(first, second));
        a.unwrap();
        b.unwrap();
    });
}
