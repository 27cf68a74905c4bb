//! The stress twin of `oneshot.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Context;
use std::thread::{self};

use rt_loom_tests::stress::{Unpark, block_on_with_new_wakers, limited};
use rt_sync::oneshot::{Receiver, Sender, channel};

const ROUNDS: usize = 50_000;

struct Value {
    round: Box<usize>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Value {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
    }
}

/// Runs the two ends on two threads, a new channel in every round; then every value has been dropped once.
fn race(
    mut tx_end: impl FnMut(usize, Sender<Value>, Value) + Send + 'static,
    mut rx_end: impl FnMut(usize, Receiver<Value>) + Send + 'static,
) {
    limited(move || {
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = drops.clone();
        let (hand, take) = mpsc::sync_channel(0);
        let sending = thread::spawn(move || {
            for round in 0..ROUNDS {
                let sender = take.recv().unwrap();
                let value = Value {
                    round: Box::new(round),
                    drops: counted.clone(),
                };
                tx_end(round, sender, value);
            }
        });
        for round in 0..ROUNDS {
            let (sender, receiver) = channel();
            hand.send(sender).unwrap();
            rx_end(round, receiver);
        }
        sending.join().unwrap();
        assert_eq!(drops.load(SeqCst), ROUNDS);
    });
}

#[test]
fn every_value_is_received() {
    race(
        |_, sender, value| assert!(sender.send(value).is_ok()),
        |round, receiver| {
            let value = if round % 2 == 0 {
                block_on_with_new_wakers(receiver)
            } else {
                receiver.blocking_recv()
            };
            assert_eq!(*value.unwrap().round, round);
        },
    );
}

#[test]
fn every_value_is_dropped_once_when_the_receiver_goes() {
    race(
        |_, sender, value| drop(sender.send(value)),
        |round, mut receiver| {
            let waker = Unpark::waker();
            let mut cx = Context::from_waker(&waker);
            if round % 3 > 0 {
                drop(pin!(&mut receiver).poll(&mut cx));
            }
            if round % 3 > 1 && !receiver.is_terminated() {
                receiver.close();
                drop(receiver.try_recv());
            }
        },
    );
}

#[test]
fn the_sender_is_told_that_the_receiver_goes() {
    race(
        |_, mut sender, value| {
            block_on_with_new_wakers(sender.closed());
            assert!(sender.send(value).is_err());
        },
        |_, receiver| drop(receiver),
    );
}

#[test]
fn the_receiver_is_told_that_the_sender_goes() {
    race(
        |_, sender, _| drop(sender),
        |_, receiver| assert!(block_on_with_new_wakers(receiver).is_err()),
    );
}
