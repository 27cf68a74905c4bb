//! The stress twin of `notify.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on_with_new_wakers, limited};
use rt_sync::notify::Notify;

const ROUNDS: usize = 20_000;

#[test]
fn two_threads_take_turns() {
    limited(|| {
        let notify = Arc::new([Notify::new(), Notify::new()]);
        let other = notify.clone();
        let thread = thread::spawn(move || {
            for _ in 0..ROUNDS {
                block_on_with_new_wakers(other[0].notified());
                other[1].notify_one();
            }
        });
        for _ in 0..ROUNDS {
            notify[0].notify_one();
            block_on_with_new_wakers(notify[1].notified());
        }
        thread.join().unwrap();
    });
}

/// Every notification is taken, though those that take it give up now and then: each is answered, so that none is
/// merged with the next.
#[test]
fn grants_survive_futures_that_go() {
    limited(|| {
        let notify = Arc::new(Notify::new());
        let answer = Arc::new(Notify::new());
        let over = Arc::new(AtomicBool::new(false));
        let taken = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (notify, answer) = (notify.clone(), answer.clone());
                let (over, taken) = (over.clone(), taken.clone());
                thread::spawn(move || {
                    let mut round = number;
                    while !over.load(SeqCst) {
                        round += 1;
                        if round % 3 == 0 {
                            // Waits for a moment, and goes.
                            let mut future = Box::pin(notify.notified());
                            let _ = future.as_mut().enable();
                            if !future.as_mut().enable() {
                                drop(future);
                                continue;
                            }
                        } else {
                            block_on_with_new_wakers(notify.notified());
                        }
                        taken.fetch_add(1, SeqCst);
                        answer.notify_one();
                    }
                })
            })
            .collect();
        for round in 0..ROUNDS {
            if round % 2 == 0 {
                notify.notify_one();
            } else {
                notify.notify_last();
            }
            block_on_with_new_wakers(answer.notified());
        }
        assert_eq!(taken.load(SeqCst), ROUNDS);
        over.store(true, SeqCst);
        while threads.iter().any(|thread| !thread.is_finished()) {
            notify.notify_one();
            thread::yield_now();
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// `notify_waiters` completes the futures of other threads, polled or not, and their wakers change meanwhile.
#[test]
fn notify_waiters_reaches_all_that_were_made() {
    limited(|| {
        const THREADS: usize = 3;
        let notify = Arc::new(Notify::new());
        let made = Arc::new(Barrier::new(THREADS + 1));
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (notify, made) = (notify.clone(), made.clone());
                thread::spawn(move || {
                    for round in 0..ROUNDS / 10 {
                        let mut future = pin!(notify.notified());
                        if (round + number) % 2 == 0 {
                            let _ = future
                                .as_mut()
                                .poll(&mut Context::from_waker(Waker::noop()));
                        }
                        made.wait();
                        block_on_with_new_wakers(future);
                    }
                })
            })
            .collect();
        for _ in 0..ROUNDS / 10 {
            made.wait();
            notify.notify_waiters();
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
