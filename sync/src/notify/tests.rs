use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::coop;
use crate::testing::{Probe, limited, once, poll};
use crate::wait::{self, WaitKind};

fn is_ready<F: Future>(future: Pin<&mut F>) -> bool {
    poll(future, &Probe::new()).is_ready()
}

fn send_and_sync<T: Send + Sync>() {}

#[test]
fn bounds() {
    send_and_sync::<Notify>();
    send_and_sync::<Notified<'static>>();
    send_and_sync::<OwnedNotified>();
    fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    unwind_safe::<Notify>();
    static NOTIFY: Notify = Notify::const_new();
    NOTIFY.notify_one();
    assert!(is_ready(pin!(NOTIFY.notified())));
}

#[test]
fn at_most_one_permit_is_stored_and_the_first_poll_takes_it() {
    let notify = Notify::new();
    let mut early = pin!(notify.notified());
    notify.notify_one();
    notify.notify_one();
    notify.notify_last();
    let mut late = pin!(notify.notified());
    assert!(is_ready(late.as_mut()));
    assert!(!is_ready(early.as_mut()));
    // Ready for ever.
    assert!(is_ready(late));
}

#[test]
fn notify_one_goes_to_the_oldest_and_notify_last_to_the_newest() {
    let notify = Notify::new();
    let probes: Vec<_> = (0..4).map(|_| Probe::new()).collect();
    let mut futures: Vec<_> = (0..4).map(|_| Box::pin(notify.notified())).collect();
    for (future, probe) in futures.iter_mut().zip(&probes) {
        assert!(poll(future.as_mut(), probe).is_pending());
    }
    let wakes = || probes.iter().map(|probe| probe.wakes()).collect::<Vec<_>>();
    notify.notify_one();
    assert_eq!(wakes(), [1, 0, 0, 0]);
    notify.notify_last();
    assert_eq!(wakes(), [1, 0, 0, 1]);
    notify.notify_last();
    assert_eq!(wakes(), [1, 0, 1, 1]);
    notify.notify_one();
    assert_eq!(wakes(), [1, 1, 1, 1]);
    assert!(futures.iter_mut().all(|future| is_ready(future.as_mut())));
    assert!(probes.iter().all(|probe| probe.alive() == 0));
    assert!(!is_ready(pin!(notify.notified())));
}

#[test]
fn notify_waiters_completes_what_was_made_before_it() {
    let notify = Notify::new();
    let probe = Probe::new();
    let mut polled = pin!(notify.notified());
    assert!(poll(polled.as_mut(), &probe).is_pending());
    let unpolled = pin!(notify.notified());
    let mut enabled = pin!(notify.notified());
    assert!(!enabled.as_mut().enable());
    notify.notify_waiters();
    assert_eq!((probe.wakes(), probe.alive()), (1, 0));
    let later = pin!(notify.notified());
    assert!(is_ready(polled));
    assert!(is_ready(unpolled));
    assert!(enabled.as_mut().enable());
    assert!(is_ready(enabled));
    assert!(!is_ready(later));
}

#[test]
fn notify_waiters_leaves_the_permit_alone() {
    let notify = Notify::new();
    let before = pin!(notify.notified());
    notify.notify_one();
    notify.notify_waiters();
    // Completed by the call, so it does not take the permit.
    assert!(is_ready(before));
    assert!(is_ready(pin!(notify.notified())));
    assert!(!is_ready(pin!(notify.notified())));
}

/// How a future is notified before it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    One,
    Last,
    All,
    Nothing,
}

impl With {
    fn notify(self, notify: &Notify) {
        match self {
            With::One => notify.notify_one(),
            With::Last => notify.notify_last(),
            With::All => notify.notify_waiters(),
            With::Nothing => {}
        }
    }
}

/// The full table: what becomes of a notification whose future is dropped, by whether others wait, and by whether the
/// dropped one had been polled, was only enabled, or neither.
#[test]
fn a_dropped_future_passes_on_what_was_for_one_only() {
    for with in [With::One, With::Last, With::All, With::Nothing] {
        for others in [0, 2] {
            for begun in ["polled", "enabled", "not at all"] {
                let notify = Notify::new();
                let case = format!("{with:?}, {others} others, {begun}");
                let mut dropped = Box::pin(notify.notified());
                match begun {
                    "polled" => assert!(!is_ready(dropped.as_mut())),
                    "enabled" => assert!(!dropped.as_mut().enable()),
                    _ => {}
                }
                with.notify(&notify);
                // They come after it: a permit, if that is what it became, is taken by the first of them.
                let probes: Vec<_> = (0..others).map(|_| Probe::new()).collect();
                let mut waiting: Vec<_> = probes
                    .iter()
                    .map(|probe| {
                        let mut future = Box::pin(notify.notified());
                        let taken = poll(future.as_mut(), probe).is_ready();
                        (future, taken)
                    })
                    .collect();
                drop(dropped);
                let got: Vec<_> = waiting
                    .iter_mut()
                    .map(|(future, taken)| *taken || is_ready(future.as_mut()))
                    .collect();
                let one = matches!(with, With::One | With::Last);
                let permit_was_taken = one && begun == "not at all";
                let expected = match (one, with, others) {
                    (_, _, 0) => vec![],
                    (true, _, _) if permit_was_taken => vec![true, false],
                    (true, With::One, _) => vec![true, false],
                    (true, _, _) => vec![false, true],
                    _ => vec![false, false],
                };
                assert_eq!(got, expected, "{case}");
                drop(waiting);
                let left = is_ready(pin!(notify.notified()));
                assert_eq!(left, one && others == 0, "{case}");
                assert!(probes.iter().all(|probe| probe.alive() == 0), "{case}");
            }
        }
    }
}

#[test]
fn a_grant_is_passed_on_along_the_whole_queue() {
    let notify = Notify::new();
    let mut futures: Vec<_> = (0..5).map(|_| Box::pin(notify.notified())).collect();
    for future in &mut futures {
        assert!(!is_ready(future.as_mut()));
    }
    notify.notify_one();
    // Each gets it from the one before.
    drop(futures);
    assert!(is_ready(pin!(notify.notified())));
}

#[test]
fn a_ready_future_that_is_dropped_passes_nothing_on() {
    let notify = Notify::new();
    let mut future = Box::pin(notify.notified());
    assert!(!is_ready(future.as_mut()));
    notify.notify_one();
    assert!(is_ready(future.as_mut()));
    drop(future);
    let mut enabled = Box::pin(notify.notified());
    notify.notify_one();
    assert!(enabled.as_mut().enable());
    drop(enabled);
    assert!(!is_ready(pin!(notify.notified())));
}

#[test]
fn a_grant_outlives_a_later_notify_waiters() {
    let notify = Notify::new();
    let mut future = Box::pin(notify.notified());
    assert!(!is_ready(future.as_mut()));
    notify.notify_one();
    notify.notify_waiters();
    drop(future);
    assert!(is_ready(pin!(notify.notified())));
}

#[test]
fn the_newest_waker_is_woken_and_the_old_one_dropped() {
    let notify = Notify::new();
    let (old, new) = (Probe::new(), Probe::new());
    let mut future = pin!(notify.notified());
    assert!(!future.as_mut().enable());
    assert!(poll(future.as_mut(), &old).is_pending());
    assert!(poll(future.as_mut(), &old).is_pending());
    assert!(poll(future.as_mut(), &new).is_pending());
    assert!(!future.as_mut().enable());
    assert_eq!((old.alive(), new.alive()), (0, 1));
    notify.notify_one();
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
}

#[test]
fn a_future_that_goes_takes_its_waker_along() {
    let notify = Notify::new();
    let probe = Probe::new();
    let mut futures: Vec<_> = (0..3).map(|_| Box::pin(notify.notified())).collect();
    for future in &mut futures {
        assert!(poll(future.as_mut(), &probe).is_pending());
    }
    // From the middle, the head, the tail.
    for (index, left) in [(1, 2), (0, 1), (0, 0)] {
        drop(futures.remove(index));
        assert_eq!(probe.alive(), left);
    }
    assert_eq!(probe.wakes(), 0);
    assert!(format!("{notify:?}").contains("waiting: false"));
}

#[test]
fn owned_futures_do_the_same_and_keep_it_alive() {
    let notify = Arc::new(Notify::new());
    let weak = Arc::downgrade(&notify);
    let probe = Probe::new();
    let mut future = Box::pin(notify.clone().notified_owned());
    assert!(!future.as_mut().enable());
    assert!(poll(future.as_mut(), &probe).is_pending());
    notify.notify_last();
    drop(notify);
    assert_eq!(probe.wakes(), 1);
    assert!(poll(future.as_mut(), &probe).is_ready());
    drop(future);
    assert!(weak.upgrade().is_none());
}

#[test]
fn more_waiters_than_a_batch_holds_and_one_that_panics() {
    let notify = Notify::new();
    let probes: Vec<_> = (0..100).map(|_| Probe::new()).collect();
    let mut futures: Vec<_> = (0..100).map(|_| Box::pin(notify.notified())).collect();
    for (future, probe) in futures.iter_mut().zip(&probes) {
        assert!(poll(future.as_mut(), probe).is_pending());
    }
    once(&probes[3].on_wake, || panic!("wake"));
    once(&probes[70].on_wake, || panic!("wake too"));
    assert!(catch_unwind(AssertUnwindSafe(|| notify.notify_waiters())).is_err());
    assert!(probes.iter().all(|probe| probe.wakes() == 1));
    assert!(futures.iter_mut().all(|future| is_ready(future.as_mut())));
}

#[test]
fn panics_in_wakers_leave_it_whole() {
    let notify = Notify::new();
    let probe = Probe::new();
    let mut future = Box::pin(notify.notified());
    once(&probe.on_clone, || panic!("clone"));
    assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut(), &probe))).is_err());
    assert!(poll(future.as_mut(), &probe).is_pending());
    once(&probe.on_wake, || panic!("wake"));
    assert!(catch_unwind(AssertUnwindSafe(|| notify.notify_one())).is_err());
    assert!(is_ready(future.as_mut()));
    let mut future = Box::pin(notify.notified());
    assert!(poll(future.as_mut(), &probe).is_pending());
    once(&probe.on_drop, || panic!("drop"));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(future))).is_err());
    assert_eq!(probe.alive(), 0);
    notify.notify_one();
    assert!(is_ready(pin!(notify.notified())));
}

#[test]
fn wakers_may_call_back_into_it() {
    limited(|| {
        let notify = Arc::new(Notify::new());
        let probe = Probe::new();
        let mut future = Box::pin(notify.clone().notified_owned());
        let other = notify.clone();
        once(&probe.on_clone, move || other.notify_one());
        // The permit comes while the waker is cloned.
        assert!(poll(future.as_mut(), &probe).is_ready());

        let mut future = Box::pin(notify.clone().notified_owned());
        assert!(poll(future.as_mut(), &probe).is_pending());
        let other = notify.clone();
        once(&probe.on_wake, move || {
            drop(future);
            other.notify_waiters();
        });
        notify.notify_one();
        // What the dropped one had got is the permit now.
        assert!(is_ready(pin!(notify.notified())));
    });
}

#[test]
fn the_budget_is_spent_and_the_wait_is_recorded() {
    let notify = Notify::new();
    let probe = Probe::new();
    let saved = coop::start();
    let mut yields = 0;
    for _ in 0..10_000 {
        notify.notify_one();
        let mut future = pin!(notify.notified());
        while poll(future.as_mut(), &probe).is_pending() {
            yields += 1;
            let _ = coop::start();
        }
    }
    coop::restore(saved);
    assert_eq!(yields, 10_000 / usize::from(coop::BUDGET));
    assert_eq!(probe.wakes(), yields);

    let _ = wait::take();
    let mut future = pin!(notify.notified());
    let line = line!() - 1;
    assert!(poll(future.as_mut(), &probe).is_pending());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Notify);
    assert_eq!(
        wait.site.map(|site| (site.file(), site.line())),
        Some((file!(), line))
    );
}

#[test]
fn nobody_is_lost_between_threads() {
    limited(|| {
        const ROUNDS: usize = 20_000;
        let notify = Arc::new([Notify::new(), Notify::new()]);
        let other = notify.clone();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let thread = std::thread::spawn(move || {
            for _ in 0..ROUNDS {
                futures_lite::future::block_on(other[0].notified());
                counted.fetch_add(1, SeqCst);
                other[1].notify_one();
            }
        });
        for _ in 0..ROUNDS {
            notify[0].notify_one();
            futures_lite::future::block_on(notify[1].notified());
        }
        thread.join().unwrap();
        assert_eq!(count.load(SeqCst), ROUNDS);
    });
}
