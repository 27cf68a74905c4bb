//! `join!` and `try_join!` as users write them.
#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{pending, poll_fn, ready};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use rt::task::{consume_budget, yield_now};
use rt::time::{Instant, sleep};

use crate::support::Limit;

#[rt::test]
async fn outputs_come_as_a_tuple() {
    let _limit = Limit::new();
    let (a, b, c) = rt::join!(async { 1 }, ready("x"), async {
        yield_now().await;
        3.5
    });
    assert_eq!((a, b, c), (1, "x", 3.5));
    assert_eq!(rt::join!(ready(1)), (1,));
    assert_eq!(rt::join!(ready(1), ready(2),), (1, 2));
    assert_eq!(rt::join!(biased; ready(1), ready(2)), (1, 2));
    rt::join!();
    rt::join!(biased;);
    let done: Result<(), ()> = rt::try_join!();
    assert_eq!(done, Ok(()));
}

#[rt::test]
async fn values_or_the_first_error() {
    let _limit = Limit::new();
    let both: Result<(i32, u8), String> =
        rt::try_join!(async { Ok(1) }, async { Ok::<u8, String>(2) });
    assert_eq!(both, Ok((1, 2)));
    let mut later = 0;
    let error = rt::try_join!(
        async {
            yield_now().await;
            Err::<(), _>("first")
        },
        async {
            for _ in 0..10 {
                yield_now().await;
                later += 1;
            }
            Ok::<_, &str>(())
        },
        async {
            pending::<()>().await;
            Ok(())
        },
    );
    assert_eq!(error, Err("first"));
    assert!(later < 5);
    let one: Result<_, Infallible> = rt::try_join!(ready(Ok(5)));
    assert_eq!(one, Ok((5,)));
}

#[rt::test]
async fn errors_convert_where_the_caller_says() {
    let _limit = Limit::new();
    async fn run() -> Result<u8, Box<dyn std::error::Error>> {
        let (a, b) =
            rt::try_join!(biased; async { "1".parse::<u8>() }, async { "x".parse::<u8>() })?;
        Ok(a + b)
    }
    assert!(run().await.unwrap_err().is::<std::num::ParseIntError>());
}

#[rt::test]
async fn any_number_of_branches() {
    let _limit = Limit::new();
    macro_rules! sum_of {
        ($($n:literal)*) => {{
            let futures = ($(async { yield_now().await; $n },)*);
            let _ = &futures;
            rt::join!($(async { yield_now().await; $n }),*)
        }};
    }
    let sums = sum_of!(1 2 3 4 5 6 7 8 9 10 11 12);
    assert_eq!((sums.0, sums.5, sums.11), (1, 6, 12));
    // More than the recursion limit of macros and types.
    macro_rules! ten { ($($t:tt)*) => { rt::join!(
        $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*, $($t)*
    ) } }
    let count = Cell::new(0);
    let add = || async { count.set(count.get() + 1) };
    ten!(
        add(),
        add(),
        add(),
        add(),
        add(),
        add(),
        add(),
        add(),
        add(),
        add()
    );
    assert_eq!(count.get(), 150);
}

#[rt::test]
async fn each_branch_is_polled_until_it_is_done_and_dropped_then() {
    let _limit = Limit::new();
    struct Dropped(Rc<Cell<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let gone = Rc::new(Cell::new(false));
    let guard = Dropped(gone.clone());
    let mut polls = 0;
    let once = poll_fn(move |_| {
        let _guard = &guard;
        polls += 1;
        assert_eq!(polls, 1);
        Poll::Ready(())
    });
    let others = async {
        for _ in 0..5 {
            yield_now().await;
        }
        assert!(gone.get(), "a future that is done is still there");
    };
    rt::join!(once, others);
}

#[rt::test]
async fn the_first_call_goes_round() {
    let _limit = Limit::new();
    let log = RefCell::new(Vec::new());
    let noted = |name: &'static str| {
        let (log, mut polls) = (&log, 0);
        poll_fn(move |cx| {
            log.borrow_mut().push(name);
            polls += 1;
            cx.waker().wake_by_ref();
            if polls == 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    };
    rt::join!(noted("a"), noted("b"), noted("c"));
    assert_eq!(log.take(), ["a", "b", "c", "b", "c", "a", "c", "a", "b"]);
    rt::join!(biased; noted("a"), noted("b"), noted("c"));
    assert_eq!(log.take(), ["a", "b", "c", "a", "b", "c", "a", "b", "c"]);
}

/// Never waits, and gives way only because of the budget.
async fn spins() {
    loop {
        consume_budget().await;
    }
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_is_always_ready_does_not_starve_a_sleep() {
    let _limit = Limit::new();
    let task = rt::spawn(async {
        let start = Instant::now();
        let limit = Duration::from_millis(20);
        let first = rt::try_join!(
            async {
                spins().await;
                Ok(())
            },
            async {
                sleep(limit).await;
                Err::<(), _>("sleep")
            },
        );
        assert_eq!(first, Err("sleep"));
        let second = rt::select! {
            _ = spins() => "spins",
            _ = sleep(limit) => "sleep",
        };
        assert_eq!(second, "sleep");
        start.elapsed()
    });
    let elapsed = task.await.unwrap();
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
}

#[rt::test]
async fn a_join_in_a_task_shares_the_budget_with_its_branches() {
    let _limit = Limit::new();
    let polls = rt::spawn(async {
        let mut polls = 0;
        let mut work = std::pin::pin!(async {
            rt::join!(
                async {
                    for _ in 0..5_000 {
                        consume_budget().await;
                    }
                },
                async {
                    for _ in 0..5_000 {
                        consume_budget().await;
                    }
                },
            )
        });
        poll_fn(|cx| {
            polls += 1;
            work.as_mut().poll(cx)
        })
        .await;
        polls
    })
    .await
    .unwrap();
    assert!((10_000 / 128..200).contains(&polls), "{polls} polls");
}

#[rt::test]
async fn outputs_without_values() {
    let _limit = Limit::new();
    async fn never() -> Infallible {
        pending().await
    }
    let joined = async { rt::join!(never(), ready(1)) };
    let timed = rt::time::timeout(Duration::from_millis(1), joined).await;
    assert!(timed.is_err());
    let joined: Result<(u8, u8), Infallible> = rt::try_join!(ready(Ok(1)), ready(Ok(2)));
    assert_eq!(joined, Ok((1, 2)));
}

#[rt::test]
async fn pinned_names() {
    let _limit = Limit::new();
    let a = async { 1 };
    let b = async { 2 };
    rt::pin!(a, b);
    rt::pin! {
        let c = async { 3 };
        let d = ready(4);
    }
    assert_eq!(rt::join!(&mut a, &mut b, &mut c, &mut d), (1, 2, 3, 4));
    let e = async { 5 };
    rt::pin!(e,);
    assert_eq!(e.await, 5);
}
