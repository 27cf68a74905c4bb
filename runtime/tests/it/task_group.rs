//! `TaskGroup` as users of asyncio know it, told for children that are dropped and not interrupted. Numbers are those of
//! the rows that the tests were made from.
//!
//! `task_group_more.rs` has what no row tells.
//!
//! Most tests run four times: as root future and as a task, on the current-thread flavour and with two workers.

mod adding;
mod cancellation;

use std::any::Any;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::sync::oneshot;
use rt::task::group::Cause;
use rt::task::{
    Activity, GroupError, TaskGroup, TaskInfo, all_tasks, cancelled, try_current, yield_now,
};
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

/// Waits until every other task of the runtime waits.
pub(crate) async fn others_wait() {
    let own = try_current().map(|task| task.id());
    let is_busy = |task: &TaskInfo| Some(task.id()) != own && task.activity() != Activity::Waiting;
    // Twice in a row: the tasks are not all looked at in the same moment.
    let mut calm = 0;
    while calm < 2 {
        calm = if all_tasks().iter().any(is_busy) {
            0
        } else {
            calm + 1
        };
        yield_now().await;
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
        others_wait().await;
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
            others_wait().await;
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
fn g17_a_panic_of_the_body_goes_on_bare_after_the_children_have_ended() {
    everywhere(|| async {
        let drops = Drops::default();
        let guard = drops.guard();
        let mut scope = pin!(TaskGroup::<&str>::scope(async |group| {
            group.spawn(asleep::<()>(guard));
            others_wait().await;
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
