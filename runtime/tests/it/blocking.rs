//! Blocking closures of a runtime: what `spawn_blocking` and `spawn_compute` promise.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Handle, Runtime};

use crate::support::within_limit;

fn runtimes(set: impl Fn(&mut Builder)) -> Vec<Runtime> {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .into_iter()
        .map(|mut builder| {
            set(builder.worker_threads(2));
            builder.build().expect("a runtime")
        })
        .collect()
}

#[test]
fn a_task_awaits_closures_and_their_panics() {
    within_limit(|| {
        for runtime in runtimes(|_| ()) {
            runtime.block_on(async {
                let handles: Vec<_> = (0..100)
                    .map(|i| rt::spawn(async move { rt::spawn_blocking(move || i).await }))
                    .collect();
                for (i, handle) in handles.into_iter().enumerate() {
                    assert_eq!(handle.await.expect("no panic").expect("no panic"), i);
                }
                let error = rt::spawn_blocking(|| panic!("no luck"))
                    .await
                    .expect_err("a panic");
                assert!(error.is_panic());
                assert_eq!(rt::spawn_compute(|| 6 * 7).await.expect("no panic"), 42);
            });
        }
    });
}

#[test]
fn a_closure_knows_its_runtime() {
    within_limit(|| {
        for runtime in runtimes(|_| ()) {
            let inside = runtime.block_on(runtime.spawn_blocking(|| {
                let inner = rt::spawn(async { 1 });
                Handle::current().block_on(inner).expect("no panic") + 1
            }));
            assert_eq!(inside.expect("no panic"), 2);
        }
    });
}

#[test]
fn closures_that_wait_for_the_runtime_need_no_second_thread() {
    within_limit(|| {
        for runtime in runtimes(|builder| {
            builder.max_blocking_threads(1);
        }) {
            let start = Instant::now();
            let handle = runtime.handle().clone();
            let closure = runtime.spawn_blocking(move || {
                handle.block_on(async {
                    rt::time::sleep(Duration::from_millis(10)).await;
                    rt::spawn(async { 3 }).await
                })
            });
            assert_eq!(
                runtime
                    .block_on(closure)
                    .expect("no panic")
                    .expect("no panic"),
                3
            );
            assert!(start.elapsed() >= Duration::from_millis(10));
            assert_eq!(runtime.metrics().blocking.threads, 1);
        }
    });
}

#[test]
fn closures_that_meet_each_have_a_thread() {
    within_limit(|| {
        for runtime in runtimes(|_| ()) {
            let barrier = Arc::new(Barrier::new(40));
            let handles: Vec<_> = (0..40)
                .map(|_| {
                    let barrier = barrier.clone();
                    runtime.spawn_blocking(move || barrier.wait().is_leader())
                })
                .collect();
            let leaders = runtime.block_on(async {
                let mut leaders = 0;
                for handle in handles {
                    leaders += usize::from(handle.await.expect("no panic"));
                }
                leaders
            });
            assert_eq!(leaders, 1);
        }
    });
}

#[test]
fn shutdown_leaves_a_closure_that_does_not_end() {
    within_limit(|| {
        for runtime in runtimes(|_| ()) {
            let (release, released) = channel::<()>();
            let (started, running) = channel();
            let stuck = runtime.spawn_blocking(move || {
                started
                    .send(thread::current().id())
                    .expect("the test listens");
                let _ = released.recv();
                7
            });
            running.recv().expect("it starts");
            let handle = runtime.handle().clone();
            let start = Instant::now();
            runtime.shutdown_timeout(Duration::from_millis(50));
            let took = start.elapsed();
            assert!(
                took >= Duration::from_millis(50) && took < Duration::from_secs(20),
                "{took:?}"
            );
            // It runs on, and its handle works without the runtime.
            assert!(!stuck.is_finished());
            drop(release);
            assert_eq!(futures_lite::future::block_on(stuck).expect("no panic"), 7);
            let late = futures_lite::future::block_on(handle.spawn_blocking(|| ()));
            assert!(late.expect_err("too late").is_runtime_closed());
        }
    });
}

#[test]
fn shutdown_drops_closures_that_wait() {
    within_limit(|| {
        for runtime in runtimes(|builder| {
            builder.max_blocking_threads(1);
        }) {
            let (release, released) = channel::<()>();
            let (started, running) = channel();
            let first = runtime.spawn_blocking(move || {
                started.send(()).expect("the test listens");
                let _ = released.recv();
            });
            running.recv().expect("it starts");
            let payload = Arc::new(());
            let inside = payload.clone();
            let second = runtime.spawn_blocking(move || drop(inside));
            assert_eq!(runtime.metrics().blocking.queue_depth, 1);
            let closer = thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(50)));
            let error = futures_lite::future::block_on(second).expect_err("dropped");
            assert!(error.is_runtime_closed(), "{error}");
            assert_eq!(Arc::strong_count(&payload), 1);
            drop(release);
            futures_lite::future::block_on(first).expect("it was waited for");
            closer.join().expect("no panic");
        }
    });
}

#[test]
fn thread_hooks_enclose_closures() {
    thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });
    within_limit(|| {
        for runtime in runtimes(|builder| {
            builder
                .on_thread_start(|| INSIDE.set(true))
                .thread_name("hooked");
        }) {
            let (inside, name) =
                runtime
                    .block_on(runtime.spawn_blocking(|| {
                        (INSIDE.get(), thread::current().name().map(str::to_owned))
                    }))
                    .expect("no panic");
            assert!(inside);
            assert!(name.is_some_and(|name| name.starts_with("hooked")));
        }
    });
}
