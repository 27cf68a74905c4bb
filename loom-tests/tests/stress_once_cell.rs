//! The stress twin of `once_cell.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::once_cell::OnceCell;
use rt_sync::set_once::SetOnce;

const ROUNDS: usize = 3_000;
const THREADS: usize = 3;

/// Runs `body` on some threads at the same time, with something new in every round.
fn together<T: Send + Sync + 'static, R: Send + 'static>(
    new: impl Fn() -> T,
    body: impl Fn(usize, &T) -> R + Send + Sync + 'static,
    check: impl Fn(&T, Vec<R>),
) {
    let body = Arc::new(body);
    for _ in 0..ROUNDS {
        let shared = Arc::new((new(), Barrier::new(THREADS)));
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (shared, body) = (shared.clone(), body.clone());
                thread::spawn(move || {
                    shared.1.wait();
                    body(number, &shared.0)
                })
            })
            .collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        check(&shared.0, results.collect());
    }
}

/// One gives up in the middle, one fails, one makes the value.
#[test]
fn who_waits_takes_over() {
    limited(|| {
        together(
            OnceCell::new,
            |number, cell| match number {
                0 => {
                    let mut future = Box::pin(cell.get_or_init(pending::<usize>));
                    let mut cx = Context::from_waker(Waker::noop());
                    if future.as_mut().poll(&mut cx).is_pending() {
                        let _ = future.as_mut().poll(&mut cx);
                    }
                }
                1 => drop(block_on(cell.get_or_try_init(async || Err::<usize, _>(())))),
                _ => assert_eq!(block_on(cell.get_or_init(async || 7)), &7),
            },
            |cell, _| assert_eq!(cell.get(), Some(&7)),
        );
    });
}

/// One of them makes it, all get it.
#[test]
fn all_get_the_same() {
    limited(|| {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        together(
            OnceCell::new,
            move |number, cell| {
                *block_on(cell.get_or_init(async || {
                    counted.fetch_add(1, SeqCst);
                    Box::new(number)
                }))
                .clone()
            },
            |cell, results| {
                let value = **cell.get().unwrap();
                assert!(results.iter().all(|result| *result == value));
            },
        );
        assert_eq!(made.load(SeqCst), ROUNDS);
    });
}

/// Two set, one waits.
#[test]
fn one_of_two_sets_and_who_waits_is_told() {
    limited(|| {
        together(
            SetOnce::new,
            |number, once: &SetOnce<Box<usize>>| match number {
                0 => (**block_on(once.wait()), false),
                _ => (number, once.set(Box::new(number)).is_ok()),
            },
            |_, results| {
                assert_ne!(results[1].1, results[2].1);
                assert_eq!(results[0].0, if results[1].1 { 1 } else { 2 });
            },
        );
    });
}
