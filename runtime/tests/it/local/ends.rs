//! The end of a `LocalSet` and of its tasks: drops, aborts, panics, and wakes that come too late.

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::thread::ThreadId;

use futures_lite::future::{block_on, or};
use rt::task::{LocalSet, spawn_local, yield_now};

use super::{Gate, counting, drop_thread, poll};
use crate::support::within_limit;

#[test]
fn dropping_the_set_drops_every_future_here_and_ends_the_handles() {
    within_limit(|| {
        let set = LocalSet::new();
        let drops = Arc::default();
        let handles: Vec<_> = (0..200)
            .map(|number| {
                let guard = drop_thread(&drops);
                set.spawn_local(async move {
                    let _guard = guard;
                    if number % 2 == 0 {
                        pending::<()>().await;
                    }
                    yield_now().await;
                    pending::<()>().await;
                })
            })
            .collect();
        block_on(set.run_until(yield_now()));
        drop(set);
        assert_eq!(
            *drops.lock().expect("lock"),
            vec![thread::current().id(); 200]
        );
        for handle in handles {
            let error = block_on(handle).expect_err("no output");
            assert!(error.is_cancelled() && !error.is_aborted(), "{error}");
        }
    });
}

/// The waker brings a `Runnable` to another thread, just when, or after, the set goes: the future stays here.
#[test]
fn a_wake_from_elsewhere_during_or_after_the_drop_drops_nothing_there() {
    within_limit(|| {
        for round in 0..500 {
            let set = LocalSet::new();
            let drops = Arc::default();
            let gates: Vec<_> = (0..4).map(|_| Arc::new(Gate::default())).collect();
            for gate in &gates {
                let gate = gate.clone();
                let guard = drop_thread(&drops);
                drop(set.spawn_local(async move {
                    let _guard = guard;
                    gate.wait().await;
                    pending::<()>().await;
                }));
            }
            block_on(set.run_until(yield_now()));
            let start = Arc::new(Barrier::new(2));
            let other = thread::spawn({
                let (start, gates) = (start.clone(), gates.clone());
                move || {
                    start.wait();
                    gates.iter().for_each(|gate| gate.open());
                }
            });
            start.wait();
            for _ in 0..round % 50 {
                std::hint::spin_loop();
            }
            drop(set);
            other.join().expect("no panic");
            assert_eq!(
                *drops.lock().expect("lock"),
                vec![thread::current().id(); 4]
            );
        }
    });
}

#[test]
fn a_set_that_is_leaked_leaks_its_futures_and_takes_wakes() {
    static LEAKED: AtomicPtr<LocalSet> = AtomicPtr::new(std::ptr::null_mut());
    within_limit(|| {
        let drops: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
        let gate = Arc::new(Gate::default());
        let (to, inner) = (drops.clone(), gate.clone());
        thread::spawn(move || {
            let set = LocalSet::new();
            let guard = drop_thread(&to);
            drop(set.spawn_local(async move {
                let _guard = guard;
                inner.wait().await;
            }));
            block_on(set.run_until(yield_now()));
            // Never dropped, and found by a leak checker.
            LEAKED.store(Box::into_raw(Box::new(set)), SeqCst);
        })
        .join()
        .expect("no panic");
        gate.open();
        assert!(drops.lock().expect("lock").is_empty());
    });
}

#[test]
fn a_destructor_that_spawns_during_the_drop_gets_a_closed_handle() {
    struct Spawns(Arc<Mutex<Option<rt::task::JoinHandle<()>>>>, Rc<Cell<bool>>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let polled = self.1.clone();
            *self.0.lock().expect("lock") = Some(spawn_local(async move { polled.set(true) }));
        }
    }
    let set = LocalSet::new();
    let (slot, polled) = (Arc::default(), Rc::new(Cell::new(false)));
    let guard = Spawns(Arc::clone(&slot), polled.clone());
    let neighbour = set.spawn_local(pending::<()>());
    drop(set.spawn_local(async move {
        let _guard = guard;
        pending::<()>().await;
    }));
    block_on(set.run_until(yield_now()));
    drop(set);
    let handle = slot
        .lock()
        .expect("lock")
        .take()
        .expect("the destructor ran");
    assert!(handle.is_finished() && neighbour.is_finished());
    assert!(block_on(handle).is_err_and(|error| error.is_runtime_closed()));
    assert!(!polled.get());
    assert_eq!(Rc::strong_count(&polled), 1);
}

#[test]
fn a_destructor_that_wakes_and_aborts_its_neighbours_during_the_drop() {
    struct Meddles(Vec<rt::task::AbortHandle>, Arc<Gate>);
    impl Drop for Meddles {
        fn drop(&mut self) {
            self.0.iter().for_each(rt::task::AbortHandle::abort);
            self.1.open();
        }
    }
    let set = LocalSet::new();
    let gate = Arc::new(Gate::default());
    let drops = Arc::default();
    let handles: Vec<_> = (0..5)
        .map(|_| {
            let (gate, guard) = (gate.clone(), drop_thread(&drops));
            set.spawn_local(async move {
                let _guard = guard;
                gate.wait().await;
            })
        })
        .collect();
    let meddler = Meddles(
        handles
            .iter()
            .map(rt::task::JoinHandle::abort_handle)
            .collect(),
        gate,
    );
    drop(set.spawn_local(async move {
        let _meddler = meddler;
        pending::<()>().await;
    }));
    block_on(set.run_until(yield_now()));
    drop(set);
    assert_eq!(drops.lock().expect("lock").len(), 5);
    assert!(handles.iter().all(rt::task::JoinHandle::is_finished));
}

#[test]
fn a_panic_in_a_task_is_its_own() {
    let set = LocalSet::new();
    let (bad, good) = block_on(set.run_until(async {
        let bad = spawn_local(async { panic!("boom") });
        let good = spawn_local(async { 1 });
        (bad.await, good.await)
    }));
    let bad: Result<(), _> = bad;
    assert!(bad.is_err_and(|error| error.is_panic() && error.to_string().contains("boom")));
    assert_eq!(good.expect("no panic"), 1);
}

#[test]
fn panics_in_destructors_do_not_keep_the_set_from_dropping_the_rest() {
    struct PanicDrop;
    impl Drop for PanicDrop {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let set = LocalSet::new();
    let drops = Arc::default();
    for _ in 0..3 {
        let (guard, bad) = (drop_thread(&drops), PanicDrop);
        drop(set.spawn_local(async move {
            let (_guard, _bad) = (guard, bad);
            pending::<()>().await;
        }));
    }
    block_on(set.run_until(yield_now()));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(set))).is_ok());
    assert_eq!(drops.lock().expect("lock").len(), 3);
}

#[test]
fn a_root_that_panics_leaves_the_set_usable() {
    let set = LocalSet::new();
    let task = set.spawn_local(async { 7 });
    let root = catch_unwind(AssertUnwindSafe(|| {
        block_on(set.run_until(async { panic!("root") }))
    }));
    assert!(root.is_err());
    assert_eq!(block_on(set.run_until(task)).expect("no panic"), 7);
}

#[test]
fn a_driver_that_ends_hands_the_set_to_another() {
    let set = LocalSet::new();
    let gate = Arc::new(Gate::default());
    let task = set.spawn_local({
        let gate = gate.clone();
        async move { gate.wait().await }
    });
    let ((first, first_waker), (second, second_waker)) = (counting(), counting());
    let mut waits = pin!(set.run_until(task));
    assert!(poll(waits.as_mut(), &first_waker).is_pending());
    {
        let mut short = pin!(set.run_until(pending::<()>()));
        assert!(poll(short.as_mut(), &second_waker).is_pending());
    }
    // The second driver is gone. It had the set's waker, so the first is asked to take over.
    assert_eq!((first.0.load(SeqCst), second.0.load(SeqCst)), (1, 0));
    assert!(poll(waits.as_mut(), &first_waker).is_pending());
    gate.open();
    assert_eq!(first.0.load(SeqCst), 2);
    // The root has its turn before the tasks: the end of the task wakes it.
    assert!(poll(waits.as_mut(), &first_waker).is_pending());
    assert_eq!(first.0.load(SeqCst), 3);
    assert!(poll(waits.as_mut(), &first_waker).is_ready());
    drop((first_waker, second_waker));
    assert_eq!(
        (Arc::strong_count(&first), Arc::strong_count(&second)),
        (1, 1)
    );
}

#[test]
fn a_run_that_is_dropped_leaves_its_tasks_and_no_waker() {
    let set = LocalSet::new();
    let task = set.spawn_local(async {
        yield_now().await;
        3
    });
    let (count, waker) = counting();
    {
        let mut run = pin!(set.run_until(pending::<()>()));
        assert!(poll(run.as_mut(), &waker).is_pending());
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
    assert_eq!(
        block_on(or(set.run_until(async { task.await.ok() }), async {
            pending().await
        })),
        Some(3)
    );
}
