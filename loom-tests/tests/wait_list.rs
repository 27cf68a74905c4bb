//! Models of `WaitList`. Conditions are relaxed, so that only the list itself orders them.
//!
//! Seen to fail: without the fence of `join`, and without that of `is_empty` (`join_against_each_kind_of_notify` hangs);
//! with `Relaxed` for the `Release` of `List::notify` (`a_notification_seen_early_brings_the_condition`); with a waiter
//! that does not pass its grant on when it is dropped (`notify_one_against_drop`).
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize as ModelUsize, Ordering::Relaxed};
use rt_sync::wait_list::{Notification, WaitList, Waiter};

/// A counter that one may wait for, and take one from.
struct Gate {
    open: ModelUsize,
    list: WaitList<u8>,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            open: ModelUsize::new(0),
            list: WaitList::new(),
        })
    }

    /// Waits until the gate is open at least `count` times.
    async fn opened(&self, count: usize, tag: u8) {
        let mut waiter = pin!(Waiter::new(&self.list, tag));
        poll_fn(|cx| {
            loop {
                if self.open.load(Relaxed) >= count {
                    return Poll::Ready(());
                }
                if waiter.as_mut().poll(cx).is_pending() {
                    // In the list now: look once more.
                    return if self.open.load(Relaxed) >= count {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    };
                }
            }
        })
        .await;
    }
}

/// The condition comes true while the waiter joins: seen, or notified. This is the fence of `is_empty`.
#[test]
fn join_against_each_kind_of_notify() {
    for kind in 0..3 {
        model(3, move || {
            let gate = Gate::new();
            let other = gate.clone();
            let opener = thread::spawn(move || {
                other.open.store(1, Relaxed);
                match kind {
                    // `false` if the waiter sees the condition, as it then must.
                    0 => _ = other.list.notify_one(),
                    1 => assert!(other.list.notify_all() <= 1),
                    _ => assert!(other.list.notify_matching(|tag| tag == 7) <= 1),
                }
            });
            block_on(gate.opened(1, 7));
            opener.join().unwrap();
        });
    }
}

/// A waiter is dropped while another thread notifies one: whoever is left gets the grant, and it is not doubled.
#[test]
fn notify_one_against_drop() {
    model(3, || {
        let list = Arc::new(WaitList::<()>::new());
        let (first_probe, first_waker) = Probe::new();
        let (second_probe, second_waker) = Probe::new();
        let mut first = Box::pin(Waiter::new(&*list, ()));
        assert!(
            first
                .as_mut()
                .poll(&mut Context::from_waker(&first_waker))
                .is_pending()
        );
        {
            let mut second = pin!(Waiter::new(&*list, ()));
            let mut cx = Context::from_waker(&second_waker);
            assert!(second.as_mut().poll(&mut cx).is_pending());

            let other = list.clone();
            let notifier = thread::spawn(move || assert!(other.notify_one()));
            drop(first);
            notifier.join().unwrap();

            assert_eq!(
                second.as_mut().poll(&mut cx),
                Poll::Ready(Notification::One)
            );
            assert_eq!(second_probe.wakes(), 1);
            assert!(first_probe.wakes() <= 1);
            assert!(list.is_empty());
        }
        drop((first_waker, second_waker));
        assert_eq!(StdArc::strong_count(&first_probe), 1);
        assert_eq!(StdArc::strong_count(&second_probe), 1);
    });
}

/// The same, but the waiter takes its notification along.
#[test]
fn notify_one_against_remove() {
    model(3, || {
        let list = Arc::new(WaitList::<()>::new());
        let (probe, waker) = Probe::new();
        {
            let mut waiter = pin!(Waiter::new(&*list, ()));
            assert!(
                waiter
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            let other = list.clone();
            let notifier = thread::spawn(move || other.notify_one());
            let removed = waiter.as_mut().remove();
            let notified = notifier.join().unwrap();
            assert_eq!(removed.is_some(), notified);
            assert_eq!(probe.wakes(), usize::from(notified));
            assert_eq!(waiter.as_mut().remove(), None);
        }
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// Two notifiers, one of them for all, and two waiters, of which one joins late: each waiter is notified at most as
/// often as it was in the list, and both see the condition.
#[test]
fn notify_all_against_join_and_notify_one() {
    model(2, || {
        let gate = Gate::new();
        let (a, b) = (gate.clone(), gate.clone());
        let one = thread::spawn(move || {
            a.open.fetch_add(1, Relaxed);
            a.list.notify_one();
        });
        let late = thread::spawn(move || block_on(b.opened(1, 0)));
        gate.open.fetch_add(1, Relaxed);
        gate.list.notify_all();
        late.join().unwrap();
        one.join().unwrap();
        assert!(gate.list.is_empty());
    });
}

/// Two notifiers, two waiters in the list: both grants are given, to one waiter each.
#[test]
fn two_notifiers_serve_two_waiters() {
    model(2, || {
        let list = Arc::new(WaitList::<()>::new());
        let (probe, waker) = Probe::new();
        let mut cx = Context::from_waker(&waker);
        {
            let mut first = pin!(Waiter::new(&*list, ()));
            let mut second = pin!(Waiter::new(&*list, ()));
            assert!(first.as_mut().poll(&mut cx).is_pending());
            assert!(second.as_mut().poll(&mut cx).is_pending());
            let notifiers: Vec<_> = (0..2)
                .map(|_| {
                    let list = list.clone();
                    thread::spawn(move || assert!(list.notify_one()))
                })
                .collect();
            // A look in between takes its own notification only.
            let early = first.as_mut().poll(&mut cx);
            for notifier in notifiers {
                notifier.join().unwrap();
            }
            if early.is_pending() {
                assert!(first.as_mut().poll(&mut cx).is_ready());
            }
            assert!(second.as_mut().poll(&mut cx).is_ready());
            assert_eq!(probe.wakes(), 2);
        }
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// One notifies all, one waiter leaves and the other joins again: nobody is notified twice by one `notify_all`, and a
/// waiter that goes takes nothing along that is another's.
#[test]
fn notify_all_against_drop_and_join() {
    model(3, || {
        let list = Arc::new(WaitList::<()>::new());
        let (probe, waker) = Probe::new();
        let mut cx = Context::from_waker(&waker);
        let mut gone = Box::pin(Waiter::new(&*list, ()));
        assert!(gone.as_mut().poll(&mut cx).is_pending());
        {
            let mut stays = pin!(Waiter::new(&*list, ()));
            assert!(stays.as_mut().poll(&mut cx).is_pending());
            let other = list.clone();
            let notifier = thread::spawn(move || other.notify_all());
            drop(gone);
            let early = stays.as_mut().poll(&mut cx);
            if early.is_ready() {
                // Served, and in the list again: a newcomer.
                assert!(stays.as_mut().poll(&mut cx).is_pending());
            }
            let count = notifier.join().unwrap();
            assert!((1..=2).contains(&count));
            assert_ne!(stays.as_mut().poll(&mut cx).is_ready(), early.is_ready());
        }
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// Two notifiers for different tags and two waiters: each is served by its own.
#[test]
fn notify_matching_serves_its_own() {
    model(2, || {
        let gate = Gate::new();
        let openers: Vec<_> = [1, 2]
            .into_iter()
            .map(|mine| {
                let gate = gate.clone();
                thread::spawn(move || {
                    gate.open.fetch_add(1, Relaxed);
                    gate.list.notify_matching(|tag| tag & mine != 0);
                })
            })
            .collect();
        // Wants either, so it is notified by both as long as it waits.
        block_on(gate.opened(2, 3));
        for opener in openers {
            opener.join().unwrap();
        }
    });
}

/// A notification that is seen before the wake brings along what the notifier did before, and the node.
#[test]
fn a_notification_seen_early_brings_the_condition() {
    model(3, || {
        let gate = Gate::new();
        let mut waiter = Box::pin(Waiter::new(&gate.list, 0));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let other = gate.clone();
        let notifier = thread::spawn(move || {
            other.open.store(1, Relaxed);
            other.list.notify_one();
        });
        if waiter.as_mut().poll(&mut cx).is_ready() {
            assert_eq!(gate.open.load(Relaxed), 1);
        }
        notifier.join().unwrap();
        drop(waiter);
    });
}

/// The waiter changes its waker while it is notified: the newest is woken or the notification is seen, and no waker is
/// lost.
#[test]
fn update_against_notify() {
    model(3, || {
        let list = Arc::new(WaitList::<()>::new());
        let (old, old_waker) = Probe::new();
        let (new, new_waker) = Probe::new();
        {
            let mut waiter = pin!(Waiter::new(&*list, ()));
            assert!(
                waiter
                    .as_mut()
                    .poll(&mut Context::from_waker(&old_waker))
                    .is_pending()
            );
            let other = list.clone();
            let notifier = thread::spawn(move || other.notify_all());
            let seen = waiter.as_mut().poll(&mut Context::from_waker(&new_waker));
            assert_eq!(notifier.join().unwrap(), 1);
            assert!(seen.is_ready() || new.wakes() == 1);
        }
        drop((old_waker, new_waker));
        assert_eq!(StdArc::strong_count(&old), 1);
        assert_eq!(StdArc::strong_count(&new), 1);
    });
}
