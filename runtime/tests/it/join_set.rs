//! `JoinSet` on a `LocalSet`, which any executor drives: order, counts, cancellation, panics, wakes.

use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use futures_lite::future::{block_on, poll_once};
use rt::task::{JoinSet, LocalSet, yield_now};

use crate::support::within_limit;

/// Runs `body` as the root of a set.
fn run<F: Future>(body: F) -> F::Output {
    let set = LocalSet::new();
    block_on(set.run_until(body))
}

struct CountDrop(Rc<std::cell::Cell<usize>>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn outputs_come_in_the_order_in_which_tasks_end() {
    run(async {
        let mut set = JoinSet::new();
        for yields in [3, 1, 2, 0] {
            set.spawn_local(async move {
                for _ in 0..yields {
                    yield_now().await;
                }
                yields
            });
        }
        assert_eq!(set.len(), 4);
        let mut order = Vec::new();
        while let Some(result) = set.join_next().await {
            order.push(result.expect("no panic"));
        }
        assert_eq!(order, [0, 1, 2, 3]);
        assert!(set.is_empty());
        assert!(set.join_next().await.is_none());
    });
}

#[test]
fn an_empty_set_is_over_at_once() {
    let mut set = JoinSet::<()>::default();
    assert!(set.is_empty() && set.try_join_next().is_none());
    assert!(block_on(set.join_next()).is_none());
    assert!(block_on(set.join_next_with_id()).is_none());
    assert_eq!(format!("{set:?}"), "JoinSet { len: 0, .. }");
    block_on(set.shutdown());
    assert!(block_on(set.join_all()).is_empty());
}

#[test]
fn numbers_tell_the_tasks_apart() {
    run(async {
        let mut set = JoinSet::new();
        let good = set.spawn_local(async { 1 });
        let bad = set.spawn_local(pending());
        assert_eq!(
            set.join_next_with_id()
                .await
                .expect("not empty")
                .expect("no panic"),
            (good.id(), 1)
        );
        assert!(set.try_join_next_with_id().is_none());
        bad.abort();
        let error = set
            .join_next_with_id()
            .await
            .expect("not empty")
            .expect_err("aborted");
        assert_eq!(error.id(), bad.id());
        assert!(good.is_finished() && bad.is_finished());
    });
}

#[test]
fn try_join_next_takes_only_what_is_over() {
    run(async {
        let mut set = JoinSet::new();
        set.spawn_local(async { 1 });
        assert!(set.try_join_next().is_none());
        yield_now().await;
        assert_eq!(set.try_join_next().expect("over").expect("no panic"), 1);
        assert!(set.try_join_next().is_none());
        assert!(set.is_empty());
    });
}

#[test]
fn a_task_that_was_over_before_it_joined_the_set_is_found() {
    run(async {
        let local = LocalSet::new();
        let mut set = JoinSet::new();
        set.spawn_local_on(async { 1 }, &local);
        set.spawn_local_on(async { 2 }, &local);
        local.await;
        assert_eq!(set.join_all().await, [1, 2]);
    });
}

#[test]
fn dropping_the_set_aborts_and_detaching_does_not() {
    run(async {
        let drops = Rc::new(std::cell::Cell::new(0));
        let task = |guard: CountDrop| async move {
            let _guard = guard;
            pending::<()>().await;
        };
        let mut set = JoinSet::new();
        for _ in 0..10 {
            set.spawn_local(task(CountDrop(drops.clone())));
        }
        yield_now().await;
        set.detach_all();
        assert!(set.is_empty() && set.join_next().await.is_none());
        yield_now().await;
        assert_eq!(drops.get(), 0);
        for _ in 0..10 {
            set.spawn_local(task(CountDrop(drops.clone())));
        }
        yield_now().await;
        drop(set);
        yield_now().await;
        assert_eq!(drops.get(), 10);
    });
}

#[test]
fn shutdown_ends_when_every_future_is_dropped() {
    run(async {
        let drops = Rc::new(std::cell::Cell::new(0));
        let mut set = JoinSet::new();
        for _ in 0..100 {
            let guard = CountDrop(drops.clone());
            set.spawn_local(async move {
                let _guard = guard;
                pending::<()>().await;
            });
        }
        set.shutdown().await;
        assert_eq!(drops.get(), 100);
        assert!(set.is_empty());
        // It can be used again.
        set.spawn_local(async {});
        assert!(set.join_next().await.is_some_and(|result| result.is_ok()));
    });
}

#[test]
fn abort_all_leaves_the_errors_to_be_joined() {
    run(async {
        let mut set = JoinSet::new();
        for _ in 0..5 {
            set.spawn_local(pending::<()>());
        }
        set.abort_all();
        assert_eq!(set.len(), 5);
        let mut aborted = 0;
        while let Some(result) = set.join_next().await {
            assert!(result.is_err_and(|error| error.is_aborted()));
            aborted += 1;
        }
        assert_eq!(aborted, 5);
    });
}

#[test]
fn join_all_goes_on_with_the_panic_of_a_task_and_aborts_the_rest() {
    let drops = Rc::new(std::cell::Cell::new(0));
    let local = LocalSet::new();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        block_on(local.run_until(async {
            let mut set = JoinSet::new();
            let guard = CountDrop(drops.clone());
            set.spawn_local(async move {
                let _guard = guard;
                pending::<()>().await;
            });
            set.spawn_local(async { std::panic::panic_any(42_u8) });
            set.join_all().await
        }))
    }))
    .expect_err("a task panicked");
    assert_eq!(panic.downcast_ref::<u8>(), Some(&42));
    block_on(local.run_until(yield_now()));
    assert_eq!(drops.get(), 1);
}

#[test]
fn join_next_that_is_dropped_loses_nothing() {
    run(async {
        let mut set = JoinSet::new();
        set.spawn_local(async {
            yield_now().await;
            1
        });
        for _ in 0..3 {
            let _ = poll_once(set.join_next()).await.is_none() && {
                yield_now().await;
                true
            };
            if set.is_empty() {
                return;
            }
        }
        assert_eq!(
            set.join_next()
                .await
                .expect("still there")
                .expect("no panic"),
            1
        );
    });
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn the_owner_is_woken_once_for_many_that_end_together_and_its_waker_is_freed() {
    let local = LocalSet::new();
    let mut set = JoinSet::new();
    for _ in 0..50 {
        set.spawn_local_on(async {}, &local);
    }
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert!(
        set.poll_join_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    block_on(local);
    assert_eq!(count.0.load(SeqCst), 1);
    for _ in 0..50 {
        assert!(matches!(
            set.poll_join_next(&mut Context::from_waker(&waker)),
            Poll::Ready(Some(Ok(())))
        ));
    }
    assert!(matches!(
        set.poll_join_next(&mut Context::from_waker(&waker)),
        Poll::Ready(None)
    ));
    drop(set);
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn a_dropped_set_frees_the_waker_of_who_waited() {
    let local = LocalSet::new();
    let mut set = JoinSet::new();
    set.spawn_local_on(pending::<()>(), &local);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    assert!(
        set.poll_join_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(set);
    drop(waker);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn joining_many_that_are_over_gives_way_when_the_budget_is_spent() {
    let local = LocalSet::new();
    let mut set = JoinSet::new();
    for _ in 0..1000 {
        set.spawn_local_on(async {}, &local);
    }
    block_on(local);
    run(async {
        let mut other_turns = 0;
        let joiner = rt::task::spawn_local(async move { while set.join_next().await.is_some() {} });
        // Each turn of ours lets the joiner spend one budget.
        while !joiner.is_finished() {
            other_turns += 1;
            yield_now().await;
        }
        joiner.await.expect("no panic");
        assert!(other_turns >= 1000 / 128, "{other_turns}");
    });
}

#[test]
fn slots_are_used_again_and_stale_hints_do_no_harm() {
    run(async {
        let mut set = JoinSet::new();
        for round in 0..50 {
            for n in 0..40 {
                set.spawn_local(async move { n });
            }
            // Over, and in the queue, but then detached: the numbers in the queue point to the next round's tasks.
            yield_now().await;
            if round % 2 == 0 {
                set.detach_all();
                for n in 0..40 {
                    set.spawn_local(async move {
                        yield_now().await;
                        n
                    });
                }
            }
            let mut sum = 0;
            while let Some(result) = set.join_next().await {
                sum += result.expect("no panic");
            }
            assert_eq!(sum, 39 * 40 / 2);
        }
    });
}

#[test]
fn a_burst_leaves_a_set_that_works() {
    run(async {
        let mut set = JoinSet::new();
        for size in [5000, 3, 2000] {
            for n in 0..size {
                set.spawn_local(async move { n });
            }
            let mut count = 0;
            while let Some(result) = set.join_next().await {
                result.expect("no panic");
                count += 1;
            }
            assert_eq!(count, size);
        }
    });
}

#[test]
fn outputs_whose_destructors_panic_stay_inside() {
    struct PanicDrop;
    impl Drop for PanicDrop {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let local = LocalSet::new();
    let mut set = JoinSet::new();
    for _ in 0..3 {
        set.spawn_local_on(async { PanicDrop }, &local);
    }
    block_on(local);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(set))).is_ok());
}

/// Tasks that end on another thread, while the owner joins.
#[test]
fn a_set_is_joined_on_another_thread_than_its_tasks_run() {
    within_limit(|| {
        let (send, receive) = std::sync::mpsc::channel();
        let joiner = std::thread::spawn(move || {
            let set: JoinSet<usize> = receive.recv().expect("a set");
            block_on(set.join_all()).into_iter().sum::<usize>()
        });
        let local = LocalSet::new();
        let mut set = JoinSet::new();
        for n in 0..2000 {
            set.spawn_local_on(
                async move {
                    for _ in 0..n % 7 {
                        yield_now().await;
                    }
                    n
                },
                &local,
            );
        }
        send.send(set).expect("the joiner waits");
        block_on(local);
        assert_eq!(joiner.join().expect("no panic"), 1999 * 2000 / 2);
    });
}

#[test]
fn a_builder_names_the_task() {
    run(async {
        let mut set = JoinSet::new();
        set.build_task()
            .name("first")
            .spawn_local(async {})
            .expect("spawned");
        let local = LocalSet::new();
        set.build_task()
            .spawn_local_on(async {}, &local)
            .expect("spawned");
        local.await;
        assert_eq!(set.join_all().await.len(), 2);
        let task = rt::task::Builder::new()
            .name("second")
            .spawn_local(async {})
            .expect("spawned");
        assert_eq!(task.name(), Some("second"));
        task.await.expect("no panic");
    });
}

/// The set itself is polled in a select: what is over is found whoever woke the task.
#[test]
fn a_set_beside_another_future_in_one_task() {
    run(async {
        let mut set = JoinSet::new();
        for n in 0..10 {
            set.spawn_local(async move { n });
        }
        let mut joined = 0;
        let mut ticks = 0;
        while joined < 10 {
            let mut tick = pin!(yield_now());
            poll_fn(|cx| {
                if let Poll::Ready(Some(result)) = set.poll_join_next(cx) {
                    result.expect("no panic");
                    joined += 1;
                    return Poll::Ready(());
                }
                tick.as_mut().poll(cx).map(|()| ticks += 1)
            })
            .await;
        }
        assert!(ticks <= 2, "{ticks}");
    });
}
