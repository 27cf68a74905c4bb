//! How a channel ends: closed, or left by one side.

use std::pin::pin;
use std::task::Poll;

use crate::mpsc::error::{SendError, TryRecvError, TrySendError};
use crate::mpsc::{channel, unbounded_channel};
use crate::testing::Probe;

use super::{now, poll_once, poll_with};

#[test]
fn after_close_nobody_sends_and_what_is_there_is_received() {
    let (sender, mut receiver) = channel(2);
    sender.try_send(1).unwrap();
    assert!(!receiver.is_closed() && !sender.is_closed());
    receiver.close();
    receiver.close();
    assert!(receiver.is_closed() && sender.is_closed());
    assert_eq!(sender.try_send(2), Err(TrySendError::Closed(2)));
    assert_eq!(now(sender.send(2)), Err(SendError(2)));
    assert_eq!(now(sender.reserve()).unwrap_err(), SendError(()));
    assert_eq!(now(sender.reserve_many(0)).unwrap_err(), SendError(()));
    assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Closed(()));
    assert!(now(sender.clone().reserve_owned()).is_err());
    assert_eq!(now(receiver.recv()), Some(1));
    assert_eq!(now(receiver.recv()), None);
    assert_eq!(now(receiver.recv()), None);

    let (sender, mut receiver) = unbounded_channel();
    sender.send(1).unwrap();
    receiver.close();
    assert!(receiver.is_closed() && sender.is_closed());
    assert_eq!(sender.send(2), Err(SendError(2)));
    assert_eq!(now(receiver.recv()), Some(1));
    assert_eq!(now(receiver.recv()), None);
}

#[test]
fn close_turns_waiting_senders_away_with_their_values() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let (a, b) = (Probe::new(), Probe::new());
    let mut first = pin!(sender.send(1));
    let mut second = pin!(sender.reserve());
    assert!(poll_with(first.as_mut(), &a).is_pending());
    assert!(poll_with(second.as_mut(), &b).is_pending());
    receiver.close();
    assert_eq!((a.wakes(), b.wakes()), (1, 1));
    assert_eq!(
        poll_with(first.as_mut(), &a),
        Poll::Ready(Err(SendError(1)))
    );
    assert!(matches!(
        poll_with(second.as_mut(), &b),
        Poll::Ready(Err(_))
    ));
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_permit_given_before_close_may_send_and_recv_waits_for_it() {
    let (sender, mut receiver) = channel(3);
    let permit = sender.try_reserve().unwrap();
    let owned = sender.clone().try_reserve_owned().unwrap();
    let probe = Probe::new();
    receiver.close();
    {
        let mut recv = pin!(receiver.recv());
        assert!(poll_with(recv.as_mut(), &probe).is_pending());
        permit.send(1);
        assert_eq!(probe.wakes(), 1);
        assert_eq!(poll_with(recv.as_mut(), &probe), Poll::Ready(Some(1)));
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    drop(owned.send(2));
    assert_eq!(now(receiver.recv()), Some(2));
    assert_eq!(now(receiver.recv()), None);
}

/// Closes a full channel while `hold` holds its only slot, waits for the end, then gives the slot back by `give`.
fn the_end_is_told<'a, H>(
    sender: &'a crate::mpsc::Sender<u8>,
    mut receiver: crate::mpsc::Receiver<u8>,
    hold: impl FnOnce(&'a crate::mpsc::Sender<u8>) -> H,
    give: impl FnOnce(H),
) {
    let held = hold(sender);
    let probe = Probe::new();
    receiver.close();
    let mut recv = pin!(receiver.recv());
    assert!(poll_with(recv.as_mut(), &probe).is_pending());
    give(held);
    assert_eq!(probe.wakes(), 1);
    assert_eq!(poll_with(recv.as_mut(), &probe), Poll::Ready(None));
}

#[test]
fn each_way_to_give_the_last_slot_back_tells_a_receiver_that_waits_for_the_end() {
    let (sender, receiver) = channel(1);
    the_end_is_told(
        &sender,
        receiver,
        |sender| sender.try_reserve().unwrap(),
        drop,
    );
    let (sender, receiver) = channel(1);
    the_end_is_told(
        &sender,
        receiver,
        |sender| now(sender.reserve()).unwrap(),
        drop,
    );
    let (sender, receiver) = channel(2);
    the_end_is_told(
        &sender,
        receiver,
        |sender| now(sender.reserve_many(2)).unwrap(),
        drop,
    );
    let (sender, receiver) = channel(2);
    the_end_is_told(
        &sender,
        receiver,
        |sender| now(sender.reserve_many(2)).unwrap(),
        |permits| permits.for_each(drop),
    );
    let (sender, receiver) = channel(1);
    the_end_is_told(
        &sender,
        receiver,
        |sender| sender.clone().try_reserve_owned().unwrap(),
        |permit| drop(permit.release()),
    );
    let (sender, receiver) = channel(1);
    the_end_is_told(
        &sender,
        receiver,
        |sender| sender.clone().try_reserve_owned().unwrap(),
        drop,
    );
}

#[test]
fn a_sender_that_was_let_in_and_goes_after_close_tells_the_receiver() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut waiting = Box::pin(sender.send(1));
    assert!(poll_once(waiting.as_mut()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    receiver.close();
    let probe = Probe::new();
    let mut recv = pin!(receiver.recv());
    assert!(poll_with(recv.as_mut(), &probe).is_pending());
    drop(waiting);
    assert_eq!(probe.wakes(), 1);
    assert_eq!(poll_with(recv.as_mut(), &probe), Poll::Ready(None));
}

#[test]
fn a_sender_that_was_let_in_before_close_still_sends() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut waiting = pin!(sender.send(1));
    assert!(poll_once(waiting.as_mut()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    receiver.close();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(poll_once(waiting.as_mut()), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_sender_that_was_let_in_gets_its_value_back_when_the_receiver_has_gone() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(0).unwrap();
    let mut waiting = pin!(sender.send(1));
    assert!(poll_once(waiting.as_mut()).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    drop(receiver);
    assert_eq!(poll_once(waiting.as_mut()), Poll::Ready(Err(SendError(1))));
    assert_eq!(sender.capacity(), 1);
}

#[test]
fn the_last_sender_that_goes_wakes_the_receiver() {
    let (sender, mut receiver) = channel::<u8>(1);
    let probe = Probe::new();
    {
        let mut recv = pin!(receiver.recv());
        assert!(poll_with(recv.as_mut(), &probe).is_pending());
        drop(sender.clone());
        assert_eq!(probe.wakes(), 0);
        drop(sender);
        assert_eq!(probe.wakes(), 1);
        assert_eq!(poll_with(recv.as_mut(), &probe), Poll::Ready(None));
    }
    let (sender, mut receiver) = unbounded_channel::<u8>();
    let mut recv = pin!(receiver.recv());
    assert!(poll_with(recv.as_mut(), &probe).is_pending());
    drop(sender);
    assert_eq!(probe.wakes(), 2);
    assert_eq!(poll_with(recv.as_mut(), &probe), Poll::Ready(None));
}

#[test]
fn everybody_who_waits_for_the_end_is_told() {
    for close in [true, false] {
        let (sender, mut receiver) = channel::<u8>(1);
        let (a, b) = (Probe::new(), Probe::new());
        let mut first = pin!(sender.closed());
        let mut second = pin!(sender.closed());
        assert!(poll_with(first.as_mut(), &a).is_pending());
        assert!(poll_with(second.as_mut(), &b).is_pending());
        if close {
            receiver.close();
        } else {
            drop(receiver);
        }
        assert_eq!((a.wakes(), b.wakes()), (1, 1));
        assert!(poll_with(first.as_mut(), &a).is_ready());
        assert!(poll_with(second.as_mut(), &b).is_ready());
        now(sender.closed());
    }
    let (sender, receiver) = unbounded_channel::<u8>();
    let a = Probe::new();
    let mut closed = Box::pin(sender.closed());
    assert!(poll_with(closed.as_mut(), &a).is_pending());
    drop(closed);
    assert_eq!(a.alive(), 0);
    drop(receiver);
    assert_eq!(a.wakes(), 0);
    now(sender.closed());
}

#[test]
fn the_receivers_waker_goes_with_the_future_that_waits() {
    let (sender, mut receiver) = channel(1);
    let (old, new) = (Probe::new(), Probe::new());
    let mut buffer = Vec::new();
    {
        let mut recv = pin!(receiver.recv());
        assert!(poll_with(recv.as_mut(), &old).is_pending());
        assert!(poll_with(recv.as_mut(), &new).is_pending());
        assert_eq!((old.alive(), new.alive()), (0, 1));
    }
    assert_eq!(new.alive(), 0);
    {
        let mut recv = pin!(receiver.recv_many(&mut buffer, 1));
        assert!(poll_with(recv.as_mut(), &old).is_pending());
    }
    assert_eq!(old.alive(), 0);
    // Polled without a future, it stays: also when somebody has a look meanwhile.
    let waker = new.waker();
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(receiver.poll_recv(&mut cx).is_pending());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    sender.try_send(1).unwrap();
    assert_eq!((new.wakes(), old.wakes()), (1, 0));
    assert!(receiver.poll_recv(&mut cx).is_ready());
    assert!(receiver.poll_recv(&mut cx).is_pending());
    assert_eq!(new.alive(), 2);
    drop(receiver);
    assert_eq!(new.alive(), 1);
}
