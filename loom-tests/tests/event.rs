//! Models of `Event`: set and clear against waiters that get in line.
//!
//! Seen to fail: with `Relaxed` for the `Release` of `set` (`set_against_wait`), and without the look at the flag after getting
//! in line (`set_against_wait` hangs).
#![cfg(rt_loom)]

use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::event::Event;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

/// The event is set while a waiter gets in line: it goes on, and sees what was done before.
#[test]
fn set_against_wait() {
    model(3, || {
        let shared = Arc::new((Event::new(), AtomicUsize::new(0)));
        let other = shared.clone();
        let setter = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.set();
        });
        block_on(shared.0.wait());
        assert_eq!(shared.1.load(Relaxed), 1);
        setter.join().unwrap();
    });
}

/// Set and clear while a waiter is in line: it goes on, although the event is not set when it runs.
#[test]
fn set_and_clear_against_a_waiter() {
    model(3, || {
        let event = Arc::new(Event::new());
        let mut waiting = Box::pin(event.wait());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        let other = event.clone();
        let setter = thread::spawn(move || {
            other.set();
            other.clear();
        });
        let early = waiting.as_mut().poll(&mut cx).is_ready();
        setter.join().unwrap();
        assert!(!event.is_set());
        assert!(early || waiting.as_mut().poll(&mut cx).is_ready());
    });
}

/// Two setters and one that clears, and a waiter: after the last set it goes on in any case.
#[test]
fn two_setters_and_a_clear() {
    model(2, || {
        let event = Arc::new(Event::new());
        let (a, b) = (event.clone(), event.clone());
        let setter = thread::spawn(move || a.set());
        let clearer = thread::spawn(move || {
            b.clear();
            b.set();
        });
        block_on(event.wait());
        setter.join().unwrap();
        clearer.join().unwrap();
        // That it is set now is not asserted: after a stale load, loom may order the clear behind the set that follows it
        // on the same thread, which the language forbids.
    });
}

/// A waiter goes while the event is set.
#[test]
fn set_against_drop() {
    model(3, || {
        let event = Arc::new(Event::new());
        let mut waiting = Box::pin(event.wait());
        assert!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        let other = event.clone();
        let setter = thread::spawn(move || other.set());
        drop(waiting);
        setter.join().unwrap();
        block_on(event.wait());
    });
}
