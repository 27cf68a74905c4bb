//! Models of the root future's waker (`RootFlag` in `rt/src/scheduler/seat.rs`) against the thread that sits in
//! `block_on`.
//!
//! What the root future waits for is relaxed, so that only the flag and the park word order it. A lost wake shows as a
//! deadlock.
//!
//! Seen to fail: a plain store for the exchange of `set`, even a sequentially consistent one (`wakes_of_two_threads` and
//! `wakes_of_one_thread`: the poll takes the flag of the second wake and does not see what the first one published); a
//! flag that is looked at by a load before it is set.
#![cfg(rt_loom)]

use std::sync::Arc as StdArc;
use std::task::Waker;

use loom::thread;

use rt::internals::scheduler::{RootFlag, Wakeup};
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(body);
}

/// `wakers` threads bring one piece of news each and wake the root future `times` times, while the sitter polls, looks
/// at the flag for the last time, and sleeps.
fn sitter_against(wakers: usize, times: usize, preemptions: usize) {
    check(preemptions, move || {
        let wakeup = StdArc::new(Wakeup::new());
        let flag = StdArc::new(RootFlag::new(wakeup.clone()));
        let news = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..wakers)
            .map(|_| {
                let (waker, news) = (Waker::from(flag.clone()), news.clone());
                thread::spawn(move || {
                    for _ in 0..times {
                        news.fetch_add(1, Relaxed);
                        waker.wake_by_ref();
                    }
                })
            })
            .collect();
        // The first poll happened before the wakers were handed out, and found no news.
        loop {
            if flag.take() && news.load(Relaxed) == wakers * times {
                break;
            }
            if !flag.is_set() {
                wakeup.park.park(None);
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// A wake against the sitter's last look before it parks.
#[test]
fn wake_against_the_last_look() {
    sitter_against(1, 1, 4);
}

/// Two wakes of one thread: the second may find the flag of the first still set.
#[test]
fn wakes_of_one_thread() {
    sitter_against(1, 2, 3);
}

/// Two threads wake at once: the one that finds the flag set leaves the unparking to the other, and the poll sees the
/// news of both.
#[test]
fn wakes_of_two_threads() {
    sitter_against(2, 1, 3);
}
