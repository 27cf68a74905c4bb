//! The stress twin of `event.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::event::Event;

/// Each round's event is set and cleared at once: who was waiting goes on, every time.
#[test]
fn nobody_misses_an_event_that_is_cleared_at_once() {
    const ROUNDS: usize = 5_000;
    const WAITERS: usize = 3;
    limited(|| {
        // The event, how many steps the waiters made, how many rounds are over.
        let shared = Arc::new((Event::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let threads: Vec<_> = (0..WAITERS)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    for round in 0..ROUNDS {
                        // Else it might find the event of the last round, not yet cleared.
                        while shared.2.load(SeqCst) < round {
                            thread::yield_now();
                        }
                        let mut waiting = Box::pin(shared.0.wait());
                        let mut cx = Context::from_waker(Waker::noop());
                        assert!(waiting.as_mut().poll(&mut cx).is_pending());
                        // In line: from here on the set must reach it.
                        shared.1.fetch_add(1, SeqCst);
                        block_on(waiting);
                        shared.1.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect();
        for round in 0..ROUNDS {
            while shared.1.load(SeqCst) < (2 * round + 1) * WAITERS {
                thread::yield_now();
            }
            shared.0.set();
            shared.0.clear();
            shared.2.store(round + 1, SeqCst);
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
