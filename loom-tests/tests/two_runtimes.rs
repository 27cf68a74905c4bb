//! Two schedulers, each on a thread of its own, whose tasks await each other: no wake is lost between them.
//!
//! The race is the whole way of a wake: a task of one completes and wakes a joiner of the other, whose `Runnable` goes
//! to the queue of its own scheduler, whose thread may be about to sleep (`rt/src/task/`, `rt/src/scheduler/park.rs`).
//!
//! Seen to fail: `Release` for `AcqRel` in `State::complete`; a `store_join_waker` that succeeds after the end; an
//! `end_poll` that does not look at `SCHEDULED` (both models hang).
#![cfg(rt_loom)]

use std::task::{Context, Poll};

use loom::thread;

use rt::task::JoinHandle;
use rt_loom_tests::scheduler::Scheduler;

fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let _ = rt_sync::coop::lift();
        body();
    });
}

fn output<T>(handle: JoinHandle<T>) -> T {
    let mut handle = std::pin::pin!(handle);
    match handle
        .as_mut()
        .poll(&mut Context::from_waker(std::task::Waker::noop()))
    {
        Poll::Ready(output) => output.expect("no panic"),
        Poll::Pending => panic!("not over"),
    }
}

/// Each awaits a task of the other.
#[test]
fn tasks_that_await_each_other() {
    check(2, || {
        let (here, there) = (Scheduler::new(), Scheduler::new());
        let (first, second) = (here.spawn(async { 1 }), there.spawn(async { 2 }));
        let waits_here = here.spawn(async move { second.await.expect("no panic") });
        let waits_there = there.spawn(async move { first.await.expect("no panic") });
        let other = thread::spawn(move || {
            there.run_until(&waits_there);
            output(waits_there)
        });
        here.run_until(&waits_here);
        assert_eq!(output(waits_here), 2);
        assert_eq!(other.join().unwrap(), 1);
    });
}

/// There and back: a task awaits one of the other scheduler, which awaits one of the first.
#[test]
fn a_chain_there_and_back() {
    check(2, || {
        let (here, there) = (Scheduler::new(), Scheduler::new());
        let inner = here.spawn(async { 1 });
        let middle = there.spawn(async move { inner.await.expect("no panic") + 1 });
        let abort = middle.abort_handle();
        let outer = here.spawn(async move { middle.await.expect("no panic") + 1 });
        let end = there.spawn(async move {
            // Keeps the other thread turning until the middle task is over.
            while !abort.is_finished() {
                rt::task::yield_now().await;
                thread::yield_now();
            }
        });
        let other = thread::spawn(move || there.run_until(&end));
        here.run_until(&outer);
        assert_eq!(output(outer), 3);
        other.join().unwrap();
    });
}
