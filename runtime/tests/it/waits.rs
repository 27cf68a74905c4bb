//! What a task is shown to wait for when what it waits for says nothing: no wait that is over.

use std::future::{Future, pending, poll_fn, ready};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::sync::CancellationToken;
use rt::task::{Activity, TaskGroup, WaitKind, all_tasks, yield_now};
use rt::time::{Instant, sleep, timeout, timeout_at, timeout_with};
use rt::{
    ReturnWhen, as_completed, for_each_concurrent, gather, map_concurrent, spawn, try_gather, wait,
};

use crate::support::within_limit;

const LONG: Duration = Duration::from_secs(3600);

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

/// What the future is shown to wait for, as a task, after its first polls; and the line.
async fn shown<F>(future: F) -> Option<(WaitKind, u32)>
where
    F: Future<Output = ()> + Send + 'static,
{
    let task = spawn(future);
    let info = loop {
        yield_now().await;
        let mut tasks = all_tasks().into_iter();
        let info = tasks.find(|info| info.id() == task.id());
        let info = info.expect("it waits for ever");
        if info.activity() == Activity::Waiting {
            break info;
        }
    };
    task.abort();
    info.waits_for().map(|(kind, site)| (kind, site.line()))
}

/// Asserts that nothing of the future is shown once it is over, when what is polled next says nothing.
async fn leaves_nothing<F>(what: &str, future: F)
where
    F: Future + Send + 'static,
{
    let after = shown(async {
        let _ = future.await;
        pending().await
    });
    assert_eq!(after.await, None, "{what}");
}

/// Waits, and says for what, but is ready before its poll is over.
async fn glance() {
    let mut sleep = pin!(sleep(LONG));
    poll_fn(|cx| {
        assert!(sleep.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// The same and a failure.
async fn fails() -> Result<(), ()> {
    glance().await;
    Err(())
}

#[test]
fn a_limit_that_is_over_is_not_waited_for() {
    within_limit(|| {
        runtime().block_on(async {
            leaves_nothing("timeout", timeout(LONG, ready(()))).await;
            leaves_nothing("timeout around a wait", timeout(LONG, glance())).await;
            leaves_nothing("elapsed", timeout(Duration::ZERO, sleep(LONG))).await;
            let deadline = Instant::now() + LONG;
            leaves_nothing("timeout_at", timeout_at(deadline, ready(()))).await;
            let past = Instant::now();
            leaves_nothing("timeout_at in the past", timeout_at(past, sleep(LONG))).await;
            leaves_nothing("timeout_with", timeout_with(LONG, |_| ready(()))).await;
        });
    });
}

#[test]
fn a_combinator_that_is_over_is_not_waited_for() {
    within_limit(|| {
        runtime().block_on(async {
            leaves_nothing("gather", gather([glance()])).await;
            leaves_nothing("try_gather", try_gather([fails()])).await;
            leaves_nothing("wait", async {
                let _ = wait([Box::pin(fails())], ReturnWhen::AllDone, None).await;
            })
            .await;
            leaves_nothing("as_completed", async {
                as_completed([Box::pin(glance())]).next().await;
            })
            .await;
            leaves_nothing("as_completed within", async {
                let _ = as_completed([Box::pin(glance())]).within(LONG).next().await;
            })
            .await;
            leaves_nothing("map_concurrent", async {
                map_concurrent([1], 1, |_| glance()).next().await;
            })
            .await;
            leaves_nothing(
                "for_each_concurrent",
                for_each_concurrent([1], 1, |_| glance()),
            )
            .await;
            leaves_nothing(
                "TaskGroup::scope",
                TaskGroup::<()>::scope(async |_| glance().await),
            )
            .await;
            let token = CancellationToken::new();
            leaves_nothing("run_until_cancelled", async move {
                token
                    .run_until_cancelled(async {
                        token.cancel();
                        sleep(LONG).await
                    })
                    .await;
            })
            .await;
        });
    });
}

#[test]
fn the_branches_of_a_macro_that_is_over_are_not_waited_for() {
    within_limit(|| {
        runtime().block_on(async {
            leaves_nothing("select", async {
                rt::select! {
                    biased;
                    () = sleep(LONG) => {}
                    () = ready(()) => {}
                }
            })
            .await;
            leaves_nothing("try_join", async {
                let slow = async {
                    sleep(LONG).await;
                    Ok(())
                };
                let _: Result<((), ()), ()> = rt::try_join!(biased; slow, fails());
            })
            .await;
        });
    });
}

#[test]
fn what_was_recorded_before_a_future_that_is_over_is_shown() {
    within_limit(|| {
        runtime().block_on(async {
            let line = line!() + 2;
            let beside = shown(async {
                let nap = sleep(LONG);
                let says_nothing = async {
                    let _ = timeout(LONG, glance()).await;
                    pending::<()>().await;
                };
                rt::join!(biased; nap, says_nothing);
            });
            assert_eq!(beside.await, Some((WaitKind::Sleep, line)));
        });
    });
}

#[test]
fn a_future_around_others_that_say_nothing_is_waited_for() {
    within_limit(|| {
        runtime().block_on(async {
            let line = line!() + 2;
            let limited = shown(async {
                let _ = timeout(LONG, pending::<()>()).await;
            });
            assert_eq!(limited.await, Some((WaitKind::Timeout, line)));
            let line = line!() + 3;
            let selects = shown(async {
                rt::select! {
                    () = sleep(LONG) => {}
                    () = pending() => {}
                }
            });
            assert_eq!(selects.await, Some((WaitKind::Sleep, line)));
        });
    });
}

/// A body that is over has left its wait, and the group waits for its children.
#[test]
fn a_group_whose_body_is_over_waits_for_its_children() {
    within_limit(|| {
        runtime().block_on(async {
            let line = line!() + 1;
            let scope = TaskGroup::<()>::scope(async |group| {
                group.spawn(pending::<()>());
                glance().await;
            });
            let waits = shown(async {
                let _ = scope.await;
            });
            assert_eq!(waits.await, Some((WaitKind::TaskGroup, line)));
        });
    });
}

#[test]
fn a_task_that_ended_leaves_no_wait_to_the_next() {
    within_limit(|| {
        runtime().block_on(async {
            // Both are polled in one turn, in this order.
            let ends = spawn(glance());
            assert_eq!(shown(pending()).await, None);
            ends.await.expect("it ends");
            let set = rt::task::LocalSet::new();
            set.run_until(async {
                rt::task::spawn_local(glance());
                let waits = rt::task::Builder::new().name("says nothing");
                let waits = waits.spawn_local(pending::<()>()).expect("spawned");
                yield_now().await;
                let mut tasks = all_tasks().into_iter();
                let info = tasks
                    .find(|info| info.id() == waits.id())
                    .expect("it waits");
                assert_eq!(
                    (info.activity(), info.waits_for()),
                    (Activity::Waiting, None)
                );
            })
            .await;
        });
    });
}
