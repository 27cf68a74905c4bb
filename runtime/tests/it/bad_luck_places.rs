//! Blocking in odd places, from many threads at once, with seats lent and taken back: nothing hangs and nothing is lost.

mod seats;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::runtime::{Builder, Handle};
use rt::task::LocalSet;
use rt::time::{sleep, timeout};

use crate::pains_support::{LONG, MS, current_thread, each_kind, workers};
use crate::support::within_limit;

async fn echo_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = rt::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buf = [0; 8];
        stream.read_exact(&mut buf).await.unwrap();
        stream.write_all(&buf).await.unwrap();
    });
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(b"8 bytes.").await.unwrap();
    let mut buf = [0; 8];
    stream.read_exact(&mut buf).await.unwrap();
    assert_eq!(&buf, b"8 bytes.");
    server.await.unwrap();
}

/// All the things that a loop does, in one go.
async fn everything() {
    echo_once().await;
    sleep(MS).await;
    assert_eq!(
        rt::spawn(async { rt::spawn(async { 7 }).await.unwrap() })
            .await
            .unwrap(),
        7
    );
    assert_eq!(rt::spawn_blocking(|| 8).await.unwrap(), 8);
    rt::task::yield_now().await;
}

/// Many threads block on one runtime at once, on the current-thread flavour as well.
#[test]
fn many_threads_block_on_one_runtime() {
    within_limit(|| {
        for runtime in each_kind() {
            let runtime = Arc::new(runtime);
            let threads: Vec<_> = (0..6)
                .map(|_| {
                    let runtime = runtime.clone();
                    thread::spawn(move || {
                        for _ in 0..15 {
                            runtime.block_on(everything());
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}

/// In place twice in one poll, inside a closure for blocking, in a root future, in a closure that panics, nested.
#[test]
fn block_in_place_anywhere() {
    within_limit(|| {
        for runtime in [workers(1), workers(2)] {
            let runs = |n: u32| rt::block_in_place(|| n);
            let body = move || async move {
                assert_eq!(runs(1) + runs(2), 3);
                assert_eq!(rt::block_in_place(|| rt::block_in_place(|| 5)), 5);
                let panic = catch_unwind(|| rt::block_in_place(|| panic!("on purpose")));
                assert!(panic.is_err());
                everything().await;
                let handle = Handle::current();
                assert_eq!(rt::block_in_place(|| handle.block_on(async { 6 })), 6);
                // Two levels, each with all of it.
                rt::block_in_place(|| {
                    handle.block_on(async {
                        everything().await;
                        rt::bridge(async {
                            everything().await;
                            rt::bridge(everything());
                        });
                        everything().await;
                    });
                });
                assert_eq!(rt::block_in_place(|| 7), 7);
                everything().await;
            };
            runtime.block_on(body());
            let task = runtime.spawn(body());
            runtime.block_on(task).unwrap();
            runtime
                .block_on(async {
                    rt::spawn_blocking(move || {
                        assert_eq!(rt::block_in_place(|| 8), 8);
                        rt::bridge(everything());
                        Handle::current().block_on(body());
                    })
                    .await
                })
                .unwrap();
            // A panic that leaves the task.
            let panics =
                runtime.spawn(async { rt::block_in_place(|| panic!("out of the closure")) });
            let error = runtime.block_on(panics).unwrap_err();
            assert!(error.to_string().contains("out of the closure"), "{error}");
            // A panic that leaves a root future.
            let panics = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async { rt::block_in_place(|| panic!("out of the root")) });
            }));
            assert!(panics.is_err());
            runtime.block_on(everything());
        }
    });
}

/// A root future that is done in the very poll in which it lent its seat.
#[test]
fn a_root_future_that_ends_where_it_blocked() {
    within_limit(|| {
        let runtime = workers(1);
        for n in 0..50 {
            let got = runtime.block_on(async {
                rt::spawn(sleep(Duration::from_micros(n * 20)));
                rt::block_in_place(|| thread::sleep(Duration::from_micros(n * 10)));
                n
            });
            assert_eq!(got, n);
        }
        runtime.block_on(everything());
    });
}

/// Guards of `enter` dropped in any order: what is left is what is still entered.
#[test]
fn enter_guards_dropped_out_of_order() {
    within_limit(|| {
        let (one, two) = (workers(1), current_thread());
        let name = || Handle::try_current().map(|handle| handle.id()).ok();
        let (first, second) = (Some(one.handle().id()), Some(two.handle().id()));
        let a = one.enter();
        let b = two.enter();
        assert_eq!(name(), second);
        drop(a);
        assert_eq!(name(), second, "the later guard is still there");
        drop(b);
        assert_eq!(name(), None, "nothing is entered any more");
        // And in order.
        {
            let _a = one.enter();
            {
                let _b = two.enter();
                assert_eq!(name(), second);
            }
            assert_eq!(name(), first);
        }
        assert_eq!(name(), None);
        // After all that the thread may block.
        one.block_on(everything());
        two.block_on(everything());
    });
}

/// A root future that holds a guard of another runtime across waits, and is dropped with it.
#[test]
fn a_guard_held_by_a_root_future_goes_with_it() {
    within_limit(|| {
        let other = workers(1);
        for runtime in each_kind() {
            runtime.block_on(async {
                let _guard = other.enter();
                sleep(MS).await;
                rt::spawn(async {}).await.unwrap();
            });
            assert!(Handle::try_current().is_err());
            let handle = runtime.handle().clone();
            let guarded = other.handle().clone();
            let ended = handle.try_block_on(async move {
                let _guard = guarded.enter();
                drop(runtime);
                pending::<()>().await;
            });
            assert!(ended.unwrap_err().is_runtime_closed());
            assert!(
                Handle::try_current().is_err(),
                "the thread is in a runtime that it has left"
            );
            // It may block again.
            other.block_on(everything());
        }
    });
}

/// Local tasks block in place and bridge where that is possible.
#[test]
fn local_sets_on_both_flavours() {
    within_limit(|| {
        for runtime in each_kind() {
            let multi = runtime.metrics().num_workers > 0;
            let set = LocalSet::new();
            let got = set.block_on(&runtime, async {
                let local = std::rc::Rc::new(4);
                let task = rt::task::spawn_local({
                    let local = local.clone();
                    async move {
                        everything().await;
                        if multi {
                            rt::block_in_place(|| thread::sleep(MS));
                            rt::bridge(everything());
                        }
                        *local
                    }
                });
                let sum = task.await.unwrap() + *local;
                everything().await;
                sum
            });
            assert_eq!(got, 8);
        }
    });
}

/// Virtual time with closures that block and sockets that wait.
#[test]
fn a_paused_clock_with_closures_and_sockets() {
    within_limit(|| {
        let runtime = Builder::new_current_thread()
            .start_paused(true)
            .build()
            .unwrap();
        let start = std::time::Instant::now();
        runtime.block_on(async {
            for _ in 0..5 {
                // The closure holds virtual time; the sleep is over when it is done and not before.
                let (release, held) = mpsc::channel::<()>();
                let closure = rt::spawn_blocking(move || held.recv());
                let virtual_start = rt::time::Instant::now();
                let sleeper = rt::spawn(sleep(Duration::from_secs(3600)));
                thread::sleep(2 * MS);
                rt::task::yield_now().await;
                assert!(!sleeper.is_finished());
                assert_eq!(virtual_start.elapsed(), Duration::ZERO);
                drop(release);
                closure.await.unwrap().unwrap_err();
                sleeper.await.unwrap();
                assert_eq!(virtual_start.elapsed(), Duration::from_secs(3600));
                // Data that is there comes before time that could pass.
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                sender.send_to(b"x", socket.local_addr().unwrap()).unwrap();
                let mut buf = [0; 2];
                let received = timeout(Duration::from_secs(3600), socket.recv(&mut buf)).await;
                assert_eq!(received.expect("before the timeout").unwrap(), 1);
                // And without data time passes.
                assert!(
                    timeout(Duration::from_secs(3600), socket.recv(&mut buf))
                        .await
                        .is_err()
                );
            }
        });
        assert!(start.elapsed() < LONG);
    });
}

/// `block_on`, cancels and drops of runtimes race with each other.
#[test]
fn block_on_from_many_threads_while_the_runtime_ends() {
    within_limit(|| {
        for round in 0..40u64 {
            let runtime = if round % 2 == 0 {
                current_thread()
            } else {
                workers(2)
            };
            let barrier = Arc::new(Barrier::new(4));
            let threads: Vec<_> = (0..3)
                .map(|n| {
                    let (handle, barrier) = (runtime.handle().clone(), barrier.clone());
                    thread::spawn(move || {
                        barrier.wait();
                        for _ in 0..100 {
                            let ended = handle.try_block_on(async {
                                match n {
                                    0 => sleep(Duration::from_micros(30)).await,
                                    1 => drop(rt::spawn(async {}).await),
                                    _ => drop(rt::spawn_blocking(|| ()).await),
                                }
                            });
                            match ended {
                                Ok(()) => {}
                                Err(error) => {
                                    assert!(error.is_runtime_closed(), "{error}");
                                    return;
                                }
                            }
                        }
                    })
                })
                .collect();
            barrier.wait();
            thread::sleep(Duration::from_micros(round * 30));
            drop(runtime);
            for thread in threads {
                thread.join().unwrap();
            }
        }
    });
}

/// Two runtimes whose tasks await each other, while both are blocked on.
#[test]
fn two_runtimes_await_each_other() {
    within_limit(|| {
        for (one, two) in [
            (current_thread(), workers(1)),
            (workers(2), workers(2)),
            (current_thread(), current_thread()),
        ] {
            let (one, two) = (Arc::new(one), Arc::new(two));
            let stop = Arc::new(AtomicBool::new(false));
            let serves = {
                let (two, stop) = (two.clone(), stop.clone());
                thread::spawn(move || {
                    two.block_on(async {
                        while !stop.load(SeqCst) {
                            sleep(MS).await;
                        }
                    });
                })
            };
            let count = Arc::new(AtomicUsize::new(0));
            one.block_on(async {
                for n in 0..300 {
                    let handle = one.handle().clone();
                    let count = count.clone();
                    let there = two.spawn(async move {
                        let back = handle.spawn(async move {
                            rt::task::yield_now().await;
                            n
                        });
                        count.fetch_add(1, SeqCst);
                        back.await.unwrap()
                    });
                    assert_eq!(timeout(LONG, there).await.expect("an answer").unwrap(), n);
                }
            });
            stop.store(true, SeqCst);
            serves.join().unwrap();
            assert_eq!(count.load(SeqCst), 300);
        }
    });
}
