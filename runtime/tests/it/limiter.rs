//! `spawn_blocking_limited`: blocking closures, so many at a time.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use rt::runtime::Builder;
use rt::sync::CapacityLimiter;

use crate::support::within_limit;

#[test]
fn no_more_closures_run_than_there_are_tokens() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let limiter = Arc::new(CapacityLimiter::new(2));
            let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let tasks: Vec<_> = (0..50)
                .map(|i| {
                    let (limiter, running, most) = (limiter.clone(), running.clone(), most.clone());
                    rt::spawn(async move {
                        rt::spawn_blocking_limited(&limiter, move || {
                            most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                            std::thread::yield_now();
                            running.fetch_sub(1, SeqCst);
                            i
                        })
                        .await
                        .expect("no panic")
                    })
                })
                .collect();
            for (i, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.expect("no panic"), i);
            }
            assert!((1..=2).contains(&most.load(SeqCst)));
            assert_eq!(limiter.borrowed_tokens(), 0);
        });
    });
}

#[test]
fn a_closure_keeps_its_token_until_it_ends() {
    within_limit(|| {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let limiter = Arc::new(CapacityLimiter::new(1));
            let (started, told) = mpsc::channel();
            let (go_on, wait) = mpsc::channel::<()>();
            let first = limiter.clone();
            let task = rt::spawn(async move {
                rt::spawn_blocking_limited(&first, move || {
                    started.send(()).expect("somebody to tell");
                    let _ = wait.recv();
                })
                .await
            });
            rt::spawn_blocking(move || told.recv().expect("it starts"))
                .await
                .expect("no panic");
            // Its future goes; what it does is still going on.
            task.abort();
            assert!(task.await.expect_err("aborted").is_cancelled());
            assert_eq!(limiter.borrowed_tokens(), 1);
            // One that waits for a token and goes never runs.
            let mut dropped = Box::pin(rt::spawn_blocking_limited(&limiter, || {
                unreachable!("there was no token")
            }));
            let pending = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(dropped.as_mut().poll(cx).is_pending())
            });
            assert!(pending.await);
            drop(dropped);
            go_on.send(()).expect("it waits");
            // Gets the token of the first.
            rt::spawn_blocking_limited(&limiter, || ())
                .await
                .expect("no panic");
            assert_eq!(limiter.borrowed_tokens(), 0);
        });
    });
}

#[test]
fn a_panic_gives_the_token_back() {
    within_limit(|| {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let limiter = Arc::new(CapacityLimiter::new(1));
            let error = rt::spawn_blocking_limited(&limiter, || panic!("no luck"))
                .await
                .expect_err("a panic");
            assert!(error.is_panic());
            assert_eq!(limiter.borrowed_tokens(), 0);
        });
    });
}
