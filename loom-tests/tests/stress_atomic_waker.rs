//! The stress twin of `atomic_waker.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::task::{Poll, Waker};
use std::thread::{self};
use std::time::{Duration, Instant};

use rt_loom_tests::stress::{Unpark, block_on_with_new_wakers, limited};
use rt_sync::AtomicWaker;

/// Many rounds, or as many as fit into half of the time limit: on a machine whose cores are busy otherwise each round takes
/// some turns of the system's scheduler, 3 ms at worst.
fn many_wakers_one_waiter(register: fn(&AtomicWaker, &Waker)) {
    const ROUNDS: usize = 20_000;
    const ENOUGH: Duration = Duration::from_secs(30);
    const WAKERS: usize = 3;
    limited(move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicWaker::new()));
        let rounds = Arc::new(AtomicUsize::new(ROUNDS));
        let threads: Vec<_> = (0..WAKERS)
            .map(|_| {
                let (shared, rounds) = (shared.clone(), rounds.clone());
                thread::spawn(move || {
                    let (count, seen, slot) = &*shared;
                    for round in 0..ROUNDS {
                        if round >= rounds.load(Relaxed) {
                            break;
                        }
                        count.fetch_add(1, Relaxed);
                        slot.wake();
                        // Wait until the waiter has seen this round, so that it goes to sleep again and again.
                        while seen.load(Acquire) <= round {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let (count, seen, slot) = &*shared;
        let began = Instant::now();
        for round in 1..=ROUNDS {
            block_on_with_new_wakers(poll_fn(|cx| {
                register(slot, cx.waker());
                if count.load(Relaxed) >= round * WAKERS {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }));
            let is_last = began.elapsed() > ENOUGH;
            if is_last {
                rounds.store(round, Relaxed);
            }
            // Release: who sees the round over sees also whether it was the last.
            seen.store(round, Release);
            if is_last {
                break;
            }
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
