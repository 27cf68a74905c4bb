use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Context;
use std::thread;

use super::*;
use crate::coop;
use crate::testing::{Probe, limited, once, poll_boxed as poll, ready, ten_thousand_yield};
use crate::wait;

mod bounded;
mod capacity;

/// A future that waits.
fn waits<'a>(semaphore: &'a Semaphore, n: u32, probe: &Arc<Probe>) -> Pin<Box<Acquire<'a>>> {
    let mut future = Box::pin(semaphore.acquire_many(n));
    assert!(poll(&mut future, probe).is_pending());
    future
}

#[test]
fn s01_with_no_permits_it_is_locked_and_too_many_are_refused() {
    let semaphore = Semaphore::new(0);
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits
    );
    // A negative number cannot be written. What a wrap-around would make of it is refused.
    let refused = catch_unwind(|| Semaphore::new(usize::MAX)).unwrap_err();
    let text = refused.downcast_ref::<String>().unwrap();
    assert!(text.contains("MAX_PERMITS"), "{text}");
    assert_eq!(
        Semaphore::new(Semaphore::MAX_PERMITS).available_permits(),
        Semaphore::MAX_PERMITS
    );
}

#[test]
fn s02_permits_go_to_those_who_wait_and_are_not_seen_meanwhile() {
    let semaphore = Semaphore::new(3);
    let probe = Probe::new();
    let (one, two) = (
        semaphore.try_acquire().unwrap(),
        semaphore.try_acquire().unwrap(),
    );
    let third = ready(poll(&mut Box::pin(semaphore.acquire()), &probe)).unwrap();
    let mut a = waits(&semaphore, 1, &probe);
    let mut b = waits(&semaphore, 1, &probe);
    let mut c = waits(&semaphore, 1, &probe);
    assert_eq!(semaphore.available_permits(), 0);
    drop(one);
    assert_eq!(semaphore.available_permits(), 0);
    drop(two);
    assert_eq!(semaphore.available_permits(), 0);
    assert_eq!(probe.wakes(), 2);
    let a = ready(poll(&mut a, &probe)).unwrap();
    let b = ready(poll(&mut b, &probe)).unwrap();
    assert!(poll(&mut c, &probe).is_pending());
    drop((a, b, third));
    drop(ready(poll(&mut c, &probe)).unwrap());
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn s03_a_cancelled_waiter_does_not_stay() {
    let semaphore = Semaphore::new(1);
    let probe = Probe::new();
    let held = semaphore.try_acquire().unwrap();
    drop(waits(&semaphore, 1, &probe));
    assert_eq!(probe.alive(), 0);
    drop(held);
    assert_eq!(probe.wakes(), 0);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn s04_a_release_passes_over_cancelled_waiters() {
    let semaphore = Semaphore::new(0);
    let probes: Vec<_> = (0..4).map(|_| Probe::new()).collect();
    let mut waiters: Vec<_> = probes
        .iter()
        .map(|probe| waits(&semaphore, 1, probe))
        .collect();
    waiters.drain(..2);
    semaphore.add_permits(1);
    let wakes: Vec<_> = probes.iter().map(|probe| probe.wakes()).collect();
    assert_eq!(wakes, [0, 0, 1, 0]);
    let permit = ready(poll(&mut waiters[0], &probes[2])).unwrap();
    assert!(poll(&mut waiters[1], &probes[3]).is_pending());
    drop(permit);
    drop(ready(poll(&mut waiters[1], &probes[3])).unwrap());
}

#[test]
fn s05_no_permit_is_lost_to_a_waiter_cancelled_with_the_release() {
    for cancel_first in [true, false] {
        let semaphore = Semaphore::new(1);
        let probe = Probe::new();
        let held = semaphore.try_acquire().unwrap();
        let first = waits(&semaphore, 1, &probe);
        let mut second = waits(&semaphore, 1, &probe);
        if cancel_first {
            drop(first);
            drop(held);
        } else {
            drop(held);
            drop(first);
        }
        drop(ready(poll(&mut second, &probe)).unwrap());
    }
}

#[test]
fn s06_a_permit_granted_to_a_future_that_is_dropped_is_back() {
    let semaphore = Arc::new(Semaphore::new(0));
    let probe = Probe::new();
    let waiter = waits(&semaphore, 1, &probe);
    let mut owned = Box::pin(semaphore.clone().acquire_owned());
    semaphore.add_permits(1);
    assert_eq!(probe.wakes(), 1);
    drop(waiter);
    assert_eq!(semaphore.available_permits(), 1);
    drop(ready(poll(&mut owned, &probe)).unwrap());

    let held = semaphore.try_acquire().unwrap();
    let mut owned = Box::pin(semaphore.clone().acquire_owned());
    assert!(poll(&mut owned, &probe).is_pending());
    drop(held);
    assert_eq!(semaphore.available_permits(), 0);
    drop(owned);
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(Arc::strong_count(&semaphore), 1);
}

#[test]
fn s07_nobody_overtakes_one_that_waits() {
    let semaphore = Semaphore::new(1);
    let probe = Probe::new();
    let held = semaphore.try_acquire().unwrap();
    let mut first = waits(&semaphore, 1, &probe);
    drop(held);
    // Released and acquired again, in the order of the queue.
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits
    );
    let mut again = waits(&semaphore, 1, &probe);
    let permit = ready(poll(&mut first, &probe)).unwrap();
    let mut third = waits(&semaphore, 1, &probe);
    drop(permit);
    assert!(poll(&mut third, &probe).is_pending());
    drop(ready(poll(&mut again, &probe)).unwrap());
    drop(ready(poll(&mut third, &probe)).unwrap());
}

#[test]
fn s08_the_order_stays_when_the_first_is_cancelled() {
    let semaphore = Semaphore::new(0);
    let probes: Vec<_> = (0..3).map(|_| Probe::new()).collect();
    let mut waiters: Vec<_> = probes
        .iter()
        .map(|probe| waits(&semaphore, 1, probe))
        .collect();
    drop(waiters.remove(0));
    semaphore.add_permits(1);
    assert_eq!((probes[1].wakes(), probes[2].wakes()), (1, 0));
    semaphore.add_permits(1);
    assert_eq!((probes[1].wakes(), probes[2].wakes()), (1, 1));
    for (waiter, probe) in waiters.iter_mut().zip(&probes[1..]) {
        ready(poll(waiter, probe)).unwrap().forget();
    }
}

#[test]
fn s09_the_plain_one_grows() {
    let semaphore = Semaphore::new(1);
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn s10_a_release_with_nobody_waiting_makes_it_free_again() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.try_acquire().unwrap();
    assert!(semaphore.try_acquire().is_err());
    drop(permit);
    assert!(semaphore.try_acquire().is_ok());
}

#[test]
fn who_asks_for_many_is_not_overtaken_by_who_asks_for_few() {
    let semaphore = Semaphore::new(4);
    let (a, b) = (Probe::new(), Probe::new());
    let three = semaphore.try_acquire_many(3).unwrap();
    let mut many = waits(&semaphore, 3, &a);
    // One is there, but not for newcomers.
    assert_eq!(semaphore.available_permits(), 0);
    assert!(semaphore.try_acquire().is_err());
    assert_eq!(semaphore.forget_permits(1), 0);
    let mut few = waits(&semaphore, 1, &b);
    let mut split = three;
    drop(split.split(1).unwrap());
    assert_eq!((a.wakes(), b.wakes()), (0, 0));
    drop(split);
    // Four: three for the first, one for the other.
    assert_eq!((a.wakes(), b.wakes()), (1, 1));
    let many = ready(poll(&mut many, &a)).unwrap();
    assert_eq!(many.num_permits(), 3);
    drop(ready(poll(&mut few, &b)).unwrap());
    drop(many);
    assert_eq!(semaphore.available_permits(), 4);
}

#[test]
fn a_head_that_leaves_makes_way_for_who_needs_less() {
    let semaphore = Semaphore::new(2);
    let (a, b) = (Probe::new(), Probe::new());
    let many = waits(&semaphore, 3, &a);
    let mut few = waits(&semaphore, 1, &b);
    let mut other = waits(&semaphore, 2, &b);
    drop(many);
    assert_eq!((a.wakes(), b.wakes()), (0, 1));
    let few = ready(poll(&mut few, &b)).unwrap();
    assert!(poll(&mut other, &b).is_pending());
    drop(other);
    assert_eq!(semaphore.available_permits(), 1);
    drop(few);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn one_release_serves_more_than_a_batch() {
    let semaphore = Semaphore::new(0);
    let probe = Probe::new();
    let mut waiters: Vec<_> = (0..100).map(|_| waits(&semaphore, 1, &probe)).collect();
    semaphore.add_permits(99);
    assert_eq!(probe.wakes(), 99);
    let last = waiters.pop().unwrap();
    for waiter in &mut waiters {
        ready(poll(waiter, &probe)).unwrap().forget();
    }
    drop(last);
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn close_refuses_those_who_wait_and_those_who_come() {
    let semaphore = Arc::new(Semaphore::new(1));
    let probe = Probe::new();
    let held = semaphore.clone().try_acquire_owned().unwrap();
    let mut granted = waits(&semaphore, 1, &probe);
    let mut waiters: Vec<_> = (0..100).map(|_| waits(&semaphore, 1, &probe)).collect();
    drop(held);
    semaphore.close();
    assert!(semaphore.is_closed());
    assert_eq!(probe.wakes(), 101);
    // Granted before it was closed.
    let permit = ready(poll(&mut granted, &probe)).unwrap();
    for waiter in &mut waiters {
        assert_eq!(
            ready(poll(waiter, &probe)).unwrap_err().to_string(),
            "semaphore closed: `close` was called, and it gives no permits out any more"
        );
    }
    drop(permit);
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::Closed
    );
    assert!(ready(poll(&mut Box::pin(semaphore.acquire()), &probe)).is_err());
    assert!(
        ready(poll(
            &mut Box::pin(semaphore.clone().acquire_owned()),
            &probe
        ))
        .is_err()
    );
    assert!(semaphore.blocking_acquire().is_err());
    semaphore.close();
    assert_eq!(probe.alive(), 0);
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_being_woken() {
    let semaphore = Semaphore::new(0);
    let (bad, good) = (Probe::new(), Probe::new());
    once(&bad.on_wake, || panic!("from a waker"));
    let mut first = waits(&semaphore, 1, &bad);
    let mut second = waits(&semaphore, 1, &good);
    assert!(catch_unwind(AssertUnwindSafe(|| semaphore.add_permits(3))).is_err());
    assert_eq!(good.wakes(), 1);
    drop(ready(poll(&mut first, &good)).unwrap());
    drop(ready(poll(&mut second, &good)).unwrap());
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn a_waker_that_panics_when_dropped_keeps_no_permit() {
    let semaphore = Arc::new(Semaphore::new(0));
    let probe = Probe::new();
    // The waker is cloned before the permits are looked at once more: by then they are there.
    let more = semaphore.clone();
    once(&probe.on_clone, move || more.add_permits(2));
    once(&probe.on_drop, || panic!("a waker that panics"));
    let waker = probe.waker();
    let mut cx = Context::from_waker(&waker);
    let mut acquire = Box::pin(semaphore.acquire_many(2));
    let polled = catch_unwind(AssertUnwindSafe(|| acquire.as_mut().poll(&mut cx)));
    assert!(polled.is_err());
    drop(acquire);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn permits_are_split_merged_and_forgotten() {
    let semaphore = Arc::new(Semaphore::new(5));
    let mut permit = semaphore.try_acquire_many(4).unwrap();
    let part = permit.split(1).unwrap();
    assert!(permit.split(4).is_none());
    assert_eq!((permit.num_permits(), part.num_permits()), (3, 1));
    permit.merge(part);
    assert_eq!(permit.num_permits(), 4);
    assert!(std::ptr::eq(permit.semaphore(), &*semaphore));
    let part = permit.split(2).unwrap();
    part.forget();
    drop(permit);
    assert_eq!(semaphore.available_permits(), 3);

    let mut permit = semaphore.clone().try_acquire_many_owned(3).unwrap();
    let part = permit.split(1).unwrap();
    assert!(permit.split(3).is_none());
    permit.merge(part);
    assert!(Arc::ptr_eq(permit.semaphore(), &semaphore));
    permit.split(1).unwrap().forget();
    assert_eq!(permit.num_permits(), 2);
    drop(permit);
    assert_eq!(semaphore.available_permits(), 2);
    assert_eq!(Arc::strong_count(&semaphore), 1);

    let other = Semaphore::new(1);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut permit = semaphore.try_acquire().unwrap();
        permit.merge(other.try_acquire().unwrap());
    }));
    assert!(result.is_err());
    // Each went back to its own.
    assert_eq!(
        (semaphore.available_permits(), other.available_permits()),
        (2, 1)
    );
    assert_eq!(semaphore.forget_permits(5), 2);
    assert_eq!(semaphore.forget_permits(5), 0);
}

#[test]
fn too_many_permits_are_refused() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS - 1);
    semaphore.add_permits(1);
    for n in [1, Semaphore::MAX_PERMITS, usize::MAX] {
        let result = catch_unwind(AssertUnwindSafe(|| semaphore.add_permits(n)));
        assert!(result.is_err(), "{n}");
    }
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
    let permit = semaphore.try_acquire_many(u32::MAX).unwrap();
    assert_eq!(permit.num_permits(), u32::MAX as usize);
}

#[test]
fn none_at_all_can_always_be_had() {
    let semaphore = Semaphore::new(0);
    let probe = Probe::new();
    let waiter = waits(&semaphore, 1, &probe);
    assert_eq!(semaphore.try_acquire_many(0).unwrap().num_permits(), 0);
    drop(ready(poll(&mut Box::pin(semaphore.acquire_many(0)), &probe)).unwrap());
    semaphore.add_permits(0);
    assert_eq!(probe.wakes(), 0);
    drop(waiter);
    semaphore.close();
    assert!(semaphore.try_acquire_many(0).is_err());
}

#[test]
fn threads_block_until_there_are_permits() {
    limited(|| {
        let semaphore = Arc::new(Semaphore::new(0));
        let (started, told) = mpsc::channel();
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let (semaphore, started) = (semaphore.clone(), started.clone());
                thread::spawn(move || {
                    started.send(()).unwrap();
                    match i {
                        0 => semaphore.blocking_acquire().unwrap().forget(),
                        1 => semaphore.blocking_acquire_many(2).unwrap().forget(),
                        2 => semaphore.blocking_acquire_owned().unwrap().forget(),
                        _ => semaphore.blocking_acquire_many_owned(2).unwrap().forget(),
                    }
                })
            })
            .collect();
        for _ in 0..4 {
            told.recv().unwrap();
            semaphore.add_permits(1);
        }
        semaphore.add_permits(2);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn blocking_in_a_task_says_what_to_do() {
    let semaphore = Semaphore::new(1);
    let saved = coop::start();
    let result = catch_unwind(AssertUnwindSafe(|| drop(semaphore.blocking_acquire())));
    coop::restore(saved);
    let payload = result.unwrap_err();
    let text = payload.downcast_ref::<String>().unwrap();
    assert!(text.contains("await `acquire`"), "{text}");
}

#[test]
fn ten_thousand_acquires_yield_at_least_once() {
    let semaphore = Arc::new(Semaphore::new(1));
    ten_thousand_yield(|number, probe| {
        if number % 2 == 0 {
            poll(&mut Box::pin(semaphore.acquire()), probe).map(drop)
        } else {
            poll(&mut Box::pin(semaphore.clone().acquire_owned()), probe).map(drop)
        }
    });
}

#[test]
fn a_task_that_waits_records_where() {
    let semaphore = Semaphore::new(0);
    let (line, mut waiter) = (line!(), Box::pin(semaphore.acquire()));
    assert!(poll(&mut waiter, &Probe::new()).is_pending());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Semaphore);
    assert_eq!(wait.site.map(|site| site.line()), Some(line));
}

#[test]
fn a_permit_may_go_on_another_thread() {
    limited(|| {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.clone().try_acquire_owned().unwrap();
        let probe = Probe::new();
        let mut waiter = waits(&semaphore, 1, &probe);
        thread::spawn(move || drop(held)).join().unwrap();
        assert_eq!(probe.wakes(), 1);
        let permit = ready(poll(&mut waiter, &probe)).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || drop(permit));
        });
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[test]
fn everything_is_send_and_sync() {
    fn both<T: Send + Sync>() {}
    both::<Semaphore>();
    both::<SemaphorePermit<'_>>();
    both::<OwnedSemaphorePermit>();
    both::<Acquire<'_>>();
    both::<AcquireOwned>();
    static STATIC: Semaphore = Semaphore::const_new(2);
    assert_eq!(
        format!("{STATIC:?}"),
        "Semaphore { available: 2, closed: false, .. }"
    );
}
