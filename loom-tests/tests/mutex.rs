//! Models of `Mutex`: what it protects is a cell whose accesses loom checks. The queue has its models in `semaphore.rs`.
//!
//! Seen to fail: with `Relaxed` for the `Release` of `Queue::settle` (`hand_over_seen_early` and others), and for that of
//! `Permits::release_only` (`three_take_turns` and others).
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
use rt_sync::mutex::Mutex;
use rt_sync::primitive::Arc;

/// Adds one, by two accesses that loom sees.
fn add(cell: &UnsafeCell<usize>) {
    // SAFETY: the caller has the lock; loom fails the model if that is not enough.
    let value = cell.with(|value| unsafe { *value });
    // SAFETY: the same.
    cell.with_mut(|place| unsafe { *place = value + 1 });
}

fn counter() -> Arc<Mutex<UnsafeCell<usize>>> {
    Arc::new(Mutex::new(UnsafeCell::new(0)))
}

fn total(mutex: &Mutex<UnsafeCell<usize>>) -> usize {
    let guard = mutex.try_lock().unwrap();
    // SAFETY: as in `add`.
    guard.with(|value| unsafe { *value })
}

/// Three lock, by whatever way is open to them: one at a time, and all get there.
#[test]
fn three_take_turns() {
    model(2, || {
        let mutex = counter();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || add(&block_on(mutex.lock())))
            })
            .collect();
        add(&block_on(mutex.lock()));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(total(&mutex), 3);
    });
}

/// Two lock twice, one of them blocking its thread.
#[test]
fn two_take_turns_twice() {
    model(2, || {
        let mutex = counter();
        let other = mutex.clone();
        let blocking = thread::spawn(move || {
            for _ in 0..2 {
                add(&other.blocking_lock());
            }
        });
        for _ in 0..2 {
            add(&block_on(mutex.lock()));
        }
        blocking.join().unwrap();
        assert_eq!(total(&mutex), 4);
    });
}

/// One that waits gives up while the lock is handed to it: the next one gets it.
#[test]
fn hand_over_against_cancel() {
    model(3, || {
        let mutex = StdArc::new(Mutex::new(UnsafeCell::new(0)));
        let held = mutex.clone().try_lock_owned().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut goes = Box::pin(mutex.lock());
        assert!(goes.as_mut().poll(&mut cx).is_pending());
        let mut stays = pin!(mutex.clone().lock_owned());
        assert!(stays.as_mut().poll(&mut cx).is_pending());
        let unlocks = thread::spawn(move || {
            add(&held);
            drop(held);
        });
        drop(goes);
        unlocks.join().unwrap();
        match stays.as_mut().poll(&mut cx) {
            Poll::Ready(guard) => add(&guard),
            Poll::Pending => panic!("nobody has the lock, and it is not handed over"),
        }
        assert_eq!(total(&mutex), 2);
    });
}

/// The lock is seen to be handed over before the wake: what was done under it is seen too.
#[test]
fn hand_over_seen_early() {
    model(3, || {
        let mutex = StdArc::new(Mutex::new(UnsafeCell::new(0)));
        let held = mutex.clone().try_lock_owned().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiter = Box::pin(mutex.lock());
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let unlocks = thread::spawn(move || {
            add(&held);
            drop(held);
        });
        if let Poll::Ready(guard) = waiter.as_mut().poll(&mut cx) {
            add(&guard);
        }
        unlocks.join().unwrap();
    });
}

/// `try_lock` looks in while the lock goes from one to the other.
#[test]
fn try_lock_against_hand_over() {
    model(3, || {
        let mutex = counter();
        let (locks, tries) = (mutex.clone(), mutex.clone());
        let locker = thread::spawn(move || add(&block_on(locks.lock())));
        let trier = thread::spawn(move || {
            if let Ok(guard) = tries.try_lock() {
                add(&guard);
                1
            } else {
                0
            }
        });
        add(&block_on(mutex.lock()));
        locker.join().unwrap();
        let tried = trier.join().unwrap();
        assert_eq!(total(&mutex), 2 + tried);
    });
}
