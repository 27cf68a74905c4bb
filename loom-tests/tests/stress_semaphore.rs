//! The stress twin of `semaphore.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;

use rt_loom_tests::stress::{block_on, give_up, limited};
use rt_sync::semaphore::{CapacityLimiter, Semaphore};

/// Many and few at a time, with waiters that give up, newcomers that try, and one that takes permits away and puts them
/// back: never more inside than permits, and all of them there in the end.
#[test]
fn permits_add_up() {
    const PERMITS: u32 = 5;
    const EACH: usize = 5_000;
    limited(|| {
        let semaphore = Arc::new(Semaphore::new(PERMITS as usize));
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..6)
            .map(|i| {
                let (semaphore, inside) = (semaphore.clone(), inside.clone());
                thread::spawn(move || {
                    for round in 0..EACH {
                        let n = 1 + ((i + round) as u32) % PERMITS;
                        let permit = match (i + round) % 4 {
                            0 => {
                                give_up(semaphore.acquire_many(n));
                                continue;
                            }
                            1 => match semaphore.try_acquire_many(n) {
                                Ok(permit) => permit,
                                Err(_) => continue,
                            },
                            2 if i == 0 => {
                                let gone = semaphore.forget_permits(2);
                                thread::yield_now();
                                semaphore.add_permits(gone);
                                continue;
                            }
                            _ => block_on(semaphore.acquire_many(n)).unwrap(),
                        };
                        let now = inside.fetch_add(n as usize, SeqCst) + n as usize;
                        assert!(now <= PERMITS as usize, "{now} inside");
                        if round % 3 == 0 {
                            thread::yield_now();
                        }
                        inside.fetch_sub(n as usize, SeqCst);
                        drop(permit);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(semaphore.available_permits(), PERMITS as usize);
    });
}

/// A semaphore is closed while others wait, come and go: everybody ends.
#[test]
fn close_ends_everybody() {
    const ROUNDS: usize = 2_000;
    limited(|| {
        for round in 0..ROUNDS {
            let semaphore = Arc::new(Semaphore::new(round % 2));
            let threads: Vec<_> = (0..3)
                .map(|i| {
                    let semaphore = semaphore.clone();
                    thread::spawn(move || {
                        while let Ok(permit) = block_on(semaphore.acquire_many(1 + i % 2)) {
                            drop(permit);
                        }
                    })
                })
                .collect();
            if round % 3 == 0 {
                semaphore.add_permits(1);
            }
            semaphore.close();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(
                semaphore.available_permits(),
                round % 2 + usize::from(round % 3 == 0)
            );
        }
    });
}

/// A limiter whose total goes up and down: tokens and debt add up.
#[test]
fn a_total_that_changes() {
    const EACH: usize = 10_000;
    limited(|| {
        let limiter = Arc::new(CapacityLimiter::new(2));
        let (inside, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(3)));
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let (limiter, inside, running) = (limiter.clone(), inside.clone(), running.clone());
                thread::spawn(move || {
                    for round in 0..EACH {
                        if (i + round) % 4 == 0 {
                            give_up(limiter.acquire());
                            continue;
                        }
                        let token = block_on(limiter.acquire());
                        assert!(inside.fetch_add(1, SeqCst) < 4);
                        inside.fetch_sub(1, SeqCst);
                        drop(token);
                    }
                    running.fetch_sub(1, Relaxed);
                })
            })
            .collect();
        let mut total = 0;
        while running.load(Relaxed) > 0 {
            total = total % 4 + 1;
            limiter.set_total_tokens(total);
            thread::yield_now();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        limiter.set_total_tokens(3);
        assert_eq!(limiter.borrowed_tokens(), 0);
        assert_eq!(limiter.available_tokens(), 3);
    });
}
