//! Models of `mpsc`. Chunks of the queue hold two values under loom, so that a few get past a border.
//!
//! Seen to fail: with `WAITING` looked at before the receiver adds to `received`, not in the same step (a sender waits
//! for ever: `a_sender_begins_to_wait_...`); with `WAITING` set by a load and a store (an added slot is lost); without a
//! look at the slots after it was set; with `settle` not telling the receiver of the end; with a sender that was let in,
//! goes and keeps its slot; with the receiver's waker taken before the last sender is counted off; with `upgrade` not in
//! one step; with a sender's new waker not kept; with a sender that does not look again, whether the channel was closed,
//! once its waker is cloned, and a receiver that does not look again at the queue then; without the note that the
//! receiver has gone; with a value that is handed over by a relaxed store; with a receiver that does not look again, under
//! the lock, whether one was handed over.
#![cfg(rt_loom)]

use std::pin::pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::mpsc::error::{SendError, TryRecvError};
use rt_sync::mpsc::{channel, unbounded_channel};

/// Two senders, one slot: whatever the order, both values come out, and then the end.
#[test]
fn two_senders_and_a_receiver() {
    model(2, || {
        let (sender, mut receiver) = channel(1);
        let other = sender.clone();
        let one = thread::spawn(move || block_on(sender.send(1)).unwrap());
        let two = thread::spawn(move || block_on(other.send(2)).unwrap());
        let first = block_on(receiver.recv()).unwrap();
        let second = block_on(receiver.recv()).unwrap();
        assert_eq!(first + second, 3);
        assert_eq!(block_on(receiver.recv()), None);
        one.join().unwrap();
        two.join().unwrap();
    });
}

/// A sender finds no slot and begins to wait while the receiver frees one, and then takes no more: the sender is let in
/// by that one slot.
#[test]
fn a_sender_begins_to_wait_against_a_slot_that_comes_free() {
    model(3, || {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let sending = thread::spawn(move || {
            block_on(sender.send(2)).unwrap();
            sender
        });
        assert_eq!(receiver.try_recv(), Ok(1));
        let sender = sending.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(sender.capacity(), 1);
    });
}

/// Two senders wait in turn for two slots that come free meanwhile; `WAITING` is set and cleared again.
#[test]
fn two_senders_begin_to_wait_against_slots_that_come_free() {
    model(2, || {
        let (sender, mut receiver) = channel(2);
        sender.try_send(1).unwrap();
        sender.try_send(1).unwrap();
        let other = sender.clone();
        let one = thread::spawn(move || block_on(sender.send(2)).unwrap());
        let two = thread::spawn(move || block_on(other.reserve()).unwrap().send(3));
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Ok(1));
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(receiver.len(), 2);
    });
}

/// A sender waits for two slots, which come free one by one, and another behind it.
#[test]
fn a_sender_waits_for_several_slots() {
    model(2, || {
        let (sender, mut receiver) = channel(2);
        sender.try_send(1).unwrap();
        sender.try_send(2).unwrap();
        let sending = thread::spawn(move || {
            for permit in block_on(sender.reserve_many(2)).unwrap() {
                permit.send(3);
            }
        });
        assert_eq!(block_on(receiver.recv()), Some(1));
        assert_eq!(receiver.try_recv(), Ok(2));
        sending.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(3));
        assert_eq!(receiver.try_recv(), Ok(3));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    });
}

/// The channel is closed while a sender sends, or waits to: its value comes out or comes back.
#[test]
fn close_against_send() {
    for full in [false, true] {
        model(3, move || {
            let (sender, mut receiver) = channel(1);
            if full {
                sender.try_send(1).unwrap();
            }
            let sending = thread::spawn(move || block_on(sender.send(2)));
            if full {
                assert_eq!(receiver.try_recv(), Ok(1));
            }
            receiver.close();
            let received = block_on(receiver.recv());
            assert_eq!(block_on(receiver.recv()), None);
            match sending.join().unwrap() {
                Ok(()) => assert_eq!(received, Some(2)),
                Err(SendError(value)) => assert_eq!((value, received), (2, None)),
            }
        });
    }
}

/// The receiver goes while a sender sends: the value is dropped or comes back, never lost in between.
#[test]
fn drop_of_the_receiver_against_send() {
    model(3, || {
        let (sender, receiver) = unbounded_channel();
        let (bounded, other) = channel(1);
        let value = StdArc::new(());
        let one = value.clone();
        let two = value.clone();
        let sending = thread::spawn(move || {
            drop(sender.send(one));
            if let Ok(permit) = bounded.try_reserve() {
                permit.send(two);
            }
            // The senders still exist: what was left in a channel would too.
            (sender, bounded)
        });
        drop(receiver);
        drop(other);
        let senders = sending.join().unwrap();
        assert_eq!(StdArc::strong_count(&value), 1);
        drop(senders);
    });
}

/// The last permit is dropped, released or used while the channel is closed: the receiver sees the end.
#[test]
fn drop_of_a_permit_against_close() {
    for way in 0..3 {
        model(3, move || {
            let (sender, mut receiver) = channel(1);
            let permit = sender.clone().try_reserve_owned().unwrap();
            let giving = thread::spawn(move || match way {
                0 => drop(permit),
                1 => drop(permit.release()),
                _ => drop(permit.send(7)),
            });
            receiver.close();
            if way == 2 {
                assert_eq!(block_on(receiver.recv()), Some(7));
            }
            assert_eq!(block_on(receiver.recv()), None);
            giving.join().unwrap();
            drop(sender);
        });
    }
}

/// The last sender goes, with or without a last word, while the receiver is polled.
#[test]
fn drop_of_the_last_sender_against_recv() {
    for word in [false, true] {
        model(3, move || {
            let (sender, mut receiver) = channel(1);
            let other = sender.clone();
            let one = thread::spawn(move || {
                if word {
                    sender.try_send(1).unwrap();
                }
            });
            let two = thread::spawn(move || drop(other));
            if word {
                assert_eq!(block_on(receiver.recv()), Some(1));
            }
            assert_eq!(block_on(receiver.recv()), None);
            one.join().unwrap();
            two.join().unwrap();
        });
    }
}

/// Values pass the border of a chunk while the receiver takes them out: in order, none lost.
#[test]
fn an_unbounded_queue_past_the_border_of_a_chunk() {
    model(3, || {
        let (sender, mut receiver) = unbounded_channel();
        let sending = thread::spawn(move || {
            for n in 0..5 {
                sender.send(Box::new(n)).unwrap();
            }
        });
        let mut next = 0;
        while let Some(n) = block_on(receiver.recv()) {
            assert_eq!(*n, next);
            next += 1;
        }
        assert_eq!(next, 5);
        sending.join().unwrap();
    });
}

/// Two senders into an unbounded channel: the values of each come out in their order.
#[test]
fn two_senders_keep_their_order() {
    model(2, || {
        let (sender, mut receiver) = unbounded_channel();
        let other = sender.clone();
        let one = thread::spawn(move || (0..2).for_each(|n| sender.send((0, n)).unwrap()));
        let two = thread::spawn(move || (0..2).for_each(|n| other.send((1, n)).unwrap()));
        let mut next = [0, 0];
        while let Some((who, n)) = block_on(receiver.recv()) {
            assert_eq!(n, next[who]);
            next[who] += 1;
        }
        assert_eq!(next, [2, 2]);
        one.join().unwrap();
        two.join().unwrap();
    });
}

/// A weak sender becomes a strong one while the last strong one goes: it can send, or it does not exist.
#[test]
fn upgrade_against_drop_of_the_last_sender() {
    model(3, || {
        let (sender, mut receiver) = channel(1);
        let weak = sender.downgrade();
        let dropping = thread::spawn(move || drop(sender));
        let upgrading = thread::spawn(move || {
            weak.upgrade()
                .map(|sender| sender.try_send(7).unwrap())
                .is_some()
        });
        let received = block_on(receiver.recv());
        assert_eq!(block_on(receiver.recv()), None);
        dropping.join().unwrap();
        assert_eq!(received.is_some(), upgrading.join().unwrap());
    });
}

/// A waiting sender goes while a slot comes free for it: the slot is the next one's.
#[test]
fn cancel_of_a_waiting_sender_against_a_slot_that_comes_free() {
    model(3, || {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let (probe, waker) = Probe::new();
        let mut second = pin!(sender.send(3));
        let receiving = {
            let mut first = Box::pin(sender.send(2));
            let mut cx = Context::from_waker(&waker);
            assert!(first.as_mut().poll(&mut cx).is_pending());
            assert!(second.as_mut().poll(&mut cx).is_pending());
            let receiving = thread::spawn(move || {
                assert_eq!(receiver.try_recv(), Ok(1));
                receiver
            });
            drop(first);
            receiving
        };
        assert_eq!(block_on(second.as_mut()), Ok(()));
        let mut receiver = receiving.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok(3));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(sender.capacity(), 1);
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// The only waiting sender goes, while a slot comes free and the channel is closed and waited for: the end is seen.
#[test]
fn cancel_of_a_waiting_sender_against_close() {
    model(3, || {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let (_probe, waker) = Probe::new();
        let mut waiting = Box::pin(sender.clone().reserve_owned());
        assert!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let receiving = thread::spawn(move || {
            assert_eq!(receiver.try_recv(), Ok(1));
            receiver.close();
            assert_eq!(block_on(receiver.recv()), None);
        });
        drop(waiting);
        receiving.join().unwrap();
        drop(sender);
    });
}

/// A waiting sender changes its waker while it is let in: the newest is woken, or it is ready.
#[test]
fn change_of_waker_against_a_slot_that_comes_free() {
    model(3, || {
        let (sender, mut receiver) = channel(1);
        sender.try_send(1).unwrap();
        let (old, old_waker) = Probe::new();
        let (new, new_waker) = Probe::new();
        let mut waiting = pin!(sender.send(2));
        let poll = |future: std::pin::Pin<&mut _>, waker: &Waker| {
            Future::poll(future, &mut Context::from_waker(waker))
        };
        assert!(poll(waiting.as_mut(), &old_waker).is_pending());
        let receiving = thread::spawn(move || {
            assert_eq!(receiver.try_recv().map(|n| (n, receiver)).unwrap().0, 1)
        });
        let second = poll(waiting.as_mut(), &new_waker);
        receiving.join().unwrap();
        if second.is_pending() {
            assert_eq!(new.wakes(), 1);
        }
        assert!(old.wakes() + new.wakes() <= 1);
        drop((old_waker, new_waker));
        assert_eq!(StdArc::strong_count(&old), 1);
        assert_eq!(StdArc::strong_count(&new), 1);
    });
}

/// The waiting receive goes while a value is sent: the stored waker is woken or dropped, the value stays.
#[test]
fn cancel_of_recv_against_send() {
    model(3, || {
        let (sender, mut receiver) = channel(1);
        let (probe, waker) = Probe::new();
        let sending = thread::spawn(move || sender.try_send(1).unwrap());
        let first = {
            let mut recv = pin!(receiver.recv());
            recv.as_mut().poll(&mut Context::from_waker(&waker))
        };
        if first.is_pending() {
            assert_eq!(block_on(receiver.recv()), Some(1));
        } else {
            assert_eq!(first, Poll::Ready(Some(1)));
        }
        sending.join().unwrap();
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// The receiver goes, or closes, while a sender waits for that.
#[test]
fn closed_against_close() {
    for close in [false, true] {
        model(3, move || {
            let (sender, mut receiver) = channel::<u8>(1);
            let going = thread::spawn(move || {
                if close {
                    receiver.close();
                    return Some(receiver);
                }
                None
            });
            block_on(sender.closed());
            assert!(sender.try_reserve().is_err());
            going.join().unwrap();
        });
    }
}

/// Threads that block on both ends of a channel of one slot.
#[test]
fn blocking_ends() {
    model(2, || {
        let (sender, mut receiver) = channel(1);
        let sending = thread::spawn(move || {
            sender.blocking_send(1).unwrap();
            sender.blocking_send(2).unwrap();
        });
        assert_eq!(receiver.blocking_recv(), Some(1));
        assert_eq!(receiver.blocking_recv(), Some(2));
        assert_eq!(receiver.blocking_recv(), None);
        sending.join().unwrap();
    });
}
