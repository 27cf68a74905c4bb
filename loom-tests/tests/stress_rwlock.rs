//! The stress twin of `rwlock.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::thread;

use rt_loom_tests::stress::{block_on, give_up, limited};
use rt_sync::rwlock::{RwLock, RwLockWriteGuard};

/// Readers and writers in every form: readers never see a half of what a writer does, and each count is there.
#[test]
fn readers_see_whole_writes() {
    const EACH: usize = 8_000;
    limited(|| {
        // Two halves that are equal whenever nobody writes.
        let lock = Arc::new(RwLock::with_max_readers((0, 0), 3));
        let threads: Vec<_> = (0..5)
            .map(|i| {
                let lock = lock.clone();
                thread::spawn(move || {
                    let mut written = 0;
                    for round in 0..EACH {
                        match (i + round) % 8 {
                            0 => give_up(lock.write()),
                            1 => give_up(lock.read()),
                            2 => {
                                let mut guard = block_on(lock.write());
                                guard.0 += 1;
                                thread::yield_now();
                                guard.1 += 1;
                                written += 1;
                                let before = *guard;
                                // No other writer gets in between.
                                let guard = guard.downgrade();
                                assert_eq!(*guard, before);
                            }
                            3 => {
                                let mut guard = lock.blocking_write();
                                guard.0 += 1;
                                guard.1 += 1;
                                written += 1;
                                let half = RwLockWriteGuard::downgrade_map(guard, |pair| &pair.0);
                                assert!(*half > 0);
                            }
                            4 => {
                                if let Ok(guard) = lock.try_read() {
                                    assert_eq!(guard.0, guard.1);
                                }
                            }
                            5 => {
                                let guard = lock.blocking_read();
                                assert_eq!(guard.0, guard.1);
                            }
                            _ => {
                                let guard = block_on(lock.clone().read_owned());
                                assert_eq!(guard.0, guard.1);
                            }
                        }
                    }
                    written
                })
            })
            .collect();
        let written: usize = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(*lock.try_write().unwrap(), (written, written));
    });
}
