//! Who is held up is helped by others: rows A1, A2 and A5 of the known pains of async runtimes. What is told of
//! who blocks (A1, A17) is in `pains_debug.rs`.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpStream;
use rt::runtime::Builder;
use rt::task::yield_now;

use crate::machine::Machine;
use crate::pains_support::{LONG, MS, asleep, blocking_waker, eventually, workers};
use crate::support::within_limit;

/// A connection of two sockets that block.
fn pair() -> (std::net::TcpStream, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    (client, listener.accept().unwrap().0)
}

/// A small soak: sockets of all workers while at any time some of these are kept for up to 400 ms, by turns by all.
#[test]
fn a2_no_selector_is_left_alone_while_tasks_block_at_random() {
    const WORKERS: usize = 8;
    const CONNECTIONS: usize = 40;
    const BLOCKERS: usize = 6;
    const LONGEST: Duration = Duration::from_millis(400);
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            // Who blocks is known.
            .debug(false)
            .build()
            .unwrap();
        let mut clients = Vec::new();
        for n in 0..CONNECTIONS {
            let (client, server) = pair();
            clients.push(client);
            // Registers with a certain selector, and is then served by whoever has time.
            let server = runtime
                .handle()
                .spawn_pinned(n % WORKERS, move || async move {
                    let server = TcpStream::from_std(server).unwrap();
                    let waits = server.poll_read_ready(&mut Context::from_waker(Waker::noop()));
                    assert!(waits.is_pending());
                    server
                });
            let mut server = runtime.block_on(server.unwrap()).unwrap();
            runtime.spawn(async move {
                let mut byte = [0];
                while server.read_exact(&mut byte).await.is_ok() {
                    server.write_all(&byte).await.unwrap();
                }
            });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let blocked = Arc::new(AtomicUsize::new(0));
        let blockers: Vec<_> = (0..BLOCKERS)
            .map(|n| {
                let (stop, blocked) = (stop.clone(), blocked.clone());
                runtime.spawn(async move {
                    let mut random = 0x9e37_79b9_u64 * (n as u64 + 1);
                    while !stop.load(SeqCst) {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let ms = random % (LONGEST.as_millis() as u64 + 1);
                        thread::sleep(Duration::from_millis(ms));
                        blocked.fetch_add(ms as usize, SeqCst);
                        // Goes on wherever there is room.
                        rt::time::sleep(MS).await;
                        yield_now().await;
                    }
                })
            })
            .collect();
        // Some 6 s of blocked workers, in about one.
        let machine = Machine::watch();
        let mut latencies = Vec::new();
        while blocked.load(SeqCst) < 6000 {
            for client in &mut clients {
                let start = Instant::now();
                client.write_all(b"x").unwrap();
                client.read_exact(&mut [0]).expect("an echo");
                latencies.push(start.elapsed());
            }
        }
        let worst = machine.worst();
        stop.store(true, SeqCst);
        runtime.block_on(async {
            for blocker in blockers {
                blocker.await.unwrap();
            }
        });
        latencies.sort();
        let (p99, longest) = (
            latencies[latencies.len() * 99 / 100],
            *latencies.last().unwrap(),
        );
        let age = runtime.metrics().selector_age_max;
        // Without help an echo waits for its worker, 200 ms in the mean and 400 at most, and so does the selector.
        assert!(
            p99 < LONGEST / 8 + worst && longest.max(age) < LONGEST / 2 + worst,
            "p99 {p99:?}, longest {longest:?} of {}, selector unattended for {age:?}; the machine held up {worst:?}",
            latencies.len()
        );
    });
}

/// All workers sleep, and with them the monitor. One wakes up for a socket, and the task of that blocks for good: another
/// socket and a timer of the same worker go on.
#[test]
fn a1_who_wakes_alone_and_blocks_holds_up_nobody() {
    within_limit(|| {
        let runtime = workers(4);
        for worker in 0..4 {
            let (mut first_client, first) = pair();
            let (mut second_client, second) = pair();
            let begun = runtime.handle().spawn_pinned(worker, || async move {
                let mut cx = Context::from_waker(Waker::noop());
                let [first, second] = [first, second].map(|socket| {
                    let socket = TcpStream::from_std(socket).unwrap();
                    assert!(socket.poll_read_ready(&mut cx).is_pending());
                    socket
                });
                let mut timer = Box::pin(rt::time::sleep(300 * MS));
                assert!(timer.as_mut().poll(&mut cx).is_pending());
                (first, second, timer)
            });
            let begun = futures_lite::future::block_on(begun.unwrap());
            let (mut first, mut second, timer) = begun.unwrap();
            let (entered, blocks) = mpsc::channel();
            let (release, released) = mpsc::channel::<()>();
            let blocked = runtime.spawn(async move {
                first.read_exact(&mut [0]).await.unwrap();
                entered.send(()).unwrap();
                let _ = released.recv();
            });
            let echo = runtime.spawn(async move {
                let mut byte = [0];
                while second.read_exact(&mut byte).await.is_ok() {
                    second.write_all(&byte).await.unwrap();
                }
            });
            let (fired, fires) = mpsc::channel();
            let waits = runtime.spawn(async move {
                timer.await;
                fired.send(()).unwrap();
            });
            eventually("all workers sleep", || asleep(&runtime, 4));
            // And the monitor, which looks around for 20 ms more.
            thread::sleep(100 * MS);
            first_client.write_all(b"x").unwrap();
            blocks.recv_timeout(LONG).expect("it wakes up");
            for _ in 0..20 {
                second_client.write_all(b"x").unwrap();
                second_client.read_exact(&mut [0]).expect("an echo");
            }
            fires.recv_timeout(LONG / 2).expect("the timer fires");
            assert!(!blocked.is_finished());
            drop((release, second_client));
            runtime.block_on(async {
                for task in [blocked, echo, waits] {
                    task.await.unwrap();
                }
            });
        }
    });
}

/// A worker that was woken to search, and whose thread a foreign waker keeps before it gets to it, searches for nobody, and
/// what it has found by then is for others: whatever comes in is polled by them.
#[test]
fn a5_a_searcher_that_is_stuck_does_not_silence_the_others() {
    within_limit(|| {
        let runtime = workers(3);
        for timer in [false, true] {
            for round in 0..30 {
                let (entered, blocked) = mpsc::channel();
                let (release, released) = mpsc::channel();
                let blocks = blocking_waker(entered, released);
                // With the first worker: it is the one that is woken first to search.
                let (mut client, server) = pair();
                let waits = runtime
                    .handle()
                    .spawn_pinned(0, move || async move {
                        let mut cx = Context::from_waker(&blocks);
                        if timer {
                            let mut sleep = Box::pin(rt::time::sleep(5 * MS));
                            assert!(sleep.as_mut().poll(&mut cx).is_pending());
                            (None, Some(sleep))
                        } else {
                            let server = TcpStream::from_std(server).unwrap();
                            assert!(server.poll_read_ready(&mut cx).is_pending());
                            (Some(server), None)
                        }
                    })
                    .unwrap();
                let due = Instant::now() + 5 * MS + round * MS / 30;
                let waits = futures_lite::future::block_on(waits).unwrap();
                eventually("all workers sleep", || {
                    asleep(&runtime, 3) || timer && Instant::now() >= due - MS
                });
                // Both at once: the event, and a task from outside for which somebody is woken.
                let (ran, runs) = mpsc::channel();
                let spawn = || {
                    let ran = ran.clone();
                    drop(runtime.spawn(async move { ran.send(()).unwrap() }));
                };
                if timer {
                    while Instant::now() < due {
                        std::hint::spin_loop();
                    }
                } else {
                    client.write_all(b"x").unwrap();
                }
                spawn();
                blocked.recv_timeout(LONG).expect("the waker is woken");
                spawn();
                for n in 0..2 {
                    runs.recv_timeout(LONG * 3 / 4)
                        .unwrap_or_else(|_| panic!("{n} of 2 tasks ran while one worker is stuck"));
                }
                drop(release);
                drop(waits);
            }
        }
    });
}
