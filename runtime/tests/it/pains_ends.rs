//! Shutdown, drop, cancellation: theme B of the known pains of async runtimes. What a child process has to say on
//! standard error is tested in `bad_luck_children.rs`.

mod afterwards;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Handle, Runtime};
use rt::time::sleep;

use crate::pains_support::{LONG, MS, OnDrop, current_thread, each_kind, eventually, workers};
use crate::support::within_limit;

const HOUR: Duration = Duration::from_secs(3600);

/// A closure that does not come back is left behind after the grace.
#[test]
fn b1_a_blocking_closure_does_not_hold_up_the_end() {
    within_limit(|| {
        for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
            let runtime = builder
                .worker_threads(1)
                .shutdown_grace(50 * MS)
                .build()
                .unwrap();
            let (release, held) = mpsc::channel::<()>();
            let (started, begun) = mpsc::channel();
            let closure = runtime.spawn_blocking(move || {
                started.send(()).unwrap();
                let _ = held.recv();
                5
            });
            begun.recv().unwrap();
            let start = Instant::now();
            drop(runtime);
            let took = start.elapsed();
            assert!((50 * MS..LONG).contains(&took), "{took:?}");
            // It runs on, and its handle works.
            drop(release);
            assert_eq!(futures_lite::future::block_on(closure).unwrap(), 5);
        }
    });
}

#[test]
fn b1_shutdown_timeout_and_background_end_in_their_time() {
    within_limit(|| {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let with_closure = || {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .shutdown_grace(HOUR)
                .build()
                .unwrap();
            let held = held.clone();
            let (started, begun) = mpsc::channel();
            drop(runtime.spawn_blocking(move || {
                started.send(()).unwrap();
                let _ = held.lock().unwrap().recv();
            }));
            begun.recv().unwrap();
            runtime
        };
        with_closure().shutdown_timeout(20 * MS);
        with_closure().shutdown_timeout(Duration::ZERO);
        with_closure().shutdown_background();
        drop(release);
    });
}

/// A runtime made and dropped inside async code of another one, and of itself: in a task, in a root future, while
/// unwinding. Nothing panics, and what was on its way arrives.
#[test]
fn b2_a_runtime_may_be_dropped_anywhere() {
    within_limit(|| {
        for outer in each_kind() {
            let handle = outer.spawn(async {
                for inner in each_kind() {
                    drop(inner);
                }
                // With a task that waits.
                let inner = workers(1);
                let task = inner.spawn(pending::<()>());
                drop(inner);
                assert!(task.await.unwrap_err().is_runtime_closed());
                7
            });
            outer.block_on(async {
                drop(workers(1));
                drop(current_thread());
                assert_eq!(handle.await.unwrap(), 7);
                let unwinding = rt::spawn(async {
                    let _inner = workers(1);
                    panic!("the real error");
                });
                let error = unwinding.await.unwrap_err();
                assert_eq!(error.into_panic().downcast_ref(), Some(&"the real error"));
                rt::spawn_blocking(|| drop(workers(1))).await.unwrap();
            });
            let real = catch_unwind(AssertUnwindSafe(|| {
                outer.block_on(async {
                    let _inner = workers(1);
                    let _other = current_thread();
                    panic!("the root's error");
                });
            }));
            assert_eq!(real.unwrap_err().downcast_ref(), Some(&"the root's error"));
            // The outer one works on.
            assert_eq!(
                outer.block_on(async { rt::spawn(async { 3 }).await.unwrap() }),
                3
            );
        }
    });
}

#[test]
fn b2_a_runtime_may_be_dropped_by_its_own_task_and_its_own_root_future() {
    within_limit(|| {
        for runtime in each_kind() {
            let runtime = Arc::new(runtime);
            let handle = runtime.handle().clone();
            let (go, going) = mpsc::channel::<()>();
            let own = runtime.clone();
            let task = handle.spawn(async move {
                going.recv().unwrap();
                // The last reference.
                drop(own);
                5
            });
            let waiting = handle.spawn(pending::<()>());
            drop(runtime);
            go.send(()).unwrap();
            // The poll in which it happened is the task's last, and brings its output.
            let ended = handle
                .try_block_on(async { task.await.map_err(|error| error.is_runtime_closed()) });
            match ended {
                Ok(output) => assert_eq!(output, Ok(5)),
                Err(error) => assert!(error.is_runtime_closed(), "{error}"),
            }
            assert!(
                futures_lite::future::block_on(waiting)
                    .unwrap_err()
                    .is_runtime_closed()
            );
        }
        // Below `block_in_place` of its own task it does not wait for itself.
        for pinned in [false, true] {
            let runtime = workers(1);
            let handle = runtime.handle().clone();
            let (go, going) = mpsc::channel();
            let (gone, went) = mpsc::channel();
            let body = move || async move {
                let runtime: Runtime = going.recv().unwrap();
                rt::block_in_place(|| {
                    let start = Instant::now();
                    drop(runtime);
                    gone.send(start.elapsed()).unwrap();
                });
            };
            let task = if pinned {
                handle.spawn_pinned(0, body).unwrap()
            } else {
                handle.spawn(body())
            };
            go.send(runtime).unwrap();
            assert!(went.recv_timeout(LONG).unwrap() < 1900 * MS);
            let _ = futures_lite::future::block_on(task);
        }
        for runtime in each_kind() {
            let handle = runtime.handle().clone();
            let root = handle.try_block_on(async move {
                drop(runtime);
                // Ends here or at the next wait.
                sleep(HOUR).await;
            });
            assert!(root.unwrap_err().is_runtime_closed());
        }
    });
}

/// Tasks that block in place on a nested loop: the end reaches them.
#[test]
fn b3_nested_loops_end_with_their_runtime() {
    within_limit(|| {
        let runtime = workers(2);
        let entered = Arc::new(AtomicUsize::new(0));
        let (ended, ends) = mpsc::channel();
        for n in 0..8 {
            let (entered, ended) = (entered.clone(), ended.clone());
            drop(runtime.spawn(async move {
                let wait = async {
                    entered.fetch_add(1, SeqCst);
                    sleep(HOUR).await;
                };
                let result = if n % 2 == 0 {
                    rt::try_bridge(wait)
                } else {
                    let handle = Handle::current();
                    rt::block_in_place(|| handle.try_block_on(wait))
                };
                ended.send(result.unwrap_err().to_string()).unwrap();
            }));
        }
        eventually("eight nested loops run", || entered.load(SeqCst) == 8);
        let name = runtime.handle().name().to_owned();
        let start = Instant::now();
        runtime.shutdown_timeout(LONG / 2);
        assert!(start.elapsed() < LONG / 2, "it waited for the whole time");
        for _ in 0..8 {
            let error = ends.recv_timeout(LONG).unwrap();
            assert!(error.contains(&format!("'{name}' is closed")), "{error}");
        }
    });
}

/// A task blocks until another one's future is dropped, which the end of the runtime does.
#[test]
fn b4_a_task_that_waits_for_anothers_destructor_does_not_hold_up_the_end() {
    within_limit(|| {
        for round in 0..300 {
            let runtime = workers(1 + round % 2);
            let (sender, receiver) = mpsc::channel::<()>();
            let blocked = Arc::new(AtomicBool::new(false));
            let b = runtime.spawn(async move {
                let _sender = sender;
                pending::<()>().await;
            });
            let a = runtime.spawn({
                let blocked = blocked.clone();
                async move {
                    rt::block_in_place(|| {
                        blocked.store(true, SeqCst);
                        receiver.recv().unwrap_err();
                    });
                }
            });
            // Every other round the end comes at any moment.
            while round % 4 < 2 && !blocked.load(SeqCst) {
                thread::yield_now();
            }
            let start = Instant::now();
            drop(runtime);
            // The grace is 2 s: it must not be needed.
            let took = start.elapsed();
            assert!(took < 1900 * MS, "round {round} took {took:?}");
            assert!(
                futures_lite::future::block_on(b)
                    .unwrap_err()
                    .is_runtime_closed()
            );
            if let Err(error) = futures_lite::future::block_on(a) {
                assert!(error.is_runtime_closed());
            }
        }
    });
}

/// As above, but the task blocks only after the runtime has begun to close, when no seat is lent any more.
#[test]
fn b4_blocking_in_place_after_the_end_has_begun() {
    within_limit(|| {
        let runtime = workers(1);
        let (sender, receiver) = mpsc::channel::<()>();
        let b = runtime.spawn(async move {
            let _sender = sender;
            pending::<()>().await;
        });
        let (started, begun) = mpsc::channel();
        let a = runtime.spawn(async move {
            started.send(()).unwrap();
            while !is_closed() {
                thread::sleep(MS);
            }
            rt::block_in_place(|| receiver.recv().unwrap_err());
        });
        fn is_closed() -> bool {
            // A task of a closed runtime is over at once.
            let task = rt::spawn(pending::<()>());
            let closed = task.is_finished();
            task.abort();
            closed
        }
        begun.recv().unwrap();
        let start = Instant::now();
        drop(runtime);
        let took = start.elapsed();
        assert!(took < 1900 * MS, "{took:?}");
        futures_lite::future::block_on(a).unwrap();
        assert!(
            futures_lite::future::block_on(b)
                .unwrap_err()
                .is_runtime_closed()
        );
    });
}

/// Spawns, wakes, aborts and ends of runtimes at random: each future is dropped, each handle answers.
#[test]
fn b4_the_end_may_come_at_any_moment() {
    within_limit(|| {
        for round in 0..60u32 {
            let runtime: Runtime = if round % 4 == 0 {
                current_thread()
            } else {
                workers(1 + round as usize % 3)
            };
            let alive = Arc::new(AtomicUsize::new(0));
            let tracked = {
                let alive = alive.clone();
                move || {
                    alive.fetch_add(1, SeqCst);
                    let alive = alive.clone();
                    OnDrop(move || {
                        alive.fetch_sub(1, SeqCst);
                    })
                }
            };
            let stop = Arc::new(AtomicBool::new(false));
            let spawners: Vec<_> = (0..2)
                .map(|_| {
                    let (handle, tracked, stop) =
                        (runtime.handle().clone(), tracked.clone(), stop.clone());
                    thread::spawn(move || {
                        let mut handles = Vec::new();
                        while !stop.load(SeqCst) {
                            for kind in 0..4 {
                                let guard = tracked();
                                handles.push(handle.spawn(async move {
                                    let _guard = guard;
                                    match kind {
                                        0 => rt::task::yield_now().await,
                                        1 => sleep(MS).await,
                                        2 => drop(rt::spawn(sleep(HOUR))),
                                        _ => pending().await,
                                    }
                                }));
                            }
                            let guard = tracked();
                            drop(handle.spawn_blocking(move || drop(guard)));
                            if handles.len() > 200 {
                                handles.drain(..100).for_each(|task| task.abort());
                            }
                            thread::sleep(50 * Duration::from_micros(1));
                        }
                        handles
                    })
                })
                .collect();
            runtime.block_on(sleep(Duration::from_micros(u64::from(round) * 50)));
            if round % 3 == 0 {
                runtime.shutdown_background()
            } else {
                drop(runtime)
            }
            stop.store(true, SeqCst);
            for handle in spawners
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
            {
                if let Err(error) = futures_lite::future::block_on(handle) {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
            eventually("every future is dropped", || alive.load(SeqCst) == 0);
        }
    });
}
