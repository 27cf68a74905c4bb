//! Descriptors with operations of one's own.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;

use futures_lite::future::poll_once;
use rt_io::{AsyncFd, Interest, Ready};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use crate::exec::{Counter, Owner};
use crate::support::within_limit;

fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}

fn add(fd: impl AsFd, number: u64) {
    rustix::io::write(fd, &number.to_ne_bytes()).unwrap();
}

/// Takes the number out of an eventfd.
fn take(fd: impl AsFd) -> io::Result<u64> {
    let mut buf = [0; 8];
    rustix::io::read(fd, &mut buf)?;
    Ok(u64::from_ne_bytes(buf))
}

#[test]
fn readiness_that_another_reader_used_up_is_a_false_alarm() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let one = AsyncFd::with_interest(event(), Interest::READABLE).unwrap();
        let two = one.get_ref().try_clone().unwrap();
        let two = AsyncFd::with_interest(two, Interest::READABLE).unwrap();
        for round in 1..=100 {
            add(&one, round);
            owner.block_on(async {
                let mut first = one.readable().await.unwrap();
                let mut second = two.readable().await.unwrap();
                assert!(first.ready().is_readable() && second.ready().is_readable());
                assert_eq!(first.try_io(|fd| take(fd)).unwrap().unwrap(), round);
                assert!(second.try_io(|fd| take(fd)).is_err());
                assert!(second.ready().is_empty());
            });
            owner.block_on(async {
                assert!(poll_once(two.readable()).await.is_none(), "was not cleared");
                // `one` read it all without learning so: its next look is the false alarm.
                let mut guard = one.readable().await.unwrap();
                assert!(guard.try_io(|fd| take(fd)).is_err());
            });
        }
    });
}

#[test]
fn a_guard_does_not_clear_an_event_that_came_after_it() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let fd = AsyncFd::new(event()).unwrap();
        add(&fd, 1);
        let mut guard = owner.block_on(fd.readable()).unwrap();
        assert_eq!(take(&fd).unwrap(), 1);
        add(&fd, 2);
        owner.settle();
        guard.clear_ready();
        owner.block_on(async {
            let mut guard = fd.readable().await.unwrap();
            assert_eq!(guard.try_io(|fd| take(fd)).unwrap().unwrap(), 2);
        });
    });
}

#[test]
fn one_part_of_the_readiness_can_be_cleared() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let fd = AsyncFd::new(event()).unwrap();
        add(&fd, 1);
        owner.block_on(async {
            let both = Interest::READABLE | Interest::WRITABLE;
            fd.readable().await.unwrap().retain_ready();
            let mut guard = fd.ready(both).await.unwrap();
            assert_eq!(guard.ready(), Ready::READABLE | Ready::WRITABLE);
            guard.clear_ready_matching(Ready::READABLE);
            assert_eq!(guard.ready(), Ready::WRITABLE);
            assert!(poll_once(fd.readable()).await.is_none());
            assert!(poll_once(fd.writable()).await.is_some());
            guard.clear_ready();
            assert!(poll_once(fd.writable()).await.is_none());
        });
    });
}

#[test]
fn a_dropped_guard_keeps_the_readiness() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let fd = AsyncFd::new(event()).unwrap();
        add(&fd, 1);
        owner.block_on(async {
            drop(fd.readable().await.unwrap());
            assert!(poll_once(fd.readable()).await.is_some());
        });
    });
}

#[test]
fn async_io_waits_until_the_operation_succeeds() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let mut fd = AsyncFd::new(event()).unwrap();
        let other = fd.get_ref().try_clone().unwrap();
        let counter = Counter::new(None);
        {
            let mut read = pin!(fd.async_io(Interest::READABLE, |fd| take(fd)));
            assert!(owner.poll(read.as_mut(), &counter).is_pending());
            add(&other, 7);
            assert_eq!(owner.block_on(read).unwrap(), 7);
        }
        let calls = Cell::new(0);
        let mut read = pin!(fd.async_io_mut(Interest::READABLE, |fd| {
            calls.set(calls.get() + 1);
            take(fd)
        }));
        assert!(owner.poll(read.as_mut(), &counter).is_pending());
        add(&other, 8);
        assert_eq!(owner.block_on(read).unwrap(), 8);
        assert!((1..=3).contains(&calls.get()), "{calls:?} calls");
    });
}

/// Linux tells of a hang-up of a socket that is not connected yet (pains D5). It is taken back by the first operation that would
/// block.
#[test]
fn a_socket_that_registers_before_it_is_connected_does_not_spin() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        let socket = AsyncFd::new(socket).unwrap();
        owner.block_on(async {
            let guard = socket.readable().await.unwrap();
            if cfg!(target_os = "linux") {
                assert!(guard.ready().is_read_closed(), "{:?}", guard.ready());
            }
        });
        match connect(&socket, &listener.local_addr().unwrap()) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => panic!("{error}"),
        }
        let mut peer = listener.accept().unwrap().0;
        let calls = Cell::new(0);
        let once = |fd: &OwnedFd| {
            calls.set(calls.get() + 1);
            let mut byte = [0];
            let count = rustix::io::read(fd, &mut byte)?;
            Ok((count, byte))
        };
        let mut read = pin!(socket.async_io(Interest::READABLE, once));
        let counter = Counter::new(None);
        assert!(owner.poll(read.as_mut(), &counter).is_pending());
        peer.write_all(b"z").unwrap();
        assert_eq!(owner.block_on(read).unwrap(), (1, *b"z"));
        assert!(calls.get() < 10, "{calls:?} calls");
        // The hang-up of the peer is one.
        drop(peer);
        let end = owner.block_on(socket.async_io(Interest::READABLE, once));
        assert_eq!(end.unwrap().0, 0);
    });
}

#[test]
fn guards_give_mutable_access() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let mut fd = AsyncFd::new(event()).unwrap();
        add(&fd, 5);
        owner.block_on(async {
            let mut guard = fd.readable_mut().await.unwrap();
            let got = guard.try_io(|fd| take(fd.get_mut())).unwrap().unwrap();
            assert_eq!(got, 5);
            assert!(guard.try_io(|fd| take(fd.get_mut())).is_err());
            assert!(poll_once(fd.readable_mut()).await.is_none());
            let mut guard = fd.writable_mut().await.unwrap();
            add(guard.get_inner_mut(), 1);
        });
    });
}

#[test]
fn an_object_taken_out_can_be_wrapped_again() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let mut inner = event();
        for round in 1..=3 {
            let fd = AsyncFd::new(inner).unwrap();
            add(&fd, round);
            let got = owner
                .block_on(fd.async_io(Interest::READABLE, |fd| take(fd)))
                .unwrap();
            assert_eq!(got, round);
            inner = fd.into_inner();
        }
    });
}

#[test]
fn files_are_refused_at_once_and_given_back() {
    let file = File::open("/proc/self/exe").unwrap();
    let error = AsyncFd::try_new(file).unwrap_err();
    assert!(error.to_string().contains("blocking threads"), "{error}");
    let (file, cause) = error.into_parts();
    assert_eq!(cause.kind(), ErrorKind::PermissionDenied);
    assert!(file.metadata().unwrap().is_file());
}

#[test]
fn a_pipe_end_that_fails_wakes_the_waiting_side() {
    within_limit(|| {
        let mut owner = Owner::new("async fd");
        let flags = rustix::pipe::PipeFlags::NONBLOCK;
        let (read, write) = rustix::pipe::pipe_with(flags).unwrap();
        let write = AsyncFd::with_interest(write, Interest::WRITABLE).unwrap();
        while rustix::io::write(&write, &[0; 4096]).is_ok() {}
        let counter = Counter::new(None);
        let mut full = pin!(write.async_io(Interest::WRITABLE, |fd| {
            Ok(rustix::io::write(fd, b"x")?)
        }));
        assert!(owner.poll(full.as_mut(), &counter).is_pending());
        drop(read);
        let error = owner.block_on(full).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}
