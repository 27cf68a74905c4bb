//! Models of the end of a task that was spawned from outside (`finish_recycling` in `rt/src/task/harness.rs`): it stays in
//! the live list until its worker takes a batch out, and its memory is kept for the next one.
//!
//! The races: whoever holds the handle, an abort handle or a waker drops it, or joins, or the runtime shuts down, while the
//! worker completes the task and parts with it. loom checks every access to output, join waker and scheduler, and that the
//! memory of a task is passed on once, by whoever was the last. Several parties go through the stock itself in `stock.rs`.
//!
//! Seen to fail: `Relaxed` in `ref_dec` (`abort_against_departure`), `Release` or `Acquire` for `AcqRel` in `complete`
//! (`join_against_departure`), a task that departs before its end is told (`part_against_departure_and_spawn`), one reference
//! more or less for the batch (all).
#![cfg(rt_loom)]

use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt::task::{JoinError, JoinHandle};
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::model::model_tasks;
use rt_loom_tests::scheduler::Scheduler;
use rt_sync::primitive::Arc;

/// Runs what is ready, and parts with what is over.
fn work(scheduler: &Scheduler) {
    scheduler.run();
    scheduler.part();
}

/// The task is gone, and its memory is there for the next.
fn gone(scheduler: &Scheduler) {
    scheduler.part();
    assert_eq!((scheduler.kept(), scheduler.living()), (1, 0));
}

/// The task is over, with its output or for this reason; and the handle goes.
fn over(mut handle: JoinHandle<CountDrop>, is_expected: fn(&JoinError) -> bool) {
    match Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(output)) => drop(output),
        Poll::Ready(Err(error)) => assert!(is_expected(&error), "{error}"),
        Poll::Pending => panic!("it is not over"),
    }
}

/// The output is published to the joiner, which may be the last to hold the task.
#[test]
fn join_against_departure() {
    model_tasks(3, || {
        let scheduler = Scheduler::listed();
        let handle = scheduler.spawn_from_outside(async { Arc::new(7) });
        let joiner = thread::spawn(move || *block_on(handle).expect("no panic"));
        work(&scheduler);
        assert_eq!(joiner.join().unwrap(), 7);
        gone(&scheduler);
    });
}

/// The output is dropped once, by the worker or with the handle.
#[test]
fn handle_drop_against_departure() {
    model_tasks(3, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let output = CountDrop(drops.clone());
        let handle = scheduler.spawn_from_outside(async move { output });
        let other = thread::spawn(move || drop(handle));
        work(&scheduler);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        gone(&scheduler);
    });
}

/// An abort handle outlives handle and departure: it frees the task, or the batch does.
#[test]
fn abort_against_departure() {
    model_tasks(3, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let output = CountDrop(drops.clone());
        let handle = scheduler.spawn_from_outside(async move { output });
        let abort = handle.abort_handle();
        let other = thread::spawn(move || abort.abort());
        work(&scheduler);
        over(handle, JoinError::is_cancelled);
        other.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
        gone(&scheduler);
    });
}

/// A waker that is left over is used, and so dropped, while the worker parts with the task.
#[test]
fn wake_against_departure() {
    model_tasks(3, || {
        let scheduler = Scheduler::listed();
        let stored = StdArc::new(StdMutex::new(None));
        let slot = stored.clone();
        let handle = scheduler.spawn_from_outside(std::future::poll_fn(move |cx| {
            *slot.lock().unwrap() = Some(cx.waker().clone());
            Poll::Ready(())
        }));
        drop(handle);
        scheduler.run();
        let waker = stored.lock().unwrap().take().expect("polled");
        let other = thread::spawn(move || waker.wake());
        scheduler.part();
        other.join().unwrap();
        assert_eq!(scheduler.run(), 0);
        gone(&scheduler);
    });
}

/// Shutdown looks at a task that comes to its end, and is over and listed, or parted with.
#[test]
fn shutdown_against_departure() {
    model_tasks(2, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let output = CountDrop(drops.clone());
        let handle = scheduler.spawn_from_outside(async move { output });
        let closing = scheduler.clone();
        let closer = thread::spawn(move || closing.shut_down());
        work(&scheduler);
        closer.join().unwrap();
        scheduler.run();
        over(handle, JoinError::is_runtime_closed);
        assert_eq!(drops.load(SeqCst), 1);
        gone(&scheduler);
    });
}

/// Two workers: one parts with what the other has just completed, and a third spawns into the memory of it.
#[test]
fn part_against_departure_and_spawn() {
    model_tasks(2, || {
        let scheduler = Scheduler::listed();
        drop(scheduler.spawn_from_outside(async {}));
        let worker = scheduler.clone();
        let worker = thread::spawn(move || work(&worker));
        let other = scheduler.clone();
        let other = thread::spawn(move || other.part());
        let second = scheduler.spawn_from_outside(async { Arc::new(7) });
        worker.join().unwrap();
        other.join().unwrap();
        work(&scheduler);
        assert_eq!(*block_on(second).expect("no panic"), 7);
        scheduler.part();
        assert_eq!(scheduler.living(), 0);
        assert!((1..=2).contains(&scheduler.kept()));
    });
}
