//! The coop budget as tasks see it, and `yield_now`.

use std::cell::RefCell;
use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_lite::future::block_on;
use rt::task::coop::{
    budget_left, consume_budget, cooperative, has_budget_remaining, unconstrained,
};
use rt::task::{LocalSet, spawn_local, yield_now};

/// How many polls of a task in a set `future` takes.
fn polls<F: Future + 'static>(future: F) -> usize {
    let set = LocalSet::new();
    let count = Rc::new(std::cell::Cell::new(0));
    let to = count.clone();
    drop(set.spawn_local(async move {
        let mut future = pin!(future);
        poll_fn(|cx| {
            to.set(to.get() + 1);
            future.as_mut().poll(cx).map(|_| ())
        })
        .await;
    }));
    block_on(set);
    count.get()
}

#[test]
fn a_loop_that_consumes_budget_gives_way() {
    assert_eq!(polls(async { consume_budget().await }), 1);
    let many = polls(async {
        for _ in 0..1000 {
            consume_budget().await;
        }
    });
    assert_eq!(many, 1000_usize.div_ceil(128));
}

#[test]
fn an_unconstrained_loop_does_not() {
    let once = polls(unconstrained(async {
        for _ in 0..1000 {
            consume_budget().await;
        }
    }));
    assert_eq!(once, 1);
}

#[test]
fn cooperative_makes_a_foreign_future_give_way() {
    let many = polls(async {
        for n in 0..1000 {
            assert_eq!(cooperative(ready(n)).await, n);
        }
    });
    assert_eq!(many, 1000_usize.div_ceil(128));
    // One that waits spends nothing.
    let mut waits = pin!(cooperative(pending::<()>()));
    for _ in 0..1000 {
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
}

#[test]
fn outside_a_task_there_is_no_limit() {
    block_on(async {
        for _ in 0..10_000 {
            consume_budget().await;
        }
        assert!(budget_left() && has_budget_remaining());
    });
}

#[test]
fn the_budget_runs_out_inside_a_task() {
    let set = LocalSet::new();
    block_on(set.run_until(async {
        let task = spawn_local(async {
            for _ in 0..128 {
                assert!(has_budget_remaining());
                consume_budget().await;
            }
            assert!(!has_budget_remaining());
            yield_now().await;
            assert!(has_budget_remaining());
        });
        task.await.expect("no panic");
    }));
}

#[test]
fn yield_now_is_pending_once_and_wakes_its_task() {
    let mut future = pin!(yield_now());
    let mut cx = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut cx).is_pending());
    assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(()));
}

#[test]
fn tasks_that_yield_take_turns() {
    let set = LocalSet::new();
    let log = Rc::new(RefCell::new(Vec::new()));
    for name in ["a", "b", "c"] {
        let log = log.clone();
        drop(set.spawn_local(async move {
            for _ in 0..3 {
                log.borrow_mut().push(name);
                yield_now().await;
            }
        }));
    }
    block_on(set);
    assert_eq!(*log.borrow(), ["a", "b", "c", "a", "b", "c", "a", "b", "c"]);
}
