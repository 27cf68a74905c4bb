//! Models of the live list (`rt/src/scheduler/live.rs`): at shutdown each task ends exactly once, and none is left; whoever
//! walks over the list, task by task in a model, meets those that are there all the while once.
//!
//! Seen to fail: an `insert` into a closed list (`spawn_against_close`: the task is left); an `end_poll` that does not
//! look at `CANCELLED` (the same); no fence at the start of a poll, and a `claim_queued` that does not ask whether the poll
//! has begun (all but the last: two threads at the future); a wake that does not say that no poll has begun since
//! (`a_queue_that_nobody_runs`: the task is left); a `remove` that leaves the cursor alone (`ends_and_a_spawn_against_a_walk`);
//! a walk that shows what is over (`departures_against_a_walk`).
#![cfg(rt_loom)]

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use loom::thread;

use rt::task::JoinHandle;
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::model::model_tasks;
use rt_loom_tests::scheduler::Scheduler;

/// A task that was polled once, and ends with the next poll; and its waker.
fn waiting(scheduler: &Scheduler, drops: &StdArc<AtomicUsize>) -> (JoinHandle<()>, Waker) {
    let stored = StdArc::new(StdMutex::new(None));
    let (slot, guard) = (stored.clone(), CountDrop(drops.clone()));
    let handle = scheduler.spawn(async move {
        let _guard = guard;
        poll_fn(|cx: &mut Context<'_>| {
            let mut slot = slot.lock().unwrap();
            if slot.is_none() {
                *slot = Some(cx.waker().clone());
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    });
    scheduler.run();
    let mut stored = stored.lock().unwrap();
    let waker = stored.replace(Waker::noop().clone()).expect("polled");
    (handle, waker)
}

/// `true`: it ran to its end; `false`: it was told that the runtime closed.
fn ended_well(handle: JoinHandle<()>) -> bool {
    match pin!(handle).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => true,
        Poll::Ready(Err(error)) => {
            assert!(error.is_runtime_closed(), "{error}");
            false
        }
        Poll::Pending => panic!("a task is left"),
    }
}

/// A spawn, and the first poll, against the close: either shutdown finds the task in the list, or the spawn finds the
/// list closed.
#[test]
fn spawn_against_close() {
    model_tasks(3, || {
        let scheduler = Scheduler::listed();
        let drops = StdArc::new(AtomicUsize::new(0));
        let closing = scheduler.clone();
        let closer = thread::spawn(move || closing.shut_down());
        let guard = CountDrop(drops.clone());
        let handle = scheduler.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        scheduler.run();
        closer.join().unwrap();
        assert!(!ended_well(handle));
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(scheduler.living(), 0);
    });
}

/// Spawns from two threads, one of which also runs, against the close. What ends by itself may do so.
#[test]
fn two_spawns_against_close() {
    model_tasks(2, || {
        let scheduler = Scheduler::listed();
        let drops = StdArc::new(AtomicUsize::new(0));
        let (closing, other) = (scheduler.clone(), scheduler.clone());
        let closer = thread::spawn(move || closing.shut_down());
        let guard = CountDrop(drops.clone());
        let spawner = thread::spawn(move || other.spawn(async move { drop(guard) }));
        let guard = CountDrop(drops.clone());
        let handle = scheduler.spawn(async move { drop(guard) });
        scheduler.run();
        closer.join().unwrap();
        let others = spawner.join().unwrap();
        scheduler.run();
        ended_well(handle);
        ended_well(others);
        assert_eq!(drops.load(SeqCst), 2);
        assert_eq!(scheduler.living(), 0);
    });
}

/// A wake against the claim by shutdown: the `Runnable` that comes of it is a shell, or shutdown leaves the task to it.
#[test]
fn wake_against_claim() {
    model_tasks(2, || {
        let scheduler = Scheduler::listed();
        let drops = StdArc::new(AtomicUsize::new(0));
        let (handle, waker) = waiting(&scheduler, &drops);
        let closing = scheduler.clone();
        let closer = thread::spawn(move || closing.shut_down());
        let other = thread::spawn(move || waker.wake());
        scheduler.run();
        closer.join().unwrap();
        other.join().unwrap();
        scheduler.run();
        ended_well(handle);
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(scheduler.living(), 0);
    });
}

/// A task that ends by itself, and leaves the list, against the close that hands it out.
#[test]
fn end_against_close() {
    model_tasks(3, || {
        let scheduler = Scheduler::listed();
        let drops = StdArc::new(AtomicUsize::new(0));
        let guard = CountDrop(drops.clone());
        let handle = scheduler.spawn(async move { drop(guard) });
        let closing = scheduler.clone();
        let closer = thread::spawn(move || closing.shut_down());
        scheduler.run();
        closer.join().unwrap();
        ended_well(handle);
        assert_eq!(drops.load(SeqCst), 1);
        assert_eq!(scheduler.living(), 0);
    });
}

/// A task that was polled before and lies in a queue that nobody turns to any more: the close ends it.
#[test]
fn a_queue_that_nobody_runs() {
    model_tasks(2, || {
        let scheduler = Scheduler::listed();
        let drops = StdArc::new(AtomicUsize::new(0));
        let (handle, waker) = waiting(&scheduler, &drops);
        let other = thread::spawn(move || waker.wake());
        other.join().unwrap();
        scheduler.shut_down();
        assert_eq!(drops.load(SeqCst), 1, "the task is left");
        assert!(!ended_well(handle));
        drop(scheduler.pop());
        assert_eq!(scheduler.living(), 0);
    });
}

/// Tasks end and one is spawned while another thread walks over the list, and then while it is closed.
#[test]
fn ends_and_a_spawn_against_a_walk() {
    model_tasks(2, || {
        let scheduler = Scheduler::listed();
        let wait = || scheduler.spawn(pending::<()>());
        let end = || scheduler.spawn(async {});
        let (first, doomed, last) = (wait(), [end(), end()], wait());
        let walking = scheduler.clone();
        let walker = thread::spawn(move || walking.ids());
        scheduler.run();
        let new = scheduler.spawn(pending::<()>());
        let met = walker.join().unwrap();
        let times = |handle: &JoinHandle<()>| met.iter().filter(|id| **id == handle.id()).count();
        assert_eq!((times(&first), times(&last)), (1, 1));
        assert!(doomed.iter().chain([&new]).all(|handle| times(handle) <= 1));
        scheduler.shut_down();
        scheduler.run();
        assert_eq!(scheduler.living(), 0);
    });
}

/// Tasks that are over and still in the list, which their worker takes out during a walk: the walk meets the one that lives,
/// and none of them.
#[test]
fn departures_against_a_walk() {
    model_tasks(3, || {
        let scheduler = Scheduler::late();
        let drops = StdArc::new(AtomicUsize::new(0));
        let (alive, waker) = waiting(&scheduler, &drops);
        let short: Vec<_> = (0..2).map(|_| scheduler.spawn(async {})).collect();
        let (last, over): (Vec<_>, Vec<_>) = scheduler
            .tasks()
            .into_iter()
            .partition(|task| task.id() == alive.id());
        assert_eq!((scheduler.run(), over.len()), (2, 2));
        drop(short);
        let worker = scheduler.clone();
        let worker = thread::spawn(move || worker.clean_up(over));
        assert_eq!(scheduler.ids(), [alive.id()]);
        worker.join().unwrap();
        assert_eq!(scheduler.ids(), [alive.id()]);
        scheduler.shut_down();
        assert!(!ended_well(alive));
        drop(waker);
        scheduler.clean_up(last);
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// Whoever sees the end of a task does not find it in the list afterwards, though it is still there.
#[test]
fn what_is_over_is_not_shown() {
    model_tasks(3, || {
        let scheduler = Scheduler::late();
        let handle = scheduler.spawn(async {});
        let over = scheduler.tasks();
        let worker = scheduler.clone();
        let worker = thread::spawn(move || {
            worker.run();
            worker.clean_up(over);
        });
        if handle.is_finished() {
            assert_eq!(scheduler.living(), 0);
        }
        worker.join().unwrap();
        assert_eq!(scheduler.living(), 0);
    });
}
