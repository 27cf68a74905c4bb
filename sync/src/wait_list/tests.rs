use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::*;
use crate::testing::{Probe, limited, once};

type Pinned<'a, T> = Pin<Box<Waiter<&'a WaitList<T>>>>;

/// A waiter that is in the list with a waker of `probe`.
fn waiting<'a, T: Copy>(list: &'a WaitList<T>, tag: T, probe: &Arc<Probe>) -> Pinned<'a, T> {
    let mut waiter = Box::pin(Waiter::new(list, tag));
    assert_eq!(poll(&mut waiter, probe), Poll::Pending);
    waiter
}

fn poll<T: Copy>(waiter: &mut Pinned<'_, T>, probe: &Arc<Probe>) -> Poll<Notification> {
    let waker = probe.waker();
    waiter.as_mut().poll(&mut Context::from_waker(&waker))
}

#[test]
fn who_waits_longest_is_notified_first() {
    let list = WaitList::new();
    let probes: Vec<_> = (0..4).map(|_| Probe::new()).collect();
    let mut waiters: Vec<_> = probes
        .iter()
        .map(|probe| waiting(&list, (), probe))
        .collect();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        assert!(!list.is_empty());
        assert!(list.notify_one());
        let woken: Vec<_> = probes.iter().map(|probe| probe.wakes()).collect();
        assert_eq!(woken.iter().sum::<usize>(), i + 1);
        assert_eq!(woken[i], 1);
        assert_eq!(poll(waiter, &probes[i]), Poll::Ready(Notification::One));
    }
    assert!(list.is_empty());
    assert!(!list.notify_one());
    // Whoever has been served stands at the end again.
    assert_eq!(poll(&mut waiters[0], &probes[0]), Poll::Pending);
    assert!(list.notify_one());
    drop(waiters);
    assert!(probes.iter().all(|probe| probe.alive() == 0));
}

#[test]
fn dropping_a_waiter_leaves_the_list_and_drops_its_waker() {
    let list = WaitList::new();
    let probe = Probe::new();
    for gone in 0..3 {
        let mut waiters: Vec<_> = (0..3).map(|_| waiting(&list, (), &probe)).collect();
        drop(waiters.remove(gone));
        assert_eq!(probe.alive(), 2);
        assert_eq!(list.notify_all(), 2);
        assert!(
            waiters
                .iter_mut()
                .all(|waiter| poll(waiter, &probe).is_ready())
        );
        assert!(list.is_empty());
    }
    assert_eq!(probe.wakes(), 6);
    drop(waiting(&list, (), &probe));
    assert!(list.is_empty());
}

#[test]
fn a_grant_is_passed_on_when_its_waiter_is_dropped() {
    let list = WaitList::new();
    let (a, b) = (Probe::new(), Probe::new());
    let first = waiting(&list, (), &a);
    let mut second = waiting(&list, (), &b);
    assert!(list.notify_one());
    drop(first);
    assert_eq!((a.wakes(), b.wakes()), (1, 1));
    assert_eq!(poll(&mut second, &b), Poll::Ready(Notification::One));
}

#[test]
fn remove_tells_of_a_notification_and_passes_nothing_on() {
    let list = WaitList::new();
    let probe = Probe::new();
    let mut first = waiting(&list, (), &probe);
    let mut second = waiting(&list, (), &probe);
    assert!(list.notify_one());
    assert_eq!(first.as_mut().remove(), Some(Notification::One));
    assert_eq!(first.as_mut().remove(), None);
    assert_eq!(second.as_mut().remove(), None);
    assert!(!second.is_waiting());
    assert!(list.is_empty());
    assert_eq!((probe.wakes(), probe.alive()), (1, 0));
}

#[test]
fn a_notification_of_all_is_not_passed_on() {
    let list = WaitList::new();
    let probe = Probe::new();
    let first = waiting(&list, (), &probe);
    assert_eq!(list.notify_all(), 1);
    let mut second = waiting(&list, (), &probe);
    drop(first);
    assert_eq!(poll(&mut second, &probe), Poll::Pending);
}

#[test]
fn notify_all_wakes_more_than_a_batch_and_no_newcomer() {
    limited(|| {
        const MANY: usize = 3 * crate::wake_batch::CAPACITY + 1;
        static LIST: WaitList = WaitList::new();
        let list = &LIST;
        let probes: Vec<_> = (0..MANY).map(|_| Probe::new()).collect();
        let mut waiters: Vec<_> = probes
            .iter()
            .map(|probe| waiting(list, (), probe))
            .collect();
        // The first to be woken joins again at once, and a newcomer joins too.
        let newcomer = Probe::new();
        let mut first = waiters.remove(0);
        let (probe, new) = (probes[0].clone(), newcomer.clone());
        let joined = Arc::new(std::sync::Mutex::new(Vec::new()));
        let keep = joined.clone();
        once(&probes[0].on_wake, move || {
            assert_eq!(poll(&mut first, &probe), Poll::Ready(Notification::All));
            assert_eq!(poll(&mut first, &probe), Poll::Pending);
            let newcomer = waiting(list, (), &new);
            // It is the turn of `first`, not of who has been detached.
            assert!(list.notify_one());
            keep.lock().unwrap().extend([first, newcomer]);
        });
        assert_eq!(list.notify_all(), MANY);
        assert!(probes[1..].iter().all(|probe| probe.wakes() == 1));
        for (waiter, probe) in waiters.iter_mut().zip(&probes[1..]) {
            assert_eq!(poll(waiter, probe), Poll::Ready(Notification::All));
        }
        assert_eq!((probes[0].wakes(), newcomer.wakes()), (2, 0));
        let mut joined = joined.lock().unwrap();
        assert_eq!(
            poll(&mut joined[0], &probes[0]),
            Poll::Ready(Notification::One)
        );
        assert_eq!(poll(&mut joined[1], &newcomer), Poll::Pending);
    });
}

#[test]
fn a_detached_waiter_that_is_polled_or_dropped_before_its_wake_is_served() {
    const MANY: usize = 2 * crate::wake_batch::CAPACITY;
    static LIST: WaitList = WaitList::new();
    let list = &LIST;
    let probe = Probe::new();
    let trigger = Probe::new();
    let first = waiting(list, (), &trigger);
    let mut rest: Vec<_> = (1..MANY).map(|_| waiting(list, (), &probe)).collect();
    once(&trigger.on_wake, {
        let probe = probe.clone();
        move || {
            assert_eq!(probe.wakes(), 0);
            let mut last = rest.pop().unwrap();
            assert_eq!(poll(&mut last, &probe), Poll::Ready(Notification::All));
            let mut last = rest.pop().unwrap();
            assert_eq!(last.as_mut().remove(), Some(Notification::All));
            drop(rest);
        }
    });
    assert_eq!(list.notify_all(), MANY);
    // The first batch had been taken; nobody of the second is left.
    assert_eq!(probe.wakes(), crate::wake_batch::CAPACITY - 1);
    assert_eq!(probe.alive(), 0);
    drop(first);
    assert!(list.is_empty());
}

#[test]
fn only_those_who_match_are_notified_in_their_order() {
    const READ: u8 = 1;
    const WRITE: u8 = 2;
    let list = WaitList::new();
    let tags = [WRITE, READ, READ | WRITE, WRITE, READ, WRITE];
    let probes: Vec<_> = tags.iter().map(|_| Probe::new()).collect();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    for (i, probe) in probes.iter().enumerate() {
        let order = order.clone();
        *probe.on_wake.lock().unwrap() = Some(Box::new(move || order.lock().unwrap().push(i)));
    }
    let mut waiters: Vec<_> = tags
        .iter()
        .zip(&probes)
        .map(|(&tag, probe)| waiting(&list, tag, probe))
        .collect();
    assert_eq!(list.notify_matching(|tag| tag & READ != 0), 3);
    assert_eq!(*order.lock().unwrap(), [1, 2, 4]);
    for (i, waiter) in waiters.iter_mut().enumerate() {
        assert_eq!(poll(waiter, &probes[i]).is_ready(), tags[i] & READ != 0);
        // Served or not, all are in the list now, those who were not served in front.
        if tags[i] & READ != 0 {
            assert!(poll(waiter, &probes[i]).is_pending());
        }
    }
    assert_eq!(list.notify_matching(|tag| tag & 4 != 0), 0);
    assert!(list.notify_one());
    assert_eq!(*order.lock().unwrap(), [1, 2, 4, 0]);
    assert_eq!(list.notify_matching(|tag| tag & WRITE != 0), 3);
    assert_eq!(list.notify_all(), 2);
    assert!(list.is_empty());
    drop(waiters);
    assert!(probes.iter().all(|probe| probe.alive() == 0));
}

#[test]
fn a_changed_waker_replaces_the_old_one() {
    let list = WaitList::new();
    let (old, new) = (Probe::new(), Probe::new());
    let mut waiter = waiting(&list, (), &old);
    assert_eq!(poll(&mut waiter, &new), Poll::Pending);
    assert_eq!((old.alive(), new.alive()), (0, 1));
    let clones = new.clones();
    assert_eq!(poll(&mut waiter, &new), Poll::Pending);
    assert_eq!(
        new.clones(),
        clones + 1,
        "only the test itself makes a waker"
    );
    assert!(list.notify_one());
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
}

#[test]
fn wakers_may_call_back_into_the_same_list() {
    limited(|| {
        static LIST: WaitList = WaitList::new();
        let list = &LIST;
        for which in 0..3 {
            let (a, b, c) = (Probe::new(), Probe::new(), Probe::new());
            let mut first = waiting(list, (), &a);
            let _second = waiting(list, (), &b);
            let hook = || assert!(list.notify_one());
            match which {
                0 => {
                    once(&a.on_wake, hook);
                    assert!(list.notify_one());
                }
                1 => {
                    // The old waker's drop, while it is replaced.
                    once(&a.on_drop, hook);
                    assert_eq!(poll(&mut first, &c), Poll::Pending);
                    list.notify_one();
                }
                _ => {
                    once(&c.on_clone, || {
                        assert_eq!(list.notify_all(), 2);
                    });
                    assert_eq!(poll(&mut first, &c), Poll::Ready(Notification::All));
                }
            }
            assert_eq!((a.wakes() + c.wakes(), b.wakes()), (1, 1), "round {which}");
        }
    });
}

#[test]
fn panics_in_wakers_harm_nobody_else() {
    let list = WaitList::new();
    let (bad, good) = (Probe::new(), Probe::new());
    let mut waiters = Vec::new();
    for i in 0..100 {
        waiters.push(waiting(&list, (), if i % 40 == 0 { &bad } else { &good }));
    }
    *bad.on_wake.lock().unwrap() = Some(Box::new(|| panic!("wake")));
    assert!(catch_unwind(AssertUnwindSafe(|| list.notify_all())).is_err());
    assert_eq!((bad.wakes(), good.wakes()), (3, 97));
    assert!(list.is_empty());

    let mut waiter = Box::pin(Waiter::new(&list, ()));
    let waker = bad.waker();
    once(&bad.on_clone, || panic!("clone"));
    let polled = catch_unwind(AssertUnwindSafe(|| {
        waiter.as_mut().poll(&mut Context::from_waker(&waker))
    }));
    assert!(polled.is_err());
    assert!(list.is_empty());
    assert_eq!(poll(&mut waiter, &bad), Poll::Pending);
    once(&bad.on_drop, || panic!("drop"));
    assert!(catch_unwind(AssertUnwindSafe(|| waiter.as_mut().remove())).is_err());
    assert!(list.is_empty());
}
