//! `all_tasks`, `current`, `try_current`.

use std::future::pending;
use std::sync::Arc;
use std::sync::Barrier;
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::task::{Activity, LocalSet, TaskInfo, WaitKind, all_tasks, current, try_current};
use rt::time::sleep;

use crate::support::within_limit;

const MS: Duration = Duration::from_millis(1);

fn runtimes() -> [Runtime; 2] {
    let current = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let multi = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    [current, multi]
}

fn named(name: &str) -> TaskInfo {
    all_tasks()
        .into_iter()
        .find(|task| task.name() == Some(name))
        .unwrap_or_else(|| panic!("no task '{name}'"))
}

#[test]
fn a_task_that_waits_says_for_what_and_where() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let line = line!() + 1;
                let sleeper = rt::task::Builder::new().name("sleeper").spawn(async {
                    sleep(Duration::from_secs(3600)).await;
                });
                let sleeper = sleeper.expect("spawned");
                while named("sleeper").activity() != Activity::Waiting {
                    sleep(MS).await;
                }
                let info = named("sleeper");
                assert_eq!(info.id(), sleeper.id());
                assert_eq!(
                    (info.spawned_at().file(), info.spawned_at().line()),
                    (file!(), line)
                );
                let (kind, site) = info.waits_for().expect("it waits");
                assert_eq!(kind, WaitKind::Sleep);
                assert_eq!((site.file(), site.line()), (file!(), line + 1));
                assert_eq!(info.polls(), 1);
                let text = info.to_string();
                assert!(
                    text.contains("'sleeper'") && text.contains("waits in Sleep"),
                    "{text}"
                );
                info.abort_handle().abort();
                assert!(sleeper.await.expect_err("aborted").is_aborted());
                assert!(all_tasks().is_empty());
            });
        }
    });
}

#[test]
fn all_tasks_of_all_seats_are_there_and_of_this_runtime_only() {
    within_limit(|| {
        let [one, two] = runtimes();
        let stranger = one.spawn(pending::<()>());
        for _ in 0..100 {
            two.spawn(pending::<()>());
        }
        let pinned = two
            .handle()
            .spawn_pinned(1, || async {
                rt::spawn(pending::<()>());
                pending::<()>().await;
            })
            .expect("a worker");
        two.block_on(async {
            rt::spawn(pending::<()>());
            while all_tasks().len() < 103 {
                sleep(MS).await;
            }
            let all = all_tasks();
            assert_eq!(all.len(), 103);
            assert!(all.iter().any(|task| task.id() == pinned.id()));
            assert!(all.iter().all(|task| task.id() != stranger.id()));
        });
        one.block_on(async { assert_eq!(all_tasks().len(), 1) });
    });
}

#[test]
fn a_task_sees_itself_running() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                assert!(try_current().is_none(), "the root future is no task");
                let task = rt::task::Builder::new().name("self").spawn(async {
                    let own = current();
                    assert_eq!(own.name(), Some("self"));
                    assert_eq!(own.activity(), Activity::Running);
                    assert_eq!(own.id(), rt::task::id());
                    assert_eq!(named("self").activity(), Activity::Running);
                    own.id()
                });
                let task = task.expect("spawned");
                let id = task.id();
                assert_eq!(task.await.expect("no panic"), id);
            });
        }
    });
}

#[test]
fn a_task_that_has_not_had_its_turn_is_ready() {
    within_limit(|| {
        let [runtime, _] = runtimes();
        runtime.block_on(async {
            let task = rt::task::Builder::new()
                .name("fresh")
                .spawn(async {})
                .expect("spawned");
            assert_eq!(named("fresh").activity(), Activity::Ready);
            assert_eq!(named("fresh").polls(), 0);
            let kept = named("fresh");
            task.await.expect("no panic");
            assert!(all_tasks().is_empty());
            // What was kept is a picture of then.
            assert_eq!(kept.activity(), Activity::Ready);
        });
    });
}

#[test]
fn tasks_of_the_local_set_here_are_among_them() {
    within_limit(|| {
        let [runtime, _] = runtimes();
        let set = LocalSet::new();
        set.spawn_local(pending::<()>());
        set.block_on(&runtime, async {
            rt::spawn(pending::<()>());
            assert_eq!(all_tasks().len(), 2);
        });
        runtime.block_on(async { assert_eq!(all_tasks().len(), 1) });
    });
}

#[test]
fn snapshots_against_spawns_and_ends_hold_up_nobody() {
    within_limit(|| {
        let [_, runtime] = runtimes();
        let meet = Arc::new(Barrier::new(2));
        let begin = meet.clone();
        let churn = runtime.spawn(async move {
            begin.wait();
            for _ in 0..2000 {
                rt::spawn(async {}).await.expect("no panic");
            }
        });
        meet.wait();
        let _entered = runtime.enter();
        while !churn.is_finished() {
            for task in all_tasks() {
                assert!(!task.to_string().is_empty());
            }
        }
    });
}

#[test]
fn a_group_that_waits_for_its_children_says_so() {
    within_limit(|| {
        let [runtime, _] = runtimes();
        runtime.block_on(async {
            let owner = rt::task::Builder::new()
                .name("owner")
                .spawn(rt::task::TaskGroup::<()>::scope(async |group| {
                    group.build_task().name("child").spawn(pending::<()>());
                }))
                .expect("spawned");
            while named("owner").activity() != Activity::Waiting {
                sleep(MS).await;
            }
            let (kind, site) = named("owner").waits_for().expect("it waits");
            assert_eq!((kind, site.file()), (WaitKind::TaskGroup, file!()));
            owner.abort();
        });
    });
}
