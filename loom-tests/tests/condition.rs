//! Models of `Condition`: notifications against waiters that release the lock, and that go.
//!
//! Seen to fail: with a waiter that does not pass its notification on (`notify_one_against_drop`), and with one that releases
//! the lock before it is in line (`notify_against_wait_for` hangs).
#![cfg(rt_loom)]

use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::condition::Condition;
use rt_sync::mutex::Mutex;
use rt_sync::primitive::Arc;

/// Who changes the value under the lock and notifies after it reaches a waiter that released the lock for its wait.
#[test]
fn notify_against_wait_for() {
    for all in [false, true] {
        model(3, move || {
            let shared = Arc::new((Mutex::new(0), Condition::new()));
            let other = shared.clone();
            let notifier = thread::spawn(move || {
                *block_on(other.0.lock()) = 1;
                if all {
                    other.1.notify_all();
                } else {
                    other.1.notify_one();
                }
            });
            let (value, changed) = &*shared;
            block_on(async {
                let guard = value.lock().await;
                let guard = changed.wait_for(guard, |value| *value == 1).await;
                assert_eq!(*guard, 1);
            });
            notifier.join().unwrap();
        });
    }
}

/// The first of two waiters goes while one is notified: the second goes on.
#[test]
fn notify_one_against_drop() {
    model(2, || {
        let shared = Arc::new((Mutex::new(0), Condition::new()));
        let (value, changed) = &*shared;
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = Box::pin(changed.wait(value.try_lock().unwrap()));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let mut second = Box::pin(changed.wait(value.try_lock().unwrap()));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        let other = shared.clone();
        let notifier = thread::spawn(move || {
            let guard = other.0.try_lock().unwrap();
            assert!(other.1.notify_one());
            drop(guard);
        });
        // In line for the lock, or holding it for nobody, or not even notified.
        let early = first.as_mut().poll(&mut cx).is_ready();
        drop(first);
        notifier.join().unwrap();
        // Who was there for its notification has had it; else it was passed on.
        assert_eq!(second.as_mut().poll(&mut cx).is_ready(), !early);
        drop(second);
        assert!(value.try_lock().is_ok());
    });
}

/// Two waiters that hand a turn to each other.
#[test]
fn two_waiters_take_turns() {
    model(2, || {
        let shared = Arc::new((Mutex::new(0), Condition::new()));
        let other = shared.clone();
        let turn = |shared: &(Mutex<usize>, Condition), mine: usize| {
            block_on(async {
                let guard = shared.0.lock().await;
                let mut guard = shared.1.wait_for(guard, |turn| *turn == mine).await;
                *guard += 1;
                drop(guard);
                shared.1.notify_one();
            });
        };
        let second = thread::spawn(move || turn(&other, 1));
        turn(&shared, 0);
        second.join().unwrap();
        assert_eq!(*shared.0.try_lock().unwrap(), 2);
    });
}
