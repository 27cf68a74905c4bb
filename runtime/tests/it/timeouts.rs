//! Timeouts and cancellation as users of asyncio know them, told for futures that are dropped and not interrupted.
//!
//! Most tests run in paused time: the clock jumps to the next timer when nothing is ready.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use rt::task::{JoinSet, yield_now};
use rt::time::{Instant, sleep, timeout, timeout_at};

use crate::support::Limit;

const MS: Duration = Duration::from_millis(1);

/// Counts how often it is dropped.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

struct Guard(Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, SeqCst);
    }
}

// T01
#[rt::test(start_paused = true)]
async fn a_timeout_round_a_long_sleep_expires() {
    let _limit = Limit::new();
    let start = Instant::now();
    let mut limited = pin!(timeout(10 * MS, sleep(Duration::from_secs(3600))));
    assert!(limited.as_mut().await.is_err());
    let took = start.elapsed();
    assert!((10 * MS..1000 * MS).contains(&took), "{took:?}");
    assert!(
        limited
            .deadline()
            .is_some_and(|deadline| deadline <= Instant::now())
    );
}

// T02
#[rt::test(start_paused = true)]
async fn an_absolute_deadline_reads_back_and_expires() {
    let _limit = Limit::new();
    let deadline = Instant::now() + 10 * MS;
    let mut limited = pin!(timeout_at(deadline, pending::<()>()));
    assert_eq!(limited.deadline(), Some(deadline));
    assert!(limited.as_mut().await.is_err());
    assert_eq!(limited.deadline(), Some(deadline));
    assert!(Instant::now() >= deadline);
}

// T03
#[rt::test(start_paused = true)]
async fn a_timeout_that_is_not_reached_gives_the_value() {
    let _limit = Limit::new();
    let mut limited = pin!(timeout(3_600_000 * MS, async {
        sleep(MS).await;
        5
    }));
    assert_eq!(limited.as_mut().await, Ok(5));
    assert!(
        limited
            .deadline()
            .is_some_and(|deadline| deadline > Instant::now())
    );
}

// T04
#[rt::test(start_paused = true)]
async fn a_timeout_without_end_never_expires() {
    let _limit = Limit::new();
    let value = timeout(Duration::MAX, async {
        sleep(Duration::from_secs(1_000_000)).await;
        1
    });
    assert_eq!(value.await, Ok(1));
}

// T05
#[rt::test]
async fn zero_and_the_past_expire_as_soon_as_the_work_waits() {
    let _limit = Limit::new();
    assert!(timeout(Duration::ZERO, yield_now()).await.is_err());
    assert!(
        timeout(Duration::ZERO, sleep(Duration::ZERO))
            .await
            .is_err()
    );
    assert!(timeout_at(Instant::now() - MS, yield_now()).await.is_err());
}

// T06
#[rt::test]
async fn zero_lets_through_what_is_ready() {
    let _limit = Limit::new();
    assert_eq!(timeout(Duration::ZERO, ready(1)).await, Ok(1));
    let task = rt::spawn(async { 2 });
    while !task.is_finished() {
        yield_now().await;
    }
    assert_eq!(
        timeout(Duration::ZERO, task)
            .await
            .expect("ready")
            .expect("no panic"),
        2
    );
}

// T07: the work is polled once, as in tokio; asyncio would not start it.
#[rt::test]
async fn zero_polls_the_work_once() {
    let _limit = Limit::new();
    let polls = Cell::new(0);
    let work = poll_fn(|_| {
        polls.set(polls.get() + 1);
        Poll::<()>::Pending
    });
    assert!(timeout(Duration::ZERO, work).await.is_err());
    assert_eq!(polls.get(), 1);
}

// T08: what owns the work, such as a set, ends it.
#[rt::test]
async fn zero_on_a_running_task_ends_it_when_the_set_shuts_down() {
    let _limit = Limit::new();
    let drops = Drops::default();
    let guard = drops.guard();
    let mut set = JoinSet::new();
    set.spawn(async move {
        let _guard = guard;
        pending::<()>().await;
    });
    yield_now().await;
    assert!(timeout(Duration::ZERO, set.join_next()).await.is_err());
    assert_eq!((set.len(), drops.count()), (1, 0));
    set.shutdown().await;
    assert_eq!(drops.count(), 1);
}

// T09: the future inside is polled first, so it is its error that comes, and just one.
#[rt::test(start_paused = true)]
async fn nested_timeouts_with_one_deadline_give_one_error() {
    let _limit = Limit::new();
    let deadline = Instant::now() + 10 * MS;
    let result = timeout_at(deadline, timeout_at(deadline, pending::<()>())).await;
    assert!(matches!(result, Ok(Err(_))), "{result:?}");
}

// T10: real time, since the body blocks the thread.
#[rt::test]
async fn an_outer_timeout_that_passed_while_the_body_blocked_is_seen() {
    let _limit = Limit::new();
    let result = timeout(
        5 * MS,
        timeout(Duration::from_secs(3600), async {
            yield_now().await;
            thread::sleep(20 * MS);
            pending::<()>().await;
        }),
    );
    assert!(result.await.is_err());
}

// T11
#[rt::test(start_paused = true)]
async fn an_inner_timeout_does_not_use_up_the_outer_one() {
    let _limit = Limit::new();
    let inner_expired = Cell::new(false);
    let result = timeout(50 * MS, async {
        inner_expired.set(timeout(5 * MS, pending::<()>()).await.is_err());
        pending::<()>().await;
    });
    assert!(result.await.is_err());
    assert!(inner_expired.get());
}

// T12
#[rt::test(start_paused = true)]
async fn work_that_fails_before_the_deadline_gives_its_own_error() {
    let _limit = Limit::new();
    let result: Result<Result<(), &str>, _> = timeout(1000 * MS, async {
        sleep(MS).await;
        Err("its own")
    })
    .await;
    assert_eq!(result, Ok(Err("its own")));
    let task = rt::spawn(timeout(1000 * MS, async {
        sleep(MS).await;
        panic!("its own");
    }));
    let result: Result<Result<(), _>, _> = task.await;
    assert!(result.is_err_and(|error| error.is_panic()));
}

// T15
#[rt::test(start_paused = true)]
async fn expiry_leaves_no_mark_on_the_task() {
    let _limit = Limit::new();
    let task = rt::spawn(async {
        assert!(timeout(MS, pending::<()>()).await.is_err());
        yield_now().await;
        sleep(MS).await;
        "done"
    });
    assert_eq!(task.await.expect("neither cancelled nor panicked"), "done");
}

// T18
#[rt::test(start_paused = true)]
async fn a_timeout_in_clean_up_code_works_on_its_own() {
    let _limit = Limit::new();
    let start = Instant::now();
    if timeout(10 * MS, pending::<()>()).await.is_err() {
        let clean_up = timeout(10 * MS, pending::<()>()).await;
        assert!(clean_up.is_err());
        assert_eq!(timeout(10 * MS, async { yield_now().await }).await, Ok(()));
    }
    assert!(start.elapsed() >= 20 * MS);
}

// T20
#[rt::test(start_paused = true)]
async fn work_that_is_ready_just_before_the_deadline_wins() {
    let _limit = Limit::new();
    for _ in 0..20 {
        let value = timeout(10 * MS, async {
            sleep(9 * MS).await;
            1
        });
        assert_eq!(value.await, Ok(1));
    }
}

// T21: real time, since the body blocks the thread past the deadline and is ready at the very poll that follows.
#[rt::test]
async fn a_value_that_is_ready_when_the_deadline_fires_wins() {
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
    assert_eq!(timeout(5 * MS, work).await, Ok("the value"));
}

// T22: with and without a limit, a waiter that is aborted drops what it waits for.
#[rt::test]
async fn aborting_the_waiter_drops_the_work() {
    let _limit = Limit::new();
    for limit in [Duration::from_secs(3600), Duration::MAX] {
        let drops = Drops::default();
        let (inner, started) = (drops.guard(), Arc::new(AtomicUsize::new(0)));
        let flag = started.clone();
        let mut set = JoinSet::new();
        set.spawn(async move {
            let _guard = inner;
            flag.store(1, SeqCst);
            pending::<()>().await;
        });
        // The set goes with the waiter, and its task with the set.
        let waiter = rt::spawn(async move { timeout(limit, set.join_next()).await.is_ok() });
        while started.load(SeqCst) == 0 {
            yield_now().await;
        }
        waiter.abort();
        assert!(waiter.await.is_err_and(|error| error.is_aborted()));
        while drops.count() == 0 {
            yield_now().await;
        }
    }
}

// A20: a task whose handle is only borrowed, or dropped, is shielded from what happens to who waits for it.
#[rt::test]
async fn a_task_outlives_the_waiter_of_its_handle() {
    let _limit = Limit::new();
    let (release, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (gate, done) = (release.clone(), released.clone());
    let inner = rt::spawn(async move {
        while gate.load(SeqCst) == 0 {
            yield_now().await;
        }
        done.store(1, SeqCst);
    });
    let waiter = rt::spawn(inner);
    yield_now().await;
    waiter.abort();
    assert!(waiter.await.is_err_and(|error| error.is_aborted()));
    release.store(1, SeqCst);
    while released.load(SeqCst) == 0 {
        yield_now().await;
    }
}

// A21
#[rt::test]
async fn a_borrowed_handle_shows_the_value_the_panic_and_the_abort() {
    let _limit = Limit::new();
    let mut good = rt::spawn(async { 1 });
    assert!(timeout(Duration::ZERO, &mut good).await.is_err());
    assert_eq!((&mut good).await.expect("no panic"), 1);
    let mut bad = rt::spawn(async { panic!("boom") });
    let result: Result<(), _> = (&mut bad).await;
    assert!(result.is_err_and(|error| error.is_panic()));
    let mut aborted = rt::spawn(pending::<()>());
    aborted.abort();
    assert!((&mut aborted).await.is_err_and(|error| error.is_aborted()));
}

// A22
#[test]
fn a_sleep_of_zero_lets_others_go_first() {
    let runtime = rt::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let _limit = Limit::new();
    let set = rt::task::LocalSet::new();
    let log = Rc::new(Cell::new(0));
    set.block_on(&runtime, async {
        let to = log.clone();
        let other = rt::task::spawn_local(async move { to.set(1) });
        sleep(Duration::ZERO).await;
        assert_eq!(log.get(), 1);
        other.await.expect("no panic");
    });
    runtime.block_on(async {
        let done = Arc::new(AtomicUsize::new(0));
        let to = done.clone();
        let other = rt::spawn(async move { to.store(1, SeqCst) });
        sleep(Duration::ZERO).await;
        assert_eq!(done.load(SeqCst), 1);
        other.await.expect("no panic");
    });
}

// A23
#[rt::test]
async fn an_aborted_sleeper_ends_at_once() {
    let _limit = Limit::new();
    let start = std::time::Instant::now();
    let sleepers: Vec<_> = (0..100)
        .map(|_| rt::spawn(sleep(Duration::from_secs(3600))))
        .collect();
    yield_now().await;
    for sleeper in &sleepers {
        sleeper.abort();
    }
    for sleeper in sleepers {
        assert!(sleeper.await.is_err_and(|error| error.is_aborted()));
    }
    assert!(start.elapsed() < Duration::from_secs(30));
}

// A24: the output stays, and the handle tells that the task was over.
#[rt::test]
async fn aborting_a_task_that_has_ended_does_nothing() {
    let _limit = Limit::new();
    let task = rt::spawn(async { 4 });
    while !task.is_finished() {
        yield_now().await;
    }
    let abort = task.abort_handle();
    task.abort();
    abort.abort();
    assert!(abort.is_finished());
    assert_eq!(task.await.expect("ended before the abort"), 4);
}
