//! The stress twin of `blocking.rs`: real threads and closures that only end if each has a thread of its own.
#![cfg(not(rt_loom))]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread::{self};
use std::time::Duration;

use rt::internals::blocking::{Config, Pool};
use rt_loom_tests::stress::{block_on, limited};

fn config(max_threads: usize, keep_alive: Duration) -> Config {
    let mut config = Config::blocking();
    config.max_threads = max_threads;
    config.keep_alive = keep_alive;
    config
}

/// Two closures that meet, on two threads at most, with threads that end at once, soon, and never.
#[test]
fn closures_that_meet() {
    limited(|| {
        let times = [
            Duration::ZERO,
            Duration::from_micros(20),
            Duration::from_secs(100),
        ];
        for keep_alive in times {
            for eager in [1, 2] {
                let mut config = config(2, keep_alive);
                config.eager = eager;
                config.pace = Duration::from_micros(10);
                let pool = Pool::new(config);
                for _ in 0..3_000 {
                    let barrier = Arc::new(Barrier::new(2));
                    let other = barrier.clone();
                    let a = pool.spawn_here(move || barrier.wait());
                    let b = pool.spawn_here(move || other.wait());
                    let leaders = [block_on(a).unwrap(), block_on(b).unwrap()];
                    assert!(leaders[0].is_leader() != leaders[1].is_leader());
                }
                assert!(pool.metrics().peak_threads <= 2);
            }
        }
    });
}

/// Several submitters that come and go with threads that come and go.
#[test]
fn submitters_against_leaving_threads() {
    limited(|| {
        let pool = Arc::new(Pool::new(config(3, Duration::from_micros(50))));
        let ran = Arc::new(AtomicUsize::new(0));
        let submitters: Vec<_> = (0..3)
            .map(|_| {
                let (pool, ran) = (pool.clone(), ran.clone());
                thread::spawn(move || {
                    for i in 0..5_000 {
                        let ran = ran.clone();
                        let handle = pool.spawn_here(move || ran.fetch_add(1, SeqCst));
                        if i % 3 == 0 {
                            block_on(handle).unwrap();
                        }
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        while ran.load(SeqCst) < 15_000 {
            thread::yield_now();
        }
        assert!(pool.metrics().peak_threads <= 3);
    });
}

/// A burst of short closures: each runs, on no more threads than allowed, and on far fewer than there are closures.
#[test]
fn a_burst() {
    limited(|| {
        for cap in [20, 512] {
            let pool = Pool::new(config(cap, Duration::from_secs(10)));
            let handles: Vec<_> = (0..10_000)
                .map(|_| pool.spawn_here(|| thread::sleep(Duration::from_millis(1))))
                .collect();
            for handle in handles {
                block_on(handle).unwrap();
            }
            let peak = pool.metrics().peak_threads;
            assert!(peak <= cap, "{peak} threads");
            println!("cap {cap}: peak {peak}");
            assert!(pool.shutdown(Duration::from_secs(30)).is_empty());
        }
    });
}

/// Pools that close while closures are submitted: each closure runs or is told that the pool closed, and every thread
/// ends.
#[test]
fn submitters_against_shutdown() {
    limited(|| {
        for round in 0..300 {
            let pool = Arc::new(Pool::new(config(2, Duration::from_secs(100))));
            let submitters: Vec<_> = (0..2)
                .map(|_| {
                    let pool = pool.clone();
                    thread::spawn(move || {
                        let handles: Vec<_> = (0..50).map(|i| pool.spawn_here(move || i)).collect();
                        for (i, handle) in handles.into_iter().enumerate() {
                            match block_on(handle) {
                                Ok(output) => assert_eq!(output, i),
                                Err(error) => assert!(error.is_runtime_closed(), "{error}"),
                            }
                        }
                    })
                })
                .collect();
            if round % 2 == 0 {
                thread::yield_now();
            }
            assert!(pool.shutdown(Duration::from_secs(50)).is_empty());
            for submitter in submitters {
                submitter.join().unwrap();
            }
            assert_eq!(pool.metrics().threads, 0);
        }
    });
}
