//! The stress twin of `task_group.rs`: groups, callbacks and requests on real threads, under the small scheduler of the
//! models.
#![cfg(not(rt_loom))]

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use rt::task::{TaskGroup, cancelled, yield_now};
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::scheduler::Scheduler;
use rt_loom_tests::stress::{block_on, limited};

const LONG: Duration = Duration::from_secs(3600);

/// Runs `body` while two threads run what is ready.
fn with_runners(body: impl FnOnce(&Scheduler)) {
    let (scheduler, over) = (Scheduler::listed(), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (scheduler, over) = (scheduler.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(SeqCst) {
                    if scheduler.run() == 0 {
                        thread::yield_now();
                    }
                }
                scheduler.run();
            })
        })
        .collect();
    body(&scheduler);
    over.store(true, SeqCst);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn groups_end_with_all_of_their_children_whatever_those_do() {
    limited(|| {
        with_runners(|scheduler| {
            for round in 0..3000 {
                let drops = Arc::new(AtomicUsize::new(0));
                let (counter, spawner) = (drops.clone(), scheduler.clone());
                let scope = TaskGroup::<usize>::scope(async |group| {
                    for n in 0..6 {
                        let guard = CountDrop(counter.clone());
                        let own = group.clone();
                        let child = spawner.spawn_into(&group, async move {
                            let _guard = guard;
                            match (n, round % 4) {
                                (2, 1) => return Err(n),
                                (3, 2) => own.abort_all(),
                                (4, 3) => panic_free_failure(round)?,
                                _ => {}
                            }
                            yield_now().await;
                            Ok(())
                        });
                        if child.is_none() {
                            // Refused, and the future dropped.
                            return Ok(());
                        }
                    }
                    Ok(())
                });
                let result = block_on(scope);
                // Nothing of a child is left when the scope is over: each guard that was made is dropped.
                assert!((1..=6).contains(&drops.load(SeqCst)));
                match round % 4 {
                    0 | 2 => assert!(result.is_ok()),
                    _ => assert_eq!(result.expect_err("a child fails").failures().len(), 1),
                }
            }
        });
    });
}

fn panic_free_failure(round: usize) -> Result<(), usize> {
    Err(round)
}

#[test]
fn a_scope_that_is_dropped_leaves_no_child() {
    limited(|| {
        with_runners(|scheduler| {
            for round in 0..3000 {
                let drops = Arc::new(AtomicUsize::new(0));
                let (counter, spawner) = (drops.clone(), scheduler.clone());
                let mut scope = Box::pin(TaskGroup::<Infallible>::scope(async |group| {
                    for _ in 0..3 {
                        let guard = CountDrop(counter.clone());
                        let child = spawner.spawn_into(&group, async move {
                            let _guard = guard;
                            pending::<()>().await;
                        });
                        drop(child.expect("the group is open"));
                    }
                    pending::<()>().await;
                }));
                let mut cx = Context::from_waker(Waker::noop());
                assert!(scope.as_mut().poll(&mut cx).is_pending());
                if round % 2 == 0 {
                    thread::yield_now();
                }
                drop(scope);
                while drops.load(SeqCst) < 3 {
                    thread::yield_now();
                }
            }
        });
    });
}

#[test]
fn callbacks_against_the_end_run_once_and_in_order() {
    limited(|| {
        with_runners(|scheduler| {
            for _ in 0..5000 {
                let log = Arc::new(Mutex::new(Vec::new()));
                let (done, end) = mpsc::channel();
                let task = scheduler.spawn(async {});
                for n in 0..4 {
                    let (log, done) = (log.clone(), done.clone());
                    task.on_done(move |_| {
                        log.lock().unwrap().push(n);
                        done.send(()).unwrap();
                    });
                }
                drop(done);
                assert_eq!(end.iter().count(), 4);
                assert_eq!(*log.lock().unwrap(), [0, 1, 2, 3]);
            }
        });
    });
}

#[test]
fn requests_against_polls_and_ends_are_seen() {
    limited(|| {
        with_runners(|scheduler| {
            for round in 0..5000 {
                let task = scheduler.spawn(async move {
                    if round % 2 == 0 {
                        yield_now().await;
                    }
                    cancelled().await;
                    round
                });
                if round % 3 == 0 {
                    thread::yield_now();
                }
                task.cancel(LONG);
                assert_eq!(block_on(task).expect("not aborted"), round);
            }
        });
    });
}
