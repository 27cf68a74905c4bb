//! `TaskGroup` beyond the rows of `task_group.rs`: whose cancellation is whose, drops, shutdown, local sets, sizes.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};

use futures_lite::future::Boxed;
use rt::runtime::{Builder, Runtime, UnhandledPanic};
use rt::sync::oneshot;
use rt::task::group::{Cause, Refusal};
use rt::task::{GroupError, TaskGroup, cancelled, yield_now};
use rt::time::{sleep, timeout};

use crate::support::within_limit;
use crate::task_group::{BoxError, Drops, MS, asleep, errors, everywhere, others_wait, runtime};

/// A group whose body has failed, and which then waits for a child that nothing can end.
struct CleansUp {
    scope: Boxed<Result<(), GroupError<&'static str>>>,
    body_failed: Arc<AtomicBool>,
    drops: Drops,
    /// Lets the child go on.
    hold: mpsc::Sender<()>,
    /// On which the child blocks its thread, in its poll: there nobody else is.
    _elsewhere: Runtime,
}

impl CleansUp {
    fn new() -> Self {
        let elsewhere = runtime(1);
        let handle = elsewhere.handle().clone();
        let (hold, held) = mpsc::channel::<()>();
        let (drops, body_failed) = (Drops::default(), Arc::new(AtomicBool::new(false)));
        let (guard, failed) = (drops.guard(), body_failed.clone());
        let scope = TaskGroup::scope(async move |group| {
            let (blocks, is_blocking) = oneshot::channel();
            {
                let _entered = handle.enter();
                group.spawn(async move {
                    let _guard = guard;
                    blocks.send(()).expect("the body waits");
                    let _ = held.recv();
                    pending::<Result<(), _>>().await
                });
            }
            is_blocking.await.expect("it blocks");
            failed.store(true, SeqCst);
            Err("inner")
        });
        Self {
            scope: Box::pin(scope),
            body_failed,
            drops,
            hold,
            _elsewhere: elsewhere,
        }
    }

    /// Polls until its body has failed: from then on it is cleaning up.
    async fn begin(&mut self) {
        poll_fn(|cx| {
            assert!(self.scope.as_mut().poll(cx).is_pending());
            match self.body_failed.load(SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

#[test]
fn an_outer_timeout_beats_an_inner_failure_that_is_still_cleaned_up() {
    everywhere(|| async {
        let mut inner = CleansUp::new();
        inner.begin().await;
        let result = timeout(MS, inner.scope.as_mut()).await;
        assert!(result.is_err(), "the outer timeout is what is seen");
        assert_eq!(inner.drops.count(), 0, "the child was still there");
        // It was that failure that waited.
        drop(inner.hold);
        let error = inner.scope.await.expect_err("the body failed");
        assert_eq!(errors(&error), ["inner"]);
        assert_eq!(inner.drops.count(), 1);

        // As a child of another group, whose scope the timeout drops.
        let mut inner = CleansUp::new();
        inner.begin().await;
        let (scope, drops) = (inner.scope, inner.drops.clone());
        let result = timeout(
            MS,
            TaskGroup::<BoxError>::scope(async |group| {
                group.spawn(async move {
                    scope.await.map_err(|error| error.to_string())?;
                    Ok(())
                });
                pending::<()>().await;
            }),
        )
        .await;
        assert!(result.is_err(), "the outer timeout is what is seen");
        assert_eq!(drops.count(), 0, "the child was still there");
        drop(inner.hold);
        drops.reach(1).await;
    });
}

#[test]
fn a_group_absorbs_only_its_own_cancellation() {
    everywhere(|| async {
        // A stranger's cancellation that a child passes on as its error is a failure.
        let stranger = rt::spawn(pending::<()>());
        stranger.abort();
        let error = TaskGroup::scope(async |group| {
            group.spawn(stranger);
            pending::<Result<(), rt::task::JoinError>>().await
        })
        .await
        .expect_err("a child fails");
        assert!(
            error
                .first()
                .error()
                .is_some_and(rt::task::JoinError::is_aborted)
        );
        // An inner timeout is an error of the child, and not the group's cancellation.
        let error = TaskGroup::scope(async |group| {
            group.spawn(timeout(MS, pending::<()>()));
            pending::<Result<(), rt::time::error::Elapsed>>().await
        })
        .await
        .expect_err("a child fails");
        assert_eq!(error.errors().count(), 1);
    });
}

#[test]
fn dropping_the_scope_cancels_the_children() {
    everywhere(|| async {
        let drops = Drops::default();
        let guards = [(); 3].map(|()| drops.guard());
        let group = {
            let mut out = None;
            let slot = &mut out;
            let scope = TaskGroup::<Infallible>::scope(|group| {
                *slot = Some(group.clone());
                for guard in guards {
                    group.spawn(asleep::<()>(guard));
                }
                pending::<()>()
            });
            assert!(timeout(MS, scope).await.is_err());
            out.expect("the closure was called")
        };
        drops.reach(3).await;
        let error = group.try_spawn(async {}).expect_err("the group is gone");
        assert_eq!(error.why, Refusal::Cancelled);
    });
}

#[test]
fn abort_all_ends_the_children_and_the_body_goes_on() {
    everywhere(|| async {
        let drops = Drops::default();
        let guards = [(); 3].map(|()| drops.guard());
        let late = TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(asleep::<()>(guard));
            }
            yield_now().await;
            group.abort_all();
            Ok(group.spawn(async { Ok(1) }))
        })
        .await
        .expect("nobody fails");
        assert_eq!(drops.count(), 3);
        assert_eq!(late.await.expect("no error"), 1);
    });
}

#[test]
fn a_child_may_abort_its_whole_group_in_its_first_poll() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        TaskGroup::<Infallible>::scope(async |group| {
            group.spawn(asleep::<()>(guard));
            let own = group.clone();
            let child = group.spawn(async move {
                own.abort_all();
                pending::<()>().await;
            });
            assert!(child.await.expect_err("aborted").is_aborted());
        })
        .await
        .expect("nobody fails");
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn cancel_all_lets_the_children_clean_up() {
    everywhere(|| async {
        let polite = Drops::default();
        let guard = polite.guard();
        TaskGroup::<Infallible>::scope(async |group| {
            group.spawn(async move {
                cancelled().await;
                yield_now().await;
                drop(guard);
            });
            let rude = group.spawn(pending::<()>());
            yield_now().await;
            group.cancel_all(5 * MS);
            assert!(rude.await.expect_err("aborted").is_aborted());
        })
        .await
        .expect("nobody fails");
        assert_eq!(polite.count(), 1);
    });
}

#[test]
fn the_handle_of_a_child_that_failed_says_where_its_error_is() {
    everywhere(|| async {
        let kept = Arc::new(Mutex::new(None));
        let to = kept.clone();
        TaskGroup::scope(async |group| {
            *to.lock().expect("lock") = Some(group.spawn(async { Err::<u32, _>("mine") }));
            Ok::<_, &str>(())
        })
        .await
        .expect_err("a child fails");
        let handle = kept.lock().expect("lock").take().expect("a handle");
        let error = handle.await.expect_err("failed");
        assert!(error.is_in_group() && !error.is_cancelled(), "{error:?}");
        assert!(error.to_string().contains("task group"), "{error}");
    });
}

#[test]
fn a_panic_that_the_group_reports_is_not_reported_by_the_runtime() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .unhandled_panic(UnhandledPanic::ShutdownRuntime)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let scope = TaskGroup::<Infallible>::scope(async |group| {
                group.spawn(async { std::panic::panic_any("child") });
            });
            assert!(scope.await.expect_err("a child panics").first().is_panic());
            sleep(20 * MS).await;
            rt::spawn(async {}).await.expect("the runtime is open");
        });
    });
}

#[test]
fn a_group_in_a_local_set_takes_futures_that_stay_on_their_thread() {
    within_limit(|| {
        for workers in [0, 2] {
            let runtime = runtime(workers);
            let set = rt::task::LocalSet::new();
            let count = std::rc::Rc::new(std::cell::Cell::new(0));
            let seen = count.clone();
            let result = set.block_on(
                &runtime,
                TaskGroup::<&str>::scope(async |group| {
                    for _ in 0..3 {
                        let seen = seen.clone();
                        group.spawn_local(async move {
                            yield_now().await;
                            seen.set(seen.get() + 1);
                        });
                    }
                    group.spawn(async { sleep(MS).await }); // elsewhere
                    Ok(())
                }),
            );
            assert!(result.is_ok());
            assert_eq!(count.get(), 3);
            drop(seen);
            // As a task of the set, and with a failure.
            let guard = count.clone();
            let error = set.block_on(&runtime, async {
                rt::task::spawn_local(TaskGroup::scope(async |group| {
                    group.spawn_local(async move {
                        let _guard = guard;
                        pending::<()>().await;
                    });
                    group.spawn_local(async { Err::<(), _>("local") });
                }))
                .await
                .expect("the scope ends")
                .expect_err("a child fails")
            });
            assert_eq!(errors(&error), ["local"]);
            assert_eq!(std::rc::Rc::strong_count(&count), 1, "no child is left");
        }
    });
}

#[test]
fn shutdown_in_the_middle_of_a_group_drops_all_of_it() {
    within_limit(|| {
        for workers in [0, 2] {
            let drops = Drops::default();
            let guards = [(); 10].map(|()| drops.guard());
            let runtime = runtime(workers);
            let owner = runtime.spawn(TaskGroup::<Infallible>::scope(async |group| {
                for guard in guards {
                    group.spawn(asleep::<()>(guard));
                }
                pending::<()>().await;
            }));
            runtime.block_on(others_wait());
            drop(runtime);
            assert_eq!(drops.count(), 10);
            let error = futures_lite::future::block_on(owner).expect_err("closed");
            assert!(error.is_runtime_closed());
        }
    });
}

#[test]
fn children_whose_runtime_closes_are_a_failure_of_a_group_that_lives_elsewhere() {
    within_limit(|| {
        let (own, other) = (runtime(0), runtime(2));
        let handle = other.handle().clone();
        let mut other = Some(other);
        let error = own
            .block_on(TaskGroup::<Infallible>::scope(async |group| {
                {
                    let _entered = handle.enter();
                    for _ in 0..3 {
                        group.spawn(pending::<()>());
                    }
                }
                yield_now().await;
                rt::spawn_blocking({
                    let other = other.take();
                    move || drop(other)
                })
                .await
                .expect("no panic");
                pending::<()>().await;
            }))
            .expect_err("the children are gone");
        assert!(
            matches!(error.first().cause(), Cause::RuntimeClosed(_)),
            "{error:?}"
        );
    });
}

#[test]
fn a_group_waits_with_any_executor_for_children_of_a_runtime() {
    within_limit(|| {
        let runtime = runtime(1);
        let _entered = runtime.enter();
        let scope = TaskGroup::<Infallible>::scope(async |group| {
            let child = group.spawn(async {
                sleep(MS).await;
                Ok(3)
            });
            Ok(child.await.expect("no error"))
        });
        assert_eq!(
            futures_lite::future::block_on(scope).expect("no failure"),
            3
        );
    });
}

#[test]
fn ten_thousand_scopes_that_are_over_at_once_give_way() {
    within_limit(|| {
        runtime(0).block_on(async {
            let turns = Arc::new(AtomicUsize::new(0));
            let counter = turns.clone();
            let other = rt::spawn(async move {
                loop {
                    counter.fetch_add(1, SeqCst);
                    yield_now().await;
                }
            });
            rt::spawn(async {
                for _ in 0..10_000 {
                    TaskGroup::<Infallible>::scope(async |_group| {})
                        .await
                        .expect("nobody fails");
                }
            })
            .await
            .expect("no panic");
            assert!(turns.load(SeqCst) > 1);
            other.abort();
        });
    });
}

#[test]
fn a_parent_of_a_large_child_stays_small() {
    async fn large() -> Result<usize, &'static str> {
        let room = [1_u8; 100_000];
        yield_now().await;
        Ok(room.iter().map(|&n| usize::from(n)).sum())
    }
    assert!(size_of_val(&large()) >= 100_000);

    let bare = async { rt::spawn(large()).await.expect("no panic") };
    assert!(size_of_val(&bare) < 1024, "{}", size_of_val(&bare));
    let grouped = TaskGroup::scope(async |group| {
        let child = group.spawn(large());
        Ok::<_, &str>(child.await.expect("no error"))
    });
    assert!(size_of_val(&grouped) < 1024, "{}", size_of_val(&grouped));
    within_limit(|| {
        runtime(0).block_on(async {
            let sum = TaskGroup::scope(async |group| {
                let child = group.spawn(large());
                Ok::<_, &str>(child.await.expect("no error"))
            });
            assert_eq!(sum.await.expect("nobody fails"), 100_000);
        });
    });
}

#[test]
fn a_scope_that_is_polled_by_hand_and_dropped_before_its_first_poll_leaves_nothing() {
    within_limit(|| {
        let runtime = runtime(0);
        let drops = Drops::default();
        let guard = drops.guard();
        runtime.block_on(async {
            let scope = TaskGroup::<Infallible>::scope(|group| {
                group.spawn(asleep::<()>(guard));
                pending::<()>()
            });
            drop(scope);
            drops.reach(1).await;
            let mut done = Box::pin(TaskGroup::<Infallible>::scope(async |_group| {}));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(done.as_mut().poll(&mut cx).is_ready());
            let again = catch_unwind(AssertUnwindSafe(|| done.as_mut().poll(&mut cx).is_ready()));
            assert!(again.is_err(), "it says that it was over");
        });
    });
}

#[test]
fn a_group_that_stays_keeps_no_waker_of_who_waited() {
    within_limit(|| {
        let runtime = runtime(0);
        let _entered = runtime.enter();
        for ends in [true, false] {
            let (count, waker) = crate::support::counted_waker();
            let mut cx = Context::from_waker(&waker);
            let mut kept = None;
            let mut scope = Box::pin(TaskGroup::<Infallible>::scope(|group| {
                kept = Some(group);
                async move {
                    yield_now().await;
                    if !ends {
                        pending::<()>().await;
                    }
                }
            }));
            assert!(scope.as_mut().poll(&mut cx).is_pending());
            assert_eq!(scope.as_mut().poll(&mut cx).is_ready(), ends);
            if !ends {
                drop(scope);
            }
            assert_eq!(Arc::strong_count(&count), 2, "the one in `waker`, and ours");
            assert!(kept.is_some_and(|group| group.is_closed()));
        }
    });
}
