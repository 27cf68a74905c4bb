//! `gather`, `wait`, `as_completed`, `shield`, and what sleeps and tasks do when they are cancelled: the rows A01 to A24 of
//! what asyncio promises, each on a paused clock where time matters, and on two workers.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rt::sync::oneshot;
use rt::task::{JoinError, JoinHandle, consume_budget, yield_now};
use rt::time::{Instant, sleep, timeout};
use rt::{ReturnWhen, as_completed, gather, shield, spawn, try_gather, wait, wait_until};

use crate::support::Limit;

const HOUR: Duration = Duration::from_secs(3600);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

async fn after<T>(millis: u64, value: T) -> T {
    sleep(ms(millis)).await;
    value
}

/// Waits, in turns of other tasks, until something holds.
async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        sleep(ms(1)).await;
    }
}

/// Sets a flag when it is dropped.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

/// Each row as a test on one thread with a paused clock, and as one on two workers.
macro_rules! rows {
    ($($name:ident $body:block)*) => {
        mod on_one_thread {
            use super::*;
            $(
                #[rt::test(start_paused = true)]
                async fn $name() {
                    let _limit = Limit::new();
                    $body
                }
            )*
        }

        mod on_two_workers {
            use super::*;
            $(
                #[rt::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let _limit = Limit::new();
                    // In a task, so that a worker does the waiting.
                    spawn(async { $body }).await.unwrap();
                }
            )*
        }
    };
}

rows! {
    a01_gather_gives_outputs_in_the_order_of_the_arguments {
        let ended = AtomicUsize::new(0);
        let outputs = gather([30, 10, 20].map(|millis| {
            let ended = &ended;
            async move {
                let output = after(millis, millis).await;
                ended.fetch_add(1, SeqCst);
                output
            }
        })).await;
        assert_eq!(outputs, [30, 10, 20]);
        assert_eq!(ended.load(SeqCst), 3);
        let tasks = [30, 10, 20].map(|millis| spawn(after(millis, millis)));
        let outputs: Vec<_> = gather(tasks).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(outputs, [30, 10, 20]);
    }

    a02_gather_of_nothing_is_an_empty_list_at_once {
        let mut none = std::pin::pin!(gather(Vec::<std::future::Ready<u8>>::new()));
        let now = none.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(now, Poll::Ready(vec![]));
        let none = try_gather(std::iter::empty::<std::future::Ready<Result<u8, ()>>>()).await;
        assert_eq!(none, Ok(vec![]));
    }

    a03_try_gather_fails_at_once_and_cancels_no_task {
        let ended = Arc::new(AtomicUsize::new(0));
        let (go, gone) = oneshot::channel::<()>();
        let mut gone = Some(gone);
        let tasks: Vec<JoinHandle<Result<(), String>>> = (0..5).map(|n| {
            let ended = ended.clone();
            let gone = if n == 4 { gone.take() } else { None };
            spawn(async move {
                match n {
                    2 => return Err(String::from("two")),
                    4 => gone.unwrap().await.unwrap(),
                    _ => yield_now().await,
                }
                ended.fetch_add(1, SeqCst);
                Ok(())
            })
        }).collect();
        let flat = tasks.into_iter().map(async |task: JoinHandle<_>| task.await.unwrap());
        assert_eq!(try_gather(flat).await, Err(String::from("two")));
        // One task waits still, and goes on.
        assert!(ended.load(SeqCst) < 4);
        go.send(()).unwrap();
        until(|| ended.load(SeqCst) == 4).await;
    }

    a04_gather_gives_errors_at_their_places {
        let outputs = gather((0..4).map(async |n: u64| {
            sleep(ms(5 - n)).await;
            if n.is_multiple_of(2) { Ok(n) } else { Err(n) }
        })).await;
        assert_eq!(outputs, [Ok(0), Err(1), Ok(2), Err(3)]);
    }

    a05_a_child_that_is_cancelled_is_an_error_of_try_gather {
        let tasks = [spawn(pending::<()>()), spawn(pending())];
        tasks[1].abort();
        let other = tasks[0].abort_handle();
        let error = try_gather(tasks).await.unwrap_err();
        assert!(error.is_cancelled());
        // Who waits is not cancelled, and neither is the other task.
        yield_now().await;
        assert!(!other.is_finished());
        other.abort();
    }

    a06_a_child_that_is_cancelled_stands_at_its_place {
        let tasks = [spawn(after(5, 1)), spawn(pending()), spawn(after(2, 3))];
        tasks[1].abort();
        let outputs = gather(tasks).await;
        assert_eq!(outputs[0].as_ref().unwrap(), &1);
        assert!(outputs[1].as_ref().unwrap_err().is_cancelled());
        assert_eq!(outputs[2].as_ref().unwrap(), &3);
    }

    // The children are futures here. Tasks, given by their handles, run on: that is `shield`'s part, and a set of tasks
    // (or a group) cancels them.
    a07_children_are_cancelled_with_the_task_that_gathers {
        let flags: Vec<_> = (0..3).map(|_| flag()).collect();
        let (went_on, begun) = (flag(), Arc::new(AtomicUsize::new(0)));
        let task = spawn({
            let (flags, went_on, begun) = (flags.clone(), went_on.clone(), begun.clone());
            async move {
                gather(flags.into_iter().map(|flag| {
                    let (guard, begun) = (SetOnDrop(flag), begun.clone());
                    async move {
                        let _guard = guard;
                        begun.fetch_add(1, SeqCst);
                        pending::<()>().await;
                    }
                })).await;
                went_on.store(true, SeqCst);
            }
        });
        until(|| begun.load(SeqCst) == 3).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(flags.iter().all(|flag| flag.load(SeqCst)));
        assert!(!went_on.load(SeqCst));
    }

    a08_a_gather_that_is_over_cannot_be_cancelled {
        let task = spawn(gather([1, 2].map(ready)));
        until(|| task.is_finished()).await;
        task.abort();
        assert_eq!(task.await.unwrap(), [1, 2]);
    }

    a09_a_loop_of_gathers_ends_with_its_task {
        let rounds = Arc::new(AtomicUsize::new(0));
        let counted = rounds.clone();
        let task = spawn(async move {
            loop {
                // Errors are values here, and the end of the task is none.
                gather([after(1, Ok(())), after(2, Err(()))]).await;
                counted.fetch_add(1, SeqCst);
            }
        });
        until(|| rounds.load(SeqCst) > 2).await;
        task.abort();
        let error: JoinError = task.await.unwrap_err();
        assert!(error.is_cancelled());
    }

    // A future is given once, by type. What can be waited for twice is a value that can be cloned.
    a10_what_is_gathered_runs_once_for_each_time_it_is_given {
        let runs = AtomicUsize::new(0);
        let work = || async { runs.fetch_add(1, SeqCst) };
        let mut outputs = gather([work(), work()]).await;
        outputs.sort_unstable();
        assert_eq!(outputs, [0, 1]);
        let same = ready(7);
        assert_eq!(gather([same.clone(), same]).await, [7, 7]);
    }

    a11_wait_for_all_and_again {
        let tasks = [spawn(after(5, "a")), spawn(after(2, "b"))];
        let (done, pending) = wait(tasks, ReturnWhen::AllDone, None).await.unwrap();
        assert!(pending.is_empty());
        // In the order in which they ended, which two workers may mix up.
        let mut indices: Vec<_> = done.iter().map(|done| done.index()).collect();
        indices.sort_unstable();
        assert_eq!(indices, [0, 1]);
        // At once: it needs no time and no turn.
        let mut again = std::pin::pin!(wait(done, ReturnWhen::AllDone, None));
        let Poll::Ready(Ok((done, pending))) = again.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("what is done has to be waited for");
        };
        assert!(pending.is_empty());
        let mut outputs: Vec<_> = done.into_iter().map(|done| done.into_output().unwrap()).collect();
        outputs.sort_unstable();
        assert_eq!(outputs, ["a", "b"]);
    }

    a12_wait_for_the_first_cancels_nothing {
        let (go, gone) = oneshot::channel();
        let tasks = [spawn(async { gone.await.unwrap() }), spawn(after(2, 2))];
        let (mut done, mut pending) = wait(tasks, ReturnWhen::FirstDone, None).await.unwrap();
        assert_eq!((done.len(), pending.len()), (1, 1));
        assert_eq!(done[0].index(), 1);
        assert_eq!(done.remove(0).await.unwrap(), 2);
        assert!(!pending[0].is_finished());
        go.send(1).unwrap();
        assert_eq!(pending.remove(0).await.unwrap(), 1);
    }

    a13_all_that_was_done_is_told_of {
        let tasks: Vec<_> = (0..300).map(|n| spawn(async move { n })).collect();
        until(|| tasks.iter().all(JoinHandle::is_finished)).await;
        let (done, pending) = wait(tasks, ReturnWhen::FirstDone, None).await.unwrap();
        // More than a budget allows in one poll.
        assert_eq!((done.len(), pending.len()), (300, 0));
    }

    a14_wait_for_the_first_failure {
        async fn fails(millis: u64) -> Result<(), &'static str> {
            if millis > 0 {
                sleep(ms(millis)).await;
            }
            Err("failed")
        }
        for millis in [0, 5] {
            let futures: [Boxed<Result<(), &'static str>>; 3] = [
                Box::pin(pending()),
                Box::pin(fails(millis)),
                Box::pin(ready(Ok(()))),
            ];
            let (done, pending) = wait(futures, ReturnWhen::FirstFailure, None).await.unwrap();
            assert_eq!((done.len(), pending.len()), (2, 1));
            assert!(done.iter().any(|done| done.index() == 1 && *done.output() == Err("failed")));
        }
        // Of tasks: a panic or a cancellation.
        let tasks = [spawn(pending::<()>()), spawn(pending())];
        tasks[1].abort();
        let (done, pending) = wait(tasks, ReturnWhen::FirstFailure, None).await.unwrap();
        assert!(done[0].index() == 1 && done[0].output().as_ref().unwrap_err().is_cancelled());
        pending[0].abort();
        // Of tasks that give a result of their own.
        let tasks = [spawn(fails(2)), spawn(std::future::pending())];
        let (done, pending) = wait_until(tasks, |result| !matches!(result, Ok(Ok(()))), None).await.unwrap();
        assert_eq!((done.len(), pending.len()), (1, 1));
        pending[0].abort();
    }

    a15_wait_for_all_does_not_fail {
        let tasks = [spawn(after(2, 1)), spawn(pending())];
        tasks[1].abort();
        let (done, pending) = wait(tasks, ReturnWhen::AllDone, None).await.unwrap();
        assert_eq!((done.len(), pending.len()), (2, 0));
        for done in done {
            assert_eq!(done.index() == 1, done.output().is_err());
        }
    }

    a16_a_timeout_tells_done_and_pending_apart {
        let tasks = [spawn(after(1, 1)), spawn(after(3_600_000, 2))];
        until(|| tasks[0].is_finished()).await;
        let start = Instant::now();
        let (done, pending) = wait(tasks, ReturnWhen::AllDone, ms(10)).await.unwrap();
        assert!(start.elapsed() >= ms(10) && start.elapsed() < HOUR);
        assert_eq!((done.len(), pending.len()), (1, 1));
        assert!(!pending[0].is_finished());
        // Nothing waits longer than it has to.
        let (done, pending) = wait(pending, ReturnWhen::AllDone, Duration::ZERO).await.unwrap();
        assert_eq!((done.len(), pending.len()), (0, 1));
        pending[0].abort();
    }

    a17_wait_for_nothing_is_an_error {
        let none = wait(Vec::<JoinHandle<()>>::new(), ReturnWhen::AllDone, None).await;
        assert!(none.unwrap_err().to_string().contains("no future to wait for"));
        let none = wait_until(Vec::<JoinHandle<()>>::new(), |_| true, ms(1)).await;
        assert!(none.is_err());
    }

    a18_as_completed_gives_outputs_as_they_come {
        let mut outputs = as_completed([30, 10, 20].map(|millis| after(millis, millis)));
        let mut order = Vec::new();
        while let Some(output) = outputs.next().await {
            order.push(output);
        }
        assert_eq!(order, [10, 20, 30]);
        assert!(outputs.is_empty());
        assert_eq!(outputs.next().await, None);
    }

    a19_as_completed_with_a_time_limit {
        let tasks = [1, 3_600_000, 2].map(|millis| spawn(after(millis, millis)));
        let mut outputs = as_completed(tasks).within(ms(50));
        let mut values = [outputs.next().await.unwrap().unwrap().unwrap(), outputs.next().await.unwrap().unwrap().unwrap()];
        values.sort_unstable();
        assert_eq!(values, [1, 2]);
        assert!(outputs.next().await.unwrap().is_err());
        assert!(outputs.next().await.is_none());
        let rest = outputs.into_rest();
        assert_eq!(rest.len(), 1);
        assert!(!rest[0].is_finished());
        rest[0].abort();
    }

    a20_what_is_shielded_goes_on_without_who_waits {
        let (go, gone) = oneshot::channel::<()>();
        let (said, says) = oneshot::channel();
        let shielded = shield(async move {
            gone.await.unwrap();
            said.send("done").unwrap();
        });
        let waiter = spawn(shielded);
        yield_now().await;
        waiter.abort();
        assert!(waiter.await.unwrap_err().is_cancelled());
        go.send(()).unwrap();
        assert_eq!(says.await, Ok("done"));
        // In a gather that is dropped.
        let ended = flag();
        let end = ended.clone();
        let work = shield(async move { sleep(ms(5)).await; end.store(true, SeqCst) });
        assert!(timeout(ms(1), gather([work])).await.is_err());
        until(|| ended.load(SeqCst)).await;
    }

    a21_a_shield_shows_how_its_task_ends {
        assert_eq!(shield(ready(5)).await.unwrap(), 5);
        let panics = shield(async { if true { panic!("inside a shield") } });
        let error = panics.await.unwrap_err();
        assert!(error.is_panic());
        let cancelled = shield(pending::<()>());
        cancelled.abort_handle().abort();
        assert!(cancelled.await.unwrap_err().is_cancelled());
        let handle = shield(ready(6)).into_handle();
        assert_eq!(handle.await.unwrap(), 6);
    }

    a23_a_sleep_that_is_cancelled_ends_at_once {
        let start = Instant::now();
        let task = spawn(sleep(HOUR));
        yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(start.elapsed() < HOUR / 2);
    }

    a24_cancelling_what_has_ended_does_nothing {
        let task = spawn(async { 5 });
        until(|| task.is_finished()).await;
        task.abort();
        task.abort();
        assert_eq!(task.await.unwrap(), 5);
    }

    no_poll_without_a_wake {
        const COUNT: usize = 200;
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..COUNT).map(|_| oneshot::channel::<usize>()).unzip();
        let polls = Arc::new(AtomicUsize::new(0));
        let futures = receivers.into_iter().map(|mut receiver| {
            let polls = polls.clone();
            poll_fn(move |cx| {
                polls.fetch_add(1, SeqCst);
                Pin::new(&mut receiver).poll(cx)
            })
        });
        let task = spawn(gather(futures.collect::<Vec<_>>()));
        until(|| polls.load(SeqCst) == COUNT).await;
        for (n, sender) in senders.into_iter().enumerate().rev() {
            sender.send(n).unwrap();
            if n % 10 == 0 {
                yield_now().await;
            }
        }
        let outputs: Vec<_> = task.await.unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(outputs, (0..COUNT).collect::<Vec<_>>());
        // Two each, and those that the budget cut short.
        let polls = polls.load(SeqCst);
        assert!(polls <= 2 * COUNT + 10, "{polls} polls of {COUNT} futures");
    }

    one_that_spends_the_budget_does_not_starve_the_others {
        let spins = async {
            loop {
                consume_budget().await;
            }
        };
        let sleeps = async {
            // Several operations, each of which needs a budget.
            for _ in 0..10 {
                yield_now().await;
                consume_budget().await;
            }
            Err::<(), _>("sleeps")
        };
        let futures: [Boxed<Result<(), &'static str>>; 2] = [Box::pin(spins), Box::pin(sleeps)];
        assert_eq!(try_gather(futures).await, Err("sleeps"));
    }

    immediate_successes_give_way {
        let outputs = gather((0..10_000).map(ready));
        let mut outputs = std::pin::pin!(outputs);
        let mut polls = 0;
        let outputs = poll_fn(|cx| {
            polls += 1;
            outputs.as_mut().poll(cx)
        }).await;
        assert_eq!(outputs.len(), 10_000);
        // On the thread of `block_on` too there is a budget, or there is none at all.
        assert!(polls == 1 || polls >= 10_000 / 128, "{polls}");
    }
}

#[rt::test]
async fn a22_a_sleep_of_zero_gives_way() {
    let _limit = Limit::new();
    let log = RefCell::new(Vec::new());
    let turns = |name: &'static str| {
        let log = &log;
        async move {
            for turn in 0..3 {
                log.borrow_mut().push((name, turn));
                sleep(Duration::ZERO).await;
            }
        }
    };
    rt::join!(biased; turns("a"), turns("b"));
    assert_eq!(
        log.take(),
        [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    );
    // Between tasks.
    let ran = flag();
    let set = ran.clone();
    let task = spawn(async move { set.store(true, SeqCst) });
    assert!(!ran.load(SeqCst));
    sleep(Duration::ZERO).await;
    assert!(ran.load(SeqCst));
    task.await.unwrap();
}

#[rt::test]
async fn wait_leaves_handles_that_were_lent() {
    let _limit = Limit::new();
    let mut tasks = [spawn(pending::<u8>()), spawn(async { 5 })];
    let (done, rest) = wait(tasks.iter_mut(), ReturnWhen::FirstDone, None)
        .await
        .unwrap();
    assert_eq!(done[0].output().as_ref().unwrap(), &5);
    assert_eq!(rest.len(), 1);
    tasks[0].abort();
    let [first, _] = tasks;
    assert!(first.await.unwrap_err().is_cancelled());
}

#[rt::test(start_paused = true)]
async fn wait_ends_in_time_beside_one_that_spends_the_budget() {
    let _limit = Limit::new();
    let spins = async {
        loop {
            consume_budget().await;
        }
    };
    let task = spawn(async move {
        let futures: [Boxed<Result<(), ()>>; 2] = [Box::pin(spins), Box::pin(ready(Ok(())))];
        let (done, rest) = wait(futures, ReturnWhen::FirstDone, None).await.unwrap();
        (done.len(), rest.len())
    });
    assert_eq!(task.await.unwrap(), (1, 1));
}

#[rt::test]
async fn futures_of_a_gather_may_borrow_and_need_not_be_send() {
    let _limit = Limit::new();
    let sum = Cell::new(0);
    let text = String::from("abc");
    gather(text.chars().map(async |c| {
        yield_now().await;
        sum.set(sum.get() + c as u32);
    }))
    .await;
    assert_eq!(sum.get(), 97 + 98 + 99);
}

#[rt::test]
async fn a_panic_of_a_future_reaches_who_gathers() {
    let _limit = Limit::new();
    let dropped = flag();
    let guard = SetOnDrop(dropped.clone());
    let task = spawn(async move {
        let futures: [Boxed<()>; 2] = [
            Box::pin(async move {
                let _guard = guard;
                pending().await
            }),
            Box::pin(async { panic!("one of many") }),
        ];
        gather(futures).await
    });
    assert!(task.await.unwrap_err().is_panic());
    assert!(dropped.load(SeqCst));
}

#[rt::test]
async fn no_waker_of_the_task_stays_behind() {
    let _limit = Limit::new();
    let kept = Arc::new(std::sync::Mutex::new(None::<Waker>));
    let keep = kept.clone();
    let outer = Arc::new(Count(AtomicUsize::new(0)));
    let mut future = Box::pin(gather([poll_fn(move |cx| {
        *keep.lock().unwrap() = Some(cx.waker().clone());
        Poll::<()>::Pending
    })]));
    let waker = Waker::from(outer.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(future.as_mut().poll(&mut cx).is_pending());
    let inner = kept.lock().unwrap().take().unwrap();
    inner.wake_by_ref();
    inner.wake_by_ref();
    assert_eq!(outer.0.load(SeqCst), 1);
    drop((future, waker));
    assert_eq!(Arc::strong_count(&outer), 1, "a waker stayed behind");
    // Late wakes go nowhere.
    inner.wake_by_ref();
    inner.wake();
    assert_eq!(outer.0.load(SeqCst), 1);
}

struct Count(AtomicUsize);

impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
