//! Seats that are lent, taken back and left behind by threads that block.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rt::net::UdpSocket;
use rt::runtime::{Builder, Runtime};
use rt::time::{sleep, timeout};

use super::{echo_once, everything};
use crate::pains_support::{LONG, MS, Mailbox, current_thread, eventually, workers};
use crate::support::within_limit;

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
/// sleeps, so that happens only if the machine is busy elsewhere; and then the call took that long. Never giving back
/// would be slow each time. No spare worker, who would have a seat of its own.
#[test]
fn leaving_sleepers_behind_does_not_pile_up_seats() {
    const RECALL: Duration = Duration::from_millis(10);
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_spare_threads(0)
            .build()
            .unwrap();
        let mut tasks = Vec::new();
        let (mut slow, mut fast) = (0, 0);
        while fast < 20 {
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
            if start.elapsed() >= RECALL {
                slow += 1;
            } else {
                fast += 1;
            }
            assert!(
                slow < 1000,
                "only {fast} calls got the seat of a sleeping stand-in"
            );
            // Long enough for the monitor to find a stand-in.
            thread::sleep(8 * MS);
        }
        let seats = runtime.metrics().workers.len();
        assert!(tasks.iter().all(|task| !task.is_finished()));
        assert!(
            seats <= 2 + slow,
            "{seats} seats after {fast} calls that got one, and {slow} that did not"
        );
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
