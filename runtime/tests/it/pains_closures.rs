//! The blocking pool: theme F of the known pains of async runtimes, through a runtime. The pool alone is tested in
//! `src/blocking/tests.rs`, thread limits among it.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Handle, Runtime};
use rt::time::sleep;

use crate::pains_support::{LONG, MS, each_kind, eventually};
use crate::support::within_limit;

fn with_cap(workers: usize, threads: usize, keep_alive: Duration) -> Runtime {
    let mut builder = if workers == 0 {
        Builder::new_current_thread()
    } else {
        Builder::new_multi_thread()
    };
    builder
        .worker_threads(workers)
        .max_blocking_threads(threads)
        .thread_keep_alive(keep_alive)
        .build()
        .unwrap()
}

/// Two closures that need each other, with a cap of two and threads that hardly live.
#[test]
fn f2_closures_that_meet_always_meet() {
    within_limit(|| {
        for workers in [0, 1] {
            let runtime = with_cap(workers, 2, Duration::from_micros(30));
            runtime.block_on(async {
                for round in 0..1500 {
                    let barrier = Arc::new(Barrier::new(2));
                    let meet = || {
                        let barrier = barrier.clone();
                        rt::spawn_blocking(move || barrier.wait())
                    };
                    let (one, two) = (meet(), meet());
                    one.await.unwrap();
                    two.await.unwrap();
                    if round % 50 == 0 {
                        // Threads are about to leave just now.
                        sleep(Duration::from_micros(40)).await;
                    }
                }
            });
        }
    });
}

/// A burst does not start a thread for each closure, and the threads go again.
#[test]
fn f3_a_burst_stays_within_the_cap_and_threads_retire() {
    within_limit(|| {
        let runtime = with_cap(1, 12, 20 * MS);
        let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let closures: Vec<_> = (0..1000)
            .map(|_| {
                let (now, peak) = (now.clone(), peak.clone());
                runtime.spawn_blocking(move || {
                    peak.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    thread::sleep(Duration::from_micros(200));
                    now.fetch_sub(1, SeqCst);
                })
            })
            .collect();
        assert!(runtime.metrics().blocking.threads <= 12);
        runtime.block_on(async {
            for closure in closures {
                closure.await.unwrap();
            }
        });
        assert!(peak.load(SeqCst) <= 12, "{} at once", peak.load(SeqCst));
        eventually("idle threads retire", || {
            runtime.metrics().blocking.threads == 0
        });
        assert_eq!(runtime.metrics().blocking.queue_depth, 0);
    });
}

/// A closure waits for async work while it has the only thread of the pool.
#[test]
fn f4_no_path_of_the_runtime_needs_a_thread_of_the_pool() {
    within_limit(|| {
        for workers in [0, 1, 2] {
            let runtime = with_cap(workers, 1, LONG);
            let closure = runtime.spawn_blocking(move || {
                let handle = Handle::current();
                handle.block_on(async {
                    sleep(10 * MS).await;
                    let listener = rt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                    let addr = listener.local_addr().unwrap();
                    let task = rt::spawn(async move { drop(listener.accept().await.unwrap()) });
                    // Numbers need no look-up.
                    let stream = rt::net::TcpStream::connect(addr.to_string()).await.unwrap();
                    task.await.unwrap();
                    drop(stream);
                    5
                })
            });
            assert_eq!(runtime.block_on(closure).unwrap(), 5);
        }
    });
}

/// Closures that wait at the end are dropped and told of; depth and age are there to see before.
#[test]
fn f7_depth_and_age_are_seen_and_the_end_drops_what_waits() {
    within_limit(|| {
        for workers in [0, 1] {
            let runtime = with_cap(workers, 1, LONG);
            let (release, held) = std::sync::mpsc::channel::<()>();
            let (started, begun) = std::sync::mpsc::channel();
            let first = runtime.spawn_blocking(move || {
                started.send(()).unwrap();
                held.recv().is_err()
            });
            begun.recv().unwrap();
            let waiting: Vec<_> = (0..4).map(|n| runtime.spawn_blocking(move || n)).collect();
            assert_eq!(runtime.metrics().blocking.queue_depth, 4);
            thread::sleep(2 * MS);
            assert!(runtime.metrics().blocking.oldest_queued.unwrap() >= MS);
            // Aborted before it began: it never runs.
            waiting[3].abort();
            let start = Instant::now();
            let ended = thread::spawn(move || runtime.shutdown_timeout(LONG));
            for (n, closure) in waiting.into_iter().enumerate() {
                let error = futures_lite::future::block_on(closure).unwrap_err();
                assert!(
                    error.is_cancelled() && (n == 3 || error.is_runtime_closed()),
                    "{error}"
                );
            }
            drop(release);
            ended.join().unwrap();
            assert!(start.elapsed() < LONG);
            assert!(futures_lite::future::block_on(first).unwrap());
        }
    });
}

/// Panics of closures are errors of their handles, in either pool, and cost no thread for good.
#[test]
fn a_closure_that_panics_costs_nothing_but_its_result() {
    within_limit(|| {
        for runtime in each_kind() {
            runtime.block_on(async {
                for n in 0..50u32 {
                    let closure = move || if n % 2 == 0 { panic!("number {n}") } else { n };
                    let result = if n % 4 < 2 {
                        rt::spawn_blocking(closure)
                    } else {
                        rt::spawn_compute(closure)
                    };
                    match result.await {
                        Ok(got) => assert_eq!((got, n % 2), (n, 1)),
                        Err(error) => {
                            assert!(
                                error.to_string().contains(&format!("number {n}")),
                                "{error}"
                            );
                        }
                    }
                }
            });
        }
    });
}

/// Work on many small files goes to the pool as one closure, and costs what it costs without a runtime.
#[test]
fn f8_a_batch_of_file_work_is_one_hop() {
    const FILES: usize = 2000;
    fn walk(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|entry| std::fs::read(entry.unwrap().path()).unwrap().len())
            .sum()
    }
    within_limit(|| {
        let folder = std::env::temp_dir().join(format!("rt-f8-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        for n in 0..FILES {
            std::fs::write(folder.join(n.to_string()), b"12345").unwrap();
        }
        for runtime in each_kind() {
            let timed = |walk: &dyn Fn() -> usize| {
                let start = Instant::now();
                assert_eq!(walk(), 5 * FILES);
                start.elapsed()
            };
            // By turns, and the best of each, since the machine has other work.
            let (mut plain, mut batch) = (LONG, LONG);
            for _ in 0..20 {
                plain = plain.min(timed(&|| walk(&folder)));
                batch = batch.min(timed(&|| {
                    let folder = folder.clone();
                    runtime.block_on(async {
                        let walked = rt::spawn_blocking(move || walk(&folder));
                        walked.await.unwrap()
                    })
                }));
            }
            // The hop costs what two wake-ups cost, whatever is beside it on the machine; a hop for each file costs that two
            // thousand times.
            assert!(batch < 2 * plain + 50 * MS, "{batch:?} against {plain:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    });
}
