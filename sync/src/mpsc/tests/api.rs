//! What each call does, one after the other.

use std::mem::size_of;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::coop;
use crate::mpsc::error::{SendError, TryRecvError, TrySendError};
use crate::mpsc::{
    OwnedPermit, Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use crate::testing::limited;
use crate::wait::{self, WaitKind};

use super::{now, poll_once};

#[test]
fn values_come_out_in_the_order_in_which_they_went_in() {
    let (sender, mut receiver) = channel(2_000);
    // Past several chunks, with reads in between.
    let mut next = 0;
    for n in 0..1_500 {
        now(sender.send(n)).unwrap();
        if n % 3 == 0 {
            assert_eq!(now(receiver.recv()), Some(next));
            next += 1;
        }
    }
    drop(sender);
    while let Some(n) = now(receiver.recv()) {
        assert_eq!(n, next);
        next += 1;
    }
    assert_eq!(next, 1_500);
}

#[test]
fn an_unbounded_channel_takes_everything_in_order() {
    let (sender, mut receiver) = unbounded_channel();
    for n in 0..10_000 {
        sender.send(n).unwrap();
    }
    assert_eq!(receiver.len(), 10_000);
    for n in 0..10_000 {
        assert_eq!(receiver.try_recv(), Ok(n));
        assert_eq!(receiver.len(), 9_999 - n);
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn large_values_and_values_without_size_pass() {
    let (sender, mut receiver) = unbounded_channel();
    for n in 0..100_u8 {
        sender.send([n; 2_000]).unwrap();
    }
    for n in 0..100_u8 {
        assert_eq!(now(receiver.recv()), Some([n; 2_000]));
    }
    let (sender, mut receiver) = channel(1_000);
    for _ in 0..1_000 {
        sender.try_send(()).unwrap();
    }
    assert_eq!(sender.try_send(()), Err(TrySendError::Full(())));
    let mut buffer = Vec::new();
    assert_eq!(now(receiver.recv_many(&mut buffer, usize::MAX)), 1_000);
}

#[test]
fn try_send_succeeds_as_often_as_there_are_slots() {
    let (sender, mut receiver) = channel(3);
    for round in 0..5 {
        for n in 0..3 {
            assert_eq!(sender.capacity(), 3 - n);
            sender.try_send(n).unwrap();
        }
        assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
        assert_eq!(receiver.capacity(), 0);
        // One is taken out, of the values that the receiver has got hold of in one go: one slot is free.
        assert_eq!(receiver.try_recv(), Ok(0), "round {round}");
        assert_eq!(sender.capacity(), 1);
        sender.try_send(3).unwrap();
        assert_eq!(sender.try_send(9), Err(TrySendError::Full(9)));
        assert_eq!(receiver.len(), 3);
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(receiver.try_recv(), Ok(3));
        assert!(receiver.is_empty());
    }
    assert_eq!((sender.max_capacity(), receiver.max_capacity()), (3, 3));
}

#[test]
fn a_capacity_of_zero_is_refused_with_advice() {
    for (capacity, advice) in [(0, "use `channel(1)`"), (usize::MAX, "unbounded_channel")] {
        let panic = std::panic::catch_unwind(|| drop(channel::<u8>(capacity))).unwrap_err();
        let message = panic.downcast_ref::<String>().map_or_else(
            || (*panic.downcast_ref::<&str>().unwrap()).to_owned(),
            Clone::clone,
        );
        assert!(message.contains(advice), "{message}");
        assert!(
            message.contains(&format!("channel({capacity})")),
            "{message}"
        );
    }
    // As many as tokio allows, and nothing is allocated for them.
    drop(channel::<u8>(usize::MAX >> 3));
}

#[test]
fn permits_keep_slots_and_send_in_the_order_of_use() {
    let (sender, mut receiver) = channel(3);
    let first = now(sender.reserve()).unwrap();
    let second = sender.try_reserve().unwrap();
    assert_eq!(sender.capacity(), 1);
    sender.try_send(0).unwrap();
    assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Full(()));
    second.send(1);
    // A permit that is held does not hold up those who came later.
    assert_eq!(now(receiver.recv()), Some(0));
    assert_eq!(now(receiver.recv()), Some(1));
    first.send(2);
    assert_eq!(now(receiver.recv()), Some(2));
    drop(sender.try_reserve().unwrap());
    assert_eq!(sender.capacity(), 3);
}

#[test]
fn many_permits_are_taken_at_once_and_given_back_when_left() {
    let (sender, mut receiver) = channel(5);
    let mut permits = now(sender.reserve_many(4)).unwrap();
    assert_eq!((permits.len(), sender.capacity()), (4, 1));
    permits.next().unwrap().send(1);
    permits.next().unwrap().send(2);
    drop(permits.next().unwrap());
    assert_eq!(sender.capacity(), 2);
    drop(permits);
    assert_eq!(sender.capacity(), 3);
    assert_eq!(
        sender.try_reserve_many(4).unwrap_err(),
        TrySendError::Full(())
    );
    assert_eq!(sender.try_reserve_many(3).unwrap().count(), 3);
    assert_eq!(sender.try_reserve_many(0).unwrap().count(), 0);
    // Never so many: it does not wait for ever.
    assert_eq!(now(sender.reserve_many(6)).unwrap_err(), SendError(()));
    assert_eq!(
        sender.try_reserve_many(6).unwrap_err(),
        TrySendError::Full(())
    );
    let mut buffer = vec![0];
    assert_eq!(now(receiver.recv_many(&mut buffer, 10)), 2);
    assert_eq!(buffer, [0, 1, 2]);
}

#[test]
fn owned_permits_give_their_sender_back() {
    let (sender, mut receiver) = channel(1);
    let (other, _other_receiver) = channel::<i32>(1);
    let permit = now(sender.clone().reserve_owned()).unwrap();
    assert!(permit.same_channel_as_sender(&sender));
    assert!(!permit.same_channel_as_sender(&other));
    assert!(!permit.same_channel(&other.try_reserve_owned().unwrap()));
    let back = sender.clone().try_reserve_owned().unwrap_err();
    assert!(matches!(&back, TrySendError::Full(sender) if sender.capacity() == 0));
    drop(back);
    assert_eq!(sender.strong_count(), 2);
    let same = permit.send(7);
    assert!(same.same_channel(&sender));
    assert_eq!(receiver.try_recv(), Ok(7));
    let permit = same.try_reserve_owned().unwrap();
    assert_eq!(sender.capacity(), 0);
    drop(permit.release());
    assert_eq!((sender.capacity(), sender.strong_count()), (1, 1));
    drop(sender.try_reserve_owned().unwrap());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn weak_senders_are_counted_and_do_not_keep_the_channel_open() {
    let (sender, mut receiver) = channel::<u8>(1);
    let weak = sender.downgrade();
    let weaker = weak.clone();
    assert_eq!((sender.strong_count(), sender.weak_count()), (1, 2));
    let again = weak.upgrade().unwrap();
    assert!(again.same_channel(&sender));
    assert_eq!((weak.strong_count(), weak.weak_count()), (2, 2));
    drop(weaker);
    assert_eq!(receiver.sender_strong_count(), 2);
    assert_eq!(receiver.sender_weak_count(), 1);
    drop((sender, again));
    assert!(receiver.is_closed());
    assert!(weak.upgrade().is_none());
    assert_eq!(now(receiver.recv()), None);

    let (sender, mut receiver) = unbounded_channel::<u8>();
    let weak = sender.downgrade();
    drop(weak.clone());
    assert_eq!((weak.strong_count(), weak.weak_count()), (1, 1));
    assert_eq!((sender.strong_count(), sender.weak_count()), (1, 1));
    assert!(weak.upgrade().unwrap().same_channel(&sender));
    assert_eq!(receiver.sender_strong_count(), 1);
    assert_eq!(receiver.sender_weak_count(), 1);
    drop(sender);
    assert!(weak.upgrade().is_none());
    assert_eq!(now(receiver.recv()), None);
}

#[test]
fn recv_many_takes_no_more_than_its_limit() {
    let (sender, mut receiver) = unbounded_channel();
    for n in 0..1_000 {
        sender.send(n).unwrap();
    }
    let mut buffer = Vec::new();
    assert_eq!(now(receiver.recv_many(&mut buffer, 0)), 0);
    assert_eq!(now(receiver.recv_many(&mut buffer, 1)), 1);
    assert_eq!(now(receiver.recv_many(&mut buffer, 700)), 700);
    sender.send(1_000).unwrap();
    assert_eq!(receiver.len(), 300);
    assert_eq!(now(receiver.recv_many(&mut buffer, 9_999)), 300);
    assert!(buffer.iter().copied().eq(0..=1_000));
    assert!(poll_once(pin!(receiver.recv_many(&mut buffer, 1))).is_pending());
    drop(sender);
    assert_eq!(now(receiver.recv_many(&mut buffer, 1)), 0);
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(
        receiver.poll_recv_many(&mut cx, &mut buffer, 1),
        Poll::Ready(0)
    );
}

#[test]
fn receivers_are_streams() {
    let (sender, mut receiver) = channel(2);
    let (unbounded, mut numbers) = unbounded_channel();
    sender.try_send(1).unwrap();
    unbounded.send(2).unwrap();
    assert_eq!(receiver.size_hint(), (1, None));
    drop((sender, unbounded));
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(
        Pin::new(&mut receiver).poll_next(&mut cx),
        Poll::Ready(Some(1))
    );
    assert_eq!(
        Pin::new(&mut receiver).poll_next(&mut cx),
        Poll::Ready(None)
    );
    assert_eq!(
        Pin::new(&mut numbers).poll_next(&mut cx),
        Poll::Ready(Some(2))
    );
    assert_eq!(Pin::new(&mut numbers).poll_next(&mut cx), Poll::Ready(None));
}

#[test]
fn threads_that_block_are_woken() {
    limited(|| {
        let (sender, mut receiver) = channel(1);
        let thread = std::thread::spawn(move || {
            for n in 0..1_000 {
                sender.blocking_send(n).unwrap();
            }
            // Gives up when the receiver has gone.
            while sender.blocking_send(0).is_ok() {}
        });
        let mut buffer = Vec::new();
        while buffer.len() < 999 {
            assert!(receiver.blocking_recv_many(&mut buffer, 3) > 0);
            buffer.extend(receiver.blocking_recv());
        }
        drop(receiver);
        thread.join().unwrap();
        buffer.truncate(999);
        assert!(buffer.into_iter().eq(0..999));

        let (sender, mut receiver) = unbounded_channel();
        let thread = std::thread::spawn(move || {
            let mut buffer = Vec::new();
            while receiver.blocking_recv_many(&mut buffer, 2) > 0 {}
            assert_eq!(receiver.blocking_recv(), None);
            buffer
        });
        for n in 0..1_000 {
            sender.send(n).unwrap();
        }
        drop(sender);
        assert!(thread.join().unwrap().into_iter().eq(0..1_000));
    });
}

#[test]
fn blocking_inside_a_task_is_refused() {
    let (sender, mut receiver) = channel(1);
    let saved = coop::start();
    let send = std::panic::catch_unwind(|| sender.blocking_send(1));
    let recv = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| receiver.blocking_recv()));
    coop::restore(saved);
    assert!(send.is_err() && recv.is_err());
}

#[test]
fn successes_without_waiting_spend_the_budget() {
    let (sender, mut receiver) = channel(20_000);
    let (unbounded, mut numbers) = unbounded_channel();
    for n in 0..10_000 {
        unbounded.send(n).unwrap();
    }
    let ready = |mut once: Box<dyn FnMut() -> bool + '_>| {
        let saved = coop::start();
        let count = (0..10_000).take_while(|_| once()).count();
        coop::restore(saved);
        count
    };
    let budget = usize::from(coop::BUDGET);
    let mut buffer = Vec::new();
    assert_eq!(
        ready(Box::new(|| poll_once(pin!(sender.send(1))).is_ready())),
        budget
    );
    assert_eq!(
        ready(Box::new(|| poll_once(pin!(sender.reserve())).is_ready())),
        budget
    );
    assert_eq!(
        ready(Box::new(
            || poll_once(pin!(sender.reserve_many(2))).is_ready()
        )),
        budget
    );
    assert_eq!(
        ready(Box::new(
            || poll_once(pin!(sender.clone().reserve_owned())).is_ready()
        )),
        budget
    );
    assert_eq!(
        ready(Box::new(|| poll_once(pin!(receiver.recv())).is_ready())),
        budget
    );
    assert_eq!(
        ready(Box::new(|| poll_once(pin!(numbers.recv())).is_ready())),
        budget
    );
    assert_eq!(
        ready(Box::new(|| poll_once(pin!(
            numbers.recv_many(&mut buffer, 1)
        ))
        .is_ready())),
        budget
    );
    // Nothing is lost where the budget ended.
    assert_eq!(numbers.try_recv(), Ok(2 * i32::from(coop::BUDGET)));
    receiver.close();
    assert_eq!(
        ready(Box::new(|| poll_once(pin!(sender.closed())).is_ready())),
        budget
    );
}

#[test]
fn waiting_futures_say_what_they_wait_for_and_where() {
    let (sender, mut receiver) = channel(1);
    let _ = wait::take();
    let line = line!() + 1;
    assert!(poll_once(pin!(receiver.recv())).is_pending());
    let recv = wait::take();
    assert_eq!(recv.kind, WaitKind::Recv);
    let site = recv.site.unwrap();
    assert_eq!((site.file(), site.line()), (file!(), line));
    sender.try_send(1).unwrap();
    assert!(poll_once(pin!(sender.send(2))).is_pending());
    assert_eq!(wait::take().kind, WaitKind::Send);
    assert!(poll_once(pin!(sender.reserve())).is_pending());
    assert_eq!(wait::take().kind, WaitKind::Send);
}

#[test]
fn errors_say_what_was_wrong_and_give_the_value_back() {
    let (sender, receiver) = channel(1);
    sender.try_send("first").unwrap();
    let full = sender.try_send("second").unwrap_err();
    assert!(full.to_string().contains("full"));
    assert_eq!(format!("{full:?}"), "Full(..)");
    assert_eq!(full.into_inner(), "second");
    drop(receiver);
    let closed = sender.try_send("third").unwrap_err();
    assert_eq!(format!("{closed:?}"), "Closed(..)");
    assert!(closed.to_string().contains("closed"));
    assert_eq!(closed.into_inner(), "third");
    let closed = now(sender.send("fourth")).unwrap_err();
    assert_eq!(TrySendError::from(closed), TrySendError::Closed("fourth"));
    assert_eq!(closed.into_inner(), "fourth");
    assert_eq!(sender.blocking_send("fifth"), Err(SendError("fifth")));
    assert!(matches!(
        sender.try_reserve_owned(),
        Err(TrySendError::Closed(_))
    ));
    assert!(TryRecvError::Disconnected.to_string().contains("closed"));
    assert!(TryRecvError::Empty.to_string().contains("empty"));
}

#[test]
fn ends_and_futures_go_where_their_values_can() {
    fn all<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
    fn send_sync<T: Send + Sync>(_: &T) {}
    fn unpin<T: Unpin>() {}
    all::<Sender<std::cell::Cell<u8>>>();
    all::<UnboundedSender<std::cell::Cell<u8>>>();
    unpin::<Receiver<std::marker::PhantomPinned>>();
    unpin::<UnboundedReceiver<std::marker::PhantomPinned>>();
    send_sync(&channel::<u8>(1));
    send_sync(&unbounded_channel::<u8>());
    let (sender, mut receiver) = channel::<u8>(1);
    send_sync(&sender.send(1));
    send_sync(&sender.reserve());
    send_sync(&sender.reserve_many(1));
    send_sync(&sender.closed());
    send_sync(&sender.clone().reserve_owned());
    send_sync(&receiver.recv());
    fn owned<T: Send + Sync>() {}
    owned::<OwnedPermit<u8>>();
    // What a task pays for a send in its own size.
    assert!(size_of::<crate::mpsc::Sending<'_, u64>>() <= 112);
}

#[test]
fn a_long_queue_leaves_little_memory_behind() {
    let (sender, mut receiver) = unbounded_channel();
    for n in 0..100_000 {
        sender.send(n).unwrap();
    }
    for n in 0..100_000 {
        assert_eq!(now(receiver.recv()), Some(n));
    }
    assert!(receiver.kept() <= 4 * 256, "{} values", receiver.kept());
    // A steady flow needs what it needs at once, and no more.
    let (sender, mut receiver) = channel(100);
    for round in 0..1_000_000 / 100 {
        for n in 0..100 {
            sender.try_send(n).unwrap();
        }
        for n in 0..100 {
            assert_eq!(receiver.try_recv(), Ok(n));
        }
        if round == 10 {
            assert!(receiver.kept() <= 2 * 128);
        }
    }
    assert!(receiver.kept() <= 2 * 128, "{} values", receiver.kept());
}
