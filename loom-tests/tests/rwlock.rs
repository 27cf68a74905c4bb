//! Models of `RwLock`: what it protects is a cell whose accesses loom checks. The queue has its models in `semaphore.rs`.
//!
//! Seen to fail: with `Relaxed` for the `Release` of `Permits::release`, and for the `Acquire` of `Permits::take` (all but
//! `a_writer_that_goes_against_unlock`, which is about the queue).
#![cfg(rt_loom)]
#![expect(
    unsafe_code,
    reason = "accesses to a cell of loom, which fails the model if the lock is not enough"
)]

use std::pin::pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};

use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::primitive::Arc;
use rt_sync::rwlock::RwLock;

/// loom's cell, which may be read by several at a time.
struct Cell(UnsafeCell<usize>);

// SAFETY: what it is for: read by who has a read lock, written by who has the write lock. loom fails a model in which
// that is not enough.
unsafe impl Sync for Cell {}

impl Cell {
    fn get(&self) -> usize {
        // SAFETY: the caller has a lock.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&self) {
        let value = self.get();
        // SAFETY: the caller has the write lock.
        self.0.with_mut(|place| unsafe { *place = value + 1 });
    }
}

fn lock() -> StdArc<RwLock<Cell>> {
    StdArc::new(RwLock::new(Cell(UnsafeCell::new(0))))
}

/// Two readers and a writer.
#[test]
fn readers_against_a_writer() {
    model(2, || {
        let lock = Arc::new(RwLock::new(Cell(UnsafeCell::new(0))));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || assert!(block_on(lock.read()).get() <= 1))
            })
            .collect();
        block_on(lock.write()).add();
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(lock.try_read().unwrap().get(), 1);
        assert!(lock.try_write().is_ok());
    });
}

/// Two writers and a reader, which blocks its thread.
#[test]
fn writers_against_a_reader() {
    model(2, || {
        let lock = lock();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || block_on(lock.write()).add())
            })
            .collect();
        assert!(lock.blocking_read().get() <= 2);
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(lock.try_read().unwrap().get(), 2);
    });
}

/// A writer becomes a reader while another writer and a reader get in line: no writer gets in between.
#[test]
fn downgrade_against_a_writer_and_a_reader() {
    model(2, || {
        let lock = lock();
        let held = block_on(lock.write());
        let (writes, reads) = (lock.clone(), lock.clone());
        let writer = thread::spawn(move || block_on(writes.write()).add());
        let reader = thread::spawn(move || block_on(reads.read()).get());
        held.add();
        let held = held.downgrade();
        assert_eq!(held.get(), 1);
        drop(held);
        writer.join().unwrap();
        assert!((1..=2).contains(&reader.join().unwrap()));
        assert_eq!(lock.try_read().unwrap().get(), 2);
    });
}

/// A writer that waits goes while the lock is given back: the reader behind it gets in.
#[test]
fn a_writer_that_goes_against_unlock() {
    model(3, || {
        let lock = lock();
        let held = lock.clone().try_write_owned().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut writer = Box::pin(lock.write());
        assert!(writer.as_mut().poll(&mut cx).is_pending());
        let mut reader = pin!(lock.read());
        assert!(reader.as_mut().poll(&mut cx).is_pending());
        let unlocks = thread::spawn(move || {
            held.add();
            drop(held);
        });
        drop(writer);
        unlocks.join().unwrap();
        match reader.as_mut().poll(&mut cx) {
            Poll::Ready(guard) => assert_eq!(guard.get(), 1),
            Poll::Pending => panic!("nobody has the lock, and it is not handed over"),
        }
    });
}
