//! Blocking in odd places, from many threads at once, with seats lent and taken back: nothing hangs and nothing is lost.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::runtime::{Builder, Handle, Runtime};
use rt::task::LocalSet;
use rt::time::{sleep, timeout};

use crate::pains_support::{LONG, MS, Mailbox, current_thread, each_kind, eventually, workers};
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

/// Two threads in `block_on` of the current-thread flavour; one leaves a timer, a socket and a task behind, on which the
/// other one waits.
#[test]
fn who_stays_in_block_on_serves_what_another_left() {
    within_limit(|| {
        for what in 0..3 {
            for runtime in [current_thread(), workers(1)] {
                let runtime = Arc::new(runtime);
                let (to_other, mailbox) = mpsc::channel();
                let stays = {
                    let (runtime, both) = (runtime.clone(), to_other.clone());
                    let (send, done) = (Mailbox::new(), Mailbox::new());
                    both.send((send.clone(), done.clone())).unwrap();
                    thread::spawn(move || {
                        runtime.block_on(async {
                            // From now on this thread is in its loop.
                            send.send(());
                            timeout(LONG, done.recv())
                                .await
                                .expect("what the other thread left was done");
                        });
                    })
                };
                let (begun, done): (Mailbox<()>, Mailbox<()>) = mailbox.recv().unwrap();
                let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                let peer_addr = peer.local_addr().unwrap();
                let socket_addr = runtime.block_on(async {
                    begun.recv().await;
                    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    socket.connect(peer_addr).await.unwrap();
                    let addr = socket.local_addr().unwrap();
                    // Both wait here first, so they belong to this seat.
                    let mut timer = Box::pin(sleep(30 * MS));
                    assert!(
                        futures_lite::future::poll_once(timer.as_mut())
                            .await
                            .is_none()
                    );
                    let mut buf = [0];
                    assert!(
                        futures_lite::future::poll_once(socket.recv(&mut buf))
                            .await
                            .is_none()
                    );
                    rt::spawn(async move {
                        match what {
                            0 => timer.await,
                            1 => drop(socket.recv(&mut [0]).await.unwrap()),
                            _ => rt::task::yield_now().await,
                        }
                        done.send(());
                    });
                    addr
                });
                peer.send_to(b"x", socket_addr).unwrap();
                stays.join().unwrap();
            }
        }
    });
}

/// A `block_on` that leaves a sleeping task behind, again and again: threads and seats do not pile up.
///
/// The next one asks the stand-in for the seat, and makes a new seat if it does not get it within 10 ms. This stand-in
/// sleeps, so that happens only if the machine is busy elsewhere; and then the call took that long.
#[test]
fn leaving_sleepers_behind_does_not_pile_up_seats() {
    const RECALL: Duration = Duration::from_millis(10);
    within_limit(|| {
        let runtime = workers(1);
        let mut tasks = Vec::new();
        let mut slow = 0;
        for _ in 0..40 {
            let start = Instant::now();
            runtime.block_on(async {
                let mut timer = Box::pin(sleep(Duration::from_secs(3600)));
                assert!(
                    futures_lite::future::poll_once(timer.as_mut())
                        .await
                        .is_none()
                );
                tasks.push(rt::spawn(timer));
            });
            slow += usize::from(start.elapsed() >= RECALL);
            // Long enough for the monitor to find a stand-in.
            thread::sleep(8 * MS);
        }
        let seats = runtime.metrics().workers.len();
        assert!(tasks.iter().all(|task| !task.is_finished()));
        assert!(
            seats <= 2 + slow,
            "{seats} seats after forty calls, one at a time, {slow} of them slow"
        );
        // Never giving back would be slow each time.
        assert!(
            slow < 30,
            "{slow} of forty calls waited for a sleeping stand-in"
        );
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

/// After a root future has lent its seat, what it registers in the same poll is served, though the stand-in found nothing
/// to do at first and left.
#[test]
fn what_a_guest_registers_after_it_lent_its_seat_is_served() {
    within_limit(|| {
        let runtime = workers(1);
        for _ in 0..5 {
            runtime.block_on(async {
                // Long enough for the stand-in to come and go.
                rt::block_in_place(|| thread::sleep(20 * MS));
                let (done, fired) = mpsc::channel();
                let mut timer = Box::pin(sleep(5 * MS));
                assert!(
                    futures_lite::future::poll_once(timer.as_mut())
                        .await
                        .is_none()
                );
                rt::spawn(async move {
                    timer.await;
                    done.send(()).unwrap();
                });
                rt::block_in_place(|| fired.recv_timeout(LONG).expect("the timer fires"));
                rt::block_in_place(|| thread::sleep(20 * MS));
                let (done, received) = mpsc::channel();
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let addr = socket.local_addr().unwrap();
                let mut recv = Box::pin(async move { socket.recv(&mut [0]).await.unwrap() });
                assert!(
                    futures_lite::future::poll_once(recv.as_mut())
                        .await
                        .is_none()
                );
                rt::spawn(async move {
                    done.send(recv.await).unwrap();
                });
                rt::block_in_place(|| {
                    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                    sender.send_to(b"x", addr).unwrap();
                    received
                        .recv_timeout(LONG)
                        .expect("the socket is looked at")
                });
            });
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

/// Pinned tasks wait while their worker blocks, and run afterwards; the rest is served meanwhile.
#[test]
fn pinned_tasks_survive_the_lending_of_their_seat() {
    within_limit(|| {
        let runtime = workers(2);
        runtime.block_on(async {
            let tasks: Vec<_> = (0..40)
                .map(|n| {
                    rt::spawn_pinned(n % 2, move || async move {
                        let own = thread::current().id();
                        let local = std::rc::Rc::new(n);
                        for round in 0..10 {
                            match (n + round) % 4 {
                                0 => {
                                    rt::block_in_place(|| thread::sleep(Duration::from_micros(200)))
                                }
                                1 => sleep(Duration::from_micros(100)).await,
                                2 => rt::task::yield_now().await,
                                _ => rt::bridge(sleep(Duration::from_micros(50))),
                            }
                            assert_eq!(thread::current().id(), own);
                        }
                        *local
                    })
                    .unwrap()
                })
                .collect();
            let others: Vec<_> = (0..10).map(|_| rt::spawn(everything())).collect();
            for (n, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), n);
            }
            for other in others {
                other.await.unwrap();
            }
        });
    });
}

/// Seats are lent and taken back under load, from all workers at once, with sockets and timers on them.
#[test]
fn seats_are_lent_under_load() {
    within_limit(|| {
        let runtime = workers(3);
        let tasks: Vec<_> = (0..60u32)
            .map(|n| {
                runtime.spawn(async move {
                    for round in 0..4 {
                        match (n + round) % 3 {
                            0 => echo_once().await,
                            1 => rt::block_in_place(|| thread::sleep(Duration::from_micros(300))),
                            _ => rt::bridge(async {
                                sleep(Duration::from_micros(200)).await;
                                rt::spawn(sleep(Duration::from_micros(100))).await.unwrap();
                            }),
                        }
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                timeout(LONG, task).await.expect("a task hangs").unwrap();
            }
        });
        eventually("nothing is alive", || runtime.metrics().live_tasks == 0);
    });
}

/// The end of the runtime while seats are lent.
#[test]
fn the_end_finds_lent_seats() {
    within_limit(|| {
        for round in 0..40u64 {
            let runtime = workers(2);
            let (started, begun) = mpsc::channel();
            for n in 0..6 {
                let started = started.clone();
                drop(runtime.spawn(async move {
                    loop {
                        started.send(()).unwrap_or(());
                        match n % 3 {
                            0 => rt::block_in_place(|| thread::sleep(Duration::from_micros(100))),
                            1 => drop(rt::try_bridge(sleep(Duration::from_micros(150)))),
                            _ => sleep(Duration::from_micros(50)).await,
                        }
                        rt::task::yield_now().await;
                    }
                }));
            }
            begun.recv().unwrap();
            thread::sleep(Duration::from_micros(round * 40));
            drop(runtime);
        }
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

/// Another runtime is entered around `block_in_place`: afterwards the worker's sockets are its own again.
#[test]
fn a_guard_around_a_lent_seat_leaves_the_worker_as_it_was() {
    within_limit(|| {
        let (own, other) = (workers(1), workers(1));
        let registrations = |runtime: &Runtime| {
            runtime
                .metrics()
                .workers
                .iter()
                .map(|worker| worker.registrations)
                .sum::<usize>()
        };
        for root in [false, true] {
            let handle = other.handle().clone();
            let body = async move {
                // Within one poll, so that the future is `Send`.
                let guard = handle.enter();
                // The guard says which runtime is meant, so it is left to the worker's own to lend its seat.
                rt::block_in_place(|| thread::sleep(MS));
                drop(guard);
                rt::block_in_place(|| {
                    let _guard = handle.enter();
                    thread::sleep(MS);
                });
                let guard = handle.enter();
                drop(guard);
            };
            if root {
                own.block_on(body);
            } else {
                own.block_on(own.spawn(body)).unwrap();
            }
            own.block_on(own.spawn(everything())).unwrap();
            let waits = own.spawn(async {
                let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                socket.recv(&mut [0]).await.unwrap();
            });
            eventually("the socket is registered", || {
                registrations(&own) + registrations(&other) == 1
            });
            assert_eq!(
                registrations(&own),
                1,
                "the socket went to the other runtime"
            );
            waits.abort();
            let _ = own.block_on(waits);
            eventually("it is gone", || registrations(&own) == 0);
        }
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
