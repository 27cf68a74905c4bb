//! The stress twin of `wait_list.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread::{self};

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::wait_list::{Notification, WaitList, Waiter};

/// A counting semaphore of the simplest kind: takes one, or waits for `put`.
struct Store {
    items: AtomicUsize,
    list: WaitList<u8>,
}

impl Store {
    fn try_take(&self) -> bool {
        self.items
            .fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1))
            .is_ok()
    }

    async fn take(&self) {
        let mut waiter = pin!(Waiter::new(&self.list, 0));
        poll_fn(|cx| {
            loop {
                if self.try_take() {
                    return Poll::Ready(());
                }
                if waiter.as_mut().poll(cx).is_pending() {
                    if !self.try_take() {
                        return Poll::Pending;
                    }
                    // Served ourselves; a grant that came meanwhile is passed on when the waiter is dropped.
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }

    /// Joins the list, and gives up at once: what was granted meanwhile must go on to somebody else.
    fn give_up(&self) {
        let mut waiter = Box::pin(Waiter::new(&self.list, 1));
        let _ = waiter
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        thread::yield_now();
    }

    fn put(&self) {
        self.items.fetch_add(1, Relaxed);
        self.list.notify_one();
    }
}

/// As many takes as puts, with waiters that give up in between: ends only if no grant is lost.
#[test]
fn no_grant_is_lost() {
    const EACH: usize = 20_000;
    const PAIRS: usize = 2;
    limited(|| {
        let store = Arc::new(Store {
            items: AtomicUsize::new(0),
            list: WaitList::new(),
        });
        let running = Arc::new(AtomicUsize::new(PAIRS));
        let mut threads = Vec::new();
        for _ in 0..PAIRS {
            let (putter, taker, running) = (store.clone(), store.clone(), running.clone());
            threads.push(thread::spawn(move || {
                for _ in 0..EACH {
                    putter.put();
                }
            }));
            threads.push(thread::spawn(move || {
                for _ in 0..EACH {
                    block_on(taker.take());
                }
                running.fetch_sub(1, Relaxed);
            }));
        }
        let fickle = store.clone();
        threads.push(thread::spawn(move || {
            while running.load(Relaxed) > 0 {
                fickle.give_up();
            }
        }));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(store.items.load(Relaxed), 0);
        assert!(store.list.is_empty());
    });
}

/// Rounds of `notify_all` and `notify_matching` against waiters that join, change their waker and leave.
#[test]
fn everybody_is_served_in_every_round() {
    const ROUNDS: usize = 5_000;
    const WAITERS: usize = 4;
    limited(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), WaitList::new()));
        let threads: Vec<_> = (0..WAITERS)
            .map(|i| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (round, seen, list) = &*shared;
                    for want in 1..=ROUNDS {
                        // Some that are in the list for nothing, and leave it in another order.
                        let mut extra: Vec<_> =
                            (0..3).map(|_| Box::pin(Waiter::new(list, 3u8))).collect();
                        for waiter in &mut extra {
                            let _ = waiter
                                .as_mut()
                                .poll(&mut Context::from_waker(Waker::noop()));
                        }
                        let mut waiter = pin!(Waiter::new(list, 1 + (i % 2) as u8));
                        block_on(poll_fn(|cx| {
                            while round.load(Relaxed) < want {
                                match waiter.as_mut().poll(cx) {
                                    Poll::Ready(kind) => assert_eq!(kind, Notification::All),
                                    Poll::Pending if round.load(Relaxed) < want => {
                                        return Poll::Pending;
                                    }
                                    Poll::Pending => break,
                                }
                            }
                            Poll::Ready(())
                        }));
                        drop(extra.swap_remove(want % 3));
                        seen.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect();
        let (round, seen, list) = &*shared;
        for now in 1..=ROUNDS {
            round.store(now, Relaxed);
            if now % 2 == 0 {
                list.notify_all();
            } else {
                list.notify_matching(|tag| tag == 1);
                list.notify_matching(|tag| tag & 2 != 0);
            }
            while seen.load(SeqCst) < now * WAITERS {
                thread::yield_now();
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(list.is_empty());
    });
}
