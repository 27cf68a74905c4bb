//! The stress twin of `task_tracker.rs`: real threads, many tasks, a time limit.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::task_tracker::TaskTracker;

/// Trackers that are closed while tasks end on other threads.
#[test]
fn wait_ends_after_the_last_task() {
    const ROUNDS: usize = 2_000;
    limited(|| {
        for round in 0..ROUNDS {
            let tracker = TaskTracker::new();
            let done = Arc::new(AtomicUsize::new(0));
            let early = Arc::new(AtomicBool::new(false));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (token, done) = (tracker.token(), done.clone());
                    let early = early.clone();
                    thread::spawn(move || {
                        done.fetch_add(1, SeqCst);
                        early.fetch_or(round % 2 == 0, SeqCst);
                        drop(token);
                    })
                })
                .collect();
            if round % 2 == 0 {
                while !early.load(SeqCst) {
                    thread::yield_now();
                }
            }
            tracker.close();
            block_on(tracker.wait());
            assert_eq!(done.load(SeqCst), 2);
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}
