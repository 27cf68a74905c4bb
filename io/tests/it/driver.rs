//! The driver by itself: turns, unparking, registration, close.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rt_io::Interest;
use rt_io::context;
use rt_io::driver::{Driver, Registered};
use rt_io::error::{is_no_runtime, is_runtime_closed};

use crate::exec::{Background, Counter, Owner};
use crate::support::within_limit;

pub(crate) fn pair() -> (Registered<UnixStream>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    ours.set_nonblocking(true).expect("non-blocking");
    (Registered::new(ours), theirs)
}

async fn read_one(io: &Registered<UnixStream>) -> std::io::Result<u8> {
    let mut byte = [0];
    io.async_io(Interest::READABLE, |mut io| io.read_exact(&mut byte))
        .await?;
    Ok(byte[0])
}

#[test]
fn a_timed_turn_is_never_early_and_not_late_by_a_millisecond() {
    within_limit(|| {
        let (mut driver, _handle) = Driver::new("timer".into()).unwrap();
        let mut best = Duration::MAX;
        for _ in 0..30 {
            let timeout = Duration::from_micros(1300);
            let start = Instant::now();
            let turn = driver.turn(Some(timeout)).unwrap();
            let late = start.elapsed().checked_sub(timeout).expect("early");
            assert_eq!((turn.events, turn.woken), (0, false));
            best = best.min(late);
        }
        // `epoll_wait` alone would wait for 2 ms each time. The best of many, since the machine may be busy.
        assert!(best < Duration::from_micros(500), "late by {best:?}");
    });
}

#[test]
fn a_deadline_that_moves_both_ways_is_kept() {
    within_limit(|| {
        let (mut driver, handle) = Driver::new("timer".into()).unwrap();
        let start = Instant::now();
        let far = start + Duration::from_secs(3600);
        // Armed for an hour, then for less, then for more again: the early timer must not end the last turn.
        handle.unpark();
        assert!(driver.turn_until(Some(far)).unwrap().woken);
        let near = start + Duration::from_millis(20);
        handle.unpark();
        assert!(driver.turn_until(Some(near)).unwrap().woken);
        let later = start + Duration::from_millis(60);
        assert!(!driver.turn_until(Some(later)).unwrap().woken);
        assert!(Instant::now() >= later);
        assert!(start.elapsed() < Duration::from_secs(20));
        // One that has passed does not wait.
        driver.turn_until(Some(start)).unwrap();
    });
}

#[test]
fn unpark_from_another_thread_ends_any_turn() {
    within_limit(|| {
        let (mut driver, handle) = Driver::new("unpark".into()).unwrap();
        for timeout in [
            None,
            Some(Duration::MAX),
            Some(Duration::from_secs(10_000_000_000)),
            Some(Duration::from_secs(3600)),
        ] {
            let handle = Arc::clone(&handle);
            let other = thread::spawn(move || handle.unpark());
            assert!(driver.turn(timeout).unwrap().woken);
            other.join().unwrap();
        }
        assert_eq!(driver.turn(Some(Duration::ZERO)).unwrap().events, 0);
        // Before the turn counts as well.
        handle.unpark();
        assert!(driver.turn(None).unwrap().woken);
        handle.unpark();
        assert!(driver.turn_now().unwrap().woken);
        assert!(!driver.turn_now().unwrap().woken);
    });
}

#[test]
fn a_source_registers_when_it_first_has_to_wait_and_leaves_when_dropped() {
    within_limit(|| {
        let mut owner = Owner::new("lazy");
        let (io, mut peer) = pair();
        peer.write_all(b"ab").unwrap();
        assert_eq!(owner.block_on(read_one(&io)).unwrap(), b'a');
        assert_eq!(owner.block_on(read_one(&io)).unwrap(), b'b');
        assert!(!io.is_registered());
        assert_eq!(owner.handle.registrations(), 0);

        let writer = thread::spawn(move || {
            peer.write_all(b"c").unwrap();
            peer
        });
        owner.block_on(io.readable()).unwrap();
        assert_eq!(owner.block_on(read_one(&io)).unwrap(), b'c');
        assert!(io.is_registered());
        assert_eq!(owner.handle.registrations(), 1);

        drop(io);
        assert_eq!(owner.handle.registrations(), 0);
        drop(writer.join());
        owner.settle();
    });
}

#[test]
fn into_inner_deregisters_and_the_descriptor_may_register_anew() {
    within_limit(|| {
        let mut one = Owner::new("one");
        let mut two = Owner::new("two");
        let (io, mut peer) = pair();
        let mut waiting = pin!(io.readable());
        let counter = Counter::new(None);
        assert!(one.poll(waiting.as_mut(), &counter).is_pending());
        assert_eq!(one.handle.registrations(), 1);
        let (io, peer_two) = {
            // A future that waits borrows the source, so it has to go first.
            let (other, other_peer) = pair();
            one.block_on(async { assert!(other.register().is_ok()) });
            assert_eq!(one.handle.registrations(), 2);
            (Registered::new(other.into_inner()), other_peer)
        };
        assert_eq!(one.handle.registrations(), 1);
        (&peer_two).write_all(b"x").unwrap();
        assert_eq!(
            two.block_on(async { io.readable().await.map(|()| 1) })
                .unwrap(),
            1
        );
        assert_eq!(two.handle.registrations(), 1);
        peer.write_all(b"y").unwrap();
        one.settle();
        assert_eq!(counter.wakes(), 1);
    });
}

#[test]
fn without_a_runtime_the_error_says_what_to_do() {
    within_limit(|| {
        let (io, mut peer) = pair();
        let error = futures_lite::future::block_on(io.readable()).unwrap_err();
        assert!(is_no_runtime(&error), "{error}");
        let text = error.to_string();
        assert!(text.contains("no rt runtime on this thread"), "{text}");
        assert!(
            text.contains("block_on") && text.contains("enter()"),
            "{text}"
        );
        // What need not wait works all the same, and a context that comes later is found.
        peer.write_all(b"a").unwrap();
        assert_eq!(futures_lite::future::block_on(read_one(&io)).unwrap(), b'a');
        let mut owner = Owner::new("late");
        peer.write_all(b"b").unwrap();
        owner.block_on(io.readable()).unwrap();
    });
}

#[test]
fn contexts_nest_and_can_be_masked() {
    let one = Owner::new("one");
    let two = Owner::new("two");
    let (a, _a) = pair();
    let (b, _b) = pair();
    let (c, _c) = pair();
    let outer = context::enter(Some(Arc::clone(&one.handle)), true);
    {
        let _inner = context::enter(Some(Arc::clone(&two.handle)), true);
        a.register().unwrap();
        {
            let _none = context::enter(None, false);
            assert!(is_no_runtime(&b.register().unwrap_err()));
        }
        b.register().unwrap();
    }
    c.register().unwrap();
    drop(outer);
    assert_eq!(one.handle.registrations(), 1);
    assert_eq!(two.handle.registrations(), 2);
}

#[test]
fn close_wakes_everybody_and_names_the_runtime() {
    within_limit(|| {
        let background = Background::new("payments");
        let (io, mut peer) = pair();
        let handle = Arc::clone(&background.handle);
        let (reading, waiting) = background.block_on(async {
            let closer = async {
                // Both waits are parked by now: `zip` polls in order.
                handle.close();
            };
            let waits = futures_lite::future::zip(
                futures_lite::future::poll_fn(|cx| {
                    io.poll_read_io(cx, |mut io| io.read(&mut [0; 8]))
                }),
                io.ready(Interest::READABLE),
            );
            futures_lite::future::zip(waits, closer).await.0
        });
        for error in [reading.unwrap_err(), waiting.unwrap_err()] {
            assert!(is_runtime_closed(&error), "{error}");
            assert!(error.to_string().contains("\"payments\""), "{error}");
        }
        // At once, also with data there, on any runtime: it is an error and not a matter of luck.
        peer.write_all(b"x").unwrap();
        let mut other = Owner::new("other");
        assert!(is_runtime_closed(
            &other.block_on(read_one(&io)).unwrap_err()
        ));
        let tried = io.try_io(Interest::READABLE, |mut io| io.read(&mut [0; 8]));
        assert!(is_runtime_closed(&tried.unwrap_err()));
        // New sources are refused.
        let (late, _peer) = pair();
        let error = background.block_on(late.readable()).unwrap_err();
        assert!(is_runtime_closed(&error), "{error}");
        drop((io, late));
        assert_eq!(background.handle.registrations(), 0);
    });
}

#[test]
fn dropping_the_driver_closes_it() {
    within_limit(|| {
        let owner = Owner::new("dropped");
        let (io, _peer) = pair();
        let counter = Counter::new(None);
        let mut waiting = pin!(io.readable());
        assert!(owner.poll(waiting.as_mut(), &counter).is_pending());
        drop(owner);
        assert_eq!(counter.wakes(), 1);
        let error = futures_lite::future::block_on(waiting).unwrap_err();
        assert!(is_runtime_closed(&error), "{error}");
    });
}

#[test]
fn the_hook_hears_of_registrations_by_other_threads_only() {
    within_limit(|| {
        let owner = Owner::new("hook");
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        owner.handle.set_on_foreign(Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        let (a, _a) = pair();
        let (b, _b) = pair();
        {
            let _own = context::enter(Some(Arc::clone(&owner.handle)), true);
            a.register().unwrap();
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        let _foreign = context::enter(Some(Arc::clone(&owner.handle)), false);
        b.register().unwrap();
        b.register().unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_regular_file_is_refused_with_a_hint() {
    let owner = Owner::new("files");
    let file = std::fs::File::open("Cargo.toml").unwrap();
    let io = Registered::new(file);
    let _own = context::enter(Some(Arc::clone(&owner.handle)), true);
    let error = io.register().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("regular files"), "{error}");
    assert_eq!(owner.handle.registrations(), 0);
    assert!(!io.is_registered());
}

/// Who attends to another driver wakes up for its events, and leaves them there.
#[test]
fn a_turn_ends_with_an_event_of_a_driver_that_is_attended_to() {
    within_limit(|| {
        let (mut busy, busy_handle) = Driver::new("busy".into()).unwrap();
        let (mut idle, idle_handle) = Driver::new("idle".into()).unwrap();
        let _here = context::enter(Some(busy_handle.clone()), true);
        let (io, mut peer) = pair();
        let mut read = pin!(read_one(&io));
        assert!(
            futures_lite::future::block_on(futures_lite::future::poll_once(read.as_mut()))
                .is_none()
        );
        busy.turn_now().unwrap();
        for round in 0..3 {
            idle_handle.attend(&busy_handle).unwrap();
            let writer = thread::spawn(move || {
                peer.write_all(&[7]).unwrap();
                peer
            });
            let turn = idle.turn(None).unwrap();
            assert_eq!((turn.events, turn.woken), (0, false));
            peer = writer.join().unwrap();
            idle_handle.ignore(&busy_handle);
            assert_eq!(busy.turn_now().unwrap().events, 1, "round {round}");
            // Not any more.
            peer.write_all(&[7]).unwrap();
            let turn = idle.turn(Some(Duration::from_millis(20))).unwrap();
            assert_eq!((turn.events, turn.woken), (0, false));
            busy.turn_now().unwrap();
        }
        assert_eq!(futures_lite::future::block_on(read).unwrap(), 7);
    });
}

/// The owner of the other driver does nothing about the event: that wakes who attends once, and not over and over.
#[test]
fn an_event_that_nobody_fetches_ends_one_turn() {
    within_limit(|| {
        const QUIET: Duration = Duration::from_millis(30);
        let (_busy, busy_handle) = Driver::new("busy".into()).unwrap();
        let (mut idle, idle_handle) = Driver::new("idle".into()).unwrap();
        busy_handle.unpark();
        idle_handle.attend(&busy_handle).unwrap();
        // It was there before.
        idle.turn(None).unwrap();
        let start = Instant::now();
        idle.turn(Some(QUIET)).unwrap();
        assert!(start.elapsed() >= QUIET, "woken for it again");
        busy_handle.unpark();
        idle.turn(None).unwrap();
        idle_handle.ignore(&busy_handle);
    });
}

/// Two drivers that attend to each other would be a loop: the second is told so, and the first goes on.
#[test]
fn drivers_do_not_attend_to_each_other() {
    within_limit(|| {
        let (_one, one) = Driver::new("one".into()).unwrap();
        let (mut driver, other) = Driver::new("other".into()).unwrap();
        other.attend(&one).unwrap();
        assert!(one.attend(&other).is_err());
        one.ignore(&other);
        one.unpark();
        driver.turn(None).unwrap();
        other.ignore(&one);
        one.attend(&other).unwrap();
    });
}

/// The other driver is closed and dropped while it is attended to: that ends nothing else, and its descriptor lives as long
/// as its handle.
#[test]
fn a_driver_may_go_while_it_is_attended_to() {
    within_limit(|| {
        let (busy, busy_handle) = Driver::new("busy".into()).unwrap();
        let (mut idle, idle_handle) = Driver::new("idle".into()).unwrap();
        idle_handle.attend(&busy_handle).unwrap();
        drop(busy);
        assert!(busy_handle.is_closed());
        idle_handle.unpark();
        assert!(idle.turn(None).unwrap().woken);
        idle_handle.ignore(&busy_handle);
        drop(busy_handle);
        let (_next, next_handle) = Driver::new("next".into()).unwrap();
        idle_handle.attend(&next_handle).unwrap();
        next_handle.unpark();
        assert!(!idle.turn(None).unwrap().woken);
    });
}
