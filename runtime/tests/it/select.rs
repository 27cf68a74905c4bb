//! `select!` as users write it.
#![forbid(unsafe_code)]

mod forms;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rt::sync::oneshot;
use rt::task::coop::has_budget_remaining;
use rt::task::{consume_budget, yield_now};
use rt::time::{Instant, sleep};

use crate::support::Limit;

/// A future that notes when it is polled and dropped, and is ready at the given poll.
struct Noted<'a> {
    log: &'a RefCell<Vec<String>>,
    name: &'static str,
    polls: u32,
    ready_at: u32,
}

impl<'a> Noted<'a> {
    fn new(log: &'a RefCell<Vec<String>>, name: &'static str, ready_at: u32) -> Self {
        Noted {
            log,
            name,
            polls: 0,
            ready_at,
        }
    }
}

impl Future for Noted<'_> {
    type Output = &'static str;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'static str> {
        self.polls += 1;
        assert!(self.polls <= self.ready_at, "polled after its end");
        self.log.borrow_mut().push(format!("poll {}", self.name));
        if self.polls == self.ready_at {
            return Poll::Ready(self.name);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.log.borrow_mut().push(format!("drop {}", self.name));
    }
}

#[rt::test]
async fn the_first_that_is_ready_wins() {
    let _limit = Limit::new();
    let won = rt::select! {
        x = async { 5 } => x,
        _ = pending::<()>() => 7,
    };
    assert_eq!(won, 5);
    let won = rt::select! {
        _ = pending::<()>() => 7,
        x = async { yield_now().await; 6 } => x + 1,
        _ = pending::<()>() => 8
    };
    assert_eq!(won, 7);
}

#[rt::test]
async fn biased_polls_in_the_order_of_the_text_and_drops_losers_before_the_handler() {
    let _limit = Limit::new();
    let log = RefCell::new(Vec::new());
    for _ in 0..20 {
        log.borrow_mut().clear();
        rt::select! {
            biased;
            _ = Noted::new(&log, "a", 9) => unreachable!(),
            name = Noted::new(&log, "b", 2) => {
                log.borrow_mut().push(format!("handler {name}"));
            }
            _ = Noted::new(&log, "c", 2) => unreachable!(),
        }
        assert_eq!(
            *log.borrow(),
            [
                "poll a",
                "poll b",
                "poll c",
                "poll a",
                "poll b",
                "drop a",
                "drop b",
                "drop c",
                "handler b"
            ]
        );
    }
}

#[rt::test]
async fn each_branch_is_polled_first_about_as_often() {
    let _limit = Limit::new();
    let mut won = [0; 4];
    for _ in 0..4000 {
        let branch = rt::select! {
            _ = ready(()) => 0,
            _ = ready(()) => 1,
            _ = ready(()) => 2,
            _ = ready(()) => 3,
        };
        won[branch] += 1;
    }
    for (branch, count) in won.iter().enumerate() {
        assert!(
            (700..1300).contains(count),
            "branch {branch} won {count} of 4000"
        );
    }
}

#[rt::test]
async fn the_first_branch_changes_from_poll_to_poll() {
    let _limit = Limit::new();
    let firsts = RefCell::new([0; 2]);
    let mark = |branch: usize| {
        let (firsts, mut polls) = (&firsts, 0);
        poll_fn(move |cx| {
            polls += 1;
            // Each poll comes to both branches: who is first finds both counts as equal as before.
            let mut firsts = firsts.borrow_mut();
            firsts[branch] += 1;
            cx.waker().wake_by_ref();
            if polls == 1000 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    };
    let mut wins = [0; 2];
    for _ in 0..20 {
        let branch = rt::select! {
            _ = mark(0) => 0,
            _ = mark(1) => 1,
        };
        wins[branch] += 1;
    }
    assert!(wins[0] > 0 && wins[1] > 0, "{wins:?}");
}

#[rt::test]
async fn what_does_not_match_disables_its_branch() {
    let _limit = Limit::new();
    let value = rt::select! {
        Some(x) = ready(None::<u32>) => x,
        x = async { yield_now().await; 3 } => x,
    };
    assert_eq!(value, 3);
    let polls = Cell::new(0);
    let counted = poll_fn(|_| {
        polls.set(polls.get() + 1);
        Poll::Ready(Err::<u8, _>(()))
    });
    rt::select! {
        Ok(_) = counted => unreachable!(),
        _ = async { for _ in 0..10 { yield_now().await; } } => {}
    }
    assert_eq!(polls.get(), 1);
}

#[rt::test]
async fn else_runs_when_all_branches_are_disabled() {
    let _limit = Limit::new();
    let by_pattern = rt::select! {
        Some(x) = ready(None::<u32>) => x,
        Ok(x) = ready(Err::<u32, ()>(())) => x,
        else => 9,
    };
    assert_eq!(by_pattern, 9);
    let by_condition = rt::select! {
        biased;
        _ = ready(()), if false => 1,
        Some(x) = ready(None), if true => x,
        else => { 2 }
    };
    assert_eq!(by_condition, 2);
    let nothing_else = rt::select! { else => 5 };
    assert_eq!(nothing_else, 5);
    let nothing_else = rt::select! { biased; else => 6, };
    assert_eq!(nothing_else, 6);
}

#[rt::test]
#[should_panic(expected = "all branches are disabled and there is no else branch")]
async fn without_else_it_panics_when_all_branches_are_disabled() {
    let _limit = Limit::new();
    rt::select! {
        Some(()) = ready(None) => {}
        _ = pending::<()>(), if false => {}
    }
}

#[rt::test]
async fn preconditions_come_first_and_the_futures_of_disabled_branches_are_made_and_not_polled() {
    let _limit = Limit::new();
    let log = RefCell::new(Vec::new());
    let note = |text: &'static str| {
        log.borrow_mut().push(text);
        true
    };
    rt::select! {
        biased;
        _ = { note("future 1"); poll_fn::<(), _>(|_| panic!("polled although disabled")) }, if !note("condition 1") => {}
        _ = { note("future 2"); ready(()) }, if note("condition 2") => { note("handler"); }
    }
    assert_eq!(
        *log.borrow(),
        [
            "condition 1",
            "condition 2",
            "future 1",
            "future 2",
            "handler"
        ]
    );
}

#[rt::test]
async fn handlers_belong_to_the_function_around() {
    let _limit = Limit::new();

    async fn question_mark(text: &str) -> Result<u8, std::num::ParseIntError> {
        let number = rt::select! {
            text = ready(text) => text.parse::<u8>()?,
            _ = pending::<()>() => return Ok(0),
        };
        Ok(number)
    }
    assert_eq!(question_mark("4").await, Ok(4));
    assert!(question_mark("x").await.is_err());

    async fn returns_from_a_loop() -> u8 {
        let mut count = 0;
        'outer: loop {
            loop {
                rt::select! {
                    _ = ready(()), if count < 3 => { count += 1; continue; }
                    _ = ready(()), if count < 6 => { count += 1; continue 'outer }
                    else => break 'outer,
                }
            }
        }
        rt::select! {
            _ = yield_now() => { yield_now().await; count + 1 }
        }
    }
    assert_eq!(returns_from_a_loop().await, 7);
}

#[rt::test]
async fn handlers_may_change_what_the_futures_had_borrowed() {
    let _limit = Limit::new();
    let mut numbers = vec![1, 2];
    let mut other = String::new();
    async fn last(numbers: &mut [u32]) -> Option<u32> {
        numbers.last().copied()
    }
    rt::select! {
        Some(n) = last(&mut numbers) => {
            numbers.push(n + 1);
            other.push('x');
        }
        _ = async { other.push('y'); pending::<()>().await } => numbers.clear(),
    }
    assert_eq!(numbers, [1, 2, 3]);
    assert!(other.ends_with('x'));
}

#[rt::test(start_paused = true)]
async fn a_future_kept_outside_goes_on_from_loop_to_loop() {
    let _limit = Limit::new();
    let start = Instant::now();
    let end = sleep(Duration::from_millis(55));
    rt::pin!(end);
    let mut ticks = 0;
    loop {
        rt::select! {
            () = &mut end => break,
            () = sleep(Duration::from_millis(10)) => ticks += 1,
        }
    }
    assert_eq!(ticks, 5);
    assert!(
        start.elapsed() >= Duration::from_millis(55) && start.elapsed() < Duration::from_millis(60)
    );
}

#[rt::test]
async fn nothing_is_lost_on_a_branch_that_loses() {
    let _limit = Limit::new();
    let (sender, mut receiver) = oneshot::channel();
    for _ in 0..100 {
        rt::select! {
            _ = &mut receiver => unreachable!(),
            _ = yield_now() => {}
        }
    }
    sender.send(5).unwrap();
    rt::select! {
        biased;
        _ = ready(()) => {}
        _ = &mut receiver => unreachable!(),
    }
    assert_eq!(receiver.await, Ok(5));
}

#[rt::test]
async fn selects_inside_selects() {
    let _limit = Limit::new();
    let value = rt::select! {
        x = async {
            rt::select! {
                x = async { yield_now().await; 1 } => x,
                _ = pending::<()>() => 2,
            }
        } => {
            rt::select! {
                y = ready(10) => {
                    rt::select! { z = ready(100) => x + y + z, _ = pending::<()>() => 0 }
                }
                _ = pending::<()>() => 0,
            }
        }
        _ = pending::<()>() => 0,
    };
    assert_eq!(value, 111);
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_budget_spent_no_branch_is_polled_and_the_task_gives_way() {
    let _limit = Limit::new();
    let polls = rt::spawn(async {
        let mut polls = 0;
        let mut spins = pin!(async {
            for _ in 0..10_000 {
                rt::select! {
                    biased;
                    // It spends nothing itself, so nothing but the `select!` looks at the budget.
                    () = poll_fn(|_| {
                        assert!(has_budget_remaining());
                        Poll::Pending
                    }) => {}
                    () = consume_budget() => {}
                }
            }
        });
        poll_fn(|cx| {
            polls += 1;
            spins.as_mut().poll(cx)
        })
        .await;
        polls
    })
    .await
    .unwrap();
    assert!((10_000 / 128..200).contains(&polls), "{polls} polls");
}

#[test]
fn futures_are_not_larger_than_their_parts() {
    async fn part<const N: usize>() {
        let bytes = [1_u8; N];
        yield_now().await;
        std::hint::black_box(&bytes);
    }
    let (a, b, c) = (
        size_of_val(&part::<1000>()),
        size_of_val(&part::<500>()),
        size_of_val(&part::<100>()),
    );
    let select = async {
        rt::select! {
            _ = part::<1000>() => 1,
            _ = part::<500>() => 2,
            _ = part::<100>() => 3,
        }
    };
    let size = size_of_val(&select);
    assert!(size <= a + b + c + 64, "{size} for {a} + {b} + {c}");
    let join = async { rt::join!(part::<1000>(), part::<500>(), part::<100>()) };
    let size = size_of_val(&join);
    assert!(size <= a + b + c + 64, "join: {size} for {a} + {b} + {c}");
    let try_join = async {
        rt::try_join!(
            async {
                part::<1000>().await;
                Ok::<_, ()>(())
            },
            async {
                part::<500>().await;
                Ok(())
            },
        )
    };
    let size = size_of_val(&try_join);
    assert!(size <= a + b + 96, "try_join: {size} for {a} + {b}");
}

#[test]
fn it_needs_no_runtime() {
    let mut future = pin!(async {
        rt::select! { x = ready(1) => x, _ = pending::<()>() => 2 }
    });
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(1));
}
