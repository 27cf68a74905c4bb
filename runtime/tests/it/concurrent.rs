//! Bounded concurrency over iterators and streams.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_lite::stream;
use rt::task::{consume_budget, yield_now};
use rt::time::{Instant, sleep};
use rt::{
    for_each_concurrent, map_concurrent, map_concurrent_unordered, spawn, try_for_each_concurrent,
};

use crate::support::Limit;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Counts how many are inside, and the most there ever were.
#[derive(Default)]
struct Inside {
    now: Cell<usize>,
    most: Cell<usize>,
}

impl Inside {
    async fn stay(&self, turns: usize) {
        self.now.set(self.now.get() + 1);
        self.most.set(self.most.get().max(self.now.get()));
        for _ in 0..turns {
            yield_now().await;
        }
        self.now.set(self.now.get() - 1);
    }
}

#[rt::test]
async fn at_most_so_many_at_a_time() {
    let _limit = Limit::new();
    // More than a budget are not under way unless they stay for long.
    for limit in [1, 2, 7, 50] {
        let inside = Inside::default();
        for_each_concurrent(0..200, limit, |n| inside.stay(n % 4 + 1)).await;
        assert_eq!(inside.most.get(), limit);
        assert_eq!(inside.now.get(), 0);
        let inside = Inside::default();
        let all = map_concurrent(0..200, limit, async |n| {
            inside.stay(n % 4 + 1).await;
            n
        });
        assert_eq!(all.collect().await, (0..200).collect::<Vec<_>>());
        assert!(
            inside.most.get() <= limit,
            "{} of {limit}",
            inside.most.get()
        );
        let inside = Inside::default();
        let all = map_concurrent_unordered(0..200, limit, async |n| {
            inside.stay(n % 4 + 1).await;
            n
        });
        let mut all = all.collect().await;
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<_>>());
        assert_eq!(inside.most.get(), limit);
    }
}

#[rt::test]
async fn without_a_limit_all_are_taken() {
    let _limit = Limit::new();
    let inside = Inside::default();
    for_each_concurrent(0..500, None, |_| inside.stay(20)).await;
    assert_eq!(inside.most.get(), 500);
}

#[rt::test]
#[should_panic(
    expected = "a limit of 0 futures at a time would never start any: use `None` for no limit"
)]
async fn a_limit_of_zero_is_refused() {
    let _limit = Limit::new();
    for_each_concurrent(0..5, 0, |_| ready(())).await;
}

#[rt::test]
async fn an_item_is_taken_when_there_is_room_for_it() {
    let _limit = Limit::new();
    let taken = Rc::new(Cell::new(0));
    let counted = taken.clone();
    let items = std::iter::repeat_with(move || counted.set(counted.get() + 1));
    let mut outputs = map_concurrent(items, 3, async |()| yield_now().await);
    outputs.next().await.unwrap();
    assert!((3..=6).contains(&taken.get()), "{} taken", taken.get());
    // One slow item at the front holds back what comes three places behind it.
    let started = Cell::new(0);
    let mut outputs = map_concurrent(0.., 3, |n: u32| {
        started.set(started.get() + 1);
        async move {
            if n == 0 {
                pending::<()>().await;
            }
        }
    });
    let mut next = std::pin::pin!(outputs.next());
    for _ in 0..10 {
        let turn = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_pending())).await;
        assert!(turn);
        yield_now().await;
    }
    assert_eq!(started.get(), 3);
}

#[rt::test(start_paused = true)]
async fn outputs_in_the_order_of_the_input_or_as_they_come() {
    let _limit = Limit::new();
    let times = [50, 10, 40, 20, 30];
    let work = async |time| {
        sleep(ms(time)).await;
        time
    };
    let start = Instant::now();
    assert_eq!(map_concurrent(times, None, work).collect().await, times);
    assert!(start.elapsed() >= ms(50) && start.elapsed() < ms(60));
    let unordered = map_concurrent_unordered(times, None, work);
    assert_eq!(unordered.collect().await, [10, 20, 30, 40, 50]);
    let start = Instant::now();
    let two = map_concurrent_unordered(times, 2, work);
    // 50 | 10 40 (ends with 50) 20 30
    let order = two.collect().await;
    assert_eq!(order[0], 10);
    assert_eq!(order.len(), 5);
    assert!(
        start.elapsed() >= ms(80) && start.elapsed() < ms(95),
        "{:?}",
        start.elapsed()
    );
    let one = map_concurrent_unordered(times, 1, work);
    assert_eq!(one.collect().await, times);
}

#[rt::test]
async fn over_a_stream() {
    let _limit = Limit::new();
    let sum = Cell::new(0);
    let items = stream::unfold(0, async |n| {
        yield_now().await;
        (n < 100).then_some((n, n + 1))
    });
    for_each_concurrent(items, 5, async |n| {
        yield_now().await;
        sum.set(sum.get() + n);
    })
    .await;
    assert_eq!(sum.get(), 4950);
    let doubled = map_concurrent(stream::iter(0..5), 2, async |n| 2 * n);
    rt::pin!(doubled);
    assert_eq!(doubled.next().await, Some(0));
}

/// A stream that waits while futures are under way, and the other way round.
#[rt::test(start_paused = true)]
async fn a_slow_stream_and_slow_work_do_not_wait_for_each_other() {
    let _limit = Limit::new();
    let start = Instant::now();
    let items = stream::unfold(0, async |n| {
        sleep(ms(10)).await;
        (n < 5).then_some((n, n + 1))
    });
    for_each_concurrent(items, 10, async |_| sleep(ms(100)).await).await;
    let elapsed = start.elapsed();
    assert!(elapsed >= ms(150) && elapsed < ms(160), "{elapsed:?}");
}

#[rt::test]
async fn the_first_error_ends_it() {
    let _limit = Limit::new();
    let started = Cell::new(0);
    let dropped = Rc::new(Cell::new(0));
    struct Count(Rc<Cell<usize>>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let result = try_for_each_concurrent(0.., 4, |n: u32| {
        started.set(started.get() + 1);
        let guard = Count(dropped.clone());
        async move {
            let _guard = guard;
            yield_now().await;
            if n == 9 { Err(n) } else { Ok(()) }
        }
    })
    .await;
    assert_eq!(result, Err(9));
    assert!((10..=13).contains(&started.get()), "{}", started.get());
    assert_eq!(dropped.get(), started.get());
    let all = try_for_each_concurrent(0..9, None, |_| ready(Ok::<(), ()>(()))).await;
    assert_eq!(all, Ok(()));
}

#[rt::test]
async fn nothing_to_do() {
    let _limit = Limit::new();
    for_each_concurrent(Vec::<u8>::new(), 3, |_| ready(())).await;
    let none: Vec<u8> = map_concurrent(None, None, ready).collect().await;
    assert!(none.is_empty());
    let mut none = map_concurrent_unordered([0_u8; 0], 1, ready);
    assert_eq!(none.next().await, None);
    assert_eq!(none.next().await, None);
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_parallel_on_two_workers() {
    let _limit = Limit::new();
    let sum = spawn(async {
        let outputs = map_concurrent(0..2000_u64, 16, |n| async move {
            spawn(async move {
                yield_now().await;
                n
            })
            .await
            .unwrap()
        });
        let outputs = outputs.collect().await;
        assert_eq!(outputs, (0..2000).collect::<Vec<_>>());
        outputs.iter().sum::<u64>()
    });
    assert_eq!(sum.await.unwrap(), 1999 * 1000);
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_immediate_successes_give_way() {
    let _limit = Limit::new();
    let polls = spawn(async {
        let work = for_each_concurrent(0..10_000, 10, |_| ready(()));
        let mut work = std::pin::pin!(work);
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            work.as_mut().poll(cx)
        })
        .await;
        polls
    });
    assert!(polls.await.unwrap() >= 10_000 / 128);
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_an_endless_iterator_nor_greedy_futures_keep_the_other_waiting() {
    let _limit = Limit::new();
    // Without a limit there is always another item to take.
    let endless = spawn(async {
        try_for_each_concurrent(0.., None, |n: u32| async move {
            yield_now().await;
            if n == 1000 { Err(n) } else { Ok(()) }
        })
        .await
    });
    assert_eq!(endless.await.unwrap(), Err(1000));
    // Each of the first futures spends all the budget there is.
    let greedy = spawn(async {
        let items = (0..20).map(
            |n| -> Pin<Box<dyn Future<Output = Result<(), u32>> + Send>> {
                if n == 19 {
                    Box::pin(async move { Err(n) })
                } else {
                    Box::pin(async {
                        loop {
                            consume_budget().await;
                        }
                    })
                }
            },
        );
        try_for_each_concurrent(items, None, |future| future).await
    });
    assert_eq!(greedy.await.unwrap(), Err(19));
}

#[rt::test]
async fn places_are_used_again() {
    let _limit = Limit::new();
    let log = RefCell::new(Vec::new());
    for_each_concurrent(0..1000, 2, async |n: usize| {
        yield_now().await;
        log.borrow_mut().push(n);
    })
    .await;
    assert_eq!(log.take(), (0..1000).collect::<Vec<_>>());
}
