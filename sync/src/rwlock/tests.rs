use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::coop;
use crate::testing::{
    Probe, Unsend, Unsync, limited, poll_boxed as poll, ready, ten_thousand_yield,
};
use crate::wait;

#[test]
fn many_read_and_one_writes() {
    let lock = RwLock::new(1);
    let probe = Probe::new();
    let one = ready(poll(&mut Box::pin(lock.read()), &probe));
    let two = lock.try_read().unwrap();
    assert_eq!(*one + *two, 2);
    assert!(lock.try_write().is_err());
    drop((one, two));
    let mut write = ready(poll(&mut Box::pin(lock.write()), &probe));
    *write = 2;
    assert!(lock.try_read().is_err());
    assert!(lock.try_write().is_err());
    drop(write);
    assert_eq!(*lock.try_read().unwrap(), 2);
    assert_eq!(lock.into_inner(), 2);
}

#[test]
fn readers_do_not_overtake_a_writer_that_waits() {
    let lock = RwLock::new(());
    let (w, r) = (Probe::new(), Probe::new());
    let reading = lock.try_read().unwrap();
    let mut write = Box::pin(lock.write());
    assert!(poll(&mut write, &w).is_pending());
    assert!(lock.try_read().is_err());
    let mut readers: Vec<_> = (0..3).map(|_| Box::pin(lock.read())).collect();
    for reader in &mut readers {
        assert!(poll(reader, &r).is_pending());
    }
    let mut second = Box::pin(lock.write());
    assert!(poll(&mut second, &w).is_pending());
    drop(reading);
    assert_eq!((w.wakes(), r.wakes()), (1, 0));
    drop(ready(poll(&mut write, &w)));
    // All readers up to the next writer, and not that one.
    assert_eq!((w.wakes(), r.wakes()), (1, 3));
    let guards: Vec<_> = readers
        .iter_mut()
        .map(|reader| ready(poll(reader, &r)))
        .collect();
    assert!(poll(&mut second, &w).is_pending());
    drop(guards);
    assert_eq!(w.wakes(), 2);
    drop(ready(poll(&mut second, &w)));
    assert_eq!((w.alive(), r.alive()), (0, 0));
}

#[test]
fn a_writer_that_gives_up_lets_readers_in() {
    let lock = RwLock::new(());
    let probe = Probe::new();
    let reading = lock.try_read().unwrap();
    let mut write = Box::pin(lock.write());
    assert!(poll(&mut write, &probe).is_pending());
    let mut read = Box::pin(lock.read());
    assert!(poll(&mut read, &probe).is_pending());
    drop(write);
    assert_eq!((probe.wakes(), probe.alive()), (1, 0));
    let other = ready(poll(&mut read, &probe));
    assert!(lock.try_read().is_ok());
    drop((reading, other));
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_lock_granted_to_a_future_that_is_dropped_passes_on() {
    let lock = RwLock::new(());
    let (a, b) = (Probe::new(), Probe::new());
    let held = lock.try_write().unwrap();
    let mut write = Box::pin(lock.write());
    let mut read = Box::pin(lock.read());
    assert!(poll(&mut write, &a).is_pending());
    assert!(poll(&mut read, &b).is_pending());
    drop(held);
    assert_eq!((a.wakes(), b.wakes()), (1, 0));
    drop(write);
    assert_eq!(b.wakes(), 1);
    drop(read);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_downgraded_writer_lets_readers_in_and_no_writer() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let probe = Probe::new();
    let mut writing = lock.try_write().unwrap();
    let mut read = Box::pin(lock.read());
    let mut write = Box::pin(lock.write());
    assert!(poll(&mut read, &probe).is_pending());
    assert!(poll(&mut write, &probe).is_pending());
    writing.0 = 3;
    let downgraded = writing.downgrade();
    assert_eq!(probe.wakes(), 1);
    let reader = ready(poll(&mut read, &probe));
    assert_eq!((downgraded.0, reader.0), (3, 3));
    drop(reader);
    assert!(poll(&mut write, &probe).is_pending());
    drop(downgraded);
    drop(ready(poll(&mut write, &probe)));

    let part = RwLockWriteGuard::downgrade_map(lock.try_write().unwrap(), |pair| &pair.1);
    assert_eq!((*part, lock.try_read().unwrap().0), (2, 3));
    drop(part);
    let writing = lock.try_write().unwrap();
    let writing = RwLockWriteGuard::try_downgrade_map(writing, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_read().is_err());
    let part = RwLockWriteGuard::try_downgrade_map(writing, |pair| Some(&pair.0)).unwrap();
    assert_eq!(*part, 3);
    drop(part);

    let writing = lock.clone().try_write_owned().unwrap();
    let reading = writing.downgrade();
    assert_eq!(lock.try_read().unwrap().0, reading.0);
    drop(reading);
    let writing = lock.clone().try_write_owned().unwrap();
    let part = OwnedRwLockWriteGuard::downgrade_map(writing, |pair| &pair.1);
    assert!(lock.try_read().is_ok());
    drop(part);
    let writing = lock.clone().try_write_owned().unwrap();
    let writing = OwnedRwLockWriteGuard::try_downgrade_map(writing, |_| None::<&u8>).unwrap_err();
    let part = OwnedRwLockWriteGuard::try_downgrade_map(writing, |pair| Some(&pair.0)).unwrap();
    assert!(lock.try_read().is_ok());
    drop(part);
    assert!(lock.try_write().is_ok());
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn guards_of_parts_hold_the_lock() {
    let lock = Arc::new(RwLock::new((1, String::from("a"))));
    let part = RwLockReadGuard::map(lock.try_read().unwrap(), |pair| &pair.1);
    let part = RwLockReadGuard::try_map(part, |_| None::<&u8>).unwrap_err();
    let part = RwLockReadGuard::try_map(part, |text| Some(text.as_str())).unwrap();
    assert_eq!(&*part, "a");
    assert!(lock.try_write().is_err());
    drop(part);

    let part = RwLockWriteGuard::map(lock.try_write().unwrap(), |pair| &mut pair.1);
    let part = RwLockMappedWriteGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    let mut part = RwLockMappedWriteGuard::map(part, |text| text);
    part.push('b');
    assert!(lock.try_read().is_err());
    drop(part);
    let writing =
        RwLockWriteGuard::try_map(lock.try_write().unwrap(), |_| None::<&mut u8>).unwrap_err();
    let whole = RwLockWriteGuard::into_mapped(writing);
    assert_eq!(whole.1, "ab");
    drop(whole);

    let part = OwnedRwLockReadGuard::map(lock.clone().try_read_owned().unwrap(), |pair| &pair.1);
    let part = OwnedRwLockReadGuard::try_map(part, |_| None::<&u8>).unwrap_err();
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&part), &lock));
    assert!(lock.try_write().is_err());
    drop(part);

    let writing = lock.clone().try_write_owned().unwrap();
    assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&writing), &lock));
    let writing = OwnedRwLockWriteGuard::try_map(writing, |_| None::<&mut u8>).unwrap_err();
    let part = OwnedRwLockWriteGuard::map(writing, |pair| &mut pair.1);
    assert!(Arc::ptr_eq(
        OwnedRwLockMappedWriteGuard::rwlock(&part),
        &lock
    ));
    let part = OwnedRwLockMappedWriteGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    let mut part = OwnedRwLockMappedWriteGuard::map(part, |text| text);
    part.push('c');
    drop(part);
    let whole = OwnedRwLockWriteGuard::into_mapped(lock.clone().try_write_owned().unwrap());
    assert_eq!(whole.1, "abc");
    drop(whole);
    assert!(lock.try_write().is_ok());
    assert_eq!(Arc::strong_count(&lock), 1);
}

#[test]
fn panics_unlock() {
    let lock = Arc::new(RwLock::new(0));
    let written = catch_unwind(AssertUnwindSafe(|| {
        let mut write = lock.try_write().unwrap();
        *write = 1;
        panic!("under the lock");
    }));
    assert!(written.is_err());
    let read = lock.try_read().unwrap();
    let mapped = catch_unwind(AssertUnwindSafe(|| {
        drop(RwLockReadGuard::map(read, |_| -> &u8 { panic!("in map") }));
    }));
    assert!(mapped.is_err());
    let write = lock.try_write().unwrap();
    let mapped = catch_unwind(AssertUnwindSafe(|| {
        drop(RwLockWriteGuard::downgrade_map(write, |_| -> &u8 {
            panic!("in map")
        }));
    }));
    assert!(mapped.is_err());
    let write = lock.clone().try_write_owned().unwrap();
    let mapped = catch_unwind(AssertUnwindSafe(|| {
        drop(OwnedRwLockWriteGuard::map(write, |_| -> &mut u8 {
            panic!("in map")
        }));
    }));
    assert!(mapped.is_err());
    assert_eq!(lock.try_write().map(|value| *value).unwrap(), 1);
}

#[test]
fn readers_have_a_limit() {
    let lock = RwLock::with_max_readers((), 2);
    let probe = Probe::new();
    let one = lock.try_read().unwrap();
    let two = lock.try_read().unwrap();
    let mut third = Box::pin(lock.read());
    assert!(poll(&mut third, &probe).is_pending());
    drop(one);
    let third = ready(poll(&mut third, &probe));
    drop((two, third));
    assert!(lock.try_write().is_ok());
    for refused in [0, u32::MAX] {
        assert!(catch_unwind(|| RwLock::with_max_readers((), refused)).is_err());
    }
}

#[test]
fn threads_block_until_the_lock_is_theirs() {
    limited(|| {
        let lock = Arc::new(RwLock::new(0));
        let (started, told) = mpsc::channel();
        let held = lock.blocking_write();
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let (lock, started) = (lock.clone(), started.clone());
                thread::spawn(move || {
                    started.send(()).unwrap();
                    if i % 2 == 0 {
                        *lock.blocking_write() += 1;
                    } else {
                        assert!(*lock.blocking_read() <= 2);
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
        assert_eq!(*lock.blocking_read(), 2);
    });
}

#[test]
fn blocking_in_a_task_says_what_to_do() {
    let lock = RwLock::new(0);
    let saved = coop::start();
    let read = catch_unwind(AssertUnwindSafe(|| drop(lock.blocking_read())));
    let write = catch_unwind(AssertUnwindSafe(|| drop(lock.blocking_write())));
    coop::restore(saved);
    for (result, hint) in [(read, "await `read`"), (write, "await `write`")] {
        let payload = result.unwrap_err();
        let text = payload.downcast_ref::<String>().unwrap();
        assert!(text.contains(hint), "{text}");
    }
}

#[test]
fn ten_thousand_locks_yield_at_least_once() {
    let lock = Arc::new(RwLock::new(0));
    ten_thousand_yield(|number, probe| match number % 4 {
        0 => poll(&mut Box::pin(lock.read()), probe).map(drop),
        1 => poll(&mut Box::pin(lock.write()), probe).map(drop),
        2 => poll(&mut Box::pin(lock.clone().read_owned()), probe).map(drop),
        _ => poll(&mut Box::pin(lock.clone().write_owned()), probe).map(drop),
    });
}

#[test]
fn a_task_that_waits_records_where() {
    let lock = RwLock::new(());
    let held = lock.try_write().unwrap();
    let (line, mut waiter) = (line!(), Box::pin(lock.read()));
    assert!(poll(&mut waiter, &Probe::new()).is_pending());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Lock);
    assert_eq!(wait.site.map(|site| site.line()), Some(line));
    drop(held);
}

#[test]
fn guards_may_go_on_another_thread() {
    let lock = Arc::new(RwLock::new(1));
    let (read, owned) = (
        lock.try_read().unwrap(),
        lock.clone().try_read_owned().unwrap(),
    );
    thread::scope(|scope| {
        scope.spawn(move || drop((read, owned)));
    });
    let write = lock.clone().try_write_owned().unwrap();
    thread::spawn(move || drop(write)).join().unwrap();
    assert!(lock.try_write().is_ok());
}

#[test]
fn what_is_debug_and_default() {
    let mut lock: RwLock<u8> = RwLock::default();
    *lock.get_mut() = 3;
    assert_eq!(format!("{lock:?}"), "RwLock { data: 3 }");
    let guard = lock.try_write().unwrap();
    assert_eq!(format!("{lock:?}"), "RwLock { data: <locked> }");
    assert_eq!(format!("{guard:?} {guard}"), "3 3");
    drop(guard);
    static LOCK: RwLock<u8> = RwLock::const_new(1);
    assert_eq!(*LOCK.blocking_read(), 1);
    let unsized_lock: Arc<RwLock<[u8]>> = Arc::new(RwLock::new([1, 2]));
    assert_eq!(unsized_lock.blocking_write().len(), 2);
    // A guard of a longer lived type is one of a shorter lived, as for a reference.
    fn shorter<'a>(guard: RwLockReadGuard<'a, &'static str>) -> RwLockReadGuard<'a, &'a str> {
        guard
    }
    let lock = RwLock::new("static");
    assert_eq!(*shorter(lock.try_read().unwrap()), "static");
}

#[test]
fn send_and_sync_bounds() {
    fn send<T: Send>() {}
    fn both<T: Send + Sync>() {}
    send::<RwLock<Cell<u8>>>();
    both::<RwLock<u8>>();
    both::<RwLockReadGuard<'_, u8>>();
    both::<RwLockWriteGuard<'_, u8>>();
    both::<RwLockMappedWriteGuard<'_, u8>>();
    both::<OwnedRwLockReadGuard<u8>>();
    both::<OwnedRwLockWriteGuard<u8>>();
    both::<OwnedRwLockMappedWriteGuard<u8>>();
    both::<Read<'_, u8>>();
    both::<Write<'_, u8>>();
    both::<ReadOwned<u8>>();
    both::<WriteOwned<u8>>();

    // What must not be.
    <RwLock<Cell<u8>> as Unsync<_>>::check();
    <RwLock<*const u8> as Unsend<_>>::check();
    <RwLockReadGuard<'_, Cell<u8>> as Unsend<_>>::check();
    <RwLockReadGuard<'_, Cell<u8>> as Unsync<_>>::check();
    <RwLockWriteGuard<'_, Cell<u8>> as Unsend<_>>::check();
    <RwLockWriteGuard<'_, Cell<u8>> as Unsync<_>>::check();
    <RwLockMappedWriteGuard<'_, Cell<u8>> as Unsync<_>>::check();
    <RwLockMappedWriteGuard<'_, Cell<u8>> as Unsend<_>>::check();
    <OwnedRwLockReadGuard<u8, Cell<u8>> as Unsend<_>>::check();
    <OwnedRwLockReadGuard<Cell<u8>, u8> as Unsend<_>>::check();
    <OwnedRwLockReadGuard<u8, Cell<u8>> as Unsync<_>>::check();
    <OwnedRwLockWriteGuard<Cell<u8>> as Unsend<_>>::check();
    <OwnedRwLockMappedWriteGuard<u8, Cell<u8>> as Unsync<_>>::check();
}
