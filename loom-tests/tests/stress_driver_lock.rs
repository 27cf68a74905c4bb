//! The stress twin of `driver_lock.rs`: a sitter that sleeps in a real selector, helpers that turn it, and threads that
//! unpark the sitter. A wake-up that a helper took away shows as a hang.
#![cfg(not(rt_loom))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

use rt::internals::scheduler::{DriverLock, Park};
use rt_io::driver::{Driver, Woken};
use rt_loom_tests::stress::limited;

/// One piece of work at a time, so that each sleep depends on its own unpark.
#[test]
fn no_unpark_is_taken_from_the_sleeper() {
    const ROUNDS: usize = 20_000;
    limited(|| {
        let (driver, handle) = Driver::new("stress".into()).unwrap();
        let driver = DriverLock::new(driver);
        let park = Park::new();
        let (added, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    added.store(round, Relaxed);
                    park.unpark(|| handle.unpark());
                    while done.load(Relaxed) < round {
                        thread::yield_now();
                    }
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ended.load(Relaxed) {
                        driver.turn(|driver| driver.select_now(&mut Woken::new()).unwrap());
                        thread::yield_now();
                    }
                });
            }
            while done.load(Relaxed) < ROUNDS {
                done.store(added.load(Relaxed), Relaxed);
                if done.load(Relaxed) < ROUNDS {
                    driver.sleep(&park, |driver| {
                        let awake = || park.after_select();
                        driver.select_until(None, awake, &mut Woken::new()).unwrap()
                    });
                }
            }
            ended.store(true, Relaxed);
        });
    });
}
