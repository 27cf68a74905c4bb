//! The stress twin of `broadcast.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use rt_loom_tests::stress::limited;
use rt_sync::broadcast::channel;
use rt_sync::broadcast::error::RecvError;

const ROUNDS: u64 = 20_000;

/// Counts what is alive of it.
struct Value(u64, Arc<AtomicUsize>);

impl Value {
    fn new(n: u64, alive: &Arc<AtomicUsize>) -> Self {
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

/// Receivers that come, are late and go, in a ring that is overwritten all the time: numbers add up, nothing leaks.
#[test]
fn numbers_add_up_and_nothing_is_left() {
    limited(|| {
        for capacity in [1, 2, 64] {
            let alive = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = channel(capacity);
            let receivers: Vec<_> = (0..3)
                .map(|number| {
                    let mut receiver = receiver.resubscribe();
                    thread::spawn(move || {
                        let mut next = 0;
                        loop {
                            match receiver.blocking_recv() {
                                Ok(Value(value, _)) => {
                                    assert_eq!(value, next);
                                    next += 1;
                                }
                                Err(RecvError::Lagged(missed)) => {
                                    assert!(missed > 0);
                                    next += missed;
                                }
                                Err(RecvError::Closed) => return next,
                            }
                            if number == 2 && next > ROUNDS / 2 {
                                return ROUNDS;
                            }
                        }
                    })
                })
                .collect();
            drop(receiver);
            for value in 0..ROUNDS {
                assert!(sender.send(Value::new(value, &alive)).is_ok());
            }
            drop(sender);
            for thread in receivers {
                assert_eq!(thread.join().unwrap(), ROUNDS);
            }
            assert_eq!(alive.load(SeqCst), 0, "capacity {capacity}");
        }
    });
}

/// Each value is answered before the next, so a wake that is lost ends it.
#[test]
fn values_go_to_and_fro() {
    limited(|| {
        let (there, mut hears) = channel(1);
        let (back, mut answered) = channel(1);
        let thread = thread::spawn(move || {
            while let Ok(value) = hears.blocking_recv() {
                back.send(value).unwrap();
            }
        });
        for value in 0..ROUNDS {
            there.send(value).unwrap();
            assert_eq!(answered.blocking_recv(), Ok(value));
        }
        drop(there);
        thread.join().unwrap();
    });
}

/// Two senders: every value of each comes in its order.
#[test]
fn two_senders() {
    limited(|| {
        let (sender, mut receiver) = channel(1 << 16);
        let other = sender.clone();
        let threads = [(0, sender), (1, other)].map(|(who, sender)| {
            thread::spawn(move || (0..ROUNDS).for_each(|n| assert!(sender.send((who, n)).is_ok())))
        });
        let mut next = [0, 0];
        while let Ok((who, n)) = receiver.blocking_recv() {
            assert_eq!(n, next[who]);
            next[who] += 1;
        }
        assert_eq!(next, [ROUNDS, ROUNDS]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
