//! Locks and semaphores in tasks: what needs a runtime to be seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use rt::runtime::{Builder, Runtime};
use rt::sync::{Mutex, RwLock, Semaphore};

use crate::support::within_limit;

fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.worker_threads(2).build().expect("a runtime"))
}

/// asyncio's L01 and S07 with tasks: they lock, give way under the lock, and lock again, in turn.
#[test]
fn l01_tasks_take_turns_in_order_of_arrival() {
    within_limit(|| {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            const TASKS: usize = 10;
            const ROUNDS: usize = 20;
            let order = Arc::new(Mutex::new(Vec::new()));
            let tasks: Vec<_> = (0..TASKS)
                .map(|i| {
                    let order = order.clone();
                    rt::spawn(async move {
                        for _ in 0..ROUNDS {
                            let mut order = order.lock().await;
                            order.push(i);
                            rt::task::yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("no panic");
            }
            let order = order.lock().await;
            assert_eq!(order.len(), TASKS * ROUNDS);
            // Whoever has had its turn goes behind all others, which are waiting.
            for round in order.chunks(TASKS) {
                assert_eq!(round, &order[..TASKS]);
            }
        });
    });
}

/// As many tasks as will, on two workers: nothing is lost, in turns or not.
#[test]
fn a_hundred_tasks_count() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let count = Arc::new(Mutex::new(0));
                let shared = Arc::new(RwLock::new(0));
                let few = Arc::new(Semaphore::new(3));
                let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
                let tasks: Vec<_> = (0..100)
                    .map(|i| {
                        let (count, shared, few) = (count.clone(), shared.clone(), few.clone());
                        let (inside, most) = (inside.clone(), most.clone());
                        rt::spawn(async move {
                            for round in 0..50 {
                                let mut guard = count.lock().await;
                                if (i + round) % 3 == 0 {
                                    rt::task::yield_now().await;
                                }
                                *guard += 1;
                                drop(guard);
                                if (i + round) % 5 == 0 {
                                    *shared.write().await += 1;
                                } else {
                                    let guard = shared.read().await;
                                    assert!(*guard <= 1000);
                                }
                                let permit = few.acquire().await.expect("open");
                                most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                                if round % 7 == 0 {
                                    rt::task::yield_now().await;
                                }
                                inside.fetch_sub(1, SeqCst);
                                drop(permit);
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.expect("no panic");
                }
                assert_eq!(*count.lock().await, 5000);
                assert_eq!(*shared.read().await, 1000);
                assert!(most.load(SeqCst) <= 3);
                assert_eq!(few.available_permits(), 3);
            });
        }
    });
}

/// A task that only ever succeeds still gives way: its sibling on the same worker runs.
#[test]
fn a_loop_on_a_free_lock_gives_way() {
    within_limit(|| {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let stop = Arc::new(AtomicBool::new(false));
            let seen = stop.clone();
            let looping = rt::spawn(async move {
                let (mutex, semaphore) = (Mutex::new(0), Semaphore::new(1));
                let lock = RwLock::new(0);
                while !seen.load(SeqCst) {
                    *mutex.lock().await += 1;
                    drop(semaphore.acquire().await.expect("open"));
                    drop(lock.read().await);
                }
            });
            let stopping = rt::spawn(async move { stop.store(true, SeqCst) });
            looping.await.expect("no panic");
            stopping.await.expect("no panic");
        });
    });
}

/// What blocks a thread says so in a task, and works beside it.
#[test]
fn blocking_forms_are_for_other_threads() {
    within_limit(|| {
        for runtime in runtimes() {
            runtime.block_on(async {
                let mutex = Arc::new(Mutex::new(0));
                let (inner, outer) = (mutex.clone(), mutex.clone());
                let error = rt::spawn(async move { *inner.blocking_lock() += 1 })
                    .await
                    .expect_err("a panic");
                assert!(error.is_panic());
                let guard = mutex.lock().await;
                let blocking = rt::spawn_blocking(move || *outer.blocking_lock() += 1);
                rt::task::yield_now().await;
                drop(guard);
                blocking.await.expect("no panic");
                assert_eq!(*mutex.lock().await, 1);
            });
        }
    });
}
