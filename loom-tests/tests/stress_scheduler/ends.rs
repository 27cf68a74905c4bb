//! Runtimes that end, and seats that change hands, while everything is under way.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use rt::runtime::Handle;
use rt::task::{AbortHandle, yield_now};
use rt_loom_tests::stress::limited;

use super::{Books, Gate, Random, assert_ended, current_thread, gated, wait, workers};

/// Whole runtimes are dropped while foreign threads spawn on them, wake, abort and await.
#[test]
fn runtimes_dropped_in_the_middle() {
    limited(|| {
        for round in 0..120 {
            let runtime = workers(1 + round % 8);
            let books = Arc::<Books>::default();
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (handle, books) = (runtime.handle().clone(), books.clone());
                    thread::spawn(move || {
                        let mut random = Random((round * 3 + thread + 1) as u32);
                        let mut aborts: Vec<(AbortHandle, Arc<Gate>)> = Vec::new();
                        let mut handles = Vec::new();
                        loop {
                            let (gate, task) = gated(&handle, &books);
                            match random.below(4) {
                                0 => gate.open(),
                                1 => task.abort(),
                                2 => aborts.push((task.abort_handle(), gate)),
                                _ => {}
                            }
                            if random.below(3) > 0 {
                                handles.push(task);
                            }
                            // A task that nobody spawned before the end says that the end has come.
                            let last = handle.spawn(async {});
                            if wait(last).is_err_and(|error| error.is_runtime_closed()) {
                                break;
                            }
                        }
                        for (abort, gate) in aborts {
                            abort.abort();
                            gate.open();
                        }
                        for task in handles {
                            assert_ended(wait(task));
                        }
                    })
                })
                .collect();
            for _ in 0..round % 24 {
                thread::yield_now();
            }
            match round % 3 {
                0 => drop(runtime),
                1 => runtime.shutdown_background(),
                _ => runtime.shutdown_timeout(Duration::from_secs(50)),
            }
            for thread in threads {
                thread.join().unwrap();
            }
            // A helper thread may still be at it.
            while books.made.load(SeqCst) != books.gone.load(SeqCst) {
                thread::yield_now();
            }
        }
    });
}

/// A runtime is dropped while others sit in its `block_on`: each gets its output or is told.
#[test]
fn runtimes_dropped_under_block_on() {
    limited(|| {
        for round in 0..100 {
            let runtime = if round % 4 == 0 {
                current_thread()
            } else {
                workers(1 + round % 3)
            };
            let books = Arc::<Books>::default();
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (handle, books) = (runtime.handle().clone(), books.clone());
                    thread::spawn(move || {
                        loop {
                            let (ticket, inner) = (books.ticket(), books.ticket());
                            let result = handle.try_block_on(async move {
                                let _ticket = ticket;
                                let forever = rt::spawn(async move {
                                    let _ticket = inner;
                                    pending::<()>().await;
                                });
                                yield_now().await;
                                forever.abort();
                                assert_ended(forever.await);
                            });
                            if let Err(error) = result {
                                assert!(error.is_runtime_closed(), "{error}");
                                break;
                            }
                        }
                    })
                })
                .collect();
            for _ in 0..round % 16 {
                thread::yield_now();
            }
            drop(runtime);
            for thread in threads {
                thread.join().unwrap();
            }
            books.assert_even();
        }
    });
}

/// Many threads sit in `block_on` of one runtime, whose tasks await each other across seats.
#[test]
fn block_on_from_many_threads() {
    for runtime in [workers(3), current_thread()] {
        limited(move || {
            let books = Arc::<Books>::default();
            let threads: Vec<_> = (0..8)
                .map(|seed| {
                    let (handle, books) = (runtime.handle().clone(), books.clone());
                    thread::spawn(move || {
                        let mut random = Random(seed + 1);
                        for round in 0..250 {
                            let width = random.below(5);
                            let sum = handle.block_on(async {
                                let tasks: Vec<_> = (0..width)
                                    .map(|number| {
                                        let ticket = books.ticket();
                                        rt::spawn(async move {
                                            if number % 2 == 0 {
                                                yield_now().await;
                                            }
                                            ticket.ran();
                                            number
                                        })
                                    })
                                    .collect();
                                if round % 7 == 0 {
                                    // Leaves its tasks to whoever comes next.
                                    return None;
                                }
                                let mut sum = 0;
                                for task in tasks {
                                    sum += task.await.expect("no panic");
                                }
                                Some(sum)
                            });
                            if let Some(sum) = sum {
                                assert_eq!(sum, (0..width).sum::<u32>());
                            }
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            drop(runtime);
            books.assert_even();
        });
    }
}

/// Two runtimes whose tasks await each other; one of them is dropped in the middle, the other one goes on.
#[test]
fn two_runtimes_that_await_each_other() {
    type Depth = Pin<Box<dyn Future<Output = u32> + Send>>;

    fn there_and_back(here: Handle, there: Handle, depth: u32) -> Depth {
        Box::pin(go(here, there, depth))
    }

    async fn go(here: Handle, there: Handle, depth: u32) -> u32 {
        if depth == 0 {
            return 0;
        }
        let next = there_and_back(there.clone(), here, depth - 1);
        match there.spawn(next).await {
            Ok(number) => number + 1,
            Err(error) => {
                assert!(error.is_runtime_closed() || error.is_cancelled(), "{error}");
                0
            }
        }
    }

    limited(|| {
        for round in 0..60 {
            let (stays, goes) = (workers(3), workers(2));
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    stays.spawn(there_and_back(
                        stays.handle().clone(),
                        goes.handle().clone(),
                        20,
                    ))
                })
                .collect();
            if round % 2 == 1 {
                for _ in 0..round {
                    thread::yield_now();
                }
                drop(goes);
                for task in tasks {
                    assert!(wait(task).expect("its own runtime goes on") <= 20);
                }
            } else {
                for task in tasks {
                    assert_eq!(wait(task).expect("no panic"), 20);
                }
            }
        }
    });
}

/// Tasks that block in place, so that seats change hands, against aborts and against the end of the runtime.
#[test]
fn seats_lent_against_shutdown() {
    limited(|| {
        for round in 0..60 {
            let runtime = workers(1 + round % 4);
            let books = Arc::<Books>::default();
            let tasks: Vec<_> = (0..20)
                .map(|number| {
                    let ticket = books.ticket();
                    runtime.spawn(async move {
                        for _ in 0..3 {
                            rt::block_in_place(thread::yield_now);
                            yield_now().await;
                            if number % 3 == 0 {
                                rt::spawn(async { rt::block_in_place(thread::yield_now) });
                            }
                        }
                        ticket.ran();
                    })
                })
                .collect();
            tasks[0].abort();
            if round % 2 == 0 {
                for _ in 0..round % 24 {
                    thread::yield_now();
                }
                drop(runtime);
                for task in tasks {
                    assert_ended(wait(task));
                }
            } else {
                for task in tasks {
                    assert_ended(wait(task));
                }
                drop(runtime);
            }
            books.assert_even();
        }
    });
}
