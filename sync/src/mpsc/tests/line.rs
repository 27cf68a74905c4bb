//! Who is let in, and when.

use std::pin::pin;
use std::task::Poll;

use crate::mpsc::channel;
use crate::mpsc::error::{SendError, TryRecvError, TrySendError};
use crate::testing::Probe;

use super::{now, poll_once, poll_with};

#[test]
fn waiting_senders_are_let_in_first_come_first_served() {
    let (sender, mut receiver) = channel(2);
    sender.try_send(0).unwrap();
    sender.try_send(1).unwrap();
    let (a, b, c) = (Probe::new(), Probe::new(), Probe::new());
    let mut first = pin!(sender.send(2));
    let mut second = pin!(sender.send(3));
    let mut third = pin!(sender.send(4));
    assert!(poll_with(first.as_mut(), &a).is_pending());
    assert!(poll_with(second.as_mut(), &b).is_pending());
    assert!(poll_with(third.as_mut(), &c).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((a.wakes(), b.wakes(), c.wakes()), (1, 0, 0));
    // The slot is the first one's: no newcomer gets it, nor do those behind.
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    assert_eq!(sender.capacity(), 0);
    assert!(poll_with(third.as_mut(), &c).is_pending());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!((a.wakes(), b.wakes(), c.wakes()), (1, 1, 0));
    // Let in, they send when they run, in whatever order.
    assert_eq!(poll_with(second.as_mut(), &b), Poll::Ready(Ok(())));
    assert_eq!(poll_with(first.as_mut(), &a), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(3));
    assert_eq!(c.wakes(), 1);
    assert_eq!(poll_with(third.as_mut(), &c), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Ok(4));
    assert_eq!((a.alive(), b.alive(), c.alive()), (0, 0, 0));
    assert_eq!(sender.capacity(), 2);
}

#[test]
fn a_slot_that_comes_free_while_others_wait_is_never_a_newcomers() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut waiting = pin!(sender.send(1));
    assert!(poll_once(waiting.as_mut()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    let mut newcomer = pin!(sender.send(2));
    assert!(poll_once(newcomer.as_mut()).is_pending());
    assert!(poll_once(waiting.as_mut()).is_ready());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(poll_once(newcomer.as_mut()).is_ready());
    assert_eq!(receiver.try_recv(), Ok(2));
}

#[test]
fn who_needs_many_slots_is_not_overtaken_by_who_needs_few() {
    let (sender, mut receiver) = channel(4);
    for n in 0..4 {
        sender.try_send(n).unwrap();
    }
    let (many, few) = (Probe::new(), Probe::new());
    let mut three = pin!(sender.reserve_many(3));
    let mut one = pin!(sender.send(9));
    assert!(poll_with(three.as_mut(), &many).is_pending());
    assert!(poll_with(one.as_mut(), &few).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!((many.wakes(), few.wakes()), (0, 0));
    assert_eq!(sender.capacity(), 0);
    assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!((many.wakes(), few.wakes()), (1, 0));
    let Poll::Ready(Ok(permits)) = poll_with(three.as_mut(), &many) else {
        panic!("let in, but not ready");
    };
    // What it does not use goes on to the next.
    drop(permits);
    assert_eq!(few.wakes(), 1);
    assert!(poll_with(one.as_mut(), &few).is_ready());
}

#[test]
fn a_waiting_sender_that_goes_loses_its_place_and_its_value_only() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let (a, b) = (Probe::new(), Probe::new());
    let mut second = pin!(sender.send(2));
    {
        let mut first = pin!(sender.send(1));
        assert!(poll_with(first.as_mut(), &a).is_pending());
        assert!(poll_with(second.as_mut(), &b).is_pending());
    }
    assert_eq!((a.alive(), a.wakes()), (0, 0));
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(b.wakes(), 1);
    assert_eq!(poll_with(second.as_mut(), &b), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn who_was_let_in_and_goes_passes_its_slot_on() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let (a, b) = (Probe::new(), Probe::new());
    let mut second = pin!(sender.reserve());
    {
        let mut first = pin!(sender.send(1));
        assert!(poll_with(first.as_mut(), &a).is_pending());
        assert!(poll_with(second.as_mut(), &b).is_pending());
        assert_eq!(receiver.try_recv(), Ok(0));
        assert_eq!((a.wakes(), b.wakes()), (1, 0));
    }
    assert_eq!(b.wakes(), 1);
    let Poll::Ready(Ok(permit)) = poll_with(second.as_mut(), &b) else {
        panic!("let in, but not ready");
    };
    permit.send(2);
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(sender.capacity(), 1);
}

#[test]
fn when_the_first_in_line_goes_the_next_may_need_fewer_slots() {
    let (sender, mut receiver) = channel(2);
    sender.try_send(0).unwrap();
    sender.try_send(1).unwrap();
    let b = Probe::new();
    let mut one = pin!(sender.send(2));
    {
        let mut two = pin!(sender.reserve_many(2));
        assert!(poll_once(two.as_mut()).is_pending());
        assert!(poll_with(one.as_mut(), &b).is_pending());
        assert_eq!(receiver.try_recv(), Ok(0));
        assert_eq!(b.wakes(), 0);
    }
    assert_eq!(b.wakes(), 1);
    assert!(poll_with(one.as_mut(), &b).is_ready());
}

#[test]
fn a_permit_that_is_dropped_lets_the_next_in() {
    let (sender, _receiver) = channel::<u8>(1);
    let permit = sender.try_reserve().unwrap();
    let (a, b) = (Probe::new(), Probe::new());
    let mut first = pin!(sender.reserve());
    let mut owned = pin!(sender.clone().reserve_owned());
    assert!(poll_with(first.as_mut(), &a).is_pending());
    assert!(poll_with(owned.as_mut(), &b).is_pending());
    drop(permit);
    assert_eq!((a.wakes(), b.wakes()), (1, 0));
    drop(poll_with(first.as_mut(), &a));
    assert_eq!(b.wakes(), 1);
    let Poll::Ready(Ok(permit)) = poll_with(owned.as_mut(), &b) else {
        panic!("let in, but not ready");
    };
    assert_eq!(sender.capacity(), 0);
    assert_eq!(permit.release().capacity(), 1);
}

#[test]
fn the_newest_waker_of_a_sender_is_woken() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let (old, new) = (Probe::new(), Probe::new());
    let mut waiting = pin!(sender.send(1));
    assert!(poll_with(waiting.as_mut(), &old).is_pending());
    assert!(poll_with(waiting.as_mut(), &old).is_pending());
    assert_eq!(old.alive(), 1);
    assert!(poll_with(waiting.as_mut(), &new).is_pending());
    assert_eq!(old.alive(), 0);
    receiver.try_recv().unwrap();
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
}

#[test]
fn more_senders_than_a_batch_of_wakers_are_let_in_at_once() {
    let (sender, mut receiver) = channel(100);
    let held = now(sender.reserve_many(100)).unwrap();
    let probe = Probe::new();
    let mut waiting: Vec<_> = (0..100).map(|n| Box::pin(sender.send(n))).collect();
    for future in &mut waiting {
        assert!(poll_with(future.as_mut(), &probe).is_pending());
    }
    drop(held);
    assert_eq!(probe.wakes(), 100);
    for future in &mut waiting {
        assert_eq!(poll_with(future.as_mut(), &probe), Poll::Ready(Ok(())));
    }
    let mut buffer = Vec::new();
    assert_eq!(now(receiver.recv_many(&mut buffer, 100)), 100);
    assert!(buffer.into_iter().eq(0..100));

    // The same when the channel is closed.
    let _held = now(sender.reserve_many(100)).unwrap();
    let mut waiting: Vec<_> = (0..100).map(|n| Box::pin(sender.send(n))).collect();
    for future in &mut waiting {
        assert!(poll_with(future.as_mut(), &probe).is_pending());
    }
    receiver.close();
    assert_eq!(probe.wakes(), 200);
    for (n, future) in (0..).zip(&mut waiting) {
        assert_eq!(
            poll_with(future.as_mut(), &probe),
            Poll::Ready(Err(SendError(n)))
        );
    }
    assert_eq!(probe.alive(), 0);
}

#[test]
fn forgetting_a_waiting_sender_that_was_never_polled_blocks_nobody() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    std::mem::forget(sender.send(1));
    let probe = Probe::new();
    let mut waiting = pin!(sender.send(2));
    assert!(poll_with(waiting.as_mut(), &probe).is_pending());
    receiver.try_recv().unwrap();
    assert_eq!(probe.wakes(), 1);
}

#[test]
fn recv_many_lets_as_many_in_as_it_takes() {
    let (sender, mut receiver) = channel(3);
    for n in 0..3 {
        sender.try_send(n).unwrap();
    }
    let probe = Probe::new();
    let mut waiting: Vec<_> = (3..7).map(|n| Box::pin(sender.send(n))).collect();
    for future in &mut waiting {
        assert!(poll_with(future.as_mut(), &probe).is_pending());
    }
    let mut buffer = Vec::new();
    assert_eq!(now(receiver.recv_many(&mut buffer, 10)), 3);
    assert_eq!(probe.wakes(), 3);
    assert!(
        waiting
            .iter_mut()
            .take(3)
            .all(|future| poll_with(future.as_mut(), &probe).is_ready())
    );
    assert!(poll_with(waiting[3].as_mut(), &probe).is_pending());
}

#[test]
fn who_needs_no_slot_waits_for_none() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(1).unwrap();
    assert_eq!(now(sender.reserve_many(0)).unwrap().len(), 0);
    let probe = Probe::new();
    let mut waiting = pin!(sender.send(2));
    assert!(poll_with(waiting.as_mut(), &probe).is_pending());
    // Nobody is overtaken by who takes nothing.
    assert_eq!(now(sender.reserve_many(0)).unwrap().len(), 0);
    assert_eq!(sender.try_reserve_many(0).unwrap().len(), 0);
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(poll_with(waiting.as_mut(), &probe).is_ready());
}
