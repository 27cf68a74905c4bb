//! `Runtime::metrics`.

use std::sync::mpsc;
use std::time::Duration;

use rt::runtime::{RuntimeMetrics, WorkerMetrics};
use rt::task::yield_now;
use rt::time::sleep;

use crate::support::{LONG, MS, current, eventually, multi, within_limit};

fn sum(metrics: &RuntimeMetrics, count: impl Fn(&WorkerMetrics) -> u64) -> u64 {
    metrics.workers.iter().map(count).sum()
}

fn assert_adds_up(metrics: &RuntimeMetrics) {
    for worker in &metrics.workers {
        let time = worker.time;
        let parts = [
            time.select,
            time.dispatch,
            time.tasks,
            time.stealing,
            time.parked,
        ];
        assert_eq!(parts.iter().sum::<Duration>(), time.total());
        if !time.total().is_zero() {
            let percents: f64 = parts.iter().map(|part| time.percent(*part)).sum();
            assert!((percents - 100.0).abs() < 1e-6, "{percents}: {time:?}");
        }
    }
}

async fn busy() {
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            rt::spawn(async {
                for _ in 0..50 {
                    yield_now().await;
                }
                sleep(2 * MS).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[test]
fn the_shares_of_time_add_up_and_are_all_of_it() {
    within_limit(|| {
        for runtime in [current(), multi(2)] {
            runtime.block_on(async {
                for _ in 0..10 {
                    busy().await;
                    assert_adds_up(&rt::runtime::Handle::current().metrics());
                }
            });
            let metrics = runtime.metrics();
            assert_adds_up(&metrics);
            for worker in &metrics.workers[..metrics.num_workers] {
                // From its start, which was after the runtime's, until now.
                let total = worker.time.total();
                assert!(total <= metrics.uptime, "{total:?} of {:?}", metrics.uptime);
                assert!(total >= 15 * MS, "{total:?}");
                assert!(worker.occupied);
            }
        }
    });
}

#[test]
fn a_task_that_blocks_shows_while_it_does() {
    within_limit(|| {
        let runtime = multi(2);
        let (entered, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let blocked = runtime.spawn(async move {
            entered.send(()).unwrap();
            let _ = released.recv();
        });
        begun.recv_timeout(LONG).expect("it begins");
        let before = runtime.metrics();
        let blocks = |metrics: &RuntimeMetrics| {
            metrics
                .workers
                .iter()
                .zip(&before.workers)
                .map(|(now, before)| now.time.since(&before.time).tasks)
                .max()
        };
        eventually("the time in tasks grows", || {
            blocks(&runtime.metrics()) >= Some(50 * MS)
        });
        let metrics = runtime.metrics();
        assert_adds_up(&metrics);
        assert!(metrics.workers.iter().any(|worker| worker.parked.is_none()));
        drop(release);
        runtime.block_on(blocked).expect("no panic");
    });
}

#[test]
fn an_idle_runtime_is_parked() {
    within_limit(|| {
        let runtime = multi(2);
        eventually("the workers sleep", || {
            runtime
                .metrics()
                .workers
                .iter()
                .all(|worker| worker.parked >= Some(50 * MS))
        });
        let metrics = runtime.metrics();
        for (index, worker) in metrics.workers.iter().enumerate() {
            assert!(worker.time.percent(worker.time.parked) > 50.0, "{worker:?}");
            assert_eq!(
                (worker.queue_depth, worker.oldest_ready_age),
                (0, Duration::ZERO)
            );
            assert_eq!(metrics.worker_park_unpark_count(index) % 2, 1);
        }
        assert_eq!(metrics.num_workers(), 2);
        assert_eq!(metrics.num_alive_tasks(), 0);
        assert_eq!(metrics.global_queue_depth(), 0);
        assert!(metrics.worker_park_count(0) >= 1);
        assert!(metrics.worker_total_busy_duration(1) < metrics.uptime);
    });
}

#[test]
#[should_panic(expected = "runtime 'measured' has no worker 2: it has 2, counted from 0")]
fn a_worker_that_is_not_there_is_named() {
    let _ = multi(2).metrics().worker_park_count(2);
}

#[test]
fn histograms_count_timers_and_polls() {
    within_limit(|| {
        for runtime in [current(), multi(2)] {
            runtime.block_on(async {
                let timers: Vec<_> = (0..30).map(|n| rt::spawn(sleep(n % 3 * MS + MS))).collect();
                for timer in timers {
                    timer.await.expect("no panic");
                }
                for _ in 0..20 {
                    busy().await;
                }
            });
            let metrics = runtime.metrics();
            let late = &metrics.timer_lateness;
            // Whoever looks after a worker that is held up fires its timers as well. One that is due when it is first polled
            // is no timer.
            assert!(late.count() >= sum(&metrics, |worker| worker.timers));
            assert!((1..=30 + 20 * 20).contains(&late.count()));
            assert_eq!(
                late.buckets().map(|(_, count)| count).sum::<u64>(),
                late.count()
            );
            assert!(late.quantile(0.5) <= Some(Duration::from_secs(1)));
            let polls = metrics.poll_times.count();
            assert!(polls > 0);
            // One poll at most of each turn that is timed: one in 128, and the first ones.
            let turns = sum(&metrics, |worker| worker.turns);
            let most = turns / 128 + 10 * metrics.workers.len() as u64 + 10;
            assert!(polls <= most, "{polls} of {turns} turns");
        }
    });
}

#[test]
fn sources_and_tasks_are_counted_while_they_live() {
    within_limit(|| {
        let runtime = multi(1);
        runtime.block_on(async {
            let listener = rt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut tasks: Vec<_> = (0..5).map(|_| rt::spawn(sleep(1000 * LONG))).collect();
            // A source is registered when it is first waited for.
            tasks.push(rt::spawn(async move {
                let _ = listener.accept().await;
            }));
            let handle = rt::runtime::Handle::current();
            loop {
                let metrics = handle.metrics();
                if metrics.pending_timers == 5 && metrics.registrations == 1 {
                    break;
                }
                yield_now().await;
            }
            let metrics = handle.metrics();
            assert_eq!((metrics.live_tasks, metrics.num_alive_tasks()), (6, 6));
            for task in tasks {
                task.abort();
                let _ = task.await;
            }
            let metrics = handle.metrics();
            assert_eq!((metrics.live_tasks, metrics.pending_timers), (0, 0));
            assert_eq!(metrics.registrations, 0);
        });
    });
}

#[test]
fn the_table_of_a_busy_runtime_names_everything() {
    within_limit(|| {
        let runtime = multi(2);
        runtime.block_on(async {
            rt::spawn_blocking(|| ()).await.expect("no panic");
            busy().await;
        });
        let text = runtime.metrics().to_string();
        for word in [
            "runtime 'measured': 2 workers, up ",
            "worker 0",
            "worker 1",
            "guest 0",
            "stealing",
            "parked",
            "injector: 0 tasks now",
            "timers late by: p50 ",
            "polls take (sampled): p50 ",
            "blocking pool: 1 threads",
            "compute pool: 0 threads",
        ] {
            assert!(text.contains(word), "no {word:?} in:\n{text}");
        }
        assert!(text.lines().all(|line| line.len() <= 130), "{text}");
    });
}
