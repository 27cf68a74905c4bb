//! The stress twin of `mpsc.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc as std_mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on_with_new_wakers as block_on, limited};
use rt_sync::mpsc::{Receiver, Sender, channel, unbounded_channel};

const ROUNDS: usize = 5_000;

/// Several senders in all ways there are, one receiver in all ways there are: everything comes out, in each sender's
/// order.
#[test]
fn everything_comes_out_in_each_senders_order() {
    for capacity in [1, 2, 7, 1_000] {
        limited(move || {
            const SENDERS: usize = 4;
            let (sender, mut receiver) = channel(capacity);
            let threads: Vec<_> = (0..SENDERS)
                .map(|who| {
                    let sender = sender.clone();
                    thread::spawn(move || send_all(who, sender))
                })
                .collect();
            drop(sender);
            let mut next = [0; SENDERS];
            let mut buffer = Vec::new();
            let mut turn = 0;
            loop {
                turn += 1;
                match turn % 4 {
                    0 => buffer.extend(receiver.try_recv()),
                    1 => {
                        if block_on(receiver.recv_many(&mut buffer, 3)) == 0 {
                            break;
                        }
                    }
                    2 => buffer.extend(block_on(receiver.recv())),
                    // A receive that is given up.
                    _ => {
                        if let Poll::Ready(value) =
                            pin!(receiver.recv()).poll(&mut Context::from_waker(Waker::noop()))
                        {
                            buffer.extend(value);
                        }
                    }
                }
                for (who, n) in buffer.drain(..) {
                    assert_eq!(n, next[who]);
                    next[who] += 1;
                }
            }
            assert_eq!(next, [ROUNDS; SENDERS]);
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }
}

fn send_all(who: usize, mut sender: Sender<(usize, usize)>) {
    let mut n = 0;
    while n < ROUNDS {
        match n % 6 {
            0 => block_on(sender.reserve()).unwrap().send((who, n)),
            1 => {
                let many = sender.max_capacity().min(3).min(ROUNDS - n);
                for permit in block_on(sender.reserve_many(many)).unwrap() {
                    permit.send((who, n));
                    n += 1;
                }
                continue;
            }
            2 => sender = block_on(sender.reserve_owned()).unwrap().send((who, n)),
            3 => {
                // Gives up, in line or let in, and tries again.
                for _ in 0..2 {
                    let mut cx = Context::from_waker(Waker::noop());
                    drop(pin!(sender.reserve()).poll(&mut cx));
                }
                sender.blocking_send((who, n)).unwrap();
            }
            4 if sender.try_send((who, n)).is_ok() => {}
            _ => block_on(sender.send((who, n))).unwrap(),
        }
        n += 1;
    }
}

#[test]
fn an_unbounded_channel_loses_nothing() {
    limited(|| {
        const SENDERS: usize = 3;
        let (sender, mut receiver) = unbounded_channel();
        let threads: Vec<_> = (0..SENDERS)
            .map(|who| {
                let sender = sender.clone();
                thread::spawn(move || {
                    for n in 0..20 * ROUNDS {
                        sender.send((who, Box::new(n))).unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        let mut next = [0; SENDERS];
        while let Some((who, n)) = block_on(receiver.recv()) {
            assert_eq!(*n, next[who]);
            next[who] += 1;
        }
        assert_eq!(next, [20 * ROUNDS; SENDERS]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Runs the two ends on two threads, a new channel of one slot in every round, both starting at once.
fn race(
    mut tx_end: impl FnMut(usize, Sender<Counted>, Counted) + Send + 'static,
    mut rx_end: impl FnMut(usize, Receiver<Counted>),
) {
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = drops.clone();
    let start = Arc::new(Barrier::new(2));
    let (hand, take) = std_mpsc::sync_channel(1);
    let other = start.clone();
    let sending = thread::spawn(move || {
        for round in 0..ROUNDS {
            let sender = take.recv().unwrap();
            other.wait();
            tx_end(round, sender, Counted(counted.clone()));
        }
    });
    for round in 0..ROUNDS {
        let (sender, receiver) = channel(1);
        hand.send(sender).unwrap();
        start.wait();
        rx_end(round, receiver);
    }
    sending.join().unwrap();
    assert_eq!(drops.load(SeqCst), ROUNDS);
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn close_against_every_way_to_give_a_slot_back() {
    limited(|| {
        race(
            |round, sender, value| match round % 5 {
                0 => drop(block_on(sender.send(value))),
                1 => drop((sender.try_reserve().map(drop), value)),
                2 => drop(
                    sender
                        .try_reserve_owned()
                        .map(|permit| (permit.release(), value)),
                ),
                3 => {
                    if let Ok(permit) = block_on(sender.reserve_owned()) {
                        drop(permit.send(value));
                    }
                }
                _ => drop(sender.try_send(value)),
            },
            |_, mut receiver| {
                receiver.close();
                while block_on(receiver.recv()).is_some() {}
            },
        );
    });
}

#[test]
fn drop_of_either_end_against_the_other() {
    limited(|| {
        race(
            |round, sender, value| {
                if round % 2 == 0 {
                    drop(block_on(sender.send(value)));
                } else {
                    block_on(sender.closed());
                    assert!(sender.is_closed());
                }
            },
            |round, mut receiver| {
                if round % 2 == 0 && round % 4 == 0 {
                    let _ = block_on(receiver.recv());
                }
            },
        );
    });
}

#[test]
fn an_upgrade_against_the_last_drop() {
    limited(|| {
        let (hand, take) = std_mpsc::sync_channel(0);
        let upgrading = thread::spawn(move || {
            while let Ok((weak, to)) = take.recv() {
                let weak: rt_sync::mpsc::WeakSender<usize> = weak;
                let to: std_mpsc::Sender<bool> = to;
                let sent = weak.upgrade().map(|sender| block_on(sender.send(7)));
                to.send(sent.is_some()).unwrap();
            }
        });
        for _ in 0..ROUNDS {
            let (sender, mut receiver) = channel(1);
            let (to, from) = std_mpsc::channel();
            hand.send((sender.downgrade(), to)).unwrap();
            drop(sender);
            let received = block_on(receiver.recv());
            assert_eq!(received.is_some(), from.recv().unwrap());
            assert_eq!(block_on(receiver.recv()), None);
        }
        drop(hand);
        upgrading.join().unwrap();
    });
}
