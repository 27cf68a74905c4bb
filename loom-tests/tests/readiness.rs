//! Models of the readiness word of an I/O source: `set` is the driver, `poll_op` and `wait` are tasks.
//!
//! The kernel is a relaxed counter of bytes, so that only the readiness orders it: a task that is told of a byte must
//! see it.
//!
//! Seen to fail: a `clear` that ignores the tick (`event_against_clear` deadlocks), `Relaxed` for `Release` in `set`
//! (`the_byte_is_seen_by_who_is_told_of_it`), a `park` that does not look again (`event_against_park` deadlocks), and
//! a `wait` that sets `WAITERS` before it is in the list and outside its lock (`event_against_wait` deadlocks).
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt_io::driver::readiness::{Direction, Key, Readiness, Seen};
use rt_io::driver::{Interest, Ready};
use rt_loom_tests::model::model;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

struct Source {
    bytes: AtomicUsize,
    readiness: Readiness,
}

impl Source {
    fn new(initial: Ready) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicUsize::new(0),
            readiness: Readiness::new(initial),
        })
    }

    /// One turn of the driver with an event of this source.
    fn event(&self, ready: Ready) {
        let mut woken = Vec::new();
        self.readiness.set(ready, &mut woken);
        woken.into_iter().for_each(Waker::wake);
    }

    /// A byte arrives, and then its event.
    fn arrive(&self) {
        self.bytes.fetch_add(1, Relaxed);
        self.event(Ready::READABLE);
    }

    fn close(&self) {
        let mut woken = Vec::new();
        self.readiness.close(&mut woken);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Takes all bytes, as `read` with a large buffer.
    fn read(&self) -> io::Result<usize> {
        match self.bytes.swap(0, Relaxed) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }

    /// `None`: the driver is gone.
    fn poll_read(&self, cx: &mut Context<'_>, short: bool) -> Poll<Option<usize>> {
        self.readiness
            .poll_op(Direction::Read, cx.waker(), || self.read(), |_| short)
            .map(|result| result.map(Result::unwrap))
    }

    /// As the future of `readable()`.
    fn poll_wait(
        &self,
        cx: &mut Context<'_>,
        key: &mut Option<Key>,
        interest: Interest,
    ) -> Poll<Seen> {
        let mask = interest.mask();
        let mut seen = self.readiness.load();
        if !seen.has(mask) {
            match self.readiness.wait(key, mask, cx.waker()) {
                Some(now) => seen = now,
                None => return Poll::Pending,
            }
        }
        if let Some(key) = key.take() {
            self.readiness.forget(key);
        }
        Poll::Ready(seen)
    }

    async fn readable(&self) -> Seen {
        let mut key = None;
        poll_fn(|cx| self.poll_wait(cx, &mut key, Interest::READABLE)).await
    }
}

/// Race 2 of the module head: the event comes while the task parks.
#[test]
fn event_against_park() {
    model(3, || {
        let source = Source::new(Ready::EMPTY);
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.arrive())
        };
        let read = block_on(poll_fn(|cx| source.poll_read(cx, true)));
        assert_eq!(read, Some(1));
        driver.join().unwrap();
    });
}

/// Race 1: a task believes to be ready (as before the first event), is told `WouldBlock` and clears while the event of
/// a byte comes. And again with the byte after that one.
#[test]
fn event_against_clear() {
    for short in [false, true] {
        model(2, move || {
            let source = Source::new(Ready::READABLE);
            let driver = {
                let source = Arc::clone(&source);
                thread::spawn(move || {
                    source.arrive();
                    source.arrive();
                })
            };
            let mut seen = 0;
            while seen < 2 {
                seen += block_on(poll_fn(|cx| source.poll_read(cx, short))).unwrap();
            }
            assert_eq!(seen, 2);
            driver.join().unwrap();
        });
    }
}

/// What came before the event is seen by the operation that it allows: no `WouldBlock` after an event.
#[test]
fn the_byte_is_seen_by_who_is_told_of_it() {
    model(3, || {
        let source = Source::new(Ready::EMPTY);
        let task = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                if source.readiness.load().has(Direction::Read.mask()) {
                    // A plain load: a read-modify-write sees the newest value whatever the orderings are.
                    assert_eq!(source.bytes.load(Relaxed), 1);
                }
            })
        };
        source.arrive();
        task.join().unwrap();
    });
}

/// Race 2 for the list.
#[test]
fn event_against_wait() {
    model(3, || {
        let source = Source::new(Ready::EMPTY);
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.arrive())
        };
        let seen = block_on(source.readable());
        assert_eq!(seen.ready(), Ready::READABLE);
        assert_eq!(source.read().unwrap(), 1);
        driver.join().unwrap();
    });
}

/// Race 3: only bits that become set wake. The reader is in the slot, another task in the list, one event for both; the
/// list's task takes nothing, the reader clears.
#[test]
fn one_event_for_the_slot_and_the_list() {
    model(2, || {
        let source = Source::new(Ready::WRITABLE);
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                // The socket is still writable: nobody is woken for that.
                source.event(Ready::WRITABLE);
                source.bytes.fetch_add(1, Relaxed);
                source.event(Ready::READABLE | Ready::WRITABLE);
            })
        };
        let waiting = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                let mut key = None;
                let either = Interest::READABLE | Interest::PRIORITY;
                // May be woken late, when the reader has cleared: then it is still told, or never waits.
                source
                    .poll_wait(&mut Context::from_waker(Waker::noop()), &mut key, either)
                    .is_ready();
                if let Some(key) = key {
                    source.readiness.forget(key);
                }
            })
        };
        let read = block_on(poll_fn(|cx| source.poll_read(cx, true)));
        assert_eq!(read, Some(1));
        waiting.join().unwrap();
        driver.join().unwrap();
    });
}

/// Two tasks wait in the list for different things, one goes away while the event comes; the other must not be lost.
#[test]
fn forget_against_event() {
    model(2, || {
        let source = Source::new(Ready::EMPTY);
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.arrive())
        };
        let gone = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                let mut key = None;
                let mut cx = Context::from_waker(Waker::noop());
                let _ = source.poll_wait(&mut cx, &mut key, Interest::READABLE);
                if let Some(key) = key {
                    source.readiness.forget(key);
                }
            })
        };
        block_on(source.readable());
        gone.join().unwrap();
        driver.join().unwrap();
    });
}

/// Close against a parking reader and a waiting task: both hear of it.
#[test]
fn close_against_park_and_wait() {
    model(2, || {
        let source = Source::new(Ready::EMPTY);
        let closing = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.close())
        };
        let reader = {
            let source = Arc::clone(&source);
            thread::spawn(move || block_on(poll_fn(|cx| source.poll_read(cx, true))))
        };
        assert!(block_on(source.readable()).is_closed());
        assert_eq!(reader.join().unwrap(), None);
        closing.join().unwrap();
    });
}

/// An event and then the close against a reader that clears: the close stays, and the reader hears of it.
#[test]
fn close_against_clear() {
    model(2, || {
        let source = Source::new(Ready::READABLE);
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || {
                source.arrive();
                source.close();
            })
        };
        while block_on(poll_fn(|cx| source.poll_read(cx, false))).is_some() {}
        driver.join().unwrap();
        assert!(source.readiness.load().is_closed());
    });
}

/// The owner drops its waker and its reference while the driver sets readiness: loom finds what leaks or is used after
/// it is gone.
#[test]
fn drop_against_event() {
    model(3, || {
        let source = Source::new(Ready::EMPTY);
        let driver = {
            let source = Arc::clone(&source);
            thread::spawn(move || source.arrive())
        };
        let mut cx = Context::from_waker(Waker::noop());
        let _ = source.poll_read(&mut cx, true);
        source.readiness.unpark(Direction::Read);
        drop(source);
        driver.join().unwrap();
    });
}
