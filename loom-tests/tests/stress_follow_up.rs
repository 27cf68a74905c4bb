//! The stress twin of the promises in `blocking.rs`: tasks that go to the pools all the time, and so move between the
//! workers and the threads of the pools, with whatever can come in between.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt_loom_tests::stress::limited;

/// Without debug mode, in which no task is polled on a thread of a pool.
fn workers(number: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(number)
        .debug(false)
        .build()
        .expect("a runtime")
}

/// Counts the futures that are there.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Goes to the pools so many times, in various ways; how many closures have run.
async fn goes(seed: usize, times: usize) -> usize {
    let mut ran = 0;
    for i in 0..times {
        ran += match (seed + i) % 16 {
            0 => rt::spawn_compute(|| 1).await,
            1 => {
                let (one, two) = (rt::spawn_blocking(|| 1), rt::spawn_blocking(|| 1));
                one.await.and(two.await)
            }
            2 => {
                rt::task::yield_now().await;
                rt::spawn_blocking(|| 1).await
            }
            3 => rt::spawn(async { rt::spawn_blocking(|| 1).await })
                .await
                .and_then(|ran| ran),
            4 => {
                let closure = rt::spawn_blocking(|| 1);
                closure.on_done(|_| thread::yield_now());
                closure.await
            }
            5 => {
                // Its thread waits for it, which may have promised to run it.
                let (send, receive) = mpsc::channel();
                let closure = rt::spawn_blocking(move || send.send(()));
                receive.recv().expect("the closure runs");
                closure.await.map(|_| 1)
            }
            6 => {
                rt::time::sleep(Duration::from_micros(200)).await;
                rt::spawn_blocking(|| 1).await
            }
            _ => rt::spawn_blocking(|| 1).await,
        }
        .expect("no panic, and the runtime lives");
    }
    ran
}

#[test]
fn every_closure_runs_and_every_task_goes_on() {
    limited(|| {
        for number in [1, 2, 5] {
            for tasks in [1, 3, 40] {
                let runtime = workers(number);
                let times = 800 / tasks;
                let handles: Vec<_> = (0..tasks)
                    .map(|seed| runtime.spawn(goes(seed, times)))
                    .collect();
                for handle in handles {
                    assert_eq!(runtime.block_on(handle).expect("no panic"), times);
                }
            }
        }
    });
}

#[test]
fn aborts_and_ends_in_between_leave_nothing() {
    limited(|| {
        let alive = Arc::new(AtomicUsize::new(0));
        let mut followed = 0;
        for round in 0..150 {
            let runtime = workers(1 + round % 2);
            let handles: Vec<_> = (0..4)
                .map(|_| {
                    let counted = Counted::new(&alive);
                    runtime.spawn(async move {
                        let _counted = counted;
                        while rt::spawn_blocking(|| ()).await.is_ok() {}
                    })
                })
                .collect();
            let metrics = runtime.handle().clone();
            for _ in 0..round {
                thread::yield_now();
            }
            let aborter = thread::spawn(move || {
                for handle in &handles[..2] {
                    handle.abort();
                }
                handles
            });
            if round % 3 == 0 {
                drop(aborter.join());
            }
            followed += metrics.metrics().follow_ups;
            drop(runtime);
            assert_eq!(alive.load(SeqCst), 0, "futures outlive their runtime");
        }
        assert!(followed > 0, "nothing was polled on the threads of a pool");
    });
}
