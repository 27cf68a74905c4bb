//! Models of `Notify`. loom's cells inside check that the list and the wakers are never touched by two at a time.
//!
//! Seen to fail: with `Relaxed` for the `Release` of the store that unlocks (the list is written by two at a time);
//! without the look at the number of calls in the first poll (a future that was made before `notify_waiters` waits for
//! ever); without the passing on of a notification by `notify_last` (the waiter behind is lost); with `Acquire` for
//! `AcqRel` in the exchanges of the notifiers, and with `Relaxed` for the store of the state of a node (what was done
//! before is not seen); when who locks for a later poll forgets the permit.
#![cfg(rt_loom)]

use std::pin::pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Waker};

use loom::future::block_on;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize as Modelled, Ordering::Relaxed};
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::notify::Notify;

fn is_ready<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    future
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

/// One waits while another notifies: what was done before is seen, whether by a permit or by a wake.
#[test]
fn notify_one_against_the_first_poll() {
    for last in [false, true] {
        model(3, move || {
            let notify = Arc::new(Notify::new());
            let done = Arc::new(Modelled::new(0));
            let (other, written) = (notify.clone(), done.clone());
            let notifying = thread::spawn(move || {
                written.store(1, Relaxed);
                if last {
                    other.notify_last();
                } else {
                    other.notify_one();
                }
            });
            block_on(notify.notified());
            assert_eq!(done.load(Relaxed), 1);
            notifying.join().unwrap();
            // It was the only one.
            assert!(!is_ready(pin!(notify.notified())));
        });
    }
}

/// Two calls at the same time, by one that waits afterwards too: there may be one permit for both, but who takes it
/// sees what was done before each.
#[test]
fn two_calls_against_one_that_waits() {
    model(3, || {
        let notify = Arc::new(Notify::new());
        let done = Arc::new(Modelled::new(0));
        let (other, written) = (notify.clone(), done.clone());
        let notifying = thread::spawn(move || {
            written.fetch_add(1, Relaxed);
            other.notify_one();
        });
        done.fetch_add(2, Relaxed);
        notify.notify_one();
        while done.load(Relaxed) != 3 {
            block_on(notify.notified());
        }
        notifying.join().unwrap();
    });
}

/// A future that was made before is completed by `notify_waiters`, polled or not, whenever it is polled first.
#[test]
fn notify_waiters_against_the_first_poll() {
    model(3, || {
        let notify = Arc::new(Notify::new());
        let done = Arc::new(Modelled::new(0));
        let (other, written) = (notify.clone(), done.clone());
        let future = notify.notified();
        let notifying = thread::spawn(move || {
            written.store(1, Relaxed);
            other.notify_waiters();
        });
        block_on(future);
        assert_eq!(done.load(Relaxed), 1);
        assert!(!is_ready(pin!(notify.notified())));
        notifying.join().unwrap();
    });
}

/// One polled future and one that was not, against `notify_waiters` then `notify_one`: both are completed by the first
/// call, and the permit of the second remains.
#[test]
fn all_then_one_against_polls() {
    model(2, || {
        let notify = Arc::new(Notify::new());
        let mut first = pin!(notify.notified());
        let mut second = pin!(notify.notified());
        assert!(!first.as_mut().enable());
        let other = notify.clone();
        let notifying = thread::spawn(move || {
            other.notify_waiters();
            other.notify_one();
        });
        let early = is_ready(second.as_mut());
        notifying.join().unwrap();
        assert!(is_ready(first));
        assert!(early || is_ready(second));
        assert!(is_ready(pin!(notify.notified())));
    });
}

/// The full table: one that waits is dropped while it is notified, and another waits besides. What was for one
/// reaches the other or becomes a permit; what was for all does not.
#[test]
fn drop_against_one_last_and_all() {
    for with in 0..3 {
        model(2, move || {
            let notify = Arc::new(Notify::new());
            let (first, first_waker) = Probe::new();
            let (second, second_waker) = Probe::new();
            let mut dropped = Box::pin(notify.notified());
            let mut stays = Box::pin(notify.notified());
            let mut join = |dropped_joins: bool| {
                let polled = if dropped_joins {
                    let mut cx = Context::from_waker(&first_waker);
                    dropped.as_mut().poll(&mut cx)
                } else {
                    let mut cx = Context::from_waker(&second_waker);
                    stays.as_mut().poll(&mut cx)
                };
                assert!(polled.is_pending());
            };
            // The one that is dropped is the one whose turn it is.
            let last = with == 1;
            join(!last);
            join(last);
            let other = notify.clone();
            let notifying = thread::spawn(move || match with {
                0 => other.notify_one(),
                1 => other.notify_last(),
                _ => other.notify_waiters(),
            });
            drop(dropped);
            notifying.join().unwrap();
            assert!(is_ready(stays.as_mut()));
            assert_eq!(second.wakes(), 1);
            assert!(first.wakes() <= 1);
            assert!(!is_ready(pin!(notify.notified())));
            drop((first_waker, second_waker));
            assert_eq!(StdArc::strong_count(&first), 1);
            assert_eq!(StdArc::strong_count(&second), 1);
        });
    }
}

/// A waiting future is polled with another waker while it is notified: the newer one is woken, or the poll says it.
#[test]
fn a_change_of_waker_against_one_and_all() {
    for all in [false, true] {
        model(3, move || {
            let notify = Arc::new(Notify::new());
            let (old, old_waker) = Probe::new();
            let (new, new_waker) = Probe::new();
            let mut future = pin!(notify.notified());
            let mut poll = |waker| future.as_mut().poll(&mut Context::from_waker(waker));
            assert!(poll(&old_waker).is_pending());
            let other = notify.clone();
            let notifying = thread::spawn(move || {
                if all {
                    other.notify_waiters();
                } else {
                    other.notify_one();
                }
            });
            let seen = poll(&new_waker).is_ready();
            notifying.join().unwrap();
            assert!(seen || new.wakes() == 1);
            assert!(poll(&new_waker).is_ready());
            assert!(old.wakes() + new.wakes() <= 1);
            drop((old_waker, new_waker));
            assert_eq!(StdArc::strong_count(&old), 1);
            assert_eq!(StdArc::strong_count(&new), 1);
        });
    }
}

/// Two waiters on two threads and two notifications: each gets one.
#[test]
fn two_waiters_share_two_notifications() {
    model(2, || {
        let notify = Arc::new(Notify::new());
        let mut first = pin!(notify.notified());
        assert!(!first.as_mut().enable());
        let other = notify.clone();
        let waiting = thread::spawn(move || {
            let mut future = pin!(other.notified());
            if !future.as_mut().enable() {
                block_on(future);
            }
        });
        notify.notify_one();
        notify.notify_one();
        block_on(first);
        waiting.join().unwrap();
    });
}

/// One that waits is polled again, or goes, while it is notified and a permit is left behind it: what was done before is
/// seen by who finds itself notified, and the permit stays, also under the lock that the other takes.
#[test]
fn two_notifications_against_a_later_poll() {
    model(3, || {
        let notify = Arc::new(Notify::new());
        let done = Arc::new(Modelled::new(0));
        let (other, written) = (notify.clone(), done.clone());
        let mut waiting = pin!(notify.notified());
        assert!(!is_ready(waiting.as_mut()));
        let notifying = thread::spawn(move || {
            written.store(1, Relaxed);
            other.notify_one();
            other.notify_one();
        });
        // With another waker, so that the lock is taken.
        let (_probe, waker) = Probe::new();
        if waiting
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            assert_eq!(done.load(Relaxed), 1);
        }
        notifying.join().unwrap();
        assert!(is_ready(waiting));
        assert!(is_ready(pin!(notify.notified())));
    });
}
