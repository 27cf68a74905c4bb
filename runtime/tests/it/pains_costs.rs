//! Performance as counts, which no busy machine changes much: theme I of the known pains of async runtimes.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rt::runtime::{Runtime, RuntimeMetrics};
use rt::time::sleep;

use crate::pains_support::{MS, Mailbox, each_kind, workers};
use crate::support::within_limit;

fn sum(metrics: &RuntimeMetrics, count: impl Fn(&rt::runtime::WorkerMetrics) -> u64) -> u64 {
    metrics.workers.iter().map(count).sum()
}

/// Two tasks that answer each other wake no worker but their own.
#[test]
fn i1_messages_between_tasks_wake_next_to_nobody() {
    const MESSAGES: u64 = 20_000;
    within_limit(|| {
        let runtime = workers(4);
        let (ping, pong) = (Mailbox::new(), Mailbox::new());
        let answer = {
            let (ping, pong) = (ping.clone(), pong.clone());
            async move {
                for _ in 0..MESSAGES {
                    pong.send(ping.recv().await);
                }
            }
        };
        let unparks = runtime.block_on(runtime.spawn(async move {
            let answer = rt::spawn(answer);
            let before = rt::runtime::Handle::current().metrics().unparks;
            for n in 0..MESSAGES {
                ping.send(n);
                assert_eq!(pong.recv().await, n);
            }
            answer.await.unwrap();
            rt::runtime::Handle::current().metrics().unparks - before
        }));
        let unparks = unparks.unwrap();
        // Ten a thousand would be the limit; a machine with other work makes the monitor rescue a few.
        assert!(
            unparks <= 2 * MESSAGES / 100,
            "{unparks} unparks for {} messages",
            2 * MESSAGES
        );
    });
}

/// Nothing is registered: no selector is looked at, whatever else goes on.
#[test]
fn i3_without_sources_there_is_no_select() {
    within_limit(|| {
        for runtime in each_kind() {
            let (ping, pong) = (Mailbox::new(), Mailbox::new());
            let answer = {
                let (ping, pong) = (ping.clone(), pong.clone());
                async move {
                    for _ in 0..2000 {
                        pong.send(ping.recv().await);
                    }
                }
            };
            let task = runtime.spawn(async move {
                let answer = rt::spawn(answer);
                for n in 0..2000 {
                    ping.send(n);
                    assert_eq!(pong.recv().await, n);
                    if n % 100 == 0 {
                        rt::task::yield_now().await;
                        sleep(Duration::from_micros(100)).await;
                        rt::spawn_blocking(|| ()).await.unwrap();
                    }
                }
                answer.await.unwrap();
            });
            runtime.block_on(task).unwrap();
            let metrics = runtime.metrics();
            assert_eq!(sum(&metrics, |worker| worker.selects), 0);
            assert_eq!(sum(&metrics, |worker| worker.registrations as u64), 0);
        }
    });
}

/// A parent that spawns children is not as large as they are.
#[test]
fn i5_a_parent_does_not_contain_its_children() {
    async fn child() -> usize {
        let buffer = [1u8; 100_000];
        rt::task::yield_now().await;
        buffer.iter().map(|byte| usize::from(*byte)).sum()
    }
    async fn parent() -> usize {
        let handles: Vec<_> = (0..4).map(|_| rt::spawn(child())).collect();
        let mut total = 0;
        for handle in handles {
            total += handle.await.unwrap();
        }
        total
    }
    within_limit(|| {
        let future = parent();
        let size = size_of_val(&future);
        assert!(size < 1000, "{size} bytes");
        assert_eq!(workers(2).block_on(future), 400_000);
    });
}

/// Wakes on the same thread make no system call; one foreign wake of a sleeper makes one.
#[test]
fn i7_only_a_sleeper_is_woken_by_a_system_call() {
    within_limit(|| {
        let runtime = workers(1);
        let unparks = |runtime: &Runtime| runtime.metrics().unparks;
        // An unpark is counted when it is over: that of the spawn below, before the task begins to count.
        let counted = Arc::new(AtomicBool::new(false));
        let task = runtime.spawn({
            let counted = counted.clone();
            async move {
                while !counted.load(SeqCst) {
                    rt::task::yield_now().await;
                }
                let handle = rt::runtime::Handle::current();
                let before = handle.metrics().unparks;
                for _ in 0..5000 {
                    rt::spawn(async {}).await.unwrap();
                    rt::task::yield_now().await;
                }
                handle.metrics().unparks - before
            }
        });
        counted.store(true, SeqCst);
        let local = runtime.block_on(task);
        assert_eq!(local.unwrap(), 0);
        let mailbox = Mailbox::new();
        let answers = Mailbox::new();
        runtime.spawn({
            let (mailbox, answers) = (mailbox.clone(), answers.clone());
            async move {
                loop {
                    answers.send(mailbox.recv().await);
                }
            }
        });
        thread::sleep(10 * MS);
        let before = unparks(&runtime);
        for n in 0..200 {
            mailbox.send(n);
            assert_eq!(futures_lite::future::block_on(answers.recv()), n);
        }
        assert!(unparks(&runtime) - before <= 200);
        drop(runtime.spawn(pending::<()>()));
    });
}
