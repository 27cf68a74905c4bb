//! Timeouts that can be moved while they count, as users of asyncio know them. Numbers are those of the rows that the
//! tests were made from; `timeouts.rs` has the same for the plain `timeout`.

use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use rt::task::{TaskGroup, cancelled, yield_now};
use rt::time::error::{Elapsed, RescheduleError};
use rt::time::{Instant, TimeoutHandle, sleep, timeout, timeout_at, timeout_at_with, timeout_with};

use crate::support::Limit;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3600);

/// Runs `work` under a limit, and gives the handle back as well.
async fn limited<F: Future>(
    limit: impl Into<Option<Duration>>,
    work: F,
) -> (Result<F::Output, Elapsed>, TimeoutHandle) {
    let limited = timeout_with(limit, |_| work);
    let handle = limited.handle();
    (limited.await, handle)
}

#[rt::test(start_paused = true)]
async fn t01_a_timeout_round_a_long_sleep_expires_and_the_handle_says_so() {
    let _limit = Limit::new();
    let (result, handle) = limited(10 * MS, sleep(LONG)).await;
    assert!(result.is_err() && handle.expired());
    let mut plain = pin!(timeout(10 * MS, sleep(LONG)));
    assert!(!plain.expired());
    assert!(plain.as_mut().await.is_err());
    assert!(plain.expired());
}

#[rt::test(start_paused = true)]
async fn t02_an_absolute_deadline_reads_back() {
    let _limit = Limit::new();
    let deadline = Instant::now() + 10 * MS;
    let result = timeout_at_with(deadline, async |limit| {
        assert_eq!(limit.deadline(), Some(deadline));
        pending::<()>().await;
    });
    let handle = result.handle();
    assert!(result.await.is_err() && handle.expired());
    assert_eq!(handle.deadline(), Some(deadline));
    assert!(Instant::now() >= deadline);
}

#[rt::test(start_paused = true)]
async fn t03_a_timeout_that_is_not_reached_gives_the_value() {
    let _limit = Limit::new();
    let (result, handle) = limited(LONG, async {
        sleep(MS).await;
        5
    })
    .await;
    assert_eq!(result, Ok(5));
    assert!(!handle.expired());
    assert!(handle.deadline().is_some_and(|at| at > Instant::now()));
}

#[rt::test(start_paused = true)]
async fn t04_without_a_deadline_it_never_expires() {
    let _limit = Limit::new();
    let (result, handle) = limited(None, sleep(1000 * LONG)).await;
    assert!(result.is_ok() && !handle.expired());
    assert_eq!(handle.deadline(), None);
    let (result, handle) = limited(Duration::MAX, sleep(1000 * LONG)).await;
    assert!(result.is_ok() && !handle.expired());
}

#[test]
fn t04_without_a_deadline_no_runtime_is_needed() {
    let _limit = Limit::new();
    futures_lite::future::block_on(async {
        let (result, handle) = limited(None, async {
            futures_lite::future::yield_now().await;
            1
        })
        .await;
        assert_eq!((result, handle.deadline()), (Ok(1), None));
        let mut plain = pin!(timeout(LONG, futures_lite::future::yield_now()));
        plain.as_mut().reschedule(None).expect("not over");
        assert_eq!(plain.as_mut().await, Ok(()));
    });
}

#[rt::test]
async fn t05_zero_and_the_past_expire_as_soon_as_the_work_waits() {
    let _limit = Limit::new();
    for work in [0, 1] {
        let work = async move {
            match work {
                0 => yield_now().await,
                _ => sleep(Duration::ZERO).await,
            }
        };
        let (result, handle) = limited(Duration::ZERO, work).await;
        assert!(result.is_err() && handle.expired());
    }
    let past = timeout_at_with(Instant::now() - MS, |_| yield_now());
    assert!(past.await.is_err());
}

#[rt::test]
async fn t06_zero_lets_through_what_is_complete() {
    let _limit = Limit::new();
    let (result, handle) = limited(Duration::ZERO, ready(1)).await;
    assert_eq!(result, Ok(1));
    assert!(!handle.expired());
}

/// The work is polled once, as in tokio; asyncio would not start it.
#[rt::test]
async fn t07_zero_polls_the_work_once() {
    let _limit = Limit::new();
    let mut polls = 0;
    let work = poll_fn(|_| {
        polls += 1;
        Poll::<()>::Pending
    });
    assert!(limited(Duration::ZERO, work).await.0.is_err());
    assert_eq!(polls, 1);
}

/// A handle only waits: what ends the task is a group, which waits for the end too.
#[rt::test]
async fn t08_zero_on_a_running_task_ends_it_where_a_group_owns_it() {
    let _limit = Limit::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = CountDrop(dropped.clone());
    TaskGroup::<std::convert::Infallible>::scope(async |group| {
        let mut task = group.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        yield_now().await;
        assert!(limited(Duration::ZERO, &mut task).await.0.is_err());
        task.abort();
    })
    .await
    .expect("nobody fails");
    assert_eq!(dropped.load(SeqCst), 1);
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// The future inside is polled first, so it is its error that comes, and just one.
#[rt::test(start_paused = true)]
async fn t09_nested_timeouts_with_one_deadline_give_one_error() {
    let _limit = Limit::new();
    let deadline = Instant::now() + 10 * MS;
    let inner = timeout_at_with(deadline, |_| pending::<()>());
    let inner_handle = inner.handle();
    let outer = timeout_at_with(deadline, |_| inner);
    let outer_handle = outer.handle();
    assert!(matches!(outer.await, Ok(Err(_))));
    assert!(inner_handle.expired() && !outer_handle.expired());
}

/// Real time, since the body blocks the thread.
#[rt::test]
async fn t10_an_outer_timeout_that_passed_while_the_body_blocked_is_seen() {
    let _limit = Limit::new();
    let inner = timeout_with(LONG, async |_| {
        yield_now().await;
        thread::sleep(20 * MS);
        pending::<()>().await;
    });
    let inner_handle = inner.handle();
    let (result, outer) = limited(5 * MS, inner).await;
    assert!(result.is_err() && outer.expired());
    assert!(!inner_handle.expired(), "it was dropped before its time");
    assert!(
        inner_handle
            .reschedule(None)
            .is_err_and(|error| !error.is_expired())
    );
}

#[rt::test(start_paused = true)]
async fn t11_an_inner_timeout_does_not_use_up_the_outer_one() {
    let _limit = Limit::new();
    let (result, outer) = limited(50 * MS, async {
        assert!(limited(5 * MS, pending::<()>()).await.1.expired());
        sleep(LONG).await;
    })
    .await;
    assert!(result.is_err() && outer.expired());
}

#[rt::test(start_paused = true)]
async fn t12_work_that_fails_before_the_deadline_gives_its_own_error() {
    let _limit = Limit::new();
    let (result, handle) = limited(LONG, async {
        sleep(MS).await;
        Err::<(), _>("its own")
    })
    .await;
    assert_eq!(result, Ok(Err("its own")));
    assert!(!handle.expired());
}

/// What is dropped on expiry can fail in its destructor only; a group tells of that.
#[rt::test(start_paused = true)]
async fn t13_a_clean_up_that_fails_on_expiry_is_told_in_place_of_the_timeout() {
    let _limit = Limit::new();
    struct Untidy;
    impl Drop for Untidy {
        fn drop(&mut self) {
            panic!("cannot clean up");
        }
    }
    let error = TaskGroup::scope(async |group| {
        group.spawn(timeout(10 * MS, async {
            let _untidy = Untidy;
            pending::<()>().await;
        }));
    })
    .await
    .expect_err("the timeout, and then the clean-up, fail");
    assert!(
        error.failures().iter().any(|failure| failure.is_panic()),
        "{error:?}"
    );
}

#[rt::test(start_paused = true)]
async fn t14_an_abort_from_outside_is_no_timeout() {
    let _limit = Limit::new();
    let inner = timeout_with(LONG, |_| pending::<()>());
    let handle = inner.handle();
    let task = rt::spawn(inner);
    yield_now().await;
    task.abort();
    assert!(task.await.expect_err("aborted").is_aborted());
    assert!(!handle.expired());
    // And a request is answered inside, before the deadline.
    let inner = timeout_with(LONG, async |_| cancelled().await);
    let handle = inner.handle();
    let task = rt::spawn(inner);
    task.cancel(LONG);
    assert_eq!(task.await.expect("not aborted"), Ok(()));
    assert!(!handle.expired());
}

#[rt::test(start_paused = true)]
async fn t15_expiry_leaves_no_mark_on_the_task() {
    let _limit = Limit::new();
    let task = rt::spawn(async {
        assert!(limited(MS, pending::<()>()).await.0.is_err());
        sleep(MS).await;
        rt::task::is_cancelled()
    });
    assert!(!task.await.expect("neither cancelled nor panicked"));
}

#[rt::test(start_paused = true)]
async fn t16_a_deadline_is_moved_later_and_then_removed_from_inside() {
    let _limit = Limit::new();
    let start = Instant::now();
    let result = timeout_with(10 * MS, async |limit| {
        let old = limit.deadline().expect("there is one");
        let later = old + 40 * MS;
        limit.reschedule(later).expect("it runs");
        assert_eq!(limit.deadline(), Some(later));
        sleep(20 * MS).await;
        assert!(Instant::now() > old && !limit.expired());
        limit.reschedule(None).expect("it runs");
        assert_eq!(limit.deadline(), None);
        sleep(LONG).await;
        limit.reschedule(Instant::now() + 5 * MS).expect("it runs");
        pending::<()>().await;
    });
    let handle = result.handle();
    assert!(result.await.is_err() && handle.expired());
    assert!(start.elapsed() >= LONG && start.elapsed() < 2 * LONG);
}

#[rt::test(start_paused = true)]
async fn t16_a_deadline_is_moved_from_another_task() {
    let _limit = Limit::new();
    let start = Instant::now();
    // Nearer, while it waits.
    let waits = timeout_with(LONG, |_| pending::<()>());
    let handle = waits.handle();
    let waits = rt::spawn(waits);
    sleep(MS).await;
    handle
        .reschedule(Instant::now() + 10 * MS)
        .expect("it runs");
    assert!(waits.await.expect("no panic").is_err());
    assert!(start.elapsed() < LONG);
    // From none at all.
    let waits = timeout_with(None, |_| pending::<()>());
    let handle = waits.handle();
    let waits = rt::spawn(waits);
    sleep(MS).await;
    handle.reschedule(Instant::now()).expect("it runs");
    assert!(waits.await.expect("no panic").is_err());
    // Away, and back, of a plain timeout.
    let mut plain = pin!(timeout(10 * MS, pending::<()>()));
    poll_fn(|cx| Poll::Ready(plain.as_mut().poll(cx).is_pending())).await;
    plain.as_mut().reschedule(None).expect("it runs");
    assert_eq!(plain.deadline(), None);
    sleep(100 * MS).await;
    assert!(poll_fn(|cx| Poll::Ready(plain.as_mut().poll(cx).is_pending())).await);
    let soon = Instant::now() + 5 * MS;
    plain.as_mut().reschedule(soon).expect("it runs");
    assert!(plain.as_mut().await.is_err());
    assert!(Instant::now() >= soon);
}

#[rt::test(start_paused = true)]
async fn t17_an_ended_or_expired_timeout_cannot_be_moved() {
    let _limit = Limit::new();
    let (_, ended) = limited(LONG, ready(1)).await;
    let error: RescheduleError = ended.reschedule(Instant::now()).expect_err("it is over");
    assert!(!error.is_expired());
    assert!(error.to_string().contains("ended"), "{error}");
    let (_, expired) = limited(MS, pending::<()>()).await;
    let error = expired.reschedule(None).expect_err("it is over");
    assert!(error.is_expired());
    assert!(error.to_string().contains("expired"), "{error}");

    let mut plain = pin!(timeout(MS, pending::<()>()));
    assert!(plain.as_mut().await.is_err());
    assert!(
        plain
            .as_mut()
            .reschedule(None)
            .is_err_and(|error| error.is_expired())
    );
    let mut plain = pin!(timeout_at(Instant::now() + LONG, ready(1)));
    assert!(plain.as_mut().await.is_ok());
    assert!(
        plain
            .as_mut()
            .reschedule(None)
            .is_err_and(|error| !error.is_expired())
    );
    assert!(plain.deadline().is_some());
}

#[rt::test(start_paused = true)]
async fn t18_a_timeout_in_clean_up_code_works_on_its_own() {
    let _limit = Limit::new();
    assert!(limited(10 * MS, pending::<()>()).await.1.expired());
    assert!(limited(10 * MS, pending::<()>()).await.1.expired());
    assert_eq!(limited(10 * MS, yield_now()).await.0, Ok(()));
}

/// The waiter asks the task to end, and waits for that.
#[rt::test(start_paused = true)]
async fn t19_on_expiry_a_task_that_is_waited_for_is_cancelled_and_has_ended() {
    let _limit = Limit::new();
    let task = rt::spawn(async {
        cancelled().await;
        sleep(5 * MS).await; // cleans up
        "cleaned up"
    });
    let mut task = task;
    if limited(10 * MS, &mut task).await.0.is_err() {
        task.cancel(LONG);
    }
    assert_eq!(task.await.expect("not aborted"), "cleaned up");
}

#[rt::test(start_paused = true)]
async fn t20_work_that_is_ready_just_before_the_deadline_wins() {
    let _limit = Limit::new();
    for _ in 0..20 {
        let (result, handle) = limited(10 * MS, async {
            sleep(9 * MS).await;
            1
        })
        .await;
        assert_eq!(result, Ok(1));
        assert!(!handle.expired());
    }
}

/// Real time, since the body blocks the thread past the deadline and is ready at the very poll that follows.
#[rt::test]
async fn t21_a_value_that_is_ready_when_the_deadline_fires_wins() {
    let _limit = Limit::new();
    let mut first = true;
    let work = poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        thread::sleep(10 * MS);
        Poll::Ready("the value")
    });
    let (result, handle) = limited(5 * MS, work).await;
    assert_eq!(result, Ok("the value"));
    assert!(!handle.expired());
}

#[rt::test]
async fn t22_aborting_the_waiter_drops_the_work() {
    let _limit = Limit::new();
    for limit in [Some(LONG), None] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let guard = CountDrop(dropped.clone());
        let waiter = rt::spawn(timeout_with(limit, async move |_| {
            let _guard = guard;
            pending::<()>().await;
        }));
        yield_now().await;
        waiter.abort();
        assert!(waiter.await.expect_err("aborted").is_aborted());
        assert_eq!(dropped.load(SeqCst), 1);
    }
}

#[test]
fn handles_on_other_threads_against_the_expiry_lose_no_move() {
    let _limit = Limit::new();
    let runtime = rt::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for _ in 0..200 {
        let limited = timeout_with(MS, |_| pending::<()>());
        let handle = limited.handle();
        let task = runtime.spawn(limited);
        let mover = thread::spawn(move || {
            let mut moves = 0;
            while handle.reschedule(Instant::now() + MS / 4).is_ok() {
                moves += 1;
                if moves % 8 == 0 {
                    thread::sleep(MS);
                }
            }
            assert!(handle.expired());
        });
        assert!(runtime.block_on(task).expect("no panic").is_err());
        mover.join().expect("no panic");
    }
}

#[rt::test]
async fn a_handle_that_stays_keeps_no_waker_of_who_waited() {
    let _limit = Limit::new();
    let (count, waker) = crate::support::counted_waker();
    let mut cx = std::task::Context::from_waker(&waker);
    let mut limited = Box::pin(timeout_with(LONG, |_| pending::<()>()));
    let handle = limited.handle();
    assert!(limited.as_mut().poll(&mut cx).is_pending());
    drop(limited);
    assert_eq!(Arc::strong_count(&count), 2, "the one in `waker`, and ours");
    assert!(handle.reschedule(Instant::now()).is_err());
}
