//! The stress twin of `atomic_waker.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::thread::{self};

use rt_loom_tests::stress::{Unpark, block_on_with_new_wakers, limited};
use rt_sync::AtomicWaker;

fn many_wakers_one_waiter(register: fn(&AtomicWaker, &Waker)) {
    const ROUNDS: usize = 20_000;
    const WAKERS: usize = 3;
    limited(move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicWaker::new()));
        let threads: Vec<_> = (0..WAKERS)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (count, seen, slot) = &*shared;
                    for round in 0..ROUNDS {
                        count.fetch_add(1, Relaxed);
                        slot.wake();
                        // Wait until the waiter has seen this round, so that it goes to sleep again and again.
                        while seen.load(Relaxed) <= round {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let (count, seen, slot) = &*shared;
        for round in 1..=ROUNDS {
            block_on_with_new_wakers(poll_fn(|cx| {
                register(slot, cx.waker());
                if count.load(Relaxed) >= round * WAKERS {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }));
            seen.store(round, Relaxed);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn no_wake_is_lost() {
    many_wakers_one_waiter(AtomicWaker::register);
}

#[test]
#[expect(unsafe_code, reason = "register_exclusive")]
fn no_wake_is_lost_with_register_exclusive() {
    // SAFETY: `many_wakers_one_waiter` registers from one thread.
    many_wakers_one_waiter(|slot, waker| unsafe { slot.register_exclusive(waker) });
}

/// Threads that register, take and clear at the same time: every waker is dropped exactly once.
#[test]
fn no_waker_is_lost_or_doubled() {
    limited(|| {
        let slot = Arc::new(AtomicWaker::new());
        let probes: Vec<Arc<Unpark>> = (0..4)
            .map(|_| Arc::new(Unpark(thread::current())))
            .collect();
        let threads: Vec<_> = probes
            .iter()
            .enumerate()
            .map(|(i, probe)| {
                let slot = slot.clone();
                let waker = Waker::from(probe.clone());
                thread::spawn(move || {
                    for round in 0..50_000 {
                        match (round + i) % 4 {
                            0 | 1 => slot.register(&waker),
                            2 => slot.wake(),
                            _ => slot.clear(),
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        slot.clear();
        assert!(probes.iter().all(|probe| Arc::strong_count(probe) == 1));
    });
}
