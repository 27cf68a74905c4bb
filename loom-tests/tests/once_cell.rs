//! Models of `OnceCell` and `SetOnce`. loom's cell inside checks that the value is written by one and read afterwards.
//!
//! Seen to fail: with `Relaxed` for the `Release` of the store of `SET` (the value is read while it is written); with
//! the notification before the room is given back (who waits finds it taken, and waits for ever).
#![cfg(rt_loom)]

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::once_cell::OnceCell;
use rt_sync::set_once::SetOnce;

/// Two make the value at the same time: one of them does, and both get that one.
#[test]
fn two_initialise() {
    model(2, || {
        let cell = Arc::new(OnceCell::new());
        let made = std::sync::Arc::new(AtomicUsize::new(0));
        let (other, counted) = (cell.clone(), made.clone());
        let making = thread::spawn(move || {
            *block_on(other.get_or_init(|| {
                counted.fetch_add(1, SeqCst);
                ready(Box::new(1))
            }))
            .clone()
        });
        let mine = *block_on(cell.get_or_init(|| {
            made.fetch_add(1, SeqCst);
            ready(Box::new(2))
        }))
        .clone();
        assert_eq!(making.join().unwrap(), mine);
        assert_eq!(made.load(SeqCst), 1);
    });
}

/// One fails, and one is dropped in the middle, while another waits: the other makes the value.
#[test]
fn who_waits_takes_over() {
    for fails in [true, false] {
        model(2, move || {
            let cell = Arc::new(OnceCell::new());
            let other = cell.clone();
            let giving_up = thread::spawn(move || {
                if fails {
                    let result = block_on(other.get_or_try_init(|| ready(Err::<u8, u8>(7))));
                    assert!(matches!(result, Err(7) | Ok(1)));
                } else {
                    let mut future = Box::pin(other.get_or_init(pending));
                    let _ = future
                        .as_mut()
                        .poll(&mut Context::from_waker(Waker::noop()));
                }
            });
            let value = block_on(cell.get_or_try_init(|| ready(Ok::<u8, Infallible>(1))));
            assert_eq!(value, Ok(&1));
            giving_up.join().unwrap();
        });
    }
}

/// The one that was told to go on goes instead: another that waits is told.
#[test]
fn who_was_told_and_goes_tells_the_next() {
    model(2, || {
        let cell = Arc::new(OnceCell::new());
        let mut making = Box::pin(cell.get_or_init(pending::<u8>));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(making.as_mut().poll(&mut cx).is_pending());
        let mut told = Box::pin(cell.get_or_init(pending::<u8>));
        assert!(told.as_mut().poll(&mut cx).is_pending());
        let other = cell.clone();
        let waiting = thread::spawn(move || *block_on(other.get_or_init(|| ready(5))));
        drop(making);
        drop(told);
        assert_eq!(waiting.join().unwrap(), 5);
    });
}

/// `set` against an initialiser: one of the two values is there, and everybody agrees.
#[test]
fn set_against_init() {
    model(3, || {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let setting = thread::spawn(move || other.set(Box::new(1)).is_ok());
        let mine = **block_on(cell.get_or_init(|| ready(Box::new(2))));
        let set = setting.join().unwrap();
        assert_eq!(mine, if set { 1 } else { 2 });
    });
}

/// `SetOnce`: who waits is told, and of two who set one wins; the other finds the value there.
#[test]
fn set_once_against_wait_and_set() {
    model(2, || {
        let once = Arc::new(SetOnce::new());
        let set = |value: u8, once: Arc<SetOnce<Box<u8>>>| {
            let won = once.set(Box::new(value)).is_ok();
            assert!(won || once.get().is_some());
            won
        };
        let other = once.clone();
        let setting = thread::spawn(move || set(1, other));
        let other = once.clone();
        let waiting = thread::spawn(move || **block_on(other.wait()));
        let won = set(2, once.clone());
        assert_ne!(setting.join().unwrap(), won);
        assert_eq!(waiting.join().unwrap(), if won { 2 } else { 1 });
    });
}
