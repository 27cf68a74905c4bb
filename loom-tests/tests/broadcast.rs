//! Models of `broadcast`: values against who waits, who is late, who goes; and the end.
//!
//! Seen to fail: without the first or the second look at the number in a receive, and with a weaker order for the access
//! to the word of a cell in `pin`, `unpin`, `unpin_last`, `fill`, `claim` (both) and `release` (a value is read while
//! another is written, or by who should not see it yet); with a claim that does not look at pins; when who unpins an
//! orphan last does not take its shares (the value stays); with `Relaxed` for the store of another cell in a slot; with
//! `==` for the `<=` in the look at `next` (a receiver that is ahead of it is told that it is late); without the second
//! look at `next` when the channel is closed (the last value is lost).
#![cfg(rt_loom)]

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::broadcast::error::{RecvError, TryRecvError};
use rt_sync::broadcast::{Receiver, channel};

/// Counts what is alive of it.
#[derive(Debug)]
struct Value(u32, StdArc<AtomicUsize>);

impl Value {
    fn new(n: u32, alive: &StdArc<AtomicUsize>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self(n, alive.clone())
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Self::new(self.0, &self.1)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
    }
}

/// One receives while a value is sent and the sender goes: the value, then the end.
#[test]
fn send_and_the_end_against_recv() {
    model(2, || {
        let (sender, mut receiver) = channel(1);
        let sending = thread::spawn(move || assert!(sender.send(1).is_ok()));
        assert_eq!(block_on(receiver.recv()), Ok(1));
        assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
        sending.join().unwrap();
    });
}

/// The value that a receiver is after is overwritten: it gets it, or is told of exactly as many as it does not get.
#[test]
fn overwriting_against_recv() {
    model(2, || {
        let (sender, mut receiver) = channel(1);
        let sending = thread::spawn(move || {
            for value in 0..2 {
                assert!(sender.send(value).is_ok());
            }
        });
        let mut next = 0;
        loop {
            match block_on(receiver.recv()) {
                Ok(value) => {
                    assert_eq!(value, next);
                    next += 1;
                }
                Err(RecvError::Lagged(missed)) => {
                    assert!(missed > 0);
                    next += missed;
                }
                Err(RecvError::Closed) => break,
            }
        }
        assert_eq!(next, 2);
        sending.join().unwrap();
    });
}

/// Two receivers take the same value: both get it, whoever is the last, and nothing of it is left.
#[test]
fn two_receivers_take_one_value() {
    model(2, || {
        let alive = StdArc::new(AtomicUsize::new(0));
        let (sender, mut first) = channel(1);
        let mut second = sender.subscribe();
        assert!(sender.send(Value::new(7, &alive)).is_ok());
        let taking = thread::spawn(move || second.try_recv().expect("it was sent").0);
        let value = first.try_recv().expect("it was sent");
        assert_eq!(value.0, 7);
        assert_eq!(taking.join().unwrap(), 7);
        drop(value);
        assert_eq!(alive.load(SeqCst), 0);
        assert!(sender.is_empty());
    });
}

/// A receiver goes while a value is sent: the value is dropped with it, or refused.
#[test]
fn the_last_receiver_goes_against_send() {
    model(2, || {
        let alive = StdArc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(1);
        let value = Value::new(1, &alive);
        let going = thread::spawn(move || drop(receiver));
        drop(sender.send(value));
        going.join().unwrap();
        assert_eq!(alive.load(SeqCst), 0);
        block_on(sender.closed());
        assert!(sender.is_empty());
    });
}

/// One receiver takes what another leaves behind, while the value is overwritten.
#[test]
fn a_receiver_that_goes_against_one_that_takes_and_one_that_sends() {
    model(2, || {
        let alive = StdArc::new(AtomicUsize::new(0));
        let (sender, mut first) = channel(1);
        let second = sender.subscribe();
        assert!(sender.send(Value::new(1, &alive)).is_ok());
        let going = thread::spawn(move || drop(second));
        let value = Value::new(2, &alive);
        let sending = thread::spawn(move || assert!(sender.send(value).is_ok()));
        match first.try_recv() {
            Ok(value) => assert!(value.0 <= 2),
            Err(TryRecvError::Lagged(missed)) => assert_eq!(missed, 1),
            Err(other) => panic!("{other}"),
        }
        going.join().unwrap();
        sending.join().unwrap();
        drop(first);
        assert_eq!(alive.load(SeqCst), 0);
    });
}

/// Two receivers take a value that a sender comes round to: it is overwritten, or loses its cell, and neither is read as
/// another one; what was late is gone in the end, and the lost cell serves again.
#[test]
fn overwriting_what_two_receivers_take() {
    model(2, || {
        let alive = StdArc::new(AtomicUsize::new(0));
        let (sender, first) = channel(1);
        let second = sender.subscribe();
        assert!(sender.send(Value::new(0, &alive)).is_ok());
        let taking = |mut receiver: Receiver<Value>, mut next: u32| {
            move || {
                match receiver.try_recv() {
                    Ok(value) => {
                        assert_eq!(value.0, next);
                        next += 1;
                    }
                    Err(TryRecvError::Lagged(missed)) => {
                        assert_eq!(missed, 1);
                        next += 1;
                    }
                    Err(TryRecvError::Empty) => {}
                    Err(other) => panic!("{other}"),
                }
                (receiver, next)
            }
        };
        let one = thread::spawn(taking(first, 0));
        let other = thread::spawn(taking(second, 0));
        assert!(sender.send(Value::new(1, &alive)).is_ok());
        let (first, next) = one.join().unwrap();
        let (first, _) = taking(first, next)();
        let (second, next) = other.join().unwrap();
        assert!(sender.send(Value::new(2, &alive)).is_ok());
        let (second, next) = taking(second, next)();
        assert!(next > 1);
        // The one that is there, and no late one.
        assert_eq!(alive.load(SeqCst), 1);
        drop((first, second));
        assert_eq!(alive.load(SeqCst), 0);
    });
}

/// A receiver looks for a value whose cell still has the one before, which another receiver takes for good while the
/// next one is sent: what was pinned is not what is there then.
#[test]
fn looking_for_a_value_before_the_one_before_has_gone() {
    model(3, || {
        let alive = StdArc::new(AtomicUsize::new(0));
        let (sender, mut ahead) = channel(1);
        let mut behind = sender.subscribe();
        assert!(sender.send(Value::new(0, &alive)).is_ok());
        assert_eq!(ahead.try_recv().expect("it was sent").0, 0);
        let value = Value::new(1, &alive);
        let looking = thread::spawn(move || {
            match ahead.try_recv() {
                Ok(value) => assert_eq!(value.0, 1),
                Err(other) => assert_eq!(other, TryRecvError::Empty),
            }
            ahead
        });
        let taking = thread::spawn(move || {
            match behind.try_recv() {
                Ok(value) => assert_eq!(value.0, 0),
                Err(other) => assert_eq!(other, TryRecvError::Lagged(1)),
            }
            behind
        });
        assert!(sender.send(value).is_ok());
        drop((looking.join().unwrap(), taking.join().unwrap()));
        assert_eq!(alive.load(SeqCst), 0);
    });
}

/// A weak sender becomes a sender while the last one goes: then the channel is open, or it stays closed.
#[test]
fn upgrade_against_the_last_sender() {
    model(2, || {
        let (sender, mut receiver) = channel(1);
        let weak = sender.downgrade();
        let going = thread::spawn(move || drop(sender));
        if let Some(sender) = weak.upgrade() {
            assert!(sender.send(1).is_ok());
            drop(sender);
            assert_eq!(block_on(receiver.recv()), Ok(1));
        }
        assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
        going.join().unwrap();
    });
}
