//! What can be written in a `select!`: names, patterns, branches, futures and temporaries of all kinds.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{IntoFuture, Ready, pending, ready};
use std::sync::Mutex;

use rt::task::yield_now;

use crate::support::Limit;

#[rt::test]
async fn names_of_the_user_and_names_of_the_macro_are_different() {
    let _limit = Limit::new();
    #[derive(Debug, PartialEq)]
    enum Out {
        B0(u8),
        Disabled,
    }
    let (disabled, output, futures, future0, branch, waiting, value, cx) = (1, 2, 3, 4, 5, 6, 7, 8);
    let sum = rt::select! {
        Out::B0(value) = ready(Out::B0(7)), if disabled == 1 && value == 7 => {
            disabled + output + futures + future0 + branch + waiting + i32::from(value) + cx
        }
        Out::Disabled = pending::<Out>(), if cx == 8 => 0,
        else => branch,
    };
    assert_eq!(sum, 36);
    assert_ne!(Out::Disabled, Out::B0(0));
}

#[rt::test]
async fn patterns_of_all_kinds() {
    let _limit = Limit::new();
    const FIVE: u8 = 5;
    #[derive(Clone)]
    struct Point {
        x: String,
        y: u8,
        z: Option<String>,
    }
    let point = || Point {
        x: "x".into(),
        y: 5,
        z: Some("z".into()),
    };
    macro_rules! first {
        ($pattern:pat = $value:expr => $handler:expr) => {
            rt::select! {
                $pattern = ready($value) => $handler,
                else => panic!("no match for {}", stringify!($pattern)),
            }
        };
    }
    // Through a macro, as fragments.
    assert_eq!(
        first!(Some(mut s) = Some(String::from("a")) => { s.push('b'); s }),
        "ab"
    );
    // Not through a macro.
    let log = RefCell::new(0);
    let count = || *log.borrow_mut() += 1;
    rt::select! { None = ready(None::<String>) => count(), else => unreachable!() }
    rt::select! { FIVE = ready(5) => count(), else => unreachable!() }
    rt::select! { FIVE = ready(6) => unreachable!(), else => count() }
    rt::select! { mut s = ready(String::new()) => { s.push('a'); count() } }
    rt::select! { ref s = ready(String::from("a")) => { assert_eq!(s, "a"); count() } }
    rt::select! { Some(ref mut s) = ready(Some(String::from("a"))) => { s.push('b'); count() } else => unreachable!() }
    rt::select! { &x = ready(&7u8) => { assert_eq!(x, 7); count() } }
    rt::select! { (&x, mut s) = ready((&7u8, String::new())) => { s.push('a'); assert_eq!(x, 7); count() } }
    rt::select! { Some(&5 | &6) = ready(Some(&6)) => count(), else => unreachable!() }
    rt::select! { n @ (1..=3 | 7) = ready(7) => { assert_eq!(n, 7); count() } else => unreachable!() }
    rt::select! { Ok(mut n) | Err(mut n) = ready(Err::<u8, u8>(4)) => { n += 1; assert_eq!(n, 5); count() } else => unreachable!() }
    rt::select! { Point { mut x, y: FIVE, z: Some(ref z) } = ready(point()) => { x.push_str(z); assert_eq!(x, "xz"); count() } else => unreachable!() }
    rt::select! { Point { ref x, y, .. } = ready(point()) => { assert_eq!((x.as_str(), y), ("x", 5)); count() } }
    rt::select! { [first, .., mut last] = ready([1, 2, 3]) => { last += first; assert_eq!(last, 4); count() } }
    rt::select! { ["a", rest @ ..] = ready(["a", "b"]) => { assert_eq!(rest, ["b"]); count() } else => unreachable!() }
    rt::select! { "yes" = ready("yes") => count(), else => unreachable!() }
    rt::select! { () = async {} => count() }
    rt::select! { | Some(1) | Some(2) = ready(Some(2)) => count(), else => unreachable!() }
    assert_eq!(*log.borrow(), 18);
    assert!(point().clone().z.is_some());
}

#[rt::test]
async fn branches_in_the_forms_of_match_arms() {
    let _limit = Limit::new();
    macro_rules! wrapped {
        ($future:expr, $handler:block) => {
            rt::select! {
                _ = $future => $handler
                _ = pending::<()>() => match 1 { _ => 2 }
                _ = pending::<()>() => if true { 1 } else { 2 }
                _ = pending::<()>() => loop { break 5 },
                else => 0
            }
        };
    }
    assert_eq!(wrapped!(ready(5), { 7 }), 7);
    let mut count = 0;
    rt::select! {
        _ = ready(()) => count += 1,
        _ = pending::<()>() => count = 9,
    }
    assert_eq!(count, 1);
}

struct Question(u8);

impl IntoFuture for Question {
    type Output = u8;
    type IntoFuture = Ready<u8>;

    fn into_future(self) -> Ready<u8> {
        ready(self.0)
    }
}

#[rt::test]
async fn what_can_be_made_a_future_is_one() {
    let _limit = Limit::new();
    let value = rt::select! { x = Question(4) => x, _ = pending::<()>() => 0 };
    assert_eq!(value, 4);
    assert_eq!(rt::join!(Question(1), Question(2)), (1, 2));
}

#[rt::test]
async fn a_reference_to_a_temporary_lives_as_in_a_let() {
    let _limit = Limit::new();
    let value = rt::select! {
        x = &mut Box::pin(async { yield_now().await; 5 }) => x,
        _ = pending::<()>() => 0,
    };
    assert_eq!(value, 5);
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[rt::test]
async fn temporaries_of_the_expressions_are_gone_before_the_wait() {
    let _limit = Limit::new();
    let lock = Mutex::new(5);
    let sum = is_send(async {
        let a = rt::select! {
            // Twice the same lock, and a guard, which is not `Send`, in each expression.
            x = { let x = *lock.lock().unwrap(); async move { yield_now().await; x } } => x,
            x = ready(*lock.lock().unwrap()), if *lock.lock().unwrap() == 4 => x,
            x = ready(*lock.lock().unwrap()), if *lock.lock().unwrap() == 4 => x,
        };
        let (b, c) = rt::join!(ready(*lock.lock().unwrap()), ready(*lock.lock().unwrap()));
        a + b + c
    })
    .await;
    assert_eq!(sum, 15);
}

#[rt::test]
async fn outputs_without_values() {
    let _limit = Limit::new();
    async fn never() -> Infallible {
        pending().await
    }
    let value = rt::select! {
        never = never() => match never {},
        x = ready(5) => x,
    };
    assert_eq!(value, 5);
    rt::select! {
        biased;
        Err(never) = async { never().await; Ok::<(), Infallible>(()) } => match never {},
        _ = ready(()) => {}
        else => {}
    }
}

#[rt::test]
async fn as_many_branches_as_bits() {
    let _limit = Limit::new();
    macro_rules! many {
        ($($number:literal)*) => {
            rt::select! { $(n = ready($number) => n,)* }
        };
    }
    let mut seen = [0; 64];
    for _ in 0..64 * 40 {
        let n: usize = many!(
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
        );
        seen[n] += 1;
    }
    assert!(
        seen.iter().all(|count| (10..90).contains(count)),
        "{seen:?}"
    );
}
