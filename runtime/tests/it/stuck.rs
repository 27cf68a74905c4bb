//! Every worker is stuck in a poll that blocks: spare workers serve everybody else, and go again.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpListener;
use rt::runtime::{Builder, Runtime};
use rt::time::{interval, sleep};

use crate::pains_support::{LONG, MS, eventually, workers};
use crate::support::within_limit;

/// Tasks that block their threads until told otherwise.
struct Blocked {
    release: Vec<mpsc::Sender<()>>,
    ended: Arc<AtomicUsize>,
}

impl Blocked {
    /// Blocks so many threads of the runtime, and waits until all of them are.
    fn threads(runtime: &Runtime, number: usize) -> Self {
        let (entered, all) = mpsc::channel();
        let ended = Arc::new(AtomicUsize::new(0));
        let release = (0..number)
            .map(|_| {
                let (release, released) = mpsc::channel();
                let (entered, ended) = (entered.clone(), ended.clone());
                runtime.spawn(async move {
                    entered.send(()).unwrap();
                    let _ = released.recv();
                    ended.fetch_add(1, SeqCst);
                });
                release
            })
            .collect();
        for blocked in 0..number {
            all.recv_timeout(LONG)
                .unwrap_or_else(|_| panic!("only {blocked} of {number} tasks began"));
        }
        Self { release, ended }
    }

    fn release(self) {
        let number = self.release.len();
        drop(self.release);
        eventually("the blocked tasks end", || {
            self.ended.load(SeqCst) == number
        });
    }
}

/// Starts an echo server as tasks of the runtime.
fn echo_server(runtime: &Runtime) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    runtime.spawn(async move {
        let listener = TcpListener::from_std(listener).unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            rt::spawn(async move {
                let mut byte = [0];
                while stream.read_exact(&mut byte).await.is_ok() {
                    stream.write_all(&byte).await.unwrap();
                }
            });
        }
    });
    addr
}

fn connect(addr: SocketAddr) -> std::net::TcpStream {
    let stream = std::net::TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn round_trip(stream: &mut std::net::TcpStream) {
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).expect("an echo");
}

#[test]
fn sockets_timers_and_spawns_go_on_while_every_worker_is_blocked() {
    within_limit(|| {
        let runtime = workers(2);
        let addr = echo_server(&runtime);
        let mut old = connect(addr);
        round_trip(&mut old);
        let ticks = Arc::new(AtomicUsize::new(0));
        runtime.spawn({
            let ticks = ticks.clone();
            async move {
                let mut interval = interval(5 * MS);
                loop {
                    interval.tick().await;
                    ticks.fetch_add(1, SeqCst);
                }
            }
        });
        let blocked = Blocked::threads(&runtime, 2);
        let before = ticks.load(SeqCst);
        // A connection from before, one that is accepted now, timers, tasks from outside, the blocking pool.
        let mut new = connect(addr);
        for _ in 0..100 {
            round_trip(&mut old);
            round_trip(&mut new);
        }
        eventually("the timer ticks", || ticks.load(SeqCst) >= before + 10);
        let (done, end) = mpsc::channel();
        runtime.spawn(async move {
            let pooled = rt::spawn_blocking(|| 1).await.unwrap();
            let spawned = rt::spawn(async { 2 }).await.unwrap();
            sleep(MS).await;
            done.send(pooled + spawned).unwrap();
        });
        assert_eq!(end.recv_timeout(LONG), Ok(3));
        assert!(runtime.metrics().hand_offs >= 1);
        assert_eq!(blocked.ended.load(SeqCst), 0);
        blocked.release();
        eventually("the spare workers go", || {
            runtime.metrics().spare_threads == 0
        });
        // What a spare worker has accepted is served on.
        for _ in 0..100 {
            round_trip(&mut old);
            round_trip(&mut new);
        }
    });
}

/// The accept loop in `block_on` is blocked along with the only worker.
#[test]
fn a_blocked_root_future_and_a_blocked_worker_are_replaced_too() {
    within_limit(|| {
        let runtime = Arc::new(workers(1));
        let addr = echo_server(&runtime);
        let mut old = connect(addr);
        round_trip(&mut old);
        let (release, released) = mpsc::channel::<()>();
        let (entered, begun) = mpsc::channel();
        let root = thread::spawn({
            let runtime = runtime.clone();
            move || {
                runtime.block_on(async {
                    // In its next slot and its queue while it is stuck.
                    for _ in 0..3 {
                        let entered = entered.clone();
                        rt::spawn(async move { entered.send("spawned").unwrap() });
                    }
                    entered.send("root").unwrap();
                    let _ = released.recv();
                });
            }
        });
        let blocked = Blocked::threads(&runtime, 1);
        let mut seen: Vec<_> = (0..4).map(|_| begun.recv_timeout(LONG).unwrap()).collect();
        seen.sort_unstable();
        assert_eq!(seen, ["root", "spawned", "spawned", "spawned"]);
        for _ in 0..50 {
            round_trip(&mut old);
        }
        drop(release);
        root.join().unwrap();
        blocked.release();
    });
}

#[test]
fn spare_workers_are_bounded() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_spare_threads(2)
            .build()
            .unwrap();
        // The worker and two spare ones.
        let blocked = Blocked::threads(&runtime, 3);
        let (sender, receiver) = mpsc::channel();
        runtime.spawn(async move { sender.send(()).unwrap() });
        assert_eq!(
            receiver.recv_timeout(100 * MS),
            Err(mpsc::RecvTimeoutError::Timeout),
            "nobody is left to poll it"
        );
        assert_eq!(runtime.metrics().spare_threads, 2);
        blocked.release();
        receiver.recv_timeout(LONG).expect("polled afterwards");
        eventually("they go", || runtime.metrics().spare_threads == 0);
    });
}

#[test]
fn without_spare_workers_a_blocked_worker_is_waited_for() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_spare_threads(0)
            .build()
            .unwrap();
        let blocked = Blocked::threads(&runtime, 1);
        let (sender, receiver) = mpsc::channel();
        runtime.spawn(async move { sender.send(()).unwrap() });
        assert_eq!(
            receiver.recv_timeout(50 * MS),
            Err(mpsc::RecvTimeoutError::Timeout)
        );
        blocked.release();
        receiver.recv_timeout(LONG).expect("polled afterwards");
        assert_eq!(runtime.metrics().hand_offs, 0);
    });
}

/// Each stall may leave sockets on the seat of a spare worker; the next stall uses that seat again.
#[test]
fn stalls_one_after_another_do_not_add_seats() {
    within_limit(|| {
        let runtime = workers(1);
        let addr = echo_server(&runtime);
        let mut kept = Vec::new();
        for _ in 0..30 {
            let blocked = Blocked::threads(&runtime, 1);
            let mut stream = connect(addr);
            round_trip(&mut stream);
            kept.push(stream);
            blocked.release();
            eventually("the spare worker goes", || {
                runtime.metrics().spare_threads == 0
            });
        }
        assert!(runtime.metrics().hand_offs >= 1);
        let seats = runtime.metrics().workers.len();
        assert!(seats <= 3, "{seats} seats after 30 stalls");
        for stream in &mut kept {
            round_trip(stream);
        }
    });
}

#[test]
fn a_runtime_ends_while_its_workers_are_blocked_and_spare_ones_work() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .shutdown_grace(50 * MS)
            .build()
            .unwrap();
        let addr = echo_server(&runtime);
        let blocked = Blocked::threads(&runtime, 2);
        let mut stream = connect(addr);
        round_trip(&mut stream);
        let start = Instant::now();
        drop(runtime);
        assert!(start.elapsed() < Duration::from_secs(10));
        // The spare worker's connection is over; how it ends depends on whether the echo was read.
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)));
        blocked.release();
    });
}

/// Metrics name how long the selector and the tasks were left alone.
#[test]
fn the_longest_neglect_is_counted() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_spare_threads(0)
            .build()
            .unwrap();
        let addr = echo_server(&runtime);
        let mut stream = connect(addr);
        round_trip(&mut stream);
        let (release, released) = mpsc::channel::<()>();
        let (entered, begun) = mpsc::channel();
        runtime.spawn(async move {
            rt::spawn(async {});
            rt::spawn(async {});
            entered.send(()).unwrap();
            let _ = released.recv();
        });
        begun.recv_timeout(LONG).unwrap();
        eventually("a queue that waits is seen", || {
            runtime.metrics().ready_age_max >= 20 * MS
        });
        drop(release);
        round_trip(&mut stream);
    });
}

/// A worker that sleeps since before the seat of a `block_on` was made is woken to steal from that seat. It looked at the
/// seats that it knew when it fell asleep once, again and again, and found nothing.
#[test]
fn workers_steal_from_a_seat_that_was_made_while_they_slept() {
    within_limit(|| {
        for _ in 0..20 {
            let runtime = workers(3);
            eventually("all workers sleep", || {
                runtime
                    .metrics()
                    .workers
                    .iter()
                    .all(|worker| worker.parks > 0)
            });
            // Each blocks a thread until all three run.
            let barrier = Arc::new(Barrier::new(3));
            runtime.block_on(async {
                let tasks: Vec<_> = (0..3)
                    .map(|_| {
                        let barrier = barrier.clone();
                        rt::spawn(async move { barrier.wait().is_leader() })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        }
    });
}

/// More workers than cores, all of them busy with short polls: the kernel keeps most of them waiting for longer than a tick
/// of the monitor. That is no reason for more threads.
#[test]
fn workers_that_wait_for_a_core_are_not_replaced() {
    within_limit(|| {
        let runtime = workers(16);
        let end = Instant::now() + Duration::from_secs(1);
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                runtime.spawn(async move {
                    while Instant::now() < end {
                        let poll_end = Instant::now() + Duration::from_micros(500);
                        while Instant::now() < poll_end {
                            std::hint::spin_loop();
                        }
                        rt::task::yield_now().await;
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        let metrics = runtime.metrics();
        assert!(metrics.hand_offs <= 2, "{} hand-offs", metrics.hand_offs);
    });
}

/// Without the monitor nobody looks after a worker that is stuck; the seat of a `block_on` that is over is served all the same.
#[test]
fn without_the_monitor_a_blocked_worker_is_waited_for() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .monitor(false)
            .build()
            .unwrap();
        let (sender, receiver) = mpsc::channel();
        let addr = runtime.block_on(async {
            // Registered with the seat of this thread: a timer, and the sockets of a task that lives on.
            let (listener, wait) = (
                TcpListener::bind("127.0.0.1:0").await.unwrap(),
                sleep(30 * MS),
            );
            let addr = listener.local_addr().unwrap();
            let (mut accept, mut wait) = (
                Box::pin(async move { listener.accept().await }),
                Box::pin(wait),
            );
            assert!(
                futures_lite::future::poll_once(accept.as_mut())
                    .await
                    .is_none()
            );
            assert!(
                futures_lite::future::poll_once(wait.as_mut())
                    .await
                    .is_none()
            );
            let waited = sender.clone();
            rt::spawn(async move {
                wait.await;
                waited.send("timer").unwrap();
                accept.await.unwrap();
                waited.send("socket").unwrap();
            });
            addr
        });
        assert_eq!(receiver.recv_timeout(LONG), Ok("timer"));
        let _stream = connect(addr);
        assert_eq!(receiver.recv_timeout(LONG), Ok("socket"));

        let blocked = Blocked::threads(&runtime, 1);
        runtime.spawn(async move { sender.send("task").unwrap() });
        assert_eq!(
            receiver.recv_timeout(50 * MS),
            Err(mpsc::RecvTimeoutError::Timeout)
        );
        blocked.release();
        assert_eq!(receiver.recv_timeout(LONG), Ok("task"));
        assert_eq!(runtime.metrics().hand_offs, 0);
    });
}

/// A worker that is stuck, and an echo server on its selector.
struct StuckEcho {
    addr: SocketAddr,
    release: mpsc::Sender<()>,
    blocked: rt::task::JoinHandle<()>,
}

impl StuckEcho {
    /// On worker 0.
    fn start(runtime: &Runtime) -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = socket.local_addr().unwrap();
        socket.set_nonblocking(true).unwrap();
        let (release, released) = mpsc::channel::<()>();
        let (entered, begun) = mpsc::channel();
        let blocked = runtime.handle().spawn_pinned(0, move || async move {
            let mut echo = Box::pin(async move {
                let socket = rt::net::UdpSocket::from_std(socket).unwrap();
                loop {
                    let (_, from) = socket.recv_from(&mut [0]).await.unwrap();
                    socket.send_to(b"x", from).await.unwrap();
                }
            });
            // Registers the socket with this worker.
            assert!(
                futures_lite::future::poll_once(echo.as_mut())
                    .await
                    .is_none()
            );
            let (polled, was_polled) = mpsc::channel::<()>();
            rt::spawn(async move {
                drop(polled);
                echo.await
            });
            while was_polled.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
                rt::task::yield_now().await;
            }
            entered.send(()).unwrap();
            let _ = released.recv();
        });
        begun.recv_timeout(LONG).unwrap();
        Self {
            addr,
            release,
            blocked: blocked.unwrap(),
        }
    }

    fn echo(&self, times: usize) {
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        for _ in 0..times {
            client.send_to(b"x", self.addr).unwrap();
            client.recv(&mut [0]).expect("an echo");
        }
    }

    fn release(self, runtime: &Runtime) {
        drop(self.release);
        runtime.block_on(self.blocked).unwrap();
    }
}

/// A sleeper wakes up for the sockets of a worker that is stuck. Without the monitor nobody else does. One sleeper for each
/// event: the others sleep on.
#[test]
fn a_sleeping_worker_serves_the_sockets_of_one_that_is_blocked() {
    const TIMES: usize = 60;
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(3)
            .monitor(false)
            .build()
            .unwrap();
        let stuck = StuckEcho::start(&runtime);
        // Long enough to be called stuck. Then another worker wakes up, and falls asleep again.
        thread::sleep(5 * MS);
        let parks = || {
            let metrics = runtime.metrics();
            (metrics.workers[1].parks + metrics.workers[2].parks) as usize
        };
        let before = parks();
        runtime.block_on(runtime.spawn(async {})).unwrap();
        eventually("the other worker sleeps", || parks() > before);
        let before = parks();
        stuck.echo(TIMES);
        let parks = parks() - before;
        assert!(parks <= TIMES + TIMES / 2, "{parks} sleeps");
        stuck.release(&runtime);
    });
}

/// The seat of a `block_on` counts from the beginning, not from its first sleep on: a root future that blocks at once does
/// not keep a task that it has spawned, though the monitor slept.
#[test]
fn a_root_future_that_blocks_at_once_wakes_the_monitor() {
    within_limit(|| {
        let runtime = workers(1);
        // The monitor falls asleep when nobody has been awake for a while.
        thread::sleep(100 * MS);
        let was_polled = runtime.block_on(async {
            let (sender, receiver) = mpsc::channel();
            rt::spawn(async move { sender.send(()).unwrap() });
            receiver.recv_timeout(LONG / 4)
        });
        assert_eq!(was_polled, Ok(()));
    });
}
