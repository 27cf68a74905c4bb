//! The stress twin of `stock.rs`, `departure.rs` and of the late departures in `live.rs`: threads spawn from outside while
//! workers run, and the runtime goes in the middle.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use rt::internals::task::{Freed, Memory, Size, Stock};
use rt::runtime::{Builder, Runtime};
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::stress::{block_on, limited};

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .build()
        .expect("a runtime")
}

/// Threads free and take memory of several sizes, until the stock closes in the middle.
#[test]
fn each_companion_is_dropped_once() {
    const ROUNDS: usize = 20;
    const PIECES: usize = 5_000;
    limited(|| {
        let sizes = [
            Size::of::<[u64; 8]>(),
            Size::of::<[u64; 18]>(),
            Size::of::<[u64; 127]>(),
        ];
        let sizes = sizes.map(|size| size.expect("a size of the stock"));
        for round in 0..ROUNDS {
            let stock = Arc::new(Stock::new());
            let (made, drops) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
            let closed = AtomicBool::new(false);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let freed = Freed::new(stock.clone());
                        for piece in 0..PIECES {
                            made.fetch_add(1, SeqCst);
                            let memory = Memory::new(sizes[piece / 7 % 3]);
                            drop(freed.put(memory, CountDrop(drops.clone())));
                        }
                    });
                    scope.spawn(|| {
                        let freed = Freed::new(stock.clone());
                        for piece in 0..PIECES {
                            if let Some((memory, companion)) = stock.take(sizes[piece % 3])
                                && piece % 2 == 0
                            {
                                drop(freed.put(memory, companion));
                            }
                        }
                    });
                }
                if round % 2 == 0 {
                    while made.load(SeqCst) < PIECES / 2 {
                        thread::yield_now();
                    }
                    stock.close();
                    closed.store(true, SeqCst);
                }
            });
            if closed.load(SeqCst) {
                assert!(sizes.iter().all(|size| stock.take(*size).is_none()));
            }
            drop(stock);
            assert_eq!(drops.load(SeqCst), made.load(SeqCst));
        }
    });
}

/// Tasks from several threads, some awaited, some aborted, some left alone, of two sizes. The runtime goes while they come.
#[test]
fn each_future_is_dropped_once_and_so_is_the_runtime() {
    const ROUNDS: usize = 40;
    const TASKS: usize = 3_000;
    limited(|| {
        for round in 0..ROUNDS {
            let runtime = runtime(1 + round % 2);
            let (made, drops) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
            let handle = runtime.handle().clone();
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for task in 0..TASKS {
                            made.fetch_add(1, SeqCst);
                            let guard = CountDrop(drops.clone());
                            let spawned = if task % 2 == 0 {
                                handle.spawn(async move { drop(guard) })
                            } else {
                                let more = [task; 20];
                                handle.spawn(async move {
                                    rt::task::yield_now().await;
                                    assert_eq!(more[19], task);
                                    drop(guard);
                                })
                            };
                            match task % 16 {
                                0 => drop(block_on(spawned)),
                                1 => spawned.abort(),
                                _ => {}
                            }
                        }
                    });
                }
                while made.load(SeqCst) < TASKS {
                    thread::yield_now();
                }
                drop(runtime);
            });
            assert_eq!(drops.load(SeqCst), 2 * TASKS);
        }
    });
}

/// Whoever has awaited a task finds it neither in the list nor in the count, though its worker takes it out later.
#[test]
fn what_was_awaited_is_not_counted() {
    const ROUNDS: usize = 20_000;
    limited(|| {
        let runtime = runtime(1);
        let handle = runtime.handle();
        for _ in 0..ROUNDS {
            let task = handle.spawn(async {});
            block_on(task).expect("it returns");
            assert_eq!(runtime.metrics().live_tasks, 0);
            assert!(
                handle
                    .metrics()
                    .workers
                    .iter()
                    .all(|worker| worker.live_tasks == 0)
            );
        }
    });
}
