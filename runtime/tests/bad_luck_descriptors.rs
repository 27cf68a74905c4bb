//! Descriptors: at their limit, and whether any is left behind. A binary with one test, since both are the process's.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::TcpStream as Plain;
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;
use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream, UdpSocket};
use rt::runtime::{Builder, ReportKind, Runtime};
use rt::time::sleep;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(40);

#[test]
fn descriptors_run_out_and_come_back() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(110));
        eprintln!("the test of descriptors did not end in time");
        process::abort();
    });
    d7_accept_at_the_limit();
    d7_accept_at_the_limit_outside_a_runtime();
    no_descriptors_for_a_runtime();
    #[cfg(target_os = "linux")]
    c7_a_sleep_by_the_boot_clock_needs_no_descriptor();
    none_is_left_behind();
}

/// Its timer is a descriptor; without one it ends all the same.
#[cfg(target_os = "linux")]
fn c7_a_sleep_by_the_boot_clock_needs_no_descriptor() {
    let runtime = make(0).unwrap();
    runtime.block_on(async {
        // What the loop needs is made by its first turns.
        sleep(MS).await;
        let open_before = open();
        let before = limit(0);
        let start = rt::time::boottime::Instant::now();
        let slept = rt::time::timeout(LONG, rt::time::boottime::sleep(20 * MS)).await;
        let took = start.elapsed();
        setrlimit(Resource::Nofile, before).unwrap();
        slept.unwrap();
        assert!(took >= 20 * MS, "{took:?}");
        assert_eq!(open(), open_before);
    });
}

fn open() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Leaves room for exactly `more` descriptors.
fn limit(more: usize) -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let is_free = |number: &u64| {
        let path = format!("/proc/self/fd/{number}");
        std::fs::symlink_metadata(path).is_err()
    };
    let current = (0..).filter(is_free).nth(more);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current,
            maximum: before.maximum,
        },
    )
    .unwrap();
    before
}

/// The limit is reached by an accept loop: it does not spin, held connections go on, and when descriptors come back so
/// does accepting.
fn d7_accept_at_the_limit() {
    const ROOM: usize = 2;
    for workers in [0, 1] {
        let (tells, told) = mpsc::channel();
        let mut builder = builder(workers);
        builder.on_report(move |report| {
            let _ = tells.send((report.kind(), report.to_string()));
        });
        let runtime = builder.build().unwrap();
        thread::scope(|scope| {
            let (sender, accepted) = mpsc::channel();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            // Clients first: their ends are open when the limit comes.
            let mut clients: Vec<_> = (0..8).map(|_| Plain::connect(addr).unwrap()).collect();
            let (go, going) = mpsc::channel();
            let (stop, stopped) = mpsc::channel::<()>();
            let (limited, limit_is_set) = mpsc::channel::<()>();
            let turning = scope.spawn({
                let runtime = &runtime;
                move || {
                    runtime.block_on(async move {
                        // What a loop needs is made by its first turns.
                        rt::spawn(sleep(MS)).await.unwrap();
                        let warm = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                        assert!(
                            rt::time::timeout(5 * MS, warm.recv(&mut [0]))
                                .await
                                .is_err()
                        );
                        drop(warm);
                        go.send(()).unwrap();
                        let limit_is_set = rt::spawn_blocking(move || limit_is_set.recv());
                        limit_is_set.await.unwrap().unwrap();
                        rt::spawn(async move {
                            let listener = TcpListener::from_std(listener).unwrap();
                            for _ in 0..8 {
                                let (mut stream, _) = listener.accept().await.unwrap();
                                rt::spawn(async move {
                                    let mut buf = [0];
                                    while stream.read(&mut buf).await.is_ok_and(|n| n > 0) {
                                        stream.write_all(&buf).await.unwrap();
                                    }
                                });
                                if sender.send(()).is_err() {
                                    return;
                                }
                            }
                        });
                        let stopped = rt::spawn_blocking(move || stopped.recv());
                        stopped.await.unwrap().unwrap_err();
                    });
                }
            });
            going.recv_timeout(LONG).unwrap();
            let before = limit(ROOM);
            limited.send(()).unwrap();
            for _ in 0..ROOM {
                accepted.recv_timeout(LONG).unwrap();
            }
            // It waits between its attempts: the loop does not spin.
            let busy = |runtime: &Runtime| {
                let metrics = runtime.metrics();
                metrics
                    .workers
                    .iter()
                    .map(|worker| worker.polls)
                    .sum::<u64>()
            };
            let start = busy(&runtime);
            thread::sleep(300 * MS);
            let polls = busy(&runtime) - start;
            assert!(
                polls < 400,
                "{polls} polls in 300 ms with no descriptor to be had"
            );
            assert!(accepted.try_recv().is_err(), "the limit was not reached");
            // Told once, however often it has tried by now.
            let (kind, text) = told.recv_timeout(LONG).unwrap();
            assert_eq!(kind, ReportKind::AcceptBackOff, "{text}");
            let expected = format!(
                "runtime '{}': accept fails for want of descriptors or memory (Too many open files (os error 24)); new \
                 connections wait until some are given back, retrying every 10 to 1000 ms (raise the limit with `ulimit -n`, \
                 or limit the number of connections)",
                runtime.handle().name()
            );
            assert_eq!(text, expected);
            assert!(told.try_recv().is_err());
            // What is connected goes on.
            for client in clients.iter_mut().take(ROOM) {
                client.write_all(b"x").unwrap();
                client.read_exact(&mut [0]).unwrap();
            }
            // Descriptors come back.
            setrlimit(Resource::Nofile, before).unwrap();
            for _ in ROOM..8 {
                accepted.recv_timeout(LONG).unwrap();
            }
            for client in &mut clients {
                client.write_all(b"y").unwrap();
                client.read_exact(&mut [0]).unwrap();
            }
            drop(clients);
            drop(stop);
            turning.join().unwrap();
        });
    }
}

/// Where there is no timer to wait with, the error is the caller's, and the listener as good as before.
fn d7_accept_at_the_limit_outside_a_runtime() {
    let _runtime = make(1).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let _client = Plain::connect(listener.local_addr().unwrap()).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let before = limit(0);
    let refused = futures_lite::future::block_on(listener.accept());
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(24));
    futures_lite::future::block_on(listener.accept()).unwrap();
}

fn builder(workers: usize) -> Builder {
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(workers);
    builder
}

fn make(workers: usize) -> std::io::Result<Runtime> {
    builder(workers).build()
}

/// No room for selectors: building fails with an error and leaves nothing; `block_on` of a runtime that was built before
/// gives an error; sockets give errors.
fn no_descriptors_for_a_runtime() {
    for room in 0..14 {
        let open_before = open();
        let before = limit(room);
        let made = make(3);
        setrlimit(Resource::Nofile, before).unwrap();
        match made {
            Ok(runtime) => {
                let before = limit(0);
                let result = runtime.handle().try_block_on(async {
                    UdpSocket::bind("127.0.0.1:0")
                        .await
                        .map(drop)
                        .unwrap_err()
                        .raw_os_error()
                });
                setrlimit(Resource::Nofile, before).unwrap();
                match result {
                    Ok(code) => assert!(code.is_some() || room > 0),
                    Err(error) => {
                        assert!(!error.is_nested() && !error.is_runtime_closed(), "{error}")
                    }
                }
                // Works when there is room again.
                runtime.block_on(async { rt::spawn(sleep(MS)).await.unwrap() });
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(24), "{error}"),
        }
        settles_at(open_before);
    }
}

/// Runtimes that end on other threads close theirs without a word, so this looks again and again.
fn settles_at(count: usize) {
    let start = Instant::now();
    while open() > count {
        assert!(
            start.elapsed() < LONG,
            "{} descriptors are open, {count} were",
            open()
        );
        thread::sleep(MS);
    }
}

/// Whatever a runtime did and however it ended, its descriptors are closed.
fn none_is_left_behind() {
    let before = open();
    for round in 0..12u64 {
        let runtime = make((round % 3) as usize).unwrap();
        // A guest that is in its loop when the end comes.
        let guest = {
            let handle = runtime.handle().clone();
            let (begun, begins) = mpsc::channel();
            let thread = thread::spawn(move || {
                handle.try_block_on(async {
                    begun.send(()).unwrap();
                    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    let _ = socket.recv(&mut [0]).await;
                    std::future::pending::<()>().await;
                })
            });
            begins.recv_timeout(LONG).unwrap();
            thread
        };
        let (served, serves) = mpsc::channel();
        let left = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            rt::spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    rt::spawn(async move {
                        stream.read(&mut [0]).await.unwrap();
                        stream.write_all(b"y").await.unwrap();
                        stream.read(&mut [0]).await
                    });
                }
            });
            for _ in 0..5 {
                let stream = TcpStream::connect(addr).await.unwrap();
                let task = rt::spawn(async move {
                    let mut stream = stream;
                    stream.write_all(b"x").await.unwrap();
                    stream.read(&mut [0]).await.unwrap();
                    stream
                });
                // Answered, so both ends are in use, and wait in tasks.
                let mut stream = task.await.unwrap();
                rt::spawn(async move { stream.read(&mut [0]).await });
            }
            if round % 2 == 0 {
                rt::spawn_blocking(|| ()).await.unwrap();
            }
            // Waits here first, so it belongs to the seat that is left behind.
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let addr = socket.local_addr().unwrap();
            let first = poll_once(socket.recv(&mut [0])).await;
            assert!(first.is_none());
            rt::spawn(async move {
                let received = socket.recv(&mut [0]).await;
                let _ = served.send(());
                received
            });
            addr
        });
        if round % 4 == 3 {
            // Somebody stands in for the seat that was left behind.
            let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            peer.send_to(b"x", left).unwrap();
            serves.recv_timeout(LONG).unwrap();
        }
        match round % 5 {
            0 => runtime.shutdown_background(),
            1 => runtime.shutdown_timeout(Duration::ZERO),
            2 => make(0).unwrap().block_on(async move { drop(runtime) }),
            _ => drop(runtime),
        }
        assert!(guest.join().unwrap().unwrap_err().is_runtime_closed());
    }
    settles_at(before);
}
