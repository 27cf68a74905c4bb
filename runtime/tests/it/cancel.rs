//! Graceful cancellation: `JoinHandle::cancel`, `cancelled`, `is_cancelled`.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::task::{LocalSet, all_tasks, cancelled, is_cancelled, spawn_local, yield_now};
use rt::time::{Instant, sleep, timeout};

use crate::support::{Limit, within_limit};

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3600);

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

#[test]
fn a_task_that_is_asked_cleans_up_with_awaits_and_gives_its_value() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let task = rt::spawn(async {
                    assert!(!is_cancelled());
                    cancelled().await;
                    assert!(is_cancelled());
                    sleep(2 * MS).await;
                    // From now on it is ready at once.
                    cancelled().await;
                    "tidy"
                });
                yield_now().await;
                task.cancel(LONG);
                assert_eq!(task.await.expect("not aborted"), "tidy");
            });
        }
    });
}

#[test]
fn a_request_before_the_first_poll_is_seen() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let task = rt::spawn(async {
                    // May be asked before or after; either way it ends.
                    cancelled().await;
                });
                task.abort_handle().cancel(LONG);
                task.await.expect("not aborted");
            });
        }
    });
}

#[rt::test(start_paused = true)]
async fn a_task_that_does_not_answer_is_aborted_when_the_grace_is_over() {
    let _limit = Limit::new();
    let start = Instant::now();
    let task = rt::spawn(pending::<()>());
    task.cancel(50 * MS);
    yield_now().await;
    assert!(!task.is_finished());
    assert!(task.await.expect_err("aborted").is_aborted());
    let took = start.elapsed();
    assert!((50 * MS..200 * MS).contains(&took), "{took:?}");
}

#[rt::test(start_paused = true)]
async fn of_several_requests_the_grace_that_is_over_first_counts() {
    let _limit = Limit::new();
    let start = Instant::now();
    let task = rt::spawn(pending::<()>());
    task.cancel(LONG);
    task.cancel(20 * MS);
    task.cancel(LONG);
    assert!(task.await.expect_err("aborted").is_aborted());
    assert!(start.elapsed() < LONG);
}

#[rt::test(start_paused = true)]
async fn a_grace_of_zero_aborts_at_once() {
    let _limit = Limit::new();
    let task = rt::spawn(async {
        cancelled().await;
        unreachable!("it is not polled again");
    });
    task.cancel(Duration::ZERO);
    assert!(task.await.expect_err("aborted").is_aborted());
}

#[test]
fn the_timer_of_the_grace_goes_with_the_task() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let task = rt::spawn(cancelled_here());
                task.cancel(LONG);
                task.await.expect("not aborted");
                while !all_tasks().is_empty() {
                    sleep(MS).await;
                }
                // A task that is over is asked in vain, and no timer starts.
                let task = rt::spawn(async {});
                while !task.is_finished() {
                    yield_now().await;
                }
                task.cancel(LONG);
                assert!(all_tasks().is_empty());
            });
        }
    });
}

async fn cancelled_here() {
    cancelled().await;
}

#[test]
fn several_futures_of_one_task_hear_of_the_request_and_a_dropped_one_does_not() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let (ready, is_ready) = rt::sync::oneshot::channel();
                let task = rt::spawn(async {
                    let mut ready = Some(ready);
                    let mut futures = [pin!(cancelled()), pin!(cancelled()), pin!(cancelled())];
                    {
                        let gone = pin!(cancelled());
                        assert!(timeout(Duration::ZERO, gone).await.is_err());
                    }
                    let mut done = [false; 3];
                    poll_fn(|cx| {
                        for (future, done) in futures.iter_mut().zip(&mut done) {
                            if !*done {
                                *done = future.as_mut().poll(cx).is_ready();
                            }
                        }
                        if let Some(ready) = ready.take() {
                            let _ = ready.send(());
                        }
                        match done {
                            [true, true, true] => Poll::Ready(()),
                            _ => Poll::Pending,
                        }
                    })
                    .await;
                });
                is_ready.await.expect("the task waits");
                task.cancel(LONG);
                task.await.expect("not aborted");
            });
        }
    });
}

#[test]
fn it_watches_the_task_that_makes_it_also_from_another_task() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let task = rt::spawn(async {
                    let watch = rt::spawn(cancelled());
                    watch.await.expect("no panic");
                });
                yield_now().await;
                task.cancel(LONG);
                task.await.expect("not aborted");
            });
        }
    });
}

#[test]
fn outside_a_task_nothing_is_ever_asked() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                assert!(!is_cancelled());
                assert!(timeout(5 * MS, cancelled()).await.is_err());
            });
        }
    });
}

#[test]
fn a_blocking_closure_can_ask_whether_it_should_end() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let (begins, begun) = mpsc::channel();
                let task = rt::spawn_blocking(move || {
                    begins.send(()).expect("somebody waits");
                    while !is_cancelled() {
                        std::thread::yield_now();
                    }
                    "stopped"
                });
                begun.recv().expect("it begins");
                task.cancel(LONG);
                assert_eq!(task.await.expect("not aborted"), "stopped");
            });
        }
    });
}

#[test]
fn a_task_of_a_local_set_is_asked_and_its_time_is_kept_by_the_runtime() {
    within_limit(|| {
        for runtime in runtimes() {
            let set = LocalSet::new();
            set.block_on(&runtime, async {
                let polite = spawn_local(cancelled_here());
                polite.cancel(LONG);
                polite.await.expect("not aborted");
                let rude = spawn_local(pending::<()>());
                rude.cancel(2 * MS);
                assert!(rude.await.expect_err("aborted").is_aborted());
            });
        }
    });
}

#[test]
fn a_request_from_a_thread_of_no_runtime_works_and_after_the_end_does_nothing() {
    within_limit(|| {
        let [_, runtime] = runtimes();
        let asked = Arc::new(AtomicBool::new(false));
        let to = asked.clone();
        let task = runtime.spawn(async move {
            cancelled().await;
            to.store(true, SeqCst);
            pending::<()>().await;
        });
        task.cancel(5 * MS);
        let error = futures_lite::future::block_on(task).expect_err("aborted");
        assert!(error.is_aborted());
        assert!(asked.load(SeqCst));
        let task = runtime.spawn(pending::<()>());
        drop(runtime);
        task.cancel(MS);
        let error = futures_lite::future::block_on(task).expect_err("closed");
        assert!(error.is_runtime_closed());
    });
}

#[test]
fn ten_thousand_requests_that_are_ready_at_once_give_way() {
    within_limit(|| {
        let [current, _] = runtimes();
        current.block_on(async {
            let turns = Arc::new(AtomicUsize::new(0));
            let counter = turns.clone();
            let other = rt::spawn(async move {
                loop {
                    counter.fetch_add(1, SeqCst);
                    yield_now().await;
                }
            });
            let task = rt::spawn(async {
                for _ in 0..10_000 {
                    cancelled().await;
                }
            });
            task.cancel(LONG);
            task.await.expect("not aborted");
            assert!(turns.load(SeqCst) > 1);
            other.abort();
        });
    });
}

#[test]
fn asking_again_and_again_starts_one_timer_and_the_shortest_grace_counts() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let task = rt::spawn(pending::<()>());
                let before = all_tasks().len();
                for more in 0..1_000 {
                    task.cancel(LONG + more * MS);
                }
                assert!(all_tasks().len() <= before + 1, "a timer for each call");
                task.cancel(Duration::MAX);
                task.cancel(MS);
                assert!(task.await.expect_err("aborted").is_aborted());
            });
        }
    });
}
