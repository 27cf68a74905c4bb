use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::coop;
use crate::testing::{
    Probe, Unsend, Unsync, limited, once, poll_boxed as poll, ready, ten_thousand_yield,
};
use crate::wait;

#[test]
fn l01_waiters_get_the_lock_in_order_of_arrival() {
    let mutex = Mutex::new(());
    let (a, b, c) = (Probe::new(), Probe::new(), Probe::new());
    let held = mutex.try_lock().unwrap();
    let mut first = Box::pin(mutex.lock());
    let mut second = Box::pin(mutex.lock());
    assert!(poll(&mut first, &a).is_pending());
    assert!(poll(&mut second, &b).is_pending());
    let mut third = Box::pin(mutex.lock());
    assert!(poll(&mut third, &c).is_pending());
    drop(held);
    assert_eq!((a.wakes(), b.wakes(), c.wakes()), (1, 0, 0));
    assert!(poll(&mut second, &b).is_pending());
    drop(ready(poll(&mut first, &a)));
    assert_eq!((b.wakes(), c.wakes()), (1, 0));
    assert!(poll(&mut third, &c).is_pending());
    drop(ready(poll(&mut second, &b)));
    assert_eq!(c.wakes(), 1);
    drop(ready(poll(&mut third, &c)));
    assert!(mutex.try_lock().is_ok());
    assert_eq!((a.alive(), b.alive(), c.alive()), (0, 0, 0));
}

#[test]
fn l02_a_cancelled_waiter_does_not_stay_registered() {
    let mutex = Mutex::new(());
    let probe = Probe::new();
    let held = mutex.try_lock().unwrap();
    let mut waiter = Box::pin(mutex.lock());
    assert!(poll(&mut waiter, &probe).is_pending());
    assert_eq!(probe.alive(), 1);
    drop(waiter);
    assert_eq!(probe.alive(), 0);
    drop(held);
    assert_eq!(probe.wakes(), 0);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn l03_a_waiter_cancelled_with_the_release_lets_the_next_have_the_lock() {
    for cancel_first in [true, false] {
        let mutex = Mutex::new(());
        let (b, c) = (Probe::new(), Probe::new());
        let held = mutex.try_lock().unwrap();
        let mut second = Box::pin(mutex.lock());
        let mut third = Box::pin(mutex.lock());
        assert!(poll(&mut second, &b).is_pending());
        assert!(poll(&mut third, &c).is_pending());
        if cancel_first {
            drop(second);
            drop(held);
        } else {
            drop(held);
            drop(second);
        }
        assert_eq!(c.wakes(), 1);
        drop(ready(poll(&mut third, &c)));
    }
}

#[test]
fn l04_just_one_gets_the_lock_of_a_cancelled_waiter() {
    let mutex = Mutex::new(());
    let probes: Vec<_> = (0..3).map(|_| Probe::new()).collect();
    let held = mutex.try_lock().unwrap();
    let mut waiters: Vec<_> = probes
        .iter()
        .map(|probe| {
            let mut waiter = Box::pin(mutex.lock());
            assert!(poll(&mut waiter, probe).is_pending());
            waiter
        })
        .collect();
    drop(held);
    drop(waiters.remove(0));
    let guard = ready(poll(&mut waiters[0], &probes[1]));
    assert!(poll(&mut waiters[1], &probes[2]).is_pending());
    assert_eq!(probes[2].wakes(), 0);
    drop(guard);
    assert_eq!(probes[2].wakes(), 1);
}

#[test]
fn l05_a_lock_handed_to_a_future_that_is_dropped_passes_on() {
    let mutex = Mutex::new(());
    let (a, b) = (Probe::new(), Probe::new());
    let held = mutex.try_lock().unwrap();
    let mut first = Box::pin(mutex.lock());
    let mut second = Box::pin(mutex.lock());
    assert!(poll(&mut first, &a).is_pending());
    assert!(poll(&mut second, &b).is_pending());
    drop(held);
    assert_eq!(a.wakes(), 1);
    assert!(mutex.try_lock().is_err());
    drop(first);
    assert_eq!(b.wakes(), 1);
    drop(ready(poll(&mut second, &b)));

    // And when nobody else waits, it is free.
    let held = mutex.try_lock().unwrap();
    let mut last = Box::pin(mutex.lock());
    assert!(poll(&mut last, &a).is_pending());
    drop(held);
    drop(last);
    assert!(mutex.try_lock().is_ok());
}

/// Rust has no `release`: what locks is a guard, and a guard is there once. It can be taken apart in no other way than by
/// dropping it.
#[test]
fn l06_only_a_guard_releases() {
    let mutex = Mutex::new(1);
    let guard = mutex.try_lock().unwrap();
    let mapped = MutexGuard::map(guard, |value| value);
    assert!(mutex.try_lock().is_err());
    drop(mapped);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn l07_a_guard_locks_its_scope() {
    let mutex = Mutex::new(1);
    {
        let mut guard = ready(poll(&mut Box::pin(mutex.lock()), &Probe::new()));
        *guard += 1;
        assert_eq!(mutex.try_lock().unwrap_err(), TryLockError::new());
    }
    assert_eq!(*mutex.try_lock().unwrap(), 2);
    assert_eq!(mutex.into_inner(), 2);
}

#[test]
fn a_newcomer_does_not_overtake_a_waiter() {
    let mutex = Mutex::new(());
    let (a, b) = (Probe::new(), Probe::new());
    let held = mutex.try_lock().unwrap();
    let mut first = Box::pin(mutex.lock());
    assert!(poll(&mut first, &a).is_pending());
    drop(held);
    // Handed over, though `first` has not been polled.
    let mut newcomer = Box::pin(mutex.lock());
    assert!(poll(&mut newcomer, &b).is_pending());
    assert!(mutex.try_lock().is_err());
    let guard = ready(poll(&mut first, &a));
    drop(guard);
    drop(ready(poll(&mut newcomer, &b)));
}

#[test]
fn a_waiter_that_gets_another_waker_is_woken_by_it() {
    let mutex = Mutex::new(());
    let (old, new) = (Probe::new(), Probe::new());
    let held = mutex.try_lock().unwrap();
    let mut waiter = Box::pin(mutex.lock());
    assert!(poll(&mut waiter, &old).is_pending());
    assert!(poll(&mut waiter, &old).is_pending());
    assert!(poll(&mut waiter, &new).is_pending());
    assert_eq!(old.alive(), 0);
    drop(held);
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
    drop(ready(poll(&mut waiter, &new)));
    assert_eq!(new.alive(), 0);
}

#[test]
fn a_panic_under_the_lock_unlocks_it() {
    let mutex = Mutex::new(0);
    let probe = Probe::new();
    let mut waiter = Box::pin(mutex.lock());
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = mutex.try_lock().unwrap();
        assert!(poll(&mut waiter, &probe).is_pending());
        *guard = 1;
        panic!("under the lock");
    }));
    assert!(result.is_err());
    assert_eq!(*ready(poll(&mut waiter, &probe)), 1);
}

#[test]
fn a_panic_in_map_unlocks() {
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.try_lock().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| {
        drop(MutexGuard::map(guard, |_| -> &mut u8 { panic!("in map") }));
    }));
    assert!(result.is_err());
    let guard = mutex.clone().try_lock_owned().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| {
        drop(OwnedMutexGuard::map(guard, |_| -> &mut u8 {
            panic!("in map")
        }));
    }));
    assert!(result.is_err());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn guards_of_parts_hold_the_lock() {
    let mutex = Arc::new(Mutex::new((1, String::from("a"))));
    let mut part = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.1);
    part.push('b');
    assert!(mutex.try_lock().is_err());
    let part = MappedMutexGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    let part = MappedMutexGuard::map(part, String::as_mut_str);
    assert_eq!(&*part, "ab");
    drop(part);
    let whole = MutexGuard::try_map(mutex.try_lock().unwrap(), |_| None::<&mut u8>).unwrap_err();
    assert!(std::ptr::eq(MutexGuard::mutex(&whole), &*mutex));
    drop(whole);

    let whole = mutex.clone().try_lock_owned().unwrap();
    assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&whole), &mutex));
    assert!(mutex.clone().try_lock_owned().is_err());
    let whole = OwnedMutexGuard::try_map(whole, |_| None::<&mut u8>).unwrap_err();
    let mut part = OwnedMutexGuard::map(whole, |pair| &mut pair.0);
    *part += 1;
    let part = OwnedMappedMutexGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    let part = OwnedMappedMutexGuard::map(part, |part| part);
    assert_eq!(*part, 2);
    assert_eq!(Arc::strong_count(&mutex), 2);
    drop(part);
    assert_eq!(Arc::strong_count(&mutex), 1);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn an_owned_guard_keeps_the_value_and_the_future_lets_go_of_it() {
    let mutex = Arc::new(Mutex::new(String::from("a")));
    let probe = Probe::new();
    let held = mutex.clone().try_lock_owned().unwrap();
    let mut waiter = Box::pin(mutex.clone().lock_owned());
    assert!(poll(&mut waiter, &probe).is_pending());
    drop(mutex);
    drop(held);
    let guard = ready(poll(&mut waiter, &probe));
    let weak = Arc::downgrade(OwnedMutexGuard::mutex(&guard));
    // The future is over: it keeps nothing.
    drop(waiter);
    assert_eq!(&*guard, "a");
    drop(guard);
    assert_eq!(weak.strong_count(), 0);
}

#[test]
fn wakers_run_without_the_lock() {
    limited(|| {
        let mutex = Arc::new(Mutex::new(()));
        let probe = Probe::new();
        let seen = Arc::new(AtomicUsize::new(0));
        let held = mutex.try_lock().unwrap();
        let mut waiter = Box::pin(mutex.lock());
        let (inside, counter) = (mutex.clone(), seen.clone());
        let look = move || {
            // Gets in line and leaves it: would hang if the queue were locked.
            let mut other = Box::pin(inside.lock());
            assert!(poll(&mut other, &Probe::new()).is_pending());
            counter.fetch_add(1, SeqCst);
        };
        once(&probe.on_clone, look.clone());
        once(&probe.on_wake, look.clone());
        once(&probe.on_drop, look.clone());
        assert!(poll(&mut waiter, &probe).is_pending());
        // The clone, and the drop of the waker that was polled with.
        assert_eq!(seen.load(SeqCst), 2);
        drop(held);
        assert_eq!(seen.load(SeqCst), 3);
        // A stale waker that is replaced, and one whose future goes.
        let held = ready(poll(&mut waiter, &probe));
        let mut waiter = Box::pin(mutex.lock());
        assert!(poll(&mut waiter, &probe).is_pending());
        once(&probe.on_drop, look.clone());
        assert!(poll(&mut waiter, &Probe::new()).is_pending());
        assert_eq!(seen.load(SeqCst), 4);
        let mut other = Box::pin(mutex.lock());
        assert!(poll(&mut other, &probe).is_pending());
        once(&probe.on_drop, look);
        drop(other);
        assert_eq!(seen.load(SeqCst), 5);
        drop((waiter, held));
    });
}

#[test]
fn a_guard_may_go_on_another_thread() {
    limited(|| {
        let mutex = Arc::new(Mutex::new(1));
        let guard = mutex.clone().try_lock_owned().unwrap();
        let waiting = mutex.clone();
        let (waits, told) = mpsc::channel();
        let waiter = thread::spawn(move || {
            let mut lock = Box::pin(waiting.lock());
            assert!(poll(&mut lock, &Probe::new()).is_pending());
            waits.send(()).unwrap();
            *crate::blocking::block_on(lock)
        });
        told.recv().unwrap();
        thread::spawn(move || {
            let mut guard = guard;
            *guard = 2;
        })
        .join()
        .unwrap();
        assert_eq!(waiter.join().unwrap(), 2);

        let guard = mutex.try_lock().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || drop(guard));
        });
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn blocking_lock_waits_for_the_holder() {
    limited(|| {
        let mutex = Arc::new(Mutex::new(0));
        let held = mutex.clone().blocking_lock_owned();
        let (started, told) = mpsc::channel();
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let (mutex, started) = (mutex.clone(), started.clone());
                thread::spawn(move || {
                    started.send(()).unwrap();
                    if i % 2 == 0 {
                        *mutex.blocking_lock() += 1;
                    } else {
                        *mutex.blocking_lock_owned() += 1;
                    }
                })
            })
            .collect();
        for _ in 0..4 {
            told.recv().unwrap();
        }
        drop(held);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*mutex.blocking_lock(), 4);
    });
}

#[test]
fn blocking_lock_in_a_task_says_what_to_do() {
    let mutex = Arc::new(Mutex::new(0));
    let saved = coop::start();
    let borrowed = catch_unwind(AssertUnwindSafe(|| drop(mutex.blocking_lock())));
    let owned = catch_unwind(AssertUnwindSafe(|| {
        drop(mutex.clone().blocking_lock_owned());
    }));
    coop::restore(saved);
    for result in [borrowed, owned] {
        let payload = result.unwrap_err();
        let text = payload.downcast_ref::<String>().unwrap();
        assert!(
            text.contains("inside a task") && text.contains("await `lock"),
            "{text}"
        );
    }
    drop(mutex.blocking_lock());
}

#[test]
fn ten_thousand_locks_yield_at_least_once() {
    let mutex = Arc::new(Mutex::new(0));
    ten_thousand_yield(|number, probe| {
        if number % 2 == 0 {
            poll(&mut Box::pin(mutex.lock()), probe).map(|mut count| *count += 1)
        } else {
            poll(&mut Box::pin(mutex.clone().lock_owned()), probe).map(|mut count| *count += 1)
        }
    });
    assert_eq!(mutex.try_lock().map(|count| *count).unwrap(), 10_000);
}

#[test]
fn a_task_that_waits_records_where() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock().unwrap();
    let (line, mut waiter) = (line!(), Box::pin(mutex.lock()));
    assert!(poll(&mut waiter, &Probe::new()).is_pending());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Lock);
    assert_eq!(wait.site.map(|site| site.line()), Some(line));
    drop(held);
}

#[test]
fn a_future_that_is_over_says_so() {
    let mutex = Mutex::new(());
    let mut lock = Box::pin(mutex.lock());
    drop(ready(poll(&mut lock, &Probe::new())));
    let again = catch_unwind(AssertUnwindSafe(|| {
        drop(poll(&mut lock, &Probe::new()));
    }));
    assert!(again.is_err());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn what_is_debug_and_default() {
    let mut mutex: Mutex<u8> = Mutex::default();
    *mutex.get_mut() = 3;
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 3 }");
    let guard = mutex.try_lock().unwrap();
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
    assert_eq!(format!("{guard:?} {guard}"), "3 3");
    drop(guard);
    static MUTEX: Mutex<u8> = Mutex::const_new(1);
    assert_eq!(*MUTEX.blocking_lock(), 1);
    let unsized_mutex: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2]));
    assert_eq!(unsized_mutex.blocking_lock().len(), 2);
}

#[test]
fn send_and_sync_bounds() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    // What is `Send` and not `Sync`: a lock makes it `Sync`.
    send::<Mutex<Cell<u8>>>();
    sync::<Mutex<Cell<u8>>>();
    send::<MutexGuard<'_, Cell<u8>>>();
    send::<OwnedMutexGuard<Cell<u8>>>();
    send::<MappedMutexGuard<'_, Cell<u8>>>();
    send::<OwnedMappedMutexGuard<Cell<u8>, Cell<u8>>>();
    send::<Lock<'_, Cell<u8>>>();
    send::<LockOwned<Cell<u8>>>();
    sync::<MutexGuard<'_, u8>>();
    sync::<OwnedMutexGuard<u8>>();
    sync::<MappedMutexGuard<'_, u8>>();
    sync::<OwnedMappedMutexGuard<u8, u8>>();
    sync::<Lock<'_, u8>>();

    // What must not be.
    <MutexGuard<'_, Cell<u8>> as Unsync<_>>::check();
    <OwnedMutexGuard<Cell<u8>> as Unsync<_>>::check();
    <MappedMutexGuard<'_, Cell<u8>> as Unsync<_>>::check();
    <OwnedMappedMutexGuard<u8, Cell<u8>> as Unsync<_>>::check();
    <Mutex<*const u8> as Unsend<_>>::check();
    <Mutex<*const u8> as Unsync<_>>::check();
    <MutexGuard<'_, *const u8> as Unsend<_>>::check();
    <OwnedMutexGuard<*const u8> as Unsend<_>>::check();
    <MappedMutexGuard<'_, *const u8> as Unsend<_>>::check();
    <OwnedMappedMutexGuard<*const u8, u8> as Unsend<_>>::check();
}

/// The value can be replaced through a guard, so a guard of a longer lived type is not one of a shorter lived.
#[test]
fn a_mutex_of_a_borrow() {
    let long = String::from("long");
    let mutex = Mutex::new(long.as_str());
    *mutex.try_lock().unwrap() = "static";
    assert_eq!(*mutex.try_lock().unwrap(), "static");
}
