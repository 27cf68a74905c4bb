//! The stress twin of `condition.rs`: real threads, many turns, a time limit.
#![cfg(not(rt_loom))]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::condition::Condition;
use rt_sync::mutex::Mutex;

/// Polls once, and drops the future.
fn give_up<F: Future>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let poll = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    thread::yield_now();
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Threads that take turns, with others that wait and give up: ends only if no notification is lost with those.
#[test]
fn turns_go_round_although_some_give_up() {
    const ROUNDS: usize = 5_000;
    const THREADS: usize = 3;
    limited(|| {
        let shared = Arc::new((Mutex::new(0_usize), Condition::new()));
        let over = Arc::new(AtomicBool::new(false));
        let given_up = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..THREADS)
            .map(|mine| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (turn, changed) = &*shared;
                    for _ in 0..ROUNDS {
                        block_on(async {
                            let guard = turn.lock().await;
                            let mut guard = changed
                                .wait_for(guard, |turn| *turn % THREADS == mine)
                                .await;
                            *guard += 1;
                        });
                        changed.notify_all();
                    }
                })
            })
            .collect();
        let (fickle, end, count) = (shared.clone(), over.clone(), given_up.clone());
        let fickle = thread::spawn(move || {
            while !end.load(SeqCst) {
                give_up(async {
                    let guard = fickle.0.lock().await;
                    drop(fickle.1.wait(guard).await);
                });
                count.fetch_add(1, SeqCst);
            }
        });
        for thread in threads {
            thread.join().unwrap();
        }
        over.store(true, SeqCst);
        fickle.join().unwrap();
        assert_eq!(*block_on(shared.0.lock()), ROUNDS * THREADS);
        assert!(given_up.load(SeqCst) > 0);
    });
}

/// A store of items: one notification an item, with takers that give up when they were notified.
#[test]
fn a_notification_of_one_is_not_lost() {
    const ITEMS: usize = 10_000;
    limited(|| {
        let shared = Arc::new((Mutex::new(0_usize), Condition::new()));
        let over = Arc::new(AtomicBool::new(false));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (items, more) = &*shared;
                    for _ in 0..ITEMS {
                        block_on(async {
                            let guard = items.lock().await;
                            *more.wait_for(guard, |items| *items > 0).await -= 1;
                        });
                    }
                })
            })
            .collect();
        let (fickle, end) = (shared.clone(), over.clone());
        let fickle = thread::spawn(move || {
            while !end.load(SeqCst) {
                give_up(async {
                    let guard = fickle.0.lock().await;
                    drop(fickle.1.wait(guard).await);
                });
            }
        });
        for _ in 0..2 * ITEMS {
            *block_on(shared.0.lock()) += 1;
            shared.1.notify_one();
        }
        for taker in takers {
            taker.join().unwrap();
        }
        over.store(true, SeqCst);
        fickle.join().unwrap();
        assert_eq!(*block_on(shared.0.lock()), 0);
    });
}
