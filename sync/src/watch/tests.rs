use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::pin;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use futures_lite::future::block_on;

use super::*;
use crate::coop;
use crate::testing::{Probe, at_once as now, limited, once, poll};
use crate::wait::{self, WaitKind};

#[test]
fn bounds() {
    fn send_and_sync<T: Send + Sync>() {}
    fn send<T: Send>(_: T) {}
    send_and_sync::<Sender<Vec<u8>>>();
    send_and_sync::<Receiver<Vec<u8>>>();
    let (sender, mut receiver) = channel(1);
    send(receiver.changed());
    send(receiver.wait_for(|_| true));
    send(sender.closed());
}

#[test]
fn versions_are_seen_once() {
    let (sender, mut receiver) = channel("a");
    assert!(!receiver.has_changed().unwrap());
    assert!(now(receiver.changed()).is_none());
    sender.send("b").unwrap();
    sender.send("c").unwrap();
    assert!(receiver.has_changed().unwrap());
    let mut clone = receiver.clone();
    assert!(now(receiver.changed()).unwrap().is_ok());
    assert!(now(receiver.changed()).is_none());
    assert_eq!(*receiver.borrow(), "c");
    // The clone has seen what the other had seen when it was made.
    let seen = clone.borrow_and_update();
    assert!(seen.has_changed());
    assert_eq!(*seen, "c");
    drop(seen);
    assert!(!clone.borrow_and_update().has_changed());
    assert!(!sender.borrow().has_changed());
    assert!(!sender.subscribe().has_changed().unwrap());
}

#[test]
fn borrow_does_not_count_as_seen_and_marks_do() {
    let (sender, mut receiver) = channel(1);
    sender.send(2).unwrap();
    assert!(receiver.borrow().has_changed());
    assert!(receiver.borrow().has_changed());
    receiver.mark_unchanged();
    assert!(!receiver.has_changed().unwrap());
    receiver.mark_changed();
    assert!(receiver.has_changed().unwrap());
    assert!(now(receiver.changed()).unwrap().is_ok());
    // At the very first version too.
    let (_sender, mut receiver) = channel(1);
    receiver.mark_changed();
    assert!(now(receiver.changed()).unwrap().is_ok());
}

#[test]
fn the_end_comes_after_the_last_value() {
    let (sender, mut receiver) = channel(1);
    let other = sender.clone();
    assert_eq!(sender.sender_count(), 2);
    sender.send(2).unwrap();
    drop(sender);
    assert!(!receiver.is_closed());
    drop(other);
    assert!(receiver.is_closed());
    assert!(receiver.has_changed().is_err());
    assert!(now(receiver.changed()).unwrap().is_ok());
    assert!(now(receiver.changed()).unwrap().is_err());
    assert_eq!(*receiver.borrow(), 2);
}

#[test]
fn waiting_receivers_are_woken_by_a_value_and_by_the_end() {
    let (sender, mut first) = channel(1);
    let mut second = first.clone();
    let (one, two) = (Probe::new(), Probe::new());
    let mut first = pin!(first.changed());
    let mut second = pin!(second.changed());
    assert!(poll(first.as_mut(), &one).is_pending());
    assert!(poll(second.as_mut(), &two).is_pending());
    sender.send(2).unwrap();
    assert_eq!((one.wakes(), two.wakes()), (1, 1));
    assert_eq!((one.alive(), two.alive()), (0, 0));
    assert_eq!(poll(first, &one), Poll::Ready(Ok(())));
    drop(sender);
    // The value first.
    assert_eq!(poll(second, &two), Poll::Ready(Ok(())));
}

#[test]
fn send_fails_without_receivers_and_send_replace_does_not() {
    let (sender, receiver) = channel(1);
    assert!(sender.same_channel(&sender.clone()));
    assert!(!sender.same_channel(&Sender::default()));
    assert!(receiver.same_channel(&receiver.clone()));
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send(2), Err(error::SendError(2)));
    assert_eq!(*sender.borrow(), 1);
    assert_eq!(sender.send_replace(3), 1);
    let receiver = sender.subscribe();
    assert_eq!(sender.receiver_count(), 1);
    assert_eq!((*receiver.borrow(), receiver.has_changed()), (3, Ok(false)));
    assert_eq!(sender.send(4), Ok(()));
    assert!(!Sender::new(1).send_if_modified(|_| false));
}

#[test]
fn send_if_modified_tells_only_what_changed() {
    let (sender, mut receiver) = channel(1);
    let probe = Probe::new();
    let mut changed = Box::pin(receiver.changed());
    assert!(poll(changed.as_mut(), &probe).is_pending());
    assert!(!sender.send_if_modified(|value| {
        *value = 5;
        false
    }));
    assert_eq!(probe.wakes(), 0);
    assert!(sender.send_if_modified(|value| {
        *value += 1;
        true
    }));
    assert_eq!(probe.wakes(), 1);
    assert!(poll(changed.as_mut(), &probe).is_ready());
    drop(changed);
    assert_eq!(*receiver.borrow(), 6);
}

#[test]
fn a_panic_in_a_closure_leaves_the_channel_usable() {
    limited(|| {
        let (sender, mut receiver) = channel(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            sender.send_modify(|value| {
                *value = 2;
                panic!("modify")
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(receiver.has_changed(), Ok(false));
        assert_eq!(*receiver.borrow(), 2);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            now(receiver.wait_for(|_| panic!("predicate"))).is_some()
        }));
        assert!(panicked.is_err());
        sender.send(3).unwrap();
        assert_eq!(
            *now(receiver.wait_for(|value| *value == 3))
                .unwrap()
                .unwrap(),
            3
        );
    });
}

/// Drops need the lock of the channel: they may not come while it is held.
struct Reentrant(Option<Sender<Option<Reentrant>>>, StdArc<AtomicUsize>);

impl Drop for Reentrant {
    fn drop(&mut self) {
        if let Some(sender) = &self.0 {
            assert!(sender.borrow().is_none());
            sender.send_modify(|_| ());
        }
        self.1.fetch_add(1, SeqCst);
    }
}

#[test]
fn replaced_values_are_dropped_without_the_lock() {
    limited(|| {
        let drops = StdArc::new(AtomicUsize::new(0));
        let (sender, _receiver) = channel(None);
        let value = Reentrant(Some(sender.clone()), drops.clone());
        assert!(sender.send(Some(value)).is_ok());
        assert!(sender.send(None).is_ok());
        assert_eq!(drops.load(SeqCst), 1);
        assert!(sender.send(Some(Reentrant(None, drops.clone()))).is_ok());
        drop((sender, _receiver));
        assert_eq!(drops.load(SeqCst), 2);
    });
}

#[test]
fn wait_for_looks_at_what_is_there_first() {
    let (sender, mut receiver) = channel(1);
    let seen = now(receiver.wait_for(|value| *value == 1))
        .unwrap()
        .unwrap();
    assert!(!seen.has_changed());
    drop(seen);
    let probe = Probe::new();
    let mut waiting = Box::pin(receiver.wait_for(|value| *value == 3));
    assert!(poll(waiting.as_mut(), &probe).is_pending());
    sender.send(2).unwrap();
    assert!(poll(waiting.as_mut(), &probe).is_pending());
    sender.send(3).unwrap();
    assert_eq!(probe.wakes(), 2);
    let Poll::Ready(Ok(seen)) = poll(waiting.as_mut(), &probe) else {
        panic!("it is 3");
    };
    assert!(seen.has_changed());
    drop(seen);
    drop(waiting);
    // The last value counts, though the sender has gone.
    sender.send(4).unwrap();
    drop(sender);
    assert!(now(receiver.wait_for(|value| *value == 4)).unwrap().is_ok());
    assert!(
        now(receiver.wait_for(|value| *value == 5))
            .unwrap()
            .is_err()
    );
}

#[test]
fn closed_waits_for_the_last_receiver() {
    let (sender, receiver) = channel(1);
    let probe = Probe::new();
    let other = receiver.clone();
    let mut closed = pin!(sender.closed());
    assert!(poll(closed.as_mut(), &probe).is_pending());
    drop(receiver);
    assert_eq!(probe.wakes(), 0);
    drop(other);
    assert_eq!(probe.wakes(), 1);
    // Open again before it looks.
    let again = sender.subscribe();
    assert!(poll(closed.as_mut(), &probe).is_pending());
    drop(again);
    assert!(poll(closed, &probe).is_ready());
    assert_eq!(probe.alive(), 0);
}

#[test]
fn a_future_that_goes_takes_its_waker_along_and_loses_no_value() {
    let (sender, mut receiver) = channel(1);
    let probe = Probe::new();
    let mut changed = Box::pin(receiver.changed());
    assert!(poll(changed.as_mut(), &probe).is_pending());
    sender.send(2).unwrap();
    drop(changed);
    assert_eq!(probe.alive(), 0);
    assert!(receiver.has_changed().unwrap());
    receiver.mark_unchanged();
    assert!(poll(Box::pin(receiver.changed()).as_mut(), &probe).is_pending());
    assert_eq!(probe.alive(), 0);
}

#[test]
fn wakers_may_send_and_borrow() {
    limited(|| {
        let (sender, mut receiver) = channel(1);
        let probe = Probe::new();
        let mut changed = Box::pin(receiver.changed());
        assert!(poll(changed.as_mut(), &probe).is_pending());
        let other = sender.clone();
        once(&probe.on_wake, move || {
            assert_eq!(*other.borrow(), 2);
            other.send(3).unwrap();
        });
        sender.send(2).unwrap();
        assert!(poll(changed.as_mut(), &probe).is_ready());
        drop(changed);
        assert_eq!(*receiver.borrow(), 3);
    });
}

#[test]
fn the_budget_is_spent_and_the_wait_is_recorded() {
    let (sender, mut receiver) = channel(0);
    let probe = Probe::new();
    let saved = coop::start();
    let mut yields = 0;
    for round in 0..10_000 {
        sender.send(round).unwrap();
        let mut changed = pin!(receiver.changed());
        while poll(changed.as_mut(), &probe).is_pending() {
            yields += 1;
            let _ = coop::start();
        }
    }
    for _ in 0..10_000 {
        while now(receiver.wait_for(|_| true)).is_none() {
            yields += 1;
            let _ = coop::start();
        }
    }
    coop::restore(saved);
    assert!(yields >= 2 * 10_000 / usize::from(coop::BUDGET) - 1);

    let _ = wait::take();
    let line = line!() + 1;
    assert!(now(receiver.changed()).is_none());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Watch);
    assert_eq!(wait.site.map(Location::line), Some(line));
}

#[test]
fn debug_never_blocks() {
    limited(|| {
        let (sender, mut receiver) = channel(1);
        sender.send_modify(|_| {
            assert!(format!("{sender:?} {receiver:?}").contains("<locked>"));
        });
        assert!(format!("{sender:?}").contains('1'));
        let _ = format!("{:?} {:?}", receiver.changed(), sender.closed());
        let _ = format!("{:?}", receiver.wait_for(|_| true));
        assert!(format!("{:?}", receiver.borrow()).contains("has_changed: true"));
    });
}

#[test]
fn the_last_value_is_seen_by_other_threads() {
    limited(|| {
        const LAST: usize = 20_000;
        let (sender, receiver) = channel(0);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let mut receiver = receiver.clone();
                std::thread::spawn(move || {
                    let mut last = 0;
                    while block_on(receiver.changed()).is_ok() {
                        let now = *receiver.borrow_and_update();
                        assert!(now > last);
                        last = now;
                    }
                    last
                })
            })
            .collect();
        drop(receiver);
        for value in 1..=LAST {
            sender.send(value).unwrap();
        }
        drop(sender);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), LAST);
        }
    });
}
