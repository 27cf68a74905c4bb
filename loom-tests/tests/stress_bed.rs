//! The stress twin of `bed.rs`: two workers that wake up again and again, and a monitor that lies down in between.
#![cfg(not(rt_loom))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use rt::internals::scheduler::{Bed, Sleep};
use rt_loom_tests::stress::limited;

/// Each worker waits until the monitor has heard of it, so that each sleep depends on its own wake.
#[test]
fn no_wake_is_lost_on_the_monitor() {
    const ROUNDS: usize = 20_000;
    limited(|| {
        let bed = Bed::new();
        let (awake, heard) = ([0; 2].map(AtomicUsize::new), [0; 2].map(AtomicUsize::new));
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let monitor = scope.spawn(|| {
                let news = || (0..2).any(|at| awake[at].load(Relaxed) > heard[at].load(Relaxed));
                while bed.sleep(Sleep::UntilBusy, false, news) {
                    for at in 0..2 {
                        heard[at].store(awake[at].load(Relaxed), Relaxed);
                    }
                }
                ended.store(true, Relaxed);
            });
            let workers: Vec<_> = (0..2)
                .map(|at| {
                    let (bed, awake, heard) = (&bed, &awake[at], &heard[at]);
                    scope.spawn(move || {
                        for round in 1..=ROUNDS {
                            awake.store(round, Relaxed);
                            bed.wake();
                            while heard.load(Relaxed) < round {
                                thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
            bed.close();
            monitor.join().unwrap();
        });
        assert!(ended.load(Relaxed));
    });
}
