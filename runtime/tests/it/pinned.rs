//! `spawn_local` inside tasks of `spawn_pinned`: futures that are not `Send`, on the worker of the task.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::Duration;

use rt::runtime::{Builder, Runtime, UnhandledPanic};
use rt::sync::oneshot;
use rt::task::{
    self, AbortHandle, JoinError, JoinHandle, JoinSet, LocalSet, TaskGroup, TaskTracker,
    spawn_local, yield_now,
};
use rt::time::sleep;

use crate::support::within_limit;

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .unhandled_panic(UnhandledPanic::Ignore)
        .build()
        .expect("a runtime")
}

/// Runs a pinned task on worker 0 of a runtime of so many workers.
fn pinned<M, F>(workers: usize, make: M) -> F::Output
where
    M: FnOnce() -> F + Send + 'static,
    F: Future + 'static,
    F::Output: Send + 'static,
{
    within_limit(move || {
        let runtime = runtime(workers);
        let task = runtime.handle().spawn_pinned(0, make).expect("a worker");
        runtime.block_on(task).expect("no panic")
    })
}

/// Tells on which thread it is dropped.
struct Told(mpsc::Sender<ThreadId>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

#[test]
fn local_tasks_share_what_is_not_send_and_stay_on_the_worker() {
    pinned(3, || async {
        let here = thread::current().id();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<JoinHandle<Rc<usize>>> = (0..20)
            .map(|n| {
                let seen = seen.clone();
                spawn_local(async move {
                    sleep(Duration::from_millis(n as u64 % 4)).await;
                    assert_eq!(thread::current().id(), here);
                    // Woken from other threads.
                    let sum = rt::spawn(async move { n }).await.expect("no panic")
                        + rt::spawn_blocking(move || n).await.expect("no panic");
                    assert_eq!(thread::current().id(), here);
                    yield_now().await;
                    assert_eq!(thread::current().id(), here);
                    seen.borrow_mut().push(n);
                    Rc::new(sum)
                })
            })
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            assert_eq!(*task.await.expect("no panic"), 2 * n);
        }
        seen.borrow_mut().sort_unstable();
        assert_eq!(*seen.borrow(), (0..20).collect::<Vec<_>>());
    });
}

#[test]
fn local_tasks_spawn_local_tasks_and_so_does_the_closure() {
    let depth = pinned(2, || {
        let first = spawn_local(async { 1 });
        async move {
            let second = spawn_local(async {
                let third = spawn_local(async { Rc::new(1) });
                1 + *third.await.expect("no panic")
            });
            first.await.expect("no panic") + second.await.expect("no panic")
        }
    });
    assert_eq!(depth, 3);
}

#[test]
fn local_tasks_outlive_the_task_that_spawned_them() {
    within_limit(|| {
        let runtime = runtime(2);
        let (sender, receiver) = oneshot::channel();
        let (told, tell) = oneshot::channel();
        let first = runtime.handle().spawn_pinned(1, move || async move {
            let here = thread::current().id();
            drop(spawn_local(async move {
                let value = receiver.await.expect("sent");
                let _ = told.send((value, thread::current().id() == here));
            }));
        });
        let first = first.expect("a worker");
        runtime.block_on(async {
            first.await.expect("no panic");
            sender.send(7).expect("it waits");
            assert_eq!(tell.await, Ok((7, true)));
        });
    });
}

#[test]
fn abort_from_another_thread_drops_the_future_on_the_worker() {
    within_limit(|| {
        let runtime = runtime(2);
        let (handles, aborts) = mpsc::channel::<(AbortHandle, ThreadId)>();
        let (dropped, drops) = mpsc::channel();
        let task = runtime.handle().spawn_pinned(0, move || async move {
            let told = Told(dropped);
            let waiting = spawn_local(async move {
                let _told = told;
                pending::<()>().await;
            });
            let _ = handles.send((waiting.abort_handle(), thread::current().id()));
            waiting.await.expect_err("aborted").is_cancelled()
        });
        let task = task.expect("a worker");
        let (abort, worker) = aborts.recv().expect("spawned");
        abort.abort();
        assert!(runtime.block_on(task).expect("no panic"));
        assert_eq!(drops.recv(), Ok(worker));
        assert!(abort.is_finished());
    });
}

#[test]
fn a_panic_is_the_local_tasks_own() {
    pinned(1, || async {
        let bad = spawn_local(async { panic!("of a local task") });
        let error: JoinError = bad.await.expect_err("it panicked");
        assert!(error.is_panic());
        let payload = error.into_panic();
        assert_eq!(payload.downcast_ref(), Some(&"of a local task"));
        // The worker, and the right to spawn on it, are as before.
        assert_eq!(
            *spawn_local(async { Rc::new(3) }).await.expect("no panic"),
            3
        );
    });
}

#[test]
fn the_end_of_the_runtime_drops_local_tasks_on_the_worker() {
    within_limit(|| {
        let runtime = runtime(2);
        let (dropped, drops) = mpsc::channel();
        let (started, start) = mpsc::channel();
        let (ended, end) = mpsc::channel();
        let task = runtime.handle().spawn_pinned(0, move || async move {
            let told = Told(dropped.clone());
            let waiting = spawn_local(async move {
                let _told = told;
                pending::<()>().await;
            });
            // Ends with it: its destructor runs on the worker too, and spawns.
            let _late = OnDrop(Some(move || {
                let told = Told(dropped);
                let mut late = spawn_local(async move {
                    let _told = told;
                });
                let _ = ended.send(
                    now(&mut late)
                        .expect("over at once")
                        .map_err(|error| (error.is_cancelled(), error.to_string())),
                );
            }));
            let _ = started.send((thread::current().id(), waiting));
            pending::<()>().await;
        });
        let task = task.expect("a worker");
        let (worker, mut waiting) = start.recv().expect("it runs");
        drop(runtime);
        let error = now(&mut waiting).expect("over").expect_err("closed");
        assert!(error.is_runtime_closed(), "{error}");
        let late = end.recv().expect("the destructor ran");
        assert!(late.is_err(), "{late:?}");
        assert_eq!(drops.try_iter().collect::<Vec<_>>(), [worker; 2]);
        drop(task);
    });
}

struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// What a handle has to say without waiting.
fn now<T>(handle: &mut JoinHandle<T>) -> Option<Result<T, JoinError>> {
    match Pin::new(handle).poll(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[test]
fn destructors_of_pinned_and_local_futures_may_spawn() {
    pinned(1, || async {
        for aborted in [false, true] {
            let (sender, receiver) = oneshot::channel();
            let on_drop = OnDrop(Some(move || {
                spawn_local(async move {
                    let _ = sender.send(());
                });
            }));
            let task = spawn_local(async move {
                let _on_drop = on_drop;
                if aborted {
                    pending::<()>().await;
                }
            });
            yield_now().await;
            task.abort();
            assert_eq!(receiver.await, Ok(()));
            assert_eq!(task.await.is_err(), aborted);
        }
    });
}

#[test]
fn a_destructor_that_panics_costs_no_output() {
    pinned(1, || async {
        let mut kept = Some(OnDrop(Some(|| panic!("of a destructor"))));
        // It has the value until it is dropped, which is after it has given its output.
        let task = spawn_local(poll_fn(move |_| {
            let _here = &mut kept;
            Poll::Ready(2)
        }));
        assert_eq!(task.await.expect("the output is there"), 2);
        assert_eq!(spawn_local(async { 3 }).await.expect("no panic"), 3);
    });
}

#[test]
fn a_task_that_is_not_pinned_has_no_place_for_it() {
    within_limit(|| {
        let runtime = runtime(1);
        let task = runtime.spawn(async {
            catch_unwind(AssertUnwindSafe(|| drop(spawn_local(async {}))))
                .expect_err("it panics")
                .downcast::<&str>()
                .expect("a message")
        });
        // Also after a pinned task has run on the same thread.
        let first = runtime.handle().spawn_pinned(0, || spawn_local(async {}));
        runtime
            .block_on(first.expect("a worker"))
            .expect("no panic")
            .expect("no panic");
        let message = runtime.block_on(task).expect("no panic");
        assert!(message.contains("rt::spawn_pinned"), "{message}");
    });
}

/// Else it would wait for its own thread, and tasks that happen to be polled there would end up on this worker.
#[test]
fn block_on_below_a_pinned_task_is_no_place_for_it() {
    pinned(2, || async {
        let here = thread::current().id();
        let (inner, other) = (rt::runtime::Handle::current(), runtime(1));
        let is_refused = || catch_unwind(AssertUnwindSafe(|| drop(spawn_local(async {})))).is_err();
        rt::task::block_in_place(|| {
            inner.block_on(async { assert!(is_refused()) });
            other.block_on(async {
                assert!(is_refused());
                let set = LocalSet::new();
                set.run_until(async { spawn_local(async {}).await.expect("no panic") })
                    .await;
            });
            drop(other);
            // Not in `block_on`.
            assert!(!is_refused());
        });
        let thread = spawn_local(async { thread::current().id() }).await;
        assert_eq!(thread.expect("no panic"), here);
    });
}

#[test]
fn a_set_inside_a_pinned_task_comes_first() {
    pinned(1, || async {
        let set = LocalSet::new();
        let task = {
            let _entered = set.enter();
            spawn_local(async {})
        };
        let own = spawn_local(async {});
        own.await.expect("no panic");
        // The worker ran, but nobody has polled the set yet.
        assert!(!task.is_finished());
        set.run_until(task).await.expect("no panic");
    });
}

#[test]
fn groups_sets_trackers_and_builders_spawn_on_the_worker_too() {
    pinned(2, || async {
        let here = thread::current().id();
        let count = Rc::new(Cell::new(0));
        let one = |count: &Rc<Cell<usize>>| {
            let count = count.clone();
            async move {
                yield_now().await;
                assert_eq!(thread::current().id(), here);
                count.set(count.get() + 1);
            }
        };
        TaskGroup::<()>::scope(async |group| {
            drop(group.spawn_local(one(&count)));
            Ok(())
        })
        .await
        .expect("no error");
        assert_eq!(count.get(), 1);

        let mut set = JoinSet::new();
        set.spawn_local(one(&count));
        set.join_next().await.expect("one").expect("no panic");
        assert_eq!(count.get(), 2);

        let tracker = TaskTracker::new();
        drop(tracker.spawn_local(one(&count)));
        tracker.close();
        tracker.wait().await;
        assert_eq!(count.get(), 3);

        let named = task::Builder::new()
            .name("local")
            .spawn_local(async { task::current().name().map(str::to_owned) });
        let name = named.expect("spawned").await.expect("no panic");
        assert_eq!(name.as_deref(), Some("local"));
    });
}

#[test]
fn the_failure_of_a_local_child_cancels_its_group() {
    pinned(1, || async {
        let (dropped, drops) = mpsc::channel();
        let here = thread::current().id();
        let result = TaskGroup::scope(async |group| {
            let told = Told(dropped);
            drop(group.spawn_local(async move {
                let _told = told;
                pending::<Result<(), &str>>().await
            }));
            drop(group.spawn_local(async { Err::<(), _>("failed") }));
            Ok(())
        })
        .await;
        assert!(result.is_err());
        assert_eq!(drops.try_iter().collect::<Vec<_>>(), [here]);
    });
}

#[test]
fn local_tasks_are_among_all_tasks() {
    pinned(2, || async {
        let task = spawn_local(pending::<()>());
        assert!(task::all_tasks().iter().any(|info| info.id() == task.id()));
        task.abort();
        let _ = task.await;
    });
}

/// Neither kind of task may keep the other from its worker, which is the only one.
#[test]
fn tasks_that_are_always_ready_leave_the_others_their_turns() {
    within_limit(|| {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicUsize::new(0));
        let busy = |stop: &Arc<AtomicBool>| {
            let (stop, turns) = (stop.clone(), turns.clone());
            async move {
                while !stop.load(Relaxed) {
                    turns.fetch_add(1, Relaxed);
                    yield_now().await;
                }
            }
        };
        // Two pinned ones wake each other's worker all the time; a stranger's task has to get through the injector.
        for _ in 0..2 {
            let busy = busy(&stop);
            drop(runtime.handle().spawn_pinned(0, || busy).expect("a worker"));
        }
        runtime.block_on(async {
            for n in 0..100 {
                assert_eq!(rt::spawn(async move { n }).await.expect("no panic"), n);
            }
        });
        for _ in 0..100 {
            let (done, ended) = mpsc::channel();
            runtime.spawn(async move { done.send(()) });
            ended.recv().expect("it ran");
        }
        stop.store(true, Relaxed);
        // The other way round: tasks of the queue, and pinned ones.
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..2 {
            runtime.spawn(busy(&stop));
        }
        for _ in 0..100 {
            let task = runtime.handle().spawn_pinned(0, || async { *Rc::new(1) });
            assert_eq!(
                runtime.block_on(task.expect("a worker")).expect("no panic"),
                1
            );
        }
        stop.store(true, Relaxed);
    });
}
