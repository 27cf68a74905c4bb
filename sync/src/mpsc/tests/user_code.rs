//! What runs while a channel works: destructors and wakers, which may panic and may use the channel themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use crate::mpsc::{channel, unbounded_channel};
use crate::testing::{Probe, limited, once};

use super::{Counted, now, poll_once, poll_with};

#[test]
fn values_left_are_dropped_with_the_receiver() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = channel(1_000);
    let (unbounded, numbers) = unbounded_channel();
    for _ in 0..700 {
        now(sender.send(Counted(drops.clone()))).unwrap();
        unbounded.send(Counted(drops.clone())).unwrap();
    }
    // Some lie with the receiver already, others come after them.
    drop(receiver.try_recv().unwrap());
    for _ in 0..200 {
        now(sender.send(Counted(drops.clone()))).unwrap();
    }
    drop(receiver);
    assert_eq!(drops.load(SeqCst), 900);
    drop(numbers);
    assert_eq!(drops.load(SeqCst), 1_600);
    assert_eq!(sender.capacity(), 1_000);
    // A value that comes too late comes back.
    drop(now(sender.send(Counted(drops.clone()))).unwrap_err());
    drop(unbounded.send(Counted(drops.clone())).unwrap_err());
    assert_eq!(drops.load(SeqCst), 1_602);
}

#[test]
fn what_a_permit_sends_to_nobody_is_dropped_at_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel(2);
    let permit = sender.try_reserve().unwrap();
    let owned = sender.clone().try_reserve_owned().unwrap();
    drop(receiver);
    permit.send(Counted(drops.clone()));
    assert_eq!(drops.load(SeqCst), 1);
    drop(owned.send(Counted(drops.clone())));
    assert_eq!(drops.load(SeqCst), 2);
    assert_eq!(sender.capacity(), 2);
}

#[test]
fn a_future_that_is_dropped_has_sent_nothing_and_drops_its_value() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = channel(1);
    drop(sender.send(Counted(drops.clone())));
    assert_eq!((drops.load(SeqCst), receiver.len()), (1, 0));
    now(sender.send(Counted(drops.clone()))).unwrap();
    {
        let mut waiting = pin!(sender.send(Counted(drops.clone())));
        assert!(poll_once(waiting.as_mut()).is_pending());
        drop(receiver.try_recv().unwrap());
    }
    assert_eq!((drops.load(SeqCst), receiver.len()), (3, 0));
}

struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0.fetch_add(1, SeqCst).is_multiple_of(2) {
            panic!("a value that panics when it is dropped");
        }
    }
}

#[test]
fn values_that_panic_when_dropped_do_not_keep_the_others_from_it() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = unbounded_channel();
    for _ in 0..600 {
        assert!(sender.send(Bomb(drops.clone())).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert_eq!(drops.load(SeqCst), 600);

    // Not even while another panic is on its way.
    let (sender, receiver) = channel(600);
    for _ in 0..600 {
        assert!(now(sender.send(Bomb(drops.clone()))).is_ok());
    }
    let payload = catch_unwind(AssertUnwindSafe(|| {
        let _receiver = receiver;
        panic!("the first panic");
    }))
    .unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"the first panic"));
    assert_eq!(drops.load(SeqCst), 1_200);
}

/// A value whose destructor uses its own channel: it would wait for ever if a lock were held.
struct Back(crate::mpsc::Sender<Back>);

impl Drop for Back {
    fn drop(&mut self) {
        assert!(self.0.is_closed());
        assert!(self.0.try_reserve().is_err());
        let _ = self.0.capacity();
    }
}

#[test]
fn destructors_of_values_may_use_the_channel() {
    limited(|| {
        let (sender, receiver) = channel(3);
        for _ in 0..2 {
            assert!(sender.try_send(Back(sender.clone())).is_ok());
        }
        let permit = sender.try_reserve().unwrap();
        drop(receiver);
        permit.send(Back(sender.clone()));
        assert_eq!(sender.strong_count(), 1);
    });
}

#[test]
fn wakers_may_use_the_channel() {
    limited(|| {
        let (sender, mut receiver) = channel(1);
        let probe = Probe::new();
        // Each hook runs once.
        let arm = || {
            for slot in [&probe.on_clone, &probe.on_wake, &probe.on_drop] {
                let sender = sender.clone();
                once(slot, move || {
                    let _ = sender.capacity();
                    assert!(!sender.is_closed());
                });
            }
        };
        let ran = |slot: &Mutex<Option<_>>| slot.lock().unwrap().is_none();
        arm();
        {
            let mut recv = pin!(receiver.recv());
            assert!(poll_with(recv.as_mut(), &probe).is_pending());
            sender.try_send(1).unwrap();
            assert!(poll_with(recv.as_mut(), &probe).is_ready());
            assert!(ran(&probe.on_clone) && ran(&probe.on_wake));
        }
        sender.try_send(2).unwrap();
        arm();
        let mut waiting = Box::pin(sender.send(3));
        assert!(poll_with(waiting.as_mut(), &probe).is_pending());
        let other = Probe::new();
        assert!(poll_with(waiting.as_mut(), &other).is_pending());
        assert!(ran(&probe.on_drop));
        assert!(poll_with(waiting.as_mut(), &probe).is_pending());
        receiver.try_recv().unwrap();
        assert!(ran(&probe.on_wake));
        assert!(poll_with(waiting.as_mut(), &probe).is_ready());
        drop(waiting);
        arm();
        let mut waiting = Box::pin(sender.reserve());
        assert!(poll_with(waiting.as_mut(), &probe).is_pending());
        drop(waiting);
        assert!(ran(&probe.on_clone) && ran(&probe.on_drop));
        // The hooks keep senders, which would keep each other.
        for slot in [&probe.on_clone, &probe.on_wake, &probe.on_drop] {
            *slot.lock().unwrap() = None;
        }
    });
}

#[test]
fn a_value_that_comes_while_the_waker_is_cloned_is_seen() {
    let (sender, mut receiver) = channel(1);
    let probe = Probe::new();
    once(&probe.on_clone, {
        let sender = sender.clone();
        move || sender.try_send(1).unwrap()
    });
    assert_eq!(
        poll_with(pin!(receiver.recv()), &probe),
        Poll::Ready(Some(1))
    );
    assert_eq!((probe.alive(), probe.wakes()), (0, 0));
}

#[test]
fn a_slot_that_comes_free_while_the_waker_is_cloned_is_taken() {
    let (sender, receiver) = channel(1);
    sender.try_send(1).unwrap();
    let probe = Probe::new();
    let receiver = Arc::new(Mutex::new(receiver));
    let taking = receiver.clone();
    once(&probe.on_clone, move || {
        assert_eq!(taking.lock().unwrap().try_recv(), Ok(1));
    });
    assert_eq!(poll_with(pin!(sender.send(2)), &probe), Poll::Ready(Ok(())));
    assert_eq!((probe.alive(), probe.wakes()), (0, 0));
}

#[test]
fn a_waker_that_panics_when_dropped_keeps_no_slot() {
    let (sender, receiver) = channel(1);
    sender.try_send(1).unwrap();
    let probe = Probe::new();
    let receiver = Arc::new(Mutex::new(receiver));
    let taking = receiver.clone();
    // The slot comes free while the waker is cloned, so that it is not needed.
    once(&probe.on_clone, move || {
        assert_eq!(taking.lock().unwrap().try_recv(), Ok(1));
    });
    once(&probe.on_drop, || panic!("a waker that panics"));
    let mut waiting = Box::pin(sender.reserve());
    let polled = catch_unwind(AssertUnwindSafe(|| {
        drop(poll_with(waiting.as_mut(), &probe));
    }));
    assert!(polled.is_err());
    assert_eq!(sender.capacity(), 1);
}

#[test]
fn a_waker_that_panics_keeps_no_other_sender_from_being_let_in() {
    let (sender, mut receiver) = channel(4);
    let held = now(sender.reserve_many(4)).unwrap();
    let (bad, good) = (Probe::new(), Probe::new());
    once(&bad.on_wake, || panic!("a waker that panics"));
    let mut first = pin!(sender.send(1));
    let mut second = pin!(sender.send(2));
    assert!(poll_with(first.as_mut(), &bad).is_pending());
    assert!(poll_with(second.as_mut(), &good).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(held))).is_err());
    assert_eq!(good.wakes(), 1);
    assert!(poll_with(first.as_mut(), &bad).is_ready());
    assert!(poll_with(second.as_mut(), &good).is_ready());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Ok(2));

    // The same when the channel is closed; who waits for that is told too.
    let _held = now(sender.reserve_many(4)).unwrap();
    once(&bad.on_wake, || panic!("a waker that panics"));
    let mut first = pin!(sender.send(1));
    let mut closed = pin!(sender.closed());
    assert!(poll_with(first.as_mut(), &bad).is_pending());
    assert!(poll_with(closed.as_mut(), &good).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| receiver.close())).is_err());
    assert_eq!(good.wakes(), 2);
    assert!(poll_with(closed.as_mut(), &good).is_ready());
    assert!(poll_with(first.as_mut(), &bad).is_ready());
}

#[test]
fn a_receiver_keeps_its_values_when_the_waker_of_a_sender_panics() {
    let (sender, mut receiver) = channel(2);
    let (bad, good) = (Probe::new(), Probe::new());
    for round in 0..3 {
        sender.try_send(1).unwrap();
        sender.try_send(2).unwrap();
        once(&bad.on_wake, || panic!("a waker that panics"));
        let mut first = pin!(sender.send(3));
        let mut second = pin!(sender.send(4));
        assert!(poll_with(first.as_mut(), &bad).is_pending());
        assert!(poll_with(second.as_mut(), &good).is_pending());
        match round {
            0 => {
                assert_eq!(receiver.try_recv(), Ok(1));
                assert_eq!(now(receiver.recv()), Some(2));
            }
            1 => {
                assert_eq!(receiver.blocking_recv(), Some(1));
                assert_eq!(receiver.blocking_recv(), Some(2));
            }
            _ => {
                let mut values = Vec::new();
                assert_eq!(now(receiver.recv_many(&mut values, 9)), 2);
                assert_eq!(values, [1, 2]);
            }
        }
        assert_eq!((bad.wakes(), good.wakes()), (round + 1, round + 1));
        assert!(poll_with(first.as_mut(), &bad).is_ready());
        assert!(poll_with(second.as_mut(), &good).is_ready());
        assert_eq!(receiver.try_recv(), Ok(3));
        assert_eq!(receiver.try_recv(), Ok(4));
        assert_eq!(sender.capacity(), 2);
    }
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_send_that_is_polled_after_its_end_says_so() {
    let (sender, _receiver) = channel(2);
    let mut sending = pin!(sender.send(1));
    assert!(poll_once(sending.as_mut()).is_ready());
    let _ = poll_once(sending.as_mut());
}
