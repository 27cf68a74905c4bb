//! The stress twin of `watch.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::sync::mpsc;
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::watch::{Sender, channel};

const ROUNDS: usize = 20_000;

/// Every version is answered before the next, so a wake that is lost ends it.
#[test]
fn versions_go_to_and_fro() {
    limited(|| {
        let (there, mut hears) = channel(0);
        let (back, mut answered) = channel(0);
        let thread = thread::spawn(move || {
            while block_on(hears.changed()).is_ok() {
                let value = *hears.borrow_and_update();
                back.send(value).unwrap();
            }
        });
        for value in 1..=ROUNDS {
            there.send(value).unwrap();
            assert_eq!(
                *block_on(answered.wait_for(|n| *n == value)).unwrap(),
                value
            );
        }
        drop(there);
        thread.join().unwrap();
    });
}

/// Values that are not whole would show, and the last one is never missed.
#[test]
fn two_senders_and_two_receivers() {
    limited(|| {
        let (sender, receiver) = channel((0, 0));
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let mut receiver = receiver.clone();
                thread::spawn(move || {
                    let mut last = 0;
                    while block_on(receiver.changed()).is_ok() {
                        let value = receiver.borrow_and_update();
                        assert_eq!(value.0, value.1);
                        assert!(value.0 >= last);
                        last = value.0;
                    }
                    last
                })
            })
            .collect();
        drop(receiver);
        let send = |sender: Sender<(usize, usize)>| {
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    sender.send_modify(|value| {
                        value.0 += 1;
                        value.1 += 1;
                    });
                }
            })
        };
        for thread in [send(sender.clone()), send(sender)] {
            thread.join().unwrap();
        }
        for thread in receivers {
            assert_eq!(thread.join().unwrap(), 2 * ROUNDS);
        }
    });
}

/// The last receiver goes while the sender waits for that.
#[test]
fn closed_is_told_of_the_last_receiver() {
    limited(|| {
        let (hand, take) = mpsc::sync_channel(0);
        let thread = thread::spawn(move || take.iter().for_each(drop));
        for _ in 0..ROUNDS / 4 {
            let (sender, receiver) = channel(0);
            let other = sender.subscribe();
            hand.send(receiver).unwrap();
            drop(other);
            block_on(sender.closed());
            assert!(sender.send(1).is_err());
        }
        drop(hand);
        thread.join().unwrap();
    });
}
