//! `JoinSet` on a runtime: tasks on many workers, blocking closures, other runtimes, shutdown.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::task::{JoinSet, yield_now};
use rt::time::sleep;

use crate::support::within_limit;

/// Runs the test on runtimes of 0, 1 and 3 workers.
fn on_each(test: fn(&Runtime)) {
    within_limit(move || {
        for workers in [0, 1, 3] {
            let runtime = match workers {
                0 => Builder::new_current_thread().build(),
                _ => Builder::new_multi_thread().worker_threads(workers).build(),
            };
            test(&runtime.expect("a runtime"));
        }
    });
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn many_tasks_are_all_joined_once() {
    on_each(|runtime| {
        let sum = runtime.block_on(async {
            let mut set = JoinSet::new();
            for n in 0..5_000_u64 {
                set.spawn(async move {
                    if n % 3 == 0 {
                        yield_now().await;
                    }
                    n
                });
            }
            let mut sum = 0;
            while let Some(result) = set.join_next().await {
                sum += result.expect("no panic");
            }
            sum
        });
        assert_eq!(sum, 4_999 * 5_000 / 2);
    });
}

#[test]
fn a_set_that_is_refilled_while_it_is_joined() {
    on_each(|runtime| {
        runtime.block_on(async {
            let mut set: JoinSet<u32> = (0..8).map(|n| async move { n }).collect();
            let (mut joined, mut spawned) = (0, 8);
            while let Some(result) = set.join_next().await {
                result.expect("no panic");
                joined += 1;
                if spawned < 3_000 {
                    spawned += 1;
                    set.spawn(async move { spawned });
                }
            }
            assert_eq!((joined, spawned), (3_000, 3_000));
        });
    });
}

#[test]
fn blocking_closures_and_named_tasks() {
    on_each(|runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            set.spawn_blocking(|| 1);
            set.build_task()
                .name("two")
                .spawn(async { 2 })
                .expect("spawned");
            set.build_task()
                .name("three")
                .spawn_blocking(|| 3)
                .expect("spawned");
            let mut outputs = set.join_all().await;
            outputs.sort_unstable();
            assert_eq!(outputs, [1, 2, 3]);
        });
    });
}

#[test]
fn tasks_of_another_runtime() {
    on_each(|runtime| {
        let other = Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        let handle = other.handle().clone();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            set.spawn_on(async { 1 }, &handle);
            set.spawn_blocking_on(|| 2, &handle);
            set.spawn(async { 3 });
            let mut outputs = set.join_all().await;
            outputs.sort_unstable();
            assert_eq!(outputs, [1, 2, 3]);
            // One that ends with its runtime.
            let mut set = JoinSet::new();
            set.spawn_on(pending::<()>(), &handle);
            drop(other);
            let error = set
                .join_next()
                .await
                .expect("not empty")
                .expect_err("its runtime closed");
            assert!(error.is_runtime_closed(), "{error}");
        });
    });
}

#[test]
fn shutdown_and_drop_end_every_task() {
    on_each(|runtime| {
        runtime.block_on(async {
            let drops = Arc::new(AtomicUsize::new(0));
            let task = |drops: &Arc<AtomicUsize>| {
                let guard = CountDrop(drops.clone());
                async move {
                    let _guard = guard;
                    sleep(Duration::from_secs(3600)).await;
                }
            };
            let mut set = JoinSet::new();
            for _ in 0..200 {
                set.spawn(task(&drops));
            }
            yield_now().await;
            set.shutdown().await;
            assert_eq!(drops.load(SeqCst), 200);
            for _ in 0..200 {
                set.spawn(task(&drops));
            }
            drop(set);
            while drops.load(SeqCst) < 400 {
                yield_now().await;
            }
        });
    });
}

/// Five tasks: one panics, one is aborted, one is slow; all are told apart.
#[test]
fn failures_are_told_apart_by_number() {
    on_each(|runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let good = set.spawn(async { 1 }).id();
            let (release, released) = rt::sync::oneshot::channel();
            let mut release = Some(release);
            let slow = set
                .spawn(async {
                    released.await.expect("released when all others are over");
                    2
                })
                .id();
            let bad = set.spawn(async { panic!("boom") }).id();
            let aborted = set.spawn(pending());
            aborted.abort();
            let mut seen = Vec::new();
            while let Some(result) = set.join_next_with_id().await {
                match result {
                    Ok((id, _)) => seen.push((id, "ok")),
                    Err(error) if error.is_panic() => seen.push((error.id(), "panic")),
                    Err(error) => seen.push((error.id(), "aborted")),
                }
                if seen.len() == 3 {
                    release.take().expect("once").send(()).expect("it waits");
                }
            }
            assert_eq!(seen.last(), Some(&(slow, "ok")));
            seen.sort_unstable();
            let mut expected = [
                (good, "ok"),
                (slow, "ok"),
                (bad, "panic"),
                (aborted.id(), "aborted"),
            ];
            expected.sort_unstable();
            assert_eq!(seen, expected);
        });
    });
}
