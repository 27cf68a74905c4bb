//! `JoinHandle::on_done`.

use std::future::pending;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread;

use rt::runtime::{Builder, Runtime};
use rt::task::{Done, JoinHandle, LocalSet, Outcome, spawn_local, yield_now};

use crate::support::within_limit;

fn runtimes() -> [Runtime; 2] {
    let current = Builder::new_current_thread().build().expect("a runtime");
    let multi = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime");
    [current, multi]
}

fn tell<T: Send + 'static>(to: &Sender<T>, what: T) -> impl FnOnce(&Done) + Send + 'static {
    let to = to.clone();
    move |_| to.send(what).expect("somebody listens")
}

#[test]
fn callbacks_run_once_and_in_the_order_of_their_registration() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let (to, told) = mpsc::channel();
                let (go, gone) = rt::sync::oneshot::channel::<()>();
                let task = rt::spawn(async { gone.await.expect("sent") });
                for n in 0..10 {
                    task.on_done(tell(&to, n));
                }
                go.send(()).expect("the task waits");
                task.await.expect("no panic");
                drop(to);
                assert_eq!(told.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
            });
        }
    });
}

#[test]
fn a_callback_on_a_task_that_is_over_runs_before_the_call_returns() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let mut task = rt::spawn(async { 5 });
                assert_eq!((&mut task).await.expect("no panic"), 5);
                let (to, told) = mpsc::channel();
                task.on_done(move |done| to.send(done.outcome()).expect("somebody listens"));
                // Also when the output has been taken.
                assert_eq!(told.try_recv(), Ok(Outcome::Returned));
            });
        }
    });
}

#[test]
fn a_callback_is_told_how_the_task_ended_and_which_it_was() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let (to, told) = mpsc::channel();
                let note = |task: JoinHandle<()>| {
                    let to = to.clone();
                    task.on_done(move |done| {
                        let name = done.name().map(str::to_owned);
                        to.send((done.id(), name, done.outcome()))
                            .expect("somebody listens");
                    });
                    task
                };
                let named = rt::task::Builder::new().name("named");
                let (returns, panics, aborted) = (
                    note(named.spawn(async {}).expect("spawned")),
                    note(rt::spawn(async { panic!("on purpose") })),
                    note(rt::spawn(pending())),
                );
                let ids = [returns.id(), panics.id(), aborted.id()];
                aborted.abort();
                returns.await.expect("no panic");
                panics.await.expect_err("panics");
                aborted.await.expect_err("aborted");
                drop(to);
                let mut all: Vec<_> = told.iter().collect();
                all.sort_by_key(|(id, ..)| ids.iter().position(|other| other == id));
                let expected = [
                    (ids[0], Some("named".to_owned()), Outcome::Returned),
                    (ids[1], None, Outcome::Panicked),
                    (ids[2], None, Outcome::Cancelled),
                ];
                assert_eq!(all, expected);
            });
        }
    });
}

#[test]
fn a_callback_that_panics_stops_neither_the_others_nor_the_task() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let (to, told) = mpsc::channel();
                let task = rt::spawn(async {
                    yield_now().await;
                    7
                });
                task.on_done(tell(&to, 1));
                task.on_done(|_| panic!("on purpose"));
                task.on_done(tell(&to, 2));
                let mut task = task;
                assert_eq!((&mut task).await.expect("no panic of its own"), 7);
                task.on_done(|_| panic!("on purpose, late"));
                task.on_done(tell(&to, 3));
                drop(to);
                assert_eq!(told.iter().collect::<Vec<_>>(), [1, 2, 3]);
            });
        }
    });
}

#[test]
fn a_callback_may_register_another_which_runs_behind_those_that_were_there() {
    within_limit(|| {
        let [current, _] = runtimes();
        current.block_on(async {
            let (to, told) = mpsc::channel();
            let task = rt::spawn(async {});
            let abort = task.abort_handle();
            let inner = to.clone();
            task.on_done(move |_| {
                abort.on_done(tell(&inner, "third"));
                inner.send("first").expect("somebody listens");
            });
            task.on_done(tell(&to, "second"));
            task.await.expect("no panic");
            drop(to);
            assert_eq!(
                told.iter().collect::<Vec<_>>(),
                ["first", "second", "third"]
            );
        });
    });
}

#[test]
fn callbacks_run_at_shutdown_for_detached_tasks_and_for_blocking_closures() {
    within_limit(|| {
        for runtime in runtimes() {
            let (to, told) = mpsc::channel();
            runtime.spawn(pending::<()>()).on_done({
                let to = to.clone();
                move |done| to.send(done.outcome()).expect("somebody listens")
            });
            runtime.spawn_blocking(|| ()).on_done({
                let to = to.clone();
                move |done| to.send(done.outcome()).expect("somebody listens")
            });
            drop(to);
            runtime.block_on(yield_now());
            drop(runtime);
            let outcomes: Vec<_> = told.iter().collect();
            assert_eq!(outcomes.len(), 2);
            assert!(outcomes.contains(&Outcome::Cancelled));
        }
    });
}

#[test]
fn tasks_of_a_local_set_have_callbacks_too() {
    within_limit(|| {
        let [current, _] = runtimes();
        let (to, told) = mpsc::channel();
        let set = LocalSet::new();
        set.block_on(&current, async {
            let task = spawn_local(async {});
            task.on_done(tell(&to, "ended"));
            task.await.expect("no panic");
            spawn_local(pending::<()>()).on_done(tell(&to, "dropped"));
        });
        drop(to);
        assert_eq!(told.try_recv(), Ok("ended"));
        assert!(told.try_recv().is_err());
        drop(set);
        assert_eq!(told.try_recv(), Ok("dropped"));
    });
}

#[test]
fn a_callback_may_spawn_block_on_a_lock_of_its_own_and_look_at_the_task() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let (to, told) = rt::sync::oneshot::channel();
                let task = rt::spawn(async {});
                let abort = task.abort_handle();
                task.on_done(move |_| {
                    assert!(abort.is_finished());
                    rt::spawn(async { to.send(()).expect("somebody waits") });
                });
                told.await.expect("the callback spawned");
            });
        }
    });
}

#[test]
fn registration_from_many_threads_against_the_end_loses_none() {
    within_limit(|| {
        let [_, multi] = runtimes();
        for _ in 0..300 {
            let meet = Arc::new(Barrier::new(3));
            let (to, told) = mpsc::channel();
            let ends = meet.clone();
            let task = multi.spawn(async move {
                ends.wait();
            });
            let abort = task.abort_handle();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (meet, to, abort) = (meet.clone(), to.clone(), abort.clone());
                    thread::spawn(move || {
                        meet.wait();
                        for n in 0..3 {
                            abort.on_done(tell(&to, n));
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().expect("no panic");
            }
            drop(to);
            multi.block_on(task).expect("no panic");
            assert_eq!(told.iter().count(), 6);
        }
    });
}
