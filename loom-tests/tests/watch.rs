//! Models of `watch`: a version against who looks and waits, the end, and the last receiver.
//!
//! Seen to fail: with the notification before the bump of the version (a receiver waits for ever); with the bump after
//! the write lock is given back (a borrow shows a value whose version it does not count as seen).
#![cfg(rt_loom)]

use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::watch::channel;

/// A receiver waits while a value is sent: it is told, and finds that value.
#[test]
fn send_against_changed() {
    model(3, || {
        let (sender, mut receiver) = channel(0);
        let sending = thread::spawn(move || {
            sender.send_replace(1);
            sender
        });
        block_on(receiver.changed()).expect("the sender is alive");
        assert_eq!(*receiver.borrow(), 1);
        assert!(!receiver.has_changed().unwrap());
        drop(sending.join().unwrap());
    });
}

/// A value is sent and the sender goes: the receiver sees the value, then the end.
#[test]
fn a_value_and_the_end_against_changed() {
    model(2, || {
        let (sender, mut receiver) = channel(0);
        let sending = thread::spawn(move || {
            sender.send_replace(1);
        });
        assert!(block_on(receiver.changed()).is_ok());
        assert_eq!(*receiver.borrow_and_update(), 1);
        assert!(block_on(receiver.changed()).is_err());
        sending.join().unwrap();
    });
}

/// A value is sent while it is borrowed: the version that a borrow counts as seen is that of the value it shows.
#[test]
fn send_against_borrow_and_update() {
    model(3, || {
        let (sender, mut receiver) = channel(0);
        let sending = thread::spawn(move || {
            sender.send_replace(1);
            sender
        });
        let value = receiver.borrow_and_update();
        let (shown, changed) = (*value, value.has_changed());
        drop(value);
        assert_eq!(shown == 1, changed);
        let sender = sending.join().unwrap();
        assert_eq!(receiver.has_changed().unwrap(), shown == 0);
        drop(sender);
    });
}

/// Two senders at the same time: the receiver sees the second of the two at last.
#[test]
fn two_senders_against_wait_for() {
    model(2, || {
        let (sender, mut receiver) = channel(0);
        let other = sender.clone();
        let sending = thread::spawn(move || other.send_modify(|sum| *sum += 1));
        sender.send_modify(|sum| *sum += 1);
        drop(sender);
        assert_eq!(*block_on(receiver.wait_for(|sum| *sum == 2)).unwrap(), 2);
        sending.join().unwrap();
        assert!(block_on(receiver.changed()).is_err());
    });
}

/// Both receivers go while the sender waits for that, and sends.
#[test]
fn the_last_receiver_against_closed() {
    model(2, || {
        let (sender, receiver) = channel(0);
        let other = receiver.clone();
        let going = thread::spawn(move || drop(other));
        drop(receiver);
        block_on(sender.closed());
        assert!(sender.send(1).is_err());
        going.join().unwrap();
    });
}

/// A future that waits is dropped while a value is sent: the value is still unseen afterwards.
#[test]
fn a_dropped_future_against_send() {
    model(3, || {
        let (sender, mut receiver) = channel(0);
        let sending = thread::spawn(move || {
            sender.send_replace(1);
            sender
        });
        let seen = {
            let mut changed = Box::pin(receiver.changed());
            matches!(
                changed
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop())),
                Poll::Ready(Ok(()))
            )
        };
        let sender = sending.join().unwrap();
        assert_eq!(receiver.has_changed().unwrap(), !seen);
        drop(sender);
    });
}
