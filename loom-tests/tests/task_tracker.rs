//! Models of `TaskTracker`: the last token and `close` against `wait`.
//!
//! Seen to fail: with `Relaxed` for the `AcqRel` of a token that goes, and without the look at the word after getting in line
//! (both in `wait_against_two_tokens`).
#![cfg(rt_loom)]

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::model;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};
use rt_sync::task_tracker::TaskTracker;

/// Two tasks end while `wait` gets in line: it goes on, and sees what both did.
#[test]
fn wait_against_two_tokens() {
    model(2, || {
        let tracker = TaskTracker::new();
        let done = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let (token, done) = (tracker.token(), done.clone());
                thread::spawn(move || {
                    done.fetch_add(1, Relaxed);
                    drop(token);
                })
            })
            .collect();
        tracker.close();
        block_on(tracker.wait());
        assert_eq!(done.load(Relaxed), 2);
        for task in tasks {
            task.join().unwrap();
        }
    });
}

/// The last task ends while the tracker is closed: one of the two wakes who waits.
#[test]
fn close_against_the_last_token() {
    model(3, || {
        let tracker = TaskTracker::new();
        let token = tracker.token();
        let other = tracker.clone();
        let closer = thread::spawn(move || assert!(other.close()));
        let task = thread::spawn(move || drop(token));
        block_on(tracker.wait());
        closer.join().unwrap();
        task.join().unwrap();
        assert!(tracker.is_empty() && tracker.is_closed());
    });
}
