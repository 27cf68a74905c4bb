//! Models of `Barrier`: the last arrival against waiters that come, go, and come again.
//!
//! Seen to fail: with a waiter that gets in line without a second look after it has cloned its waker, so that two wait
//! for each other (`two_rounds` hangs).
#![cfg(rt_loom)]

use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::barrier::Barrier;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

/// All pass, with different numbers and one leader, and see what the others did before they came.
#[test]
fn three_pass_together() {
    model(2, || {
        let shared = Arc::new((Barrier::new(3), AtomicUsize::new(0)));
        let pass = |shared: &(Barrier, AtomicUsize)| {
            shared.1.fetch_add(1, Relaxed);
            let passed = block_on(shared.0.wait());
            assert_eq!(shared.1.load(Relaxed), 3);
            passed
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || pass(&shared))
            })
            .collect();
        let mut passed = vec![pass(&shared)];
        passed.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        assert_eq!(passed.iter().filter(|passed| passed.is_leader()).count(), 1);
        assert_eq!(
            passed.iter().map(|passed| 1 << passed.index()).sum::<u32>(),
            7
        );
        assert_eq!(shared.0.waiting(), 0);
    });
}

/// Two tasks pass twice: nobody of round two passes with round one.
#[test]
fn two_rounds() {
    model(3, || {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let rounds = |shared: &(Barrier, AtomicUsize)| {
            for round in 1..3 {
                shared.1.fetch_add(1, Relaxed);
                block_on(shared.0.wait());
                assert!(shared.1.load(Relaxed) >= 2 * round);
            }
        };
        let other = shared.clone();
        let thread = thread::spawn(move || rounds(&other));
        rounds(&shared);
        thread.join().unwrap();
    });
}

/// A waiter goes while the last comes: it has passed with it, or it does not count and the last waits.
#[test]
fn drop_against_the_last_to_come() {
    model(3, || {
        let barrier = Arc::new(Barrier::new(2));
        let mut cx = Context::from_waker(Waker::noop());
        let mut gone = Box::pin(barrier.wait());
        assert!(gone.as_mut().poll(&mut cx).is_pending());
        let other = barrier.clone();
        let last = thread::spawn(move || {
            let mut last = Box::pin(other.wait());
            let mut cx = Context::from_waker(Waker::noop());
            let first_poll = last.as_mut().poll(&mut cx).is_ready();
            // Dropped here if it waits.
            assert_eq!(other.waiting(), usize::from(!first_poll));
            first_poll
        });
        drop(gone);
        last.join().unwrap();
        assert_eq!(barrier.waiting(), 0);
    });
}
