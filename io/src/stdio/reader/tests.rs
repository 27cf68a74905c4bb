use super::*;

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::mpsc;
use std::time::Duration;

use futures_lite::future::block_on;
use rustix::pipe::pipe;

/// A reader of the read end of a pipe, and the write end.
fn reader() -> (&'static ThreadReader, BorrowedFd<'static>, OwnedFd) {
    let (read, write) = pipe().unwrap();
    let read: &'static OwnedFd = Box::leak(Box::new(read));
    (
        Box::leak(Box::new(ThreadReader::default())),
        read.as_fd(),
        write,
    )
}

/// A test that does not end in time ends the process.
fn within_limit(body: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let runner = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if ended.recv_timeout(Duration::from_secs(30)) == Err(mpsc::RecvTimeoutError::Timeout) {
        eprintln!("a test of the reader thread did not end within 30 seconds");
        std::process::abort();
    }
    if let Err(panic) = runner.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_cancelled_read_leaves_its_bytes_to_the_next_reader() {
    within_limit(|| {
        let (reader, fd, write) = reader();
        let mut buf = [0; 4];
        {
            let read = poll_fn(|cx| reader.poll_read(cx, 1, fd, &mut buf));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(pin!(read).poll(&mut cx).is_pending());
        }
        reader.forget(1);
        rustix::io::write(&write, b"abcdef").unwrap();
        let got = block_on(poll_fn(|cx| reader.poll_read(cx, 2, fd, &mut buf))).unwrap();
        assert_eq!(&buf[..got], b"abcd");
        let got = block_on(poll_fn(|cx| reader.poll_read(cx, 3, fd, &mut buf))).unwrap();
        assert_eq!(&buf[..got], b"ef");
    });
}

#[test]
fn nothing_is_read_while_nobody_waits() {
    within_limit(|| {
        let (reader, fd, write) = reader();
        let mut buf = [0; 4];
        rustix::io::write(&write, b"1").unwrap();
        let got = block_on(poll_fn(|cx| reader.poll_read(cx, 1, fd, &mut buf))).unwrap();
        assert_eq!(&buf[..got], b"1");
        rustix::io::write(&write, b"2").unwrap();
        assert_eq!(rustix::io::read(fd, &mut buf).unwrap(), 1);
        assert_eq!(buf[0], b'2');
    });
}

#[test]
fn each_waiting_reader_gets_the_end_of_the_stream() {
    within_limit(|| {
        let (reader, fd, write) = reader();
        let readers = [1, 2, 3].map(|key| {
            thread::spawn(move || {
                let mut buf = [0; 4];
                block_on(poll_fn(|cx| reader.poll_read(cx, key, fd, &mut buf))).unwrap()
            })
        });
        drop(write);
        for thread in readers {
            assert_eq!(thread.join().unwrap(), 0);
        }
    });
}

#[test]
fn a_shared_description_that_is_non_blocking_is_waited_for() {
    within_limit(|| {
        let (reader, fd, write) = reader();
        rustix::io::ioctl_fionbio(fd, true).unwrap();
        let mut buf = [0; 4];
        let mut read = pin!(poll_fn(|cx| reader.poll_read(cx, 1, fd, &mut buf)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(read.as_mut().poll(&mut cx).is_pending());
        rustix::io::write(&write, b"late").unwrap();
        assert_eq!(block_on(read).unwrap(), 4);
    });
}

#[test]
fn an_error_reaches_the_reader() {
    within_limit(|| {
        let (_, _, write) = reader();
        let write: &'static OwnedFd = Box::leak(Box::new(write));
        let reader: &'static ThreadReader = Box::leak(Box::new(ThreadReader::default()));
        let mut buf = [0; 4];
        let read = poll_fn(|cx| reader.poll_read(cx, 1, write.as_fd(), &mut buf));
        let error = block_on(read).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::BADF.raw_os_error()));
    });
}

#[test]
fn a_waker_that_panics_stops_nobody_else() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("on purpose");
        }
    }
    within_limit(|| {
        let (reader, fd, write) = reader();
        let mut buf = [0; 4];
        let waker = Waker::from(std::sync::Arc::new(Panics));
        let mut cx = Context::from_waker(&waker);
        assert!(reader.poll_read(&mut cx, 1, fd, &mut buf).is_pending());
        rustix::io::write(&write, b"one").unwrap();
        let mut got: Vec<u8> = Vec::new();
        while got.len() < 3 {
            let read = block_on(poll_fn(|cx| reader.poll_read(cx, 2, fd, &mut buf))).unwrap();
            got.extend(&buf[..read]);
        }
        rustix::io::write(&write, b"two").unwrap();
        let read = block_on(poll_fn(|cx| reader.poll_read(cx, 2, fd, &mut buf))).unwrap();
        assert_eq!(&buf[..read], b"two");
    });
}

#[test]
fn the_payload_of_a_panic_stops_nobody_either() {
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            panic!("on purpose, once more");
        }
    }
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: std::sync::Arc<Self>) {
            std::panic::panic_any(Payload);
        }
    }
    within_limit(|| {
        let (reader, fd, write) = reader();
        let mut buf = [0; 4];
        let waker = Waker::from(std::sync::Arc::new(Panics));
        let mut cx = Context::from_waker(&waker);
        assert!(reader.poll_read(&mut cx, 1, fd, &mut buf).is_pending());
        rustix::io::write(&write, b"one").unwrap();
        let got = block_on(poll_fn(|cx| reader.poll_read(cx, 2, fd, &mut buf))).unwrap();
        assert_eq!(got, 3);
        rustix::io::write(&write, b"two").unwrap();
        let got = block_on(poll_fn(|cx| reader.poll_read(cx, 2, fd, &mut buf))).unwrap();
        assert_eq!(got, 3);
    });
}

#[test]
fn when_the_thread_cannot_be_started_those_who_rely_on_it_come_again() {
    struct Count(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    within_limit(|| {
        let (reader, fd, write) = reader();
        let mut buf = [0; 4];
        let counts = [1, 2].map(|_| std::sync::Arc::new(Count(0.into())));
        // As it is while the first one tries to start the thread.
        reader.state.lock().started = true;
        for (key, count) in (1..).zip(&counts) {
            let waker = Waker::from(count.clone());
            let mut cx = Context::from_waker(&waker);
            assert!(reader.poll_read(&mut cx, key, fd, &mut buf).is_pending());
        }
        reader.not_started(1);
        let woken = counts
            .each_ref()
            .map(|count| count.0.load(std::sync::atomic::Ordering::SeqCst));
        assert_eq!(woken, [0, 1]);
        assert!(
            counts
                .iter()
                .all(|count| std::sync::Arc::strong_count(count) == 1)
        );
        rustix::io::write(&write, b"here").unwrap();
        let got = block_on(poll_fn(|cx| reader.poll_read(cx, 2, fd, &mut buf))).unwrap();
        assert_eq!(got, 4);
    });
}
