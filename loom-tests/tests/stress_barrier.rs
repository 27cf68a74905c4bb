//! The stress twin of `barrier.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::barrier::Barrier;

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

/// Rounds in which nobody may be a round ahead, with others that come and go.
#[test]
fn rounds_stay_together_although_some_give_up() {
    const ROUNDS: usize = 5_000;
    const PARTIES: usize = 3;
    limited(|| {
        let shared = Arc::new((Barrier::new(PARTIES), AtomicUsize::new(0)));
        let leaders = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..PARTIES)
            .map(|_| {
                let (shared, leaders) = (shared.clone(), leaders.clone());
                thread::spawn(move || {
                    for round in 1..=ROUNDS {
                        shared.1.fetch_add(1, SeqCst);
                        if block_on(shared.0.wait()).is_leader() {
                            leaders.fetch_add(1, SeqCst);
                        }
                        assert!(shared.1.load(SeqCst) >= PARTIES * round);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(leaders.load(SeqCst), ROUNDS);
        assert_eq!(shared.0.waiting(), 0);
    });
}

/// Waiters that give up against waiters that stay: each passage has as many as there are parties, of whom some had gone.
#[test]
fn passages_are_whole_although_some_give_up() {
    const PASSAGES: usize = 3_000;
    limited(|| {
        let barrier = Arc::new(Barrier::new(2));
        let over = Arc::new(AtomicBool::new(false));
        let (fickle, end) = (barrier.clone(), over.clone());
        let fickle = thread::spawn(move || {
            while !end.load(SeqCst) {
                give_up(fickle.wait());
            }
        });
        let helper = {
            let (barrier, end) = (barrier.clone(), over.clone());
            thread::spawn(move || {
                while !end.load(SeqCst) {
                    block_on(barrier.wait());
                }
            })
        };
        for _ in 0..PASSAGES {
            let passed = block_on(barrier.wait());
            assert_eq!(passed.is_leader(), passed.index() == 1);
        }
        over.store(true, SeqCst);
        fickle.join().unwrap();
        // The helper may wait for a second.
        while !helper.is_finished() {
            give_up(barrier.wait());
        }
        helper.join().unwrap();
    });
}
