//! `TaskGroup` as users of asyncio know it, told for children that are dropped and not interrupted. Numbers are those of
//! the rows that the tests were made from.
//!
//! `task_group_more.rs` has what no row tells.
//!
//! Most tests run four times: as root future and as a task, on the current-thread flavour and with two workers.

use std::any::Any;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::sync::oneshot;
use rt::task::group::{Cause, Refusal};
use rt::task::{GroupError, JoinHandle, TaskGroup, cancelled, is_cancelled, yield_now};
use rt::time::sleep;

use crate::support::within_limit;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn runtime(workers: usize) -> Runtime {
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        n => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(n);
            builder
        }
    };
    builder.enable_all().build().expect("a runtime")
}

/// Runs `body` in the four ways of the module head.
#[track_caller]
pub(crate) fn everywhere<F>(body: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    within_limit(move || {
        for workers in [0, 2] {
            let runtime = runtime(workers);
            runtime.block_on(body());
            runtime.block_on(async { rt::spawn(body()).await.expect("no panic") });
        }
    });
}

/// Counts how often its guards are dropped, and lets others wait for it.
#[derive(Clone, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub(crate) fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }

    /// For what ends on other threads; the watchdog says if it does not.
    pub(crate) async fn reach(&self, count: usize) {
        while self.count() < count {
            sleep(MS).await;
        }
    }
}

pub(crate) struct Guard(Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, SeqCst);
    }
}

/// Never ends, and counts its drop.
pub(crate) async fn asleep<T>(guard: Guard) -> T {
    let _guard = guard;
    pending().await
}

pub(crate) struct PanicDrop(&'static str);

impl Drop for PanicDrop {
    fn drop(&mut self) {
        std::panic::panic_any(self.0);
    }
}

pub(crate) fn errors(error: &GroupError<&'static str>) -> Vec<&'static str> {
    error.errors().copied().collect()
}

fn message(payload: &(dyn Any + Send)) -> &str {
    payload.downcast_ref::<&str>().copied().unwrap_or("?")
}

#[test]
fn g01_the_group_waits_for_children_of_different_length_and_their_results_can_be_read() {
    everywhere(|| async {
        let (short, long) = TaskGroup::<Infallible>::scope(async |group| {
            let short = group.spawn(async { Ok(42) });
            let long = group.spawn(async {
                sleep(5 * MS).await;
                Ok(11)
            });
            Ok((short, long))
        })
        .await
        .expect("nobody fails");
        assert!(short.is_finished() && long.is_finished());
        assert_eq!(short.await.expect("no error"), 42);
        assert_eq!(long.await.expect("no error"), 11);
    });
}

#[test]
fn g02_a_child_added_later_is_waited_for_too() {
    everywhere(|| async {
        let drops = Drops::default();
        let guards = (drops.guard(), drops.guard());
        TaskGroup::<Infallible>::scope(async |group| {
            let (first, second) = guards;
            group.spawn(async move {
                sleep(2 * MS).await;
                drop(first);
            });
            sleep(MS).await;
            group.spawn(async move {
                sleep(5 * MS).await;
                drop(second);
            });
        })
        .await
        .expect("nobody fails");
        assert_eq!(drops.count(), 2);
    });
}

#[test]
fn g03_a_child_that_the_owner_aborts_is_no_failure() {
    everywhere(|| async {
        let (aborted, other) = TaskGroup::<Infallible>::scope(async |group| {
            let aborted = group.spawn(pending::<()>());
            let other = group.spawn(async {
                sleep(2 * MS).await;
                Ok(5)
            });
            yield_now().await;
            aborted.abort();
            Ok((aborted, other))
        })
        .await
        .expect("nobody fails");
        assert!(aborted.await.expect_err("aborted").is_aborted());
        assert_eq!(other.await.expect("no error"), 5);
    });
}

#[test]
fn g04_a_failing_child_cancels_the_sleeper_and_the_body() {
    everywhere(|| async {
        let (drops, body) = (Drops::default(), Drops::default());
        let (guard, body_guard) = (drops.guard(), body.guard());
        let error = TaskGroup::scope(async |group| {
            let _guard = body_guard;
            group.spawn(asleep::<Result<(), &str>>(guard));
            group.spawn(async {
                sleep(MS).await;
                Err::<(), _>("broken")
            });
            pending::<()>().await;
            unreachable!("the body is cancelled");
            #[expect(unreachable_code, reason = "names the type")]
            Ok::<(), &str>(())
        })
        .await
        .expect_err("a child fails");
        assert_eq!(errors(&error), ["broken"]);
        assert_eq!(error.failures().len(), 1, "{error:?}");
        assert_eq!((drops.count(), body.count()), (1, 1));
    });
}

#[test]
fn g05_all_failures_that_happened_are_in_the_error() {
    within_limit(|| {
        let runtime = runtime(3);
        let meet = Arc::new(Barrier::new(3));
        let body = Drops::default();
        let guard = body.guard();
        let error = runtime
            .block_on(TaskGroup::scope(async |group| {
                let _guard = guard;
                for name in ["one", "two", "three"] {
                    let meet = meet.clone();
                    group.spawn(async move {
                        // All three are in their polls when the first of them fails.
                        rt::task::block_in_place(|| meet.wait());
                        Err::<(), _>(name)
                    });
                }
                pending::<Result<(), &str>>().await
            }))
            .expect_err("children fail");
        let mut all = errors(&error);
        assert_eq!(*error.first().error().expect("an error"), all[0]);
        all.sort_unstable();
        assert_eq!(all, ["one", "three", "two"]);
        assert_eq!(error.failures().len(), 3);
        assert_eq!(body.count(), 1);
    });
}

/// A task with a group of five children that clean up, with awaits, when they are asked to end.
fn five_polite(drops: &Drops, body: Guard) -> JoinHandle<usize> {
    let (drops, guards) = (drops.clone(), [(); 5].map(|()| drops.guard()));
    rt::spawn(async move {
        TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(async move {
                    cancelled().await;
                    sleep(2 * MS).await;
                    drop(guard);
                });
            }
            cancelled().await;
            drop(body);
        })
        .await
        .expect("nobody fails");
        drops.count()
    })
}

#[test]
fn g06_a_request_to_the_owner_reaches_all_children_and_the_owner_ends_after_them() {
    everywhere(|| async {
        let drops = Drops::default();
        let owner = five_polite(&drops, Drops::default().guard());
        sleep(MS).await;
        assert_eq!(drops.count(), 0);
        owner.cancel(LONG);
        assert_eq!(owner.await.expect("answers the request"), 5);
    });
}

#[test]
fn g06_an_abort_of_the_owner_cancels_all_children() {
    everywhere(|| async {
        let drops = Drops::default();
        let guards = [(); 5].map(|()| drops.guard());
        let owner = rt::spawn(TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(asleep::<()>(guard));
            }
        }));
        sleep(MS).await;
        assert_eq!(drops.count(), 0);
        owner.abort();
        assert!(owner.await.expect_err("aborted").is_aborted());
        drops.reach(5).await;
    });
}

#[test]
fn g07_the_body_sees_the_cancellation_as_well_as_each_child() {
    everywhere(|| async {
        let (drops, body) = (Drops::default(), Drops::default());
        let owner = five_polite(&drops, body.guard());
        owner.cancel(LONG);
        assert_eq!(owner.await.expect("answers the request"), 5);
        assert_eq!(body.count(), 1);

        let guards = [(); 5].map(|()| drops.guard());
        let guard = body.guard();
        let owner = rt::spawn(TaskGroup::<Infallible>::scope(async |group| {
            for guard in guards {
                group.spawn(asleep::<()>(guard));
            }
            asleep::<()>(guard).await;
        }));
        yield_now().await;
        owner.abort();
        assert!(owner.await.expect_err("aborted").is_aborted());
        assert_eq!(body.count(), 2);
        drops.reach(10).await;
    });
}

#[test]
fn g08_failures_of_the_clean_up_come_in_place_of_cancelled() {
    everywhere(|| async {
        let owner = rt::spawn(TaskGroup::scope(async |group| {
            for _ in 0..2 {
                group.spawn(async {
                    cancelled().await;
                    Err::<(), _>("cannot say good-bye")
                });
            }
            pending::<Result<(), &str>>().await
        }));
        sleep(MS).await;
        owner.cancel(LONG);
        let error = owner
            .await
            .expect("the scope ends")
            .expect_err("a child fails");
        // The first failure cancels the other child, unless that has failed by then.
        assert!((1..=2).contains(&error.failures().len()), "{error:?}");
        assert_eq!(error.first().error(), Some(&"cannot say good-bye"));
    });
}

#[test]
fn g08_a_panic_in_the_destructor_of_a_cancelled_child_is_a_failure() {
    everywhere(|| async {
        let error = TaskGroup::scope(async |group| {
            let (ready, is_ready) = oneshot::channel();
            group.build_task().name("untidy").spawn(async {
                let _untidy = PanicDrop("cannot clean up");
                ready.send(()).expect("somebody waits");
                pending::<Result<(), &str>>().await
            });
            is_ready.await.expect("it begins");
            Err::<(), _>("the body fails")
        })
        .await
        .expect_err("the body fails");
        assert_eq!(errors(&error), ["the body fails"]);
        let [body, child] = error.failures() else {
            panic!("two failures, not {error:?}");
        };
        assert!(body.is_body());
        assert_eq!(child.name(), Some("untidy"));
        assert!(child.is_panic());
    });
}

#[test]
fn g09_a_failure_of_the_body_cancels_the_children_and_comes_inside_the_group_error() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        let error = TaskGroup::scope(async |group| {
            group.spawn(asleep::<()>(guard));
            sleep(MS).await;
            Err::<(), _>("body")
        })
        .await
        .expect_err("the body fails");
        assert_eq!(errors(&error), ["body"]);
        assert!(error.first().is_body());
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn g10_children_that_were_never_polled_count_as_cancelled() {
    everywhere(|| async {
        let drops = Drops::default();
        let guards = [drops.guard(), drops.guard()];
        let error = TaskGroup::scope(async |group| {
            for guard in guards {
                group.spawn(asleep::<()>(guard));
            }
            Err::<(), _>("body")
        })
        .await
        .expect_err("the body fails");
        assert_eq!(errors(&error), ["body"]);
        assert_eq!(error.failures().len(), 1);
        assert_eq!(drops.count(), 2);
    });
}

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[test]
fn g11_an_inner_group_error_is_one_member_of_the_outer_one() {
    everywhere(|| async {
        let error = TaskGroup::<BoxError>::scope(async |group| {
            group.spawn(async {
                TaskGroup::<BoxError>::scope(async |inner| {
                    inner.spawn(asleep::<()>(Drops::default().guard()));
                    inner.spawn(async { Err::<(), BoxError>("deep".into()) });
                })
                .await?;
                Ok(())
            });
        })
        .await
        .expect_err("a child fails");
        assert_eq!(error.failures().len(), 1);
        let inner = error.first().error().expect("an error");
        let inner = inner
            .downcast_ref::<GroupError<BoxError>>()
            .expect("a group error");
        assert_eq!(inner.failures().len(), 1);
        assert!(
            inner
                .first()
                .error()
                .is_some_and(|e| e.to_string() == "deep")
        );
        assert!(error.to_string().contains("deep"), "{error}");
    });
}

#[test]
fn g11_the_body_of_the_outer_group_may_run_the_inner_one() {
    everywhere(|| async {
        let error = TaskGroup::<BoxError>::scope(async |_group| {
            TaskGroup::<BoxError>::scope(async |inner| {
                inner.spawn(async { Err::<(), BoxError>("deep".into()) });
            })
            .await?;
            Ok(())
        })
        .await
        .expect_err("the body fails");
        assert!(error.first().is_body());
        assert_eq!(error.failures().len(), 1);
    });
}

#[test]
fn g12_an_outer_failure_cancels_the_inner_group_and_stands_alone() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        let error = TaskGroup::<BoxError>::scope(async |group| {
            group.spawn(async {
                TaskGroup::<BoxError>::scope(async |inner| {
                    inner.spawn(asleep::<()>(guard));
                    pending::<()>().await;
                })
                .await?;
                Ok(())
            });
            group.spawn(async {
                sleep(MS).await;
                Err::<(), BoxError>("outer".into())
            });
        })
        .await
        .expect_err("a child fails");
        assert_eq!(error.failures().len(), 1, "{error:?}");
        assert_eq!(
            error.first().error().map(ToString::to_string),
            Some("outer".into())
        );
        // The inner group was dropped, and did not wait.
        drops.reach(1).await;
    });
}

#[test]
fn g13_a_failure_wins_over_a_cancellation_under_way() {
    everywhere(|| async {
        let (asked, is_asked) = oneshot::channel();
        let owner = rt::spawn(TaskGroup::scope(async |group| {
            group.spawn(async {
                is_asked.await.expect("the other child is asked");
                Err::<(), _>("late")
            });
            group.spawn(async {
                cancelled().await;
                asked.send(()).expect("the other child waits");
                sleep(LONG).await; // a slow clean-up
            });
            cancelled().await;
            pending::<Result<(), &str>>().await
        }));
        owner.cancel(LONG);
        let error = owner
            .await
            .expect("the scope ends")
            .expect_err("a child fails");
        assert_eq!(errors(&error), ["late"]);
    });
}

#[test]
fn g14_the_cancellation_of_an_owner_without_children_is_no_group_error() {
    everywhere(|| async {
        let owner = rt::spawn(TaskGroup::<Infallible>::scope(async |_group| {
            pending::<()>().await;
        }));
        yield_now().await;
        owner.abort();
        assert!(owner.await.expect_err("aborted").is_aborted());
    });
}

#[test]
fn g15_a_body_that_answers_a_request_with_an_error_fails_the_group() {
    everywhere(|| async {
        let owner = rt::spawn(TaskGroup::scope(async |_group| {
            cancelled().await;
            Err::<(), _>("not now")
        }));
        owner.cancel(LONG);
        let error = owner
            .await
            .expect("the scope ends")
            .expect_err("the body fails");
        assert_eq!(errors(&error), ["not now"]);
    });
}

#[test]
fn g16_a_body_that_fails_while_it_is_cancelled_for_a_child_adds_its_failure() {
    everywhere(|| async {
        let error = TaskGroup::scope(async |group| {
            let _untidy = PanicDrop("body");
            group.spawn(async { Err::<(), _>("child") });
            pending::<Result<(), &str>>().await
        })
        .await
        .expect_err("a child fails");
        let [child, body] = error.failures() else {
            panic!("two failures, not {error:?}");
        };
        assert_eq!(child.error(), Some(&"child"));
        assert!(body.is_body() && body.is_panic());
    });
}

#[test]
fn g17_a_panic_of_the_body_goes_on_bare_after_the_children_have_ended() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        let mut scope = pin!(TaskGroup::<&str>::scope(async |group| {
            group.spawn(asleep::<()>(guard));
            sleep(MS).await;
            panic!("bare");
        }));
        let payload =
            poll_fn(
                |cx| match catch_unwind(AssertUnwindSafe(|| scope.as_mut().poll(cx))) {
                    Ok(Poll::Pending) => Poll::Pending,
                    Ok(Poll::Ready(result)) => panic!("ended with {result:?}"),
                    Err(payload) => Poll::Ready(payload),
                },
            )
            .await;
        assert_eq!(message(&*payload), "bare");
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn g17_a_panic_of_a_child_is_a_failure_with_its_payload() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        let error = TaskGroup::<Infallible>::scope(async |group| {
            group.spawn(asleep::<()>(guard));
            group.spawn(async { std::panic::panic_any("child") });
        })
        .await
        .expect_err("a child panics");
        assert_eq!(drops.count(), 1);
        let Cause::Panic(panic) = error.into_first().into_cause() else {
            panic!("a panic is expected");
        };
        assert!(panic.is_panic());
        assert_eq!(message(&*panic.into_panic()), "child");
    });
}

#[test]
fn g18_ended_children_are_not_kept() {
    everywhere(|| async {
        TaskGroup::<Infallible>::scope(async |group| {
            for _ in 0..100 {
                let children: Vec<_> = (0..100).map(|_| group.spawn(async {})).collect();
                assert!(group.len() <= 100);
                for child in children {
                    child.await.expect("no error");
                }
                while !group.is_empty() {
                    // The last instructions of a child may still run on another worker.
                    yield_now().await;
                }
            }
        })
        .await
        .expect("nobody fails");
    });
}

fn tree(group: TaskGroup<Infallible>, depth: usize, drops: Drops) {
    let next = group.clone();
    group.spawn(async move {
        let _guard = drops.guard();
        yield_now().await;
        if depth > 0 {
            tree(next.clone(), depth - 1, drops.clone());
            tree(next, depth - 1, drops.clone());
        }
    });
}

#[test]
fn g19_children_that_children_add_are_waited_for() {
    everywhere(|| async {
        let drops = Drops::default();
        let count = drops.clone();
        TaskGroup::scope(async |group| tree(group, 6, count))
            .await
            .expect("nobody fails");
        assert_eq!(drops.count(), 127);
    });
}

fn endless(group: TaskGroup<&'static str>) {
    let next = group.clone();
    group.spawn(async move {
        loop {
            if next.len() < 200 {
                endless(next.clone());
            }
            yield_now().await;
        }
    });
}

#[test]
fn g20_children_that_add_children_without_end_stop_at_a_failure() {
    everywhere(|| async {
        let error = TaskGroup::scope(async |group| {
            endless(group.clone());
            group.spawn(async {
                sleep(5 * MS).await;
                Err::<(), _>("enough")
            });
        })
        .await
        .expect_err("a child fails");
        assert_eq!(errors(&error), ["enough"]);
        assert_eq!(error.failures().len(), 1);
    });
}

#[test]
fn g21_the_name_of_a_child_is_kept() {
    everywhere(|| async {
        TaskGroup::<Infallible>::scope(async |group| {
            let child = group.build_task().name("fetcher").spawn(async {
                let name = rt::task::current().name().map(str::to_owned);
                assert_eq!(name.as_deref(), Some("fetcher"));
            });
            assert_eq!(child.name(), Some("fetcher"));
        })
        .await
        .expect("nobody fails");
    });
}

#[test]
fn g22_after_a_failure_adding_is_refused_and_the_work_is_not_started() {
    everywhere(|| async {
        let (group_out, refused) = (Arc::new(Mutex::new(None)), Drops::default());
        let (to, guard) = (group_out.clone(), refused.guard());
        let error = TaskGroup::scope(async |group| {
            *to.lock().expect("lock") = Some(group.clone());
            let own = group.clone();
            group.spawn(async move {
                struct SpawnInDrop(TaskGroup<&'static str>, Option<Guard>);
                impl Drop for SpawnInDrop {
                    fn drop(&mut self) {
                        let guard = self.1.take();
                        let refused = self.0.try_spawn(async move {
                            let _guard = guard;
                            panic!("is not started");
                        });
                        let error = refused.expect_err("the group has failed");
                        assert_eq!(error.why, Refusal::Cancelled);
                        assert!(error.to_string().contains("failed"), "{error}");
                        drop(error.future);
                    }
                }
                let _spawner = SpawnInDrop(own, Some(guard));
                pending::<()>().await;
            });
            sleep(MS).await;
            Err::<(), _>("failed")
        })
        .await
        .expect_err("the body fails");
        assert_eq!(errors(&error), ["failed"]);
        assert_eq!(error.failures().len(), 1, "{error:?}");
        assert_eq!(refused.count(), 1);
    });
}

#[test]
fn g23_a_resource_in_the_body_that_fails_to_close_adds_its_failure_and_the_owner_is_not_cancelled()
{
    everywhere(|| async {
        let owner = rt::spawn(async {
            let error = TaskGroup::scope(async |group| {
                let _outer = PanicDrop("outer resource");
                let _tidy = Drops::default().guard();
                group.spawn(async { Err::<(), _>("child") });
                pending::<Result<(), &str>>().await
            })
            .await
            .expect_err("a child fails");
            assert_eq!(error.failures().len(), 2);
            assert!(!is_cancelled());
            sleep(MS).await;
            "goes on"
        });
        assert_eq!(owner.await.expect("not cancelled"), "goes on");
    });
}

#[test]
fn g24_a_group_that_has_ended_takes_nobody_in() {
    everywhere(|| async {
        let group = TaskGroup::<Infallible>::scope(async |group| Ok(group))
            .await
            .expect("nobody fails");
        assert!(group.is_closed());
        let drops = Drops::default();
        let error = group
            .try_spawn(asleep::<()>(drops.guard()))
            .expect_err("the group has ended");
        assert_eq!(error.why, Refusal::Ended);
        assert!(error.to_string().contains("ended"), "{error}");
        drop(error);
        assert_eq!(drops.count(), 1);
        let handle = group.spawn(asleep::<()>(drops.guard()));
        assert_eq!(drops.count(), 2);
        let error = handle.await.expect_err("never began");
        assert!(error.is_refused() && !error.is_panic(), "{error:?}");
        assert!(error.to_string().contains("ended"), "{error}");
    });
}
