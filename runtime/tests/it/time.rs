//! Time as tasks of a runtime see it: lateness, virtual time, timers that move between threads.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant as RealInstant};

use rt::runtime::{Builder, Runtime};
use rt::time::{self, Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use crate::pains_support::eventually;
use crate::support::within_limit;

const MS: Duration = Duration::from_millis(1);

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn paused() -> Runtime {
    Builder::new_current_thread()
        .start_paused(true)
        .build()
        .unwrap()
}

fn workers(n: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(n)
        .build()
        .unwrap()
}

#[test]
fn a_sleep_is_never_early_on_either_flavour() {
    within_limit(|| {
        for runtime in [current_thread(), workers(2)] {
            runtime.block_on(async {
                let tasks: Vec<_> = (0..200u32)
                    .map(|n| {
                        rt::spawn(async move {
                            let start = RealInstant::now();
                            let length = Duration::from_micros(u64::from(n) * 37);
                            sleep(length).await;
                            assert!(start.elapsed() >= length);
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        }
    });
}

#[test]
fn a_long_virtual_sleep_is_over_at_once_and_exact() {
    within_limit(|| {
        let real = RealInstant::now();
        paused().block_on(async {
            let start = Instant::now();
            sleep(Duration::from_secs(24 * 3600)).await;
            assert_eq!(start.elapsed(), Duration::from_secs(24 * 3600));
            sleep(Duration::from_nanos(1)).await;
            assert_eq!(
                start.elapsed(),
                Duration::from_secs(24 * 3600) + Duration::from_nanos(1)
            );
        });
        assert!(real.elapsed() < Duration::from_secs(3600));
    });
}

#[test]
fn virtual_sleeps_end_in_the_order_of_their_deadlines() {
    within_limit(|| {
        paused().block_on(async {
            let start = Instant::now();
            let order = Arc::new(std::sync::Mutex::new(Vec::new()));
            let tasks: Vec<_> = [5u32, 1, 4, 2, 3]
                .map(|n| {
                    let order = order.clone();
                    rt::spawn(async move {
                        // Less than a tick of the wheel apart.
                        sleep(n * Duration::from_micros(10)).await;
                        assert_eq!(start.elapsed(), n * Duration::from_micros(10));
                        order.lock().unwrap().push(n);
                    })
                })
                .into_iter()
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4, 5]);
        });
    });
}

/// Pains H6: virtual time does not run past a blocking closure.
#[test]
fn virtual_time_waits_for_blocking_closures() {
    within_limit(|| {
        paused().block_on(async {
            let start = Instant::now();
            let work = rt::spawn_blocking(|| {
                thread::sleep(200 * MS);
                7
            });
            let done = timeout(Duration::from_secs(100), work).await;
            assert_eq!(done.unwrap().unwrap(), 7);
            assert_eq!(start.elapsed(), Duration::ZERO);
            // And goes on when the last one is gone.
            sleep(Duration::from_secs(1)).await;
            assert_eq!(start.elapsed(), Duration::from_secs(1));
        });
    });
}

/// Pains H6: a sleeper fires by hand while a blocking closure holds virtual time back.
#[test]
fn advance_fires_timers_while_a_blocking_closure_runs() {
    within_limit(|| {
        paused().block_on(async {
            let (release, held) = std::sync::mpsc::channel::<()>();
            let work = rt::spawn_blocking(move || held.recv());
            let fired = Arc::new(AtomicUsize::new(0));
            let count = fired.clone();
            let sleeper = rt::spawn(async move {
                sleep(Duration::from_secs(10)).await;
                count.fetch_add(1, SeqCst);
            });
            rt::task::yield_now().await;
            time::advance(Duration::from_secs(9)).await;
            assert_eq!(fired.load(SeqCst), 0);
            time::advance(Duration::from_secs(1)).await;
            assert_eq!(fired.load(SeqCst), 1, "advance lets due timers run");
            release.send(()).unwrap();
            work.await.unwrap().unwrap();
            sleeper.await.unwrap();
        });
    });
}

#[test]
fn a_clock_is_paused_and_resumed_within_one_run() {
    within_limit(|| {
        current_thread().block_on(async {
            time::pause();
            let start = Instant::now();
            sleep(Duration::from_secs(50)).await;
            assert_eq!(start.elapsed(), Duration::from_secs(50));
            time::resume();
            let real = RealInstant::now();
            sleep(20 * MS).await;
            assert!(real.elapsed() >= 20 * MS);
            assert!(start.elapsed() >= Duration::from_secs(50) + 20 * MS);
        });
    });
}

#[test]
fn a_runtime_with_workers_refuses_to_pause_and_says_what_to_do() {
    within_limit(|| {
        workers(1).block_on(async {
            let payload = catch_unwind(time::pause).unwrap_err();
            let message = payload.downcast::<String>().unwrap();
            assert!(message.contains("new_current_thread"), "{message}");
        });
    });
}

#[test]
fn other_runtimes_keep_real_time_while_one_is_paused() {
    within_limit(|| {
        let stopped = paused();
        stopped.block_on(async {
            let virtual_now = Instant::now();
            let real = thread::spawn(|| {
                workers(1).block_on(async {
                    let start = Instant::now();
                    sleep(10 * MS).await;
                    start.elapsed()
                })
            });
            assert!(real.join().unwrap() >= 10 * MS);
            assert_eq!(virtual_now.elapsed(), Duration::ZERO);
        });
    });
}

/// Pains C5, in real time: the worker is blocked for ten periods.
#[test]
fn a_blocked_interval_skips_and_tells_how_many() {
    within_limit(|| {
        current_thread().block_on(async {
            let mut ticks = interval(10 * MS);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            let first = ticks.tick().await;
            thread::sleep(105 * MS);
            ticks.tick().await;
            // The first of the missed ticks came; the machine may have blocked us for longer.
            assert!(ticks.missed() >= 9, "{}", ticks.missed());
            let next = ticks.tick().await;
            assert_eq!((next - first).as_nanos() % (10 * MS).as_nanos(), 0);
        });
    });
}

/// Pains C2 and C3: timers that one worker made are moved, dropped and waited for on others.
#[test]
fn timers_survive_moves_between_threads() {
    within_limit(|| {
        let runtime = workers(2);
        runtime.block_on(async {
            let tasks: Vec<_> = (0..200u64)
                .map(|n| {
                    rt::spawn(async move {
                        for round in 0..20 {
                            let mut pinned = Box::pin(sleep(Duration::from_secs(1000)));
                            // Registers here.
                            assert!(timeout(Duration::ZERO, pinned.as_mut()).await.is_err());
                            let deadline = Instant::now() + Duration::from_micros(n + round);
                            // Moved, dropped or awaited by another task, mostly on another thread.
                            rt::spawn(async move {
                                if (n + round) % 5 == 0 {
                                    return drop(pinned);
                                }
                                pinned.as_mut().reset(deadline);
                                pinned.await;
                                assert!(Instant::now() >= deadline);
                            })
                            .await
                            .unwrap();
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
}

/// A deadline that is brought forward from a thread outside wakes the worker that sleeps for the old one.
#[test]
fn a_reset_from_outside_wakes_a_parked_worker() {
    within_limit(|| {
        for runtime in [current_thread(), workers(2)] {
            let (give, take) = std::sync::mpsc::channel();
            let handle = runtime.handle().clone();
            let outside = thread::spawn(move || {
                let mut sleep: std::pin::Pin<Box<time::Sleep>> = take.recv().unwrap();
                eventually("everybody sleeps", || {
                    let workers = handle.metrics().workers;
                    workers.iter().all(|worker| worker.parked.is_some())
                });
                sleep.as_mut().reset(Instant::now());
                sleep
            });
            runtime.block_on(async move {
                let mut sleep = Box::pin(sleep(Duration::from_secs(10_000)));
                let mut sent = None;
                std::future::poll_fn(|cx| {
                    use std::task::Poll;
                    if sent.is_none() {
                        assert!(sleep.as_mut().poll(cx).is_pending());
                        let moved = std::mem::replace(&mut sleep, Box::pin(time::sleep(MS)));
                        give.send(moved).unwrap();
                        sent = Some(());
                        Poll::Pending
                    } else {
                        Poll::Ready(())
                    }
                })
                .await;
            });
            assert!(outside.join().unwrap().is_elapsed());
        }
    });
}

#[test]
fn dropping_a_runtime_with_timers_neither_hangs_nor_panics() {
    within_limit(|| {
        for runtime in [current_thread(), workers(2)] {
            runtime.block_on(async {
                for n in 0..100 {
                    rt::spawn(sleep(Duration::from_secs(1000 + n)));
                    rt::spawn(timeout(Duration::from_secs(1000), pending::<()>()));
                }
                sleep(5 * MS).await;
            });
            drop(runtime);
        }
    });
}

/// A `Sleep` of a runtime that has gone is polled by another one.
#[test]
fn a_sleep_of_a_runtime_that_is_gone_panics_with_its_site() {
    within_limit(|| {
        let gone = workers(1);
        let mut orphan = Box::pin(sleep(Duration::from_secs(1000)));
        gone.block_on(async {
            assert!(timeout(MS, orphan.as_mut()).await.is_err());
        });
        drop(gone);
        let other = current_thread();
        let payload = catch_unwind(AssertUnwindSafe(|| other.block_on(orphan))).unwrap_err();
        let message = payload.downcast::<String>().unwrap();
        assert!(
            message.contains("time.rs") && message.contains("shut down"),
            "{message}"
        );
    });
}

/// Timers that were cancelled leave nothing that wakes the thread.
#[test]
fn a_deadline_in_the_past_is_ready_within_a_turn() {
    within_limit(|| {
        current_thread().block_on(async {
            sleep(5 * MS).await;
            let past = Instant::now() - 2 * MS;
            let start = RealInstant::now();
            sleep_until(past).await;
            assert!(start.elapsed() < Duration::from_secs(5));
        });
    });
}

/// A task that always has something ready does not keep timers from firing.
#[test]
fn a_busy_worker_fires_its_timers() {
    within_limit(|| {
        current_thread().block_on(async {
            let busy = rt::spawn(async {
                loop {
                    rt::task::yield_now().await;
                }
            });
            sleep(20 * MS).await;
            busy.abort();
        });
    });
}
