//! A lock for sections of a few dozen instructions that run no foreign code.
//!
//! A lock that can put its waiters to sleep has to look for them when it is released, with a second read-modify-write of
//! 20 cycles: as long as the section that it guards. This one is released by a plain store. Who finds it taken looks
//! again for a moment, then gives the core away, which lets a holder run that was preempted, and at last sleeps a little
//! between two looks, so that not even a waiter of real-time priority can keep the holder from its core.
//!
//! # Where it comes from
//! The spinning part of parking_lot's lock (its `SpinWait`), without the parking.
#![expect(unsafe_code, reason = "a lock lets its holder at the value")]

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use parking_lot::lock_api::{self, GuardSend, RawMutex};

/// See the module head. Not fair.
pub type ShortMutex<T> = lock_api::Mutex<RawShort, T>;

/// Gives a [`ShortMutex`] free when dropped.
pub type ShortGuard<'a, T> = lock_api::MutexGuard<'a, RawShort, T>;

/// The lock without its value.
#[derive(Debug)]
pub struct RawShort {
    taken: AtomicBool,
}

/// Looks before the core is given away: the first few double the pause between them.
const SPINS: u32 = 6;
/// Times that the core is given away before the waiter sleeps.
const YIELDS: u32 = 20;
/// How long it sleeps between two looks then.
const NAP: Duration = Duration::from_micros(50);

// SAFETY: who gets `true` from the exchange is the only holder until it stores `false`; acquire and release order what
// one holder does before what the next does.
unsafe impl RawMutex for RawShort {
    const INIT: Self = Self {
        taken: AtomicBool::new(false),
    };

    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        if !self.take() {
            self.wait();
        }
        GuardSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        self.take().then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardSend) {
        // Release: with the exchange in `take`.
        self.taken.store(false, Release);
    }

    fn is_locked(&self) -> bool {
        self.taken.load(Relaxed)
    }
}

impl RawShort {
    #[inline]
    fn take(&self) -> bool {
        // Acquire: with the store in `unlock`.
        !self.taken.swap(true, Acquire)
    }

    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            if looks < SPINS {
                for _ in 0..1 << looks {
                    std::hint::spin_loop();
                }
            } else if looks < SPINS + YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(NAP);
            }
            looks = looks.saturating_add(1);
            if !self.is_locked() && self.take() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// More threads than cores, each of which is preempted inside the lock now and then.
    #[test]
    fn nothing_is_lost_under_contention() {
        const THREADS: usize = 8;
        const ROUNDS: usize = 20_000;
        let count = Arc::new(ShortMutex::new((0_usize, 0_usize)));
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let count = count.clone();
                thread::spawn(move || {
                    for round in 0..ROUNDS {
                        let mut both = count.lock();
                        both.0 += 1;
                        if round % 1000 == number {
                            thread::yield_now();
                        }
                        both.1 += 1;
                        assert_eq!(both.0, both.1);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no assertion failed");
        }
        assert_eq!(*count.lock(), (THREADS * ROUNDS, THREADS * ROUNDS));
    }

    #[test]
    fn a_lock_that_is_held_is_not_taken_and_a_panic_gives_it_free() {
        let lock = Arc::new(ShortMutex::new(1));
        let other = lock.clone();
        let panicked = thread::spawn(move || {
            let guard = other.lock();
            assert!(other.try_lock().is_none());
            assert_eq!(*guard, 2, "so that this thread panics");
        })
        .join();
        assert!(panicked.is_err());
        assert!(lock.try_lock().is_some());
    }
}
