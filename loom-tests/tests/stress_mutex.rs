//! The stress twin of `mutex.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::sync::{Arc, mpsc};
use std::thread;

use rt_loom_tests::stress::{block_on, give_up, limited};
use rt_sync::mutex::{Mutex, OwnedMutexGuard};

/// Threads that await, block, try and give up: one at a time, and each count is there.
#[test]
fn one_at_a_time() {
    const EACH: usize = 10_000;
    limited(|| {
        // Two halves that are equal whenever nobody has the lock.
        let mutex = Arc::new(Mutex::new((0, 0)));
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let mut done = 0;
                    for round in 0..EACH {
                        let mut guard = match (i + round) % 5 {
                            0 => {
                                give_up(mutex.lock());
                                continue;
                            }
                            1 => match mutex.try_lock() {
                                Ok(guard) => guard,
                                Err(_) => continue,
                            },
                            2 => mutex.blocking_lock(),
                            _ => block_on(mutex.lock()),
                        };
                        assert_eq!(guard.0, guard.1);
                        guard.0 += 1;
                        if round % 7 == 0 {
                            thread::yield_now();
                        }
                        guard.1 += 1;
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        let done: usize = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(*mutex.try_lock().unwrap(), (done, done));
    });
}

/// Owned guards that go over to other threads, where they unlock.
#[test]
fn guards_travel() {
    const ROUNDS: usize = 10_000;
    limited(|| {
        let mutex = Arc::new(Mutex::new(0));
        let (guards, arriving) = mpsc::channel::<OwnedMutexGuard<usize>>();
        let unlocks = thread::spawn(move || {
            while let Ok(mut guard) = arriving.recv() {
                *guard += 1;
                drop(guard);
            }
        });
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (mutex, guards) = (mutex.clone(), guards.clone());
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        guards.send(block_on(mutex.clone().lock_owned())).unwrap();
                    }
                })
            })
            .collect();
        drop(guards);
        for thread in threads {
            thread.join().unwrap();
        }
        unlocks.join().unwrap();
        assert_eq!(*mutex.try_lock().unwrap(), 2 * ROUNDS);
    });
}
