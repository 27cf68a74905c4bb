//! Models of `oneshot`. loom's cell inside checks that the value is never touched by both ends.
//!
//! Seen to fail: with `Acquire` for `AcqRel` in the exchange of `change` (five models: the value is read while it is
//! written) and in that of `register_anew` (a null waker is taken); with `Relaxed` for the first load of `change`
//! (the same); without the bump of the generation in `register_anew` (a waker is dropped twice).
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::oneshot::{TryRecvError, channel};

/// Counts its drops, and lies on the heap so that a value that is not whole shows.
struct Value(Box<u64>, StdArc<AtomicUsize>);

impl Value {
    fn new() -> (Self, StdArc<AtomicUsize>) {
        let drops = StdArc::new(AtomicUsize::new(0));
        (Self(Box::new(42), drops.clone()), drops)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        assert_eq!(*self.0, 42);
        self.1.fetch_add(1, SeqCst);
    }
}

/// The value is sent while the receiver is polled.
#[test]
fn send_against_recv() {
    model(3, || {
        let (sender, receiver) = channel();
        let (value, drops) = Value::new();
        let sending = thread::spawn(move || assert!(sender.send(value).is_ok()));
        let value = block_on(receiver).expect("it was sent");
        assert_eq!(drops.load(SeqCst), 0);
        drop(value);
        sending.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// The receiver changes its waker between two polls, while the value is sent: the newest is woken or the value is
/// seen, and no waker is lost or doubled.
#[test]
fn send_against_a_change_of_waker() {
    model(3, || {
        let (sender, mut receiver) = channel();
        let (old, old_waker) = Probe::new();
        let (new, new_waker) = Probe::new();
        let sending = thread::spawn(move || assert!(sender.send(7).is_ok()));
        let mut poll =
            |waker: &Waker| std::pin::Pin::new(&mut receiver).poll(&mut Context::from_waker(waker));
        let first = poll(&old_waker);
        let second = if first.is_pending() {
            poll(&new_waker)
        } else {
            first.clone()
        };
        sending.join().unwrap();
        if second.is_pending() {
            assert_eq!(new.wakes(), 1);
            assert_eq!(poll(&new_waker), Poll::Ready(Ok(7)));
        }
        assert!(old.wakes() + new.wakes() <= 1);
        drop((old_waker, new_waker));
        assert_eq!(StdArc::strong_count(&old), 1);
        assert_eq!(StdArc::strong_count(&new), 1);
    });
}

/// The receiver goes while the value is sent: it comes back or is dropped with the channel, once.
#[test]
fn send_against_drop_of_the_receiver() {
    model(3, || {
        let (sender, mut receiver) = channel();
        let (value, drops) = Value::new();
        let (probe, waker) = Probe::new();
        assert!(
            std::pin::Pin::new(&mut receiver)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let sending = thread::spawn(move || sender.send(value).is_ok());
        drop(receiver);
        let sent = sending.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        assert!(probe.wakes() <= usize::from(sent));
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// The channel is closed while the value is sent: it comes back or can be received, never both or neither.
#[test]
fn close_against_send() {
    model(3, || {
        let (sender, mut receiver) = channel();
        let (value, drops) = Value::new();
        let sending = thread::spawn(move || sender.send(value));
        receiver.close();
        let received = receiver.try_recv();
        let sent = sending.join().unwrap();
        assert_eq!(received.is_ok(), sent.is_ok());
        if let Err(error) = &received {
            assert_eq!(*error, TryRecvError::Closed);
        }
        assert_eq!(drops.load(SeqCst), 0);
        drop((received, sent));
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// The sender goes without a value while the receiver is polled.
#[test]
fn drop_of_the_sender_against_recv() {
    model(3, || {
        let (sender, receiver) = channel::<u8>();
        let dropping = thread::spawn(move || drop(sender));
        assert!(block_on(receiver).is_err());
        dropping.join().unwrap();
    });
}

/// The receiver goes, or closes, while the sender waits for that.
#[test]
fn closed_against_drop_and_close() {
    for close in [false, true] {
        model(3, move || {
            let (mut sender, mut receiver) = channel::<u8>();
            let going = thread::spawn(move || {
                if close {
                    receiver.close();
                }
                drop(receiver);
            });
            block_on(sender.closed());
            assert_eq!(sender.send(1), Err(1));
            going.join().unwrap();
        });
    }
}

/// Both ends wait for each other and go at the same time: every waker is dropped, and the channel freed once.
#[test]
fn drop_against_drop() {
    model(3, || {
        let (mut sender, mut receiver) = channel::<u8>();
        let (tx, tx_waker) = Probe::new();
        let (rx, rx_waker) = Probe::new();
        assert!(
            std::pin::Pin::new(&mut receiver)
                .poll(&mut Context::from_waker(&rx_waker))
                .is_pending()
        );
        let going = thread::spawn(move || {
            let polled = sender.poll_closed(&mut Context::from_waker(&tx_waker));
            drop(sender);
            polled.is_ready()
        });
        drop(receiver);
        let seen = going.join().unwrap();
        // Who goes first tells the other, who is still there with a waker.
        assert!(rx.wakes() + tx.wakes() <= 1);
        assert!(!seen || rx.wakes() + tx.wakes() == 0);
        drop(rx_waker);
        assert_eq!(StdArc::strong_count(&rx), 1);
        assert_eq!(StdArc::strong_count(&tx), 1);
    });
}

/// A thread that waits is unparked.
#[test]
fn send_against_blocking_recv() {
    model(3, || {
        let (sender, receiver) = channel();
        let sending = thread::spawn(move || assert!(sender.send(7).is_ok()));
        assert_eq!(receiver.blocking_recv(), Ok(7));
        sending.join().unwrap();
    });
}

/// The sender waits with `closed` and gives up, while the receiver goes: the stored waker is dropped, or woken.
#[test]
fn a_closed_future_dropped_against_drop_of_the_receiver() {
    model(3, || {
        let (mut sender, receiver) = channel::<u8>();
        let (probe, waker) = Probe::new();
        let going = thread::spawn(move || drop(receiver));
        {
            let mut closed = sender.closed();
            let _ = block_on(poll_fn(|_| {
                Poll::Ready(std::pin::Pin::new(&mut closed).poll(&mut Context::from_waker(&waker)))
            }));
        }
        going.join().unwrap();
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
        assert!(sender.is_closed());
    });
}
