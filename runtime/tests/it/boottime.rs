//! `rt::time::boottime`: deadlines that do not stand still while the machine is suspended.
#![cfg(target_os = "linux")]

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::mpsc;
use std::time::Duration;

use futures_lite::future::poll_once;
use rt::runtime::{Builder, Runtime};
use rt::task::yield_now;
use rt::time::{Instant, advance, boottime, pause, resume, sleep};

use crate::support::within_limit;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn paused() -> Runtime {
    Builder::new_current_thread()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

fn of(workers: usize) -> Runtime {
    let runtime = match workers {
        0 => Builder::new_current_thread().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).build(),
    };
    runtime.expect("a runtime")
}

#[test]
fn c7_a_suspension_counts_on_the_boot_clock_and_on_no_other() {
    within_limit(|| {
        paused().block_on(async {
            let (start, boot) = (Instant::now(), boottime::Instant::now());
            let by_boot = rt::spawn(boottime::sleep(HOUR));
            let by_boot_later = rt::spawn(boottime::sleep(2 * HOUR));
            let plain = rt::spawn(sleep(HOUR));
            let holds_the_clock = rt::spawn(async {
                loop {
                    yield_now().await;
                }
            });
            yield_now().await;
            boottime::suspend(HOUR - MS);
            yield_now().await;
            assert!(!by_boot.is_finished());
            boottime::suspend(MS);
            by_boot.await.expect("no panic");
            assert!(!plain.is_finished());
            assert!(!by_boot_later.is_finished());
            assert_eq!(start.elapsed(), Duration::ZERO);
            assert_eq!(boot.elapsed(), HOUR);
            // Both clocks go on together.
            advance(HOUR).await;
            plain.await.expect("no panic");
            by_boot_later.await.expect("no panic");
            assert_eq!(boot.elapsed(), 2 * HOUR);
            holds_the_clock.abort();
        });
    });
}

#[test]
fn a_paused_clock_jumps_to_a_deadline_of_the_boot_clock() {
    within_limit(|| {
        paused().block_on(async {
            let start = Instant::now();
            let boot = boottime::Instant::now();
            boottime::sleep(HOUR).await;
            boottime::suspend(HOUR);
            boottime::sleep_until(boot + 3 * HOUR).await;
            assert_eq!(start.elapsed(), 2 * HOUR);
        });
    });
}

#[test]
fn a_sleep_that_began_before_the_clock_was_paused_goes_by_the_virtual_one() {
    within_limit(|| {
        of(0).block_on(async {
            let before = boottime::Instant::now();
            let by_hand = rt::spawn(boottime::sleep(HOUR));
            let by_suspension = rt::spawn(boottime::sleep(3 * HOUR));
            let by_itself = rt::spawn(boottime::sleep(5 * HOUR));
            let holds_the_clock = rt::spawn(async {
                loop {
                    yield_now().await;
                }
            });
            yield_now().await;
            pause();
            let (start, boot) = (Instant::now(), boottime::Instant::now());
            advance(HOUR).await;
            by_hand.await.expect("no panic");
            boottime::suspend(2 * HOUR);
            by_suspension.await.expect("no panic");
            assert_eq!(start.elapsed(), HOUR);
            assert!(!by_itself.is_finished());
            holds_the_clock.abort();
            by_itself.await.expect("no panic");
            assert!(before.elapsed() >= 5 * HOUR);
            assert!(boot.elapsed() <= 5 * HOUR);

            // And it stays virtual when it runs again.
            resume();
            boottime::sleep(MS).await;
            pause();
            boottime::sleep(HOUR).await;
        });
    });
}

#[test]
fn a_sleep_is_never_early_and_not_late_by_much() {
    within_limit(|| {
        for workers in [0, 1, 2] {
            of(workers).block_on(async {
                let (start, boot) = (Instant::now(), boottime::Instant::now());
                let tasks: Vec<_> = (1..=20)
                    .map(|n| {
                        rt::spawn(async move {
                            boottime::sleep(n * MS).await;
                            boottime::Instant::now()
                        })
                    })
                    .collect();
                for (n, task) in (1..).zip(tasks) {
                    let ended = task.await.expect("no panic");
                    assert!(ended - boot >= n * MS);
                }
                assert!(start.elapsed() >= 20 * MS);
                assert!(start.elapsed() < Duration::from_secs(10));
            });
        }
    });
}

#[test]
fn what_is_over_is_ready_at_once_and_what_is_out_of_reach_never() {
    within_limit(|| {
        of(1).block_on(async {
            let now = boottime::Instant::now();
            for mut past in [boottime::sleep(Duration::ZERO), boottime::sleep_until(now)] {
                assert_eq!(poll_once(&mut past).await, Some(()));
                assert!(past.is_elapsed());
                assert_eq!(poll_once(&mut past).await, Some(()));
            }
            for seconds in [u64::MAX, i64::MAX as u64, u64::from(u32::MAX)] {
                let mut never = boottime::sleep(Duration::from_secs(seconds));
                assert_eq!(poll_once(&mut never).await, None);
                assert!(!never.is_elapsed());
            }
        });
    });
}

#[test]
fn ten_thousand_that_are_over_give_way() {
    within_limit(|| {
        paused().block_on(async {
            let other = rt::spawn(async {});
            for _ in 0..10_000 {
                boottime::sleep(Duration::ZERO).await;
            }
            assert!(other.is_finished());
        });
    });
}

#[test]
fn the_task_that_polled_last_is_woken() {
    within_limit(|| {
        of(1).block_on(async {
            let mut first = boottime::sleep(30 * MS);
            assert_eq!(poll_once(&mut first).await, None);
            rt::spawn(first).await.expect("no panic");
        });
    });
}

#[test]
fn it_needs_a_runtime_that_lives() {
    within_limit(|| {
        let sleep = boottime::sleep(HOUR);
        let outside = catch_unwind(AssertUnwindSafe(|| {
            futures_lite::future::block_on(sleep);
        }));
        let message = *outside
            .expect_err("it panics")
            .downcast::<String>()
            .unwrap();
        assert!(
            message.contains("`boottime::sleep`") && message.contains(file!()),
            "{message}"
        );

        let runtime = of(1);
        let mut sleep = pin!(boottime::sleep(HOUR));
        assert_eq!(runtime.block_on(poll_once(sleep.as_mut())), None);
        drop(runtime);
        let after = catch_unwind(AssertUnwindSafe(|| {
            futures_lite::future::block_on(sleep);
        }));
        let message = *after.expect_err("it panics").downcast::<String>().unwrap();
        assert!(message.contains("shut down"), "{message}");
    });
}

#[test]
fn only_a_paused_clock_can_be_moved() {
    within_limit(|| {
        let message = |result: std::thread::Result<()>| {
            let payload = result.expect_err("it panics");
            *payload.downcast::<String>().expect("a message")
        };
        let outside = message(catch_unwind(|| boottime::suspend(MS)));
        assert!(outside.contains("no runtime"), "{outside}");
        let running = message(catch_unwind(|| {
            of(0).block_on(async { boottime::suspend(MS) });
        }));
        assert!(running.contains("not paused"), "{running}");
    });
}

#[test]
fn dropped_sleeps_leave_nothing_behind() {
    within_limit(|| {
        let (told, tell) = mpsc::channel::<()>();
        paused().block_on(async {
            let task = rt::spawn(async move {
                let sleep = boottime::sleep(HOUR);
                let _told = told;
                rt::select! {
                    () = sleep => unreachable!("nobody moves the clock"),
                    () = pending() => unreachable!("it is pending"),
                }
            });
            yield_now().await;
            task.abort();
            assert!(task.await.expect_err("aborted").is_cancelled());
            // Wakes nobody.
            boottime::suspend(2 * HOUR);
        });
        tell.recv().unwrap_err();
    });
}
