//! Models of a task group (`rt/src/task/group/core.rs`), of callbacks for the end of a task, and of the request of a
//! graceful cancel (`rt/src/task/cold.rs`).
//!
//! The thread of the model is the owner, which awaits the scope; another thread polls the children. Where a child is never
//! ended or a wake is lost, the owner hangs, and loom says so.
//!
//! Seen to fail: an owner that does not look at the count after it has registered (`the_last_child_leaves`); a child that
//! joins and ignores `aborting` (`a_child_fails_while_another_joins`); an `add_hook` that does not tell of `COMPLETE` (both
//! models of callbacks); a request that notifies before it sets `asked` (`a_request_while_the_task_begins_to_wait`). Children
//! in no live list crash `a_child_fails_while_another_joins`: see `core.rs`.
#![cfg(rt_loom)]

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use loom::future::block_on;
use loom::thread;

use rt::task::{Outcome, TaskGroup, cancelled};
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::model::model_tasks;
use rt_loom_tests::scheduler::Scheduler;

const LONG: Duration = Duration::from_secs(3600);

/// The last child leaves while the owner begins to wait: it is not missed, and all of the child comes before the end.
#[test]
fn the_last_child_leaves_while_the_owner_begins_to_wait() {
    model_tasks(3, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let guard = CountDrop(drops.clone());
        let (runner, mut thread) = (scheduler.clone(), None);
        let scope = TaskGroup::<Infallible>::scope(|group| {
            let child = scheduler.spawn_into(&group, async move { drop(guard) });
            let child = child.expect("the group is open");
            thread = Some(thread::spawn(move || runner.run_until(&child)));
            ready(())
        });
        assert!(block_on(scope).is_ok());
        assert_eq!(drops.load(SeqCst), 1);
        thread.expect("started").join().unwrap();
    });
}

/// A child ends while the body fails, which aborts it: it is counted once, and nothing of it is left.
#[test]
fn a_child_ends_while_the_group_is_cancelled() {
    model_tasks(2, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let guard = CountDrop(drops.clone());
        let (runner, mut thread) = (scheduler.clone(), None);
        let scope = TaskGroup::<u32>::scope(|group| {
            let child = scheduler.spawn_into(&group, async move { drop(guard) });
            let child = child.expect("the group is open");
            thread = Some(thread::spawn(move || runner.run_until(&child)));
            ready(Err::<(), _>(7))
        });
        let error = block_on(scope).expect_err("the body fails");
        assert_eq!(error.errors().collect::<Vec<_>>(), [&7]);
        assert_eq!(error.failures().len(), 1);
        assert_eq!(drops.load(SeqCst), 1);
        thread.expect("started").join().unwrap();
    });
}

/// A child fails while the body spawns another: the other is refused, or aborted, or over; the body goes, and the owner
/// hears of that one failure.
#[test]
fn a_child_fails_while_another_joins() {
    model_tasks(2, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let guard = CountDrop(drops.clone());
        let (runner, mut thread) = (scheduler.clone(), None);
        let scope = TaskGroup::<u32>::scope(|group| {
            let child = scheduler.spawn_into(&group, ready(Err::<(), _>(7)));
            drop(child.expect("the group is open"));
            // Both threads run what is ready, each until nothing is.
            thread = Some(thread::spawn(move || runner.run()));
            let spawner = scheduler.clone();
            async move {
                // Never polled to its end: it has to be aborted.
                let late = spawner.spawn_into(&group, async move {
                    let _guard = guard;
                    pending::<()>().await;
                });
                drop(late);
                pending::<()>().await;
            }
        });
        let owner = thread::spawn({
            let scheduler = scheduler.clone();
            move || {
                // Whoever is aborted needs one more turn.
                let error = block_on(async {
                    let mut scope = std::pin::pin!(scope);
                    std::future::poll_fn(|cx| {
                        let poll = scope.as_mut().poll(cx);
                        scheduler.run();
                        if poll.is_ready() {
                            return poll;
                        }
                        scope.as_mut().poll(cx)
                    })
                    .await
                })
                .expect_err("a child fails");
                assert_eq!(error.failures().len(), 1);
                assert_eq!(error.errors().collect::<Vec<_>>(), [&7]);
            }
        });
        thread.expect("started").join().unwrap();
        owner.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// A child aborts its group, and so itself, in its first poll, while the owner ends the body and begins to wait.
#[test]
fn a_child_aborts_its_group_in_its_first_poll() {
    model_tasks(2, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let guards = [CountDrop(drops.clone()), CountDrop(drops.clone())];
        let (runner, mut thread) = (scheduler.clone(), None);
        let scope = TaskGroup::<Infallible>::scope(|group| {
            let [own, other] = guards;
            let sleeper = scheduler.spawn_into(&group, async move {
                let _guard = other;
                pending::<()>().await;
            });
            let whole = group.clone();
            let child = scheduler.spawn_into(&group, async move {
                let _guard = own;
                whole.abort_all();
                pending::<()>().await;
            });
            let (sleeper, child) = (sleeper.expect("open"), child.expect("open"));
            thread = Some(thread::spawn(move || {
                runner.run_until(&child);
                runner.run_until(&sleeper);
            }));
            ready(())
        });
        assert!(block_on(scope).is_ok(), "an abort is no failure");
        assert_eq!(drops.load(SeqCst), 2);
        thread.expect("started").join().unwrap();
    });
}

/// The scope is dropped while a child is polled: the child ends soon, and its failure is nobody's.
#[test]
fn the_scope_is_dropped_while_a_child_fails() {
    model_tasks(2, || {
        let (scheduler, drops) = (Scheduler::listed(), StdArc::new(AtomicUsize::new(0)));
        let guard = CountDrop(drops.clone());
        let (runner, mut thread) = (scheduler.clone(), None);
        let scope = TaskGroup::<CountDrop>::scope(|group| {
            let child = scheduler.spawn_into(&group, ready(Err::<(), _>(guard)));
            let child = child.expect("the group is open");
            thread = Some(thread::spawn(move || runner.run_until(&child)));
            pending::<()>()
        });
        drop(scope);
        thread.expect("started").join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// Two callbacks are registered while the task ends: each runs once, in their order, whoever runs them.
#[test]
fn callbacks_are_registered_while_the_task_ends() {
    model_tasks(3, || {
        let scheduler = Scheduler::new();
        let log = StdArc::new(StdMutex::new(Vec::new()));
        let handle = scheduler.spawn(async {});
        let thread = thread::spawn(move || scheduler.run());
        for n in 1..=2 {
            let log = log.clone();
            handle.on_done(move |done| {
                assert_eq!(done.outcome(), Outcome::Returned);
                log.lock().unwrap().push(n);
            });
        }
        thread.join().unwrap();
        assert_eq!(*log.lock().unwrap(), [1, 2]);
    });
}

/// A callback from each of two threads, one of which ends the task in between.
#[test]
fn callbacks_of_two_threads_run_once_each() {
    model_tasks(2, || {
        let scheduler = Scheduler::new();
        let count = StdArc::new(AtomicUsize::new(0));
        let handle = scheduler.spawn(async {});
        let (abort, counter) = (handle.abort_handle(), count.clone());
        let thread = thread::spawn(move || {
            abort.on_done(move |_| {
                counter.fetch_add(1, SeqCst);
            });
            scheduler.run();
        });
        let counter = count.clone();
        handle.on_done(move |_| {
            counter.fetch_add(10, SeqCst);
        });
        thread.join().unwrap();
        assert_eq!(count.load(SeqCst), 11);
    });
}

/// A request against the poll that begins to wait for it: it is not lost.
#[test]
fn a_request_while_the_task_begins_to_wait_for_it() {
    model_tasks(2, || {
        let scheduler = Scheduler::new();
        let handle = scheduler.spawn(async {
            cancelled().await;
            5
        });
        let asks = handle.abort_handle();
        let thread = thread::spawn(move || asks.cancel(LONG));
        scheduler.run_until(&handle);
        thread.join().unwrap();
        assert_eq!(block_on(handle).expect("not aborted"), 5);
    });
}

/// A request against the end of the task, which waits no more: it does no harm, and frees nothing twice.
#[test]
fn a_request_while_the_task_ends() {
    model_tasks(3, || {
        let (scheduler, drops) = (Scheduler::new(), StdArc::new(AtomicUsize::new(0)));
        let guard = CountDrop(drops.clone());
        let handle = scheduler.spawn(async move {
            let _guard = guard;
            futures_poll_once(cancelled()).await;
        });
        let thread = thread::spawn(move || scheduler.run());
        handle.cancel(LONG);
        drop(handle);
        thread.join().unwrap();
        assert_eq!(drops.load(SeqCst), 1);
    });
}

/// Polls once and goes on, so that a waiter has been in the list when it is dropped.
async fn futures_poll_once(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        let _ = future.as_mut().poll(cx);
        std::task::Poll::Ready(())
    })
    .await;
}
