//! The I/O driver: theme D of the known pains of async runtimes. Readiness itself is tested in `rt-io`; here sockets are
//! used by tasks of several workers.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpSocket, TcpStream};
use rt::runtime::Runtime;
use rt::task::{Activity, TaskInfo, all_tasks, yield_now};
use rt::time::{sleep, timeout};

use crate::pains_support::{LONG, MS, current_thread, each_kind, workers};
use crate::support::within_limit;

async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    (client, listener.accept().await.unwrap().0)
}

/// Single bytes at odd gaps from a thread to a task that reads by `readable` and `try_read`.
#[test]
fn d1_no_byte_is_overlooked_between_a_look_and_a_wait() {
    const BYTES: usize = 20_000;
    within_limit(|| {
        for runtime in [current_thread(), workers(2)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let writer = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                stream.set_nodelay(true).unwrap();
                for n in 0..BYTES {
                    stream.write_all(&[n as u8]).unwrap();
                    for _ in 0..(n * 7919) % 300 {
                        std::hint::spin_loop();
                    }
                }
            });
            let reader = runtime.spawn(async move {
                let stream = TcpStream::connect(addr).await.unwrap();
                let mut got = 0;
                let mut buf = [0; 3];
                while got < BYTES {
                    stream.readable().await.unwrap();
                    match stream.try_read(&mut buf) {
                        Ok(0) => panic!("the end after {got} bytes"),
                        Ok(n) => {
                            for byte in &buf[..n] {
                                assert_eq!(*byte, got as u8);
                                got += 1;
                            }
                        }
                        Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                    }
                }
            });
            runtime.block_on(async {
                timeout(LONG, reader)
                    .await
                    .expect("a byte was overlooked")
                    .unwrap()
            });
            writer.join().unwrap();
        }
    });
}

/// Reader and writer of one socket on different workers, closed from elsewhere while data arrives.
#[test]
fn d2_halves_on_different_workers_and_a_close_from_a_third_thread() {
    within_limit(|| {
        let runtime = workers(2);
        for round in 0..30 {
            let (ours, theirs) = runtime.block_on(connected());
            let (mut read, mut write) = ours.into_split();
            let (mut back_read, mut back_write) = theirs.into_split();
            let bytes = Arc::new(AtomicUsize::new(0));
            let counted = bytes.clone();
            let reader = runtime
                .handle()
                .spawn_pinned(0, move || async move {
                    let mut buf = [0; 512];
                    loop {
                        match read.read(&mut buf).await {
                            Ok(0) | Err(_) => break,
                            Ok(n) => drop(counted.fetch_add(n, SeqCst)),
                        }
                    }
                })
                .unwrap();
            let writer = runtime
                .handle()
                .spawn_pinned(1, move || async move {
                    while write.write_all(&[7; 333]).await.is_ok() {
                        rt::task::yield_now().await;
                    }
                })
                .unwrap();
            let source = runtime.spawn(async move {
                while back_write.write_all(&[8; 222]).await.is_ok() {
                    rt::task::yield_now().await;
                }
            });
            let sink = runtime.spawn(async move {
                let mut buf = [0; 512];
                for _ in 0..20 + round {
                    if back_read.read(&mut buf).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                // Both ends of the other side go while data is on its way.
            });
            runtime.block_on(async {
                timeout(LONG, sink).await.unwrap().unwrap();
                while bytes.load(SeqCst) == 0 {
                    sleep(MS).await;
                }
                source.abort();
                let _ = source.await;
                writer.abort();
                let _ = timeout(LONG, writer).await.expect("the writer ends");
                timeout(LONG, reader)
                    .await
                    .expect("the reader ends")
                    .unwrap();
            });
        }
        let left: usize = runtime
            .metrics()
            .workers
            .iter()
            .map(|worker| worker.registrations)
            .sum();
        assert_eq!(left, 0, "sources are still registered");
    });
}

/// Descriptors and slots of closed connections are used again at once, by tasks of all workers: nobody sees an event or
/// a byte of another.
#[test]
fn d2_d3_recycled_descriptors_do_not_mix() {
    async fn one(addr: SocketAddr, mark: u8) {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(&[mark; 3]).await.unwrap();
        let mut back = [0; 3];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(back, [mark; 3]);
        // Half of them end with a reset, so that events of the old connection are about.
        if mark.is_multiple_of(2) {
            stream.set_linger(Some(Duration::ZERO)).unwrap();
        }
    }
    within_limit(|| {
        for runtime in [current_thread(), workers(3)] {
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let addr = listener.local_addr().unwrap();
                let server = rt::spawn(async move {
                    loop {
                        let (mut stream, _) = listener.accept().await.unwrap();
                        rt::spawn(async move {
                            let mut buf = [0; 3];
                            if stream.read_exact(&mut buf).await.is_ok() {
                                let _ = stream.write_all(&buf).await;
                            }
                            if buf[0] % 3 != 0 {
                                // Waits for the end of the peer.
                                let _ = stream.read(&mut buf).await;
                            }
                        });
                    }
                });
                let clients: Vec<_> = (0..8u8)
                    .map(|part| {
                        rt::spawn(async move {
                            for n in 0..150u8 {
                                timeout(LONG, one(addr, n.wrapping_mul(8).wrapping_add(part)))
                                    .await
                                    .expect("a connection hangs");
                            }
                        })
                    })
                    .collect();
                for client in clients {
                    client.await.unwrap();
                }
                server.abort();
                let _ = server.await;
            });
        }
    });
}

/// A socket may be registered before it is connected: no spinning on its hang-up, and the connection works.
#[test]
fn d5_registered_before_it_is_connected() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            let polls = Arc::new(AtomicUsize::new(0));
            let count = polls.clone();
            let task = runtime.spawn(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let addr = listener.local_addr().unwrap();
                // A non-blocking connect that was begun by other means and registers while it is under way.
                let socket = TcpSocket::new_v4().unwrap();
                let mut connect = pin!(socket.connect(addr));
                let mut stream = poll_fn(|cx| {
                    count.fetch_add(1, SeqCst);
                    connect.as_mut().poll(cx)
                })
                .await
                .unwrap();
                let mut peer = listener.accept().await.unwrap().0;
                peer.write_all(b"z").await.unwrap();
                let mut read = pin!(stream.read_u8_counted(&count));
                assert_eq!(read.as_mut().await, b'z');
            });
            runtime.block_on(task).unwrap();
            let polls = polls.load(SeqCst);
            assert!(polls < 10, "{polls} polls for one connection and one byte");
        }
    });
}

trait ReadCounted {
    async fn read_u8_counted(&mut self, polls: &AtomicUsize) -> u8;
}

impl ReadCounted for TcpStream {
    async fn read_u8_counted(&mut self, polls: &AtomicUsize) -> u8 {
        let mut buf = [0];
        let mut read = pin!(self.read_exact(&mut buf));
        poll_fn(|cx| {
            polls.fetch_add(1, SeqCst);
            read.as_mut().poll(cx)
        })
        .await
        .unwrap();
        buf[0]
    }
}

/// A pipe whose reader goes wakes who waits to write, and the write says why.
#[test]
fn d5_the_writer_of_a_broken_pipe_is_woken() {
    within_limit(|| {
        for runtime in each_kind() {
            let task = runtime.spawn(async {
                let (mut sender, receiver) = rt::net::unix::pipe::pipe().unwrap();
                // Full.
                let writer = rt::spawn(async move {
                    loop {
                        if let Err(error) = sender.write_all(&[0; 4096]).await {
                            break error.kind();
                        }
                    }
                });
                let is_writer = |task: &TaskInfo| task.id() == writer.id();
                while all_tasks()
                    .iter()
                    .find(|task| is_writer(task))
                    .unwrap()
                    .activity()
                    != Activity::Waiting
                {
                    yield_now().await;
                }
                drop(receiver);
                timeout(LONG, writer)
                    .await
                    .expect("the writer is woken")
                    .unwrap()
            });
            assert_eq!(runtime.block_on(task).unwrap(), io::ErrorKind::BrokenPipe);
        }
    });
}

/// A registered socket that nobody reads costs its worker a bounded number of turns, however much arrives.
#[test]
fn d11_an_unread_socket_wakes_nobody_for_ever() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let events = |runtime: &Runtime| {
                let metrics = runtime.metrics();
                metrics
                    .workers
                    .iter()
                    .map(|worker| worker.events)
                    .sum::<u64>()
            };
            let (stop, finished) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(AtomicBool::new(false)),
            );
            let task = runtime.spawn({
                let (stop, finished) = (stop.clone(), finished.clone());
                async move {
                    let mut stream = TcpStream::connect(addr).await.unwrap();
                    stream.read_exact(&mut [0]).await.unwrap();
                    // From here on nobody reads.
                    while !stop.load(SeqCst) {
                        sleep(5 * MS).await;
                    }
                    finished.store(true, SeqCst);
                    stream
                }
            });
            let peer = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                stream.write_all(b"x").unwrap();
                stream.set_nonblocking(true).unwrap();
                let mut sent = 0;
                for _ in 0..1000 {
                    sent += usize::from(stream.write(&[0; 100]).is_ok());
                    thread::sleep(Duration::from_micros(20));
                }
                stop.store(true, SeqCst);
                // Kept open until the other side is done.
                (stream, sent)
            });
            let stream = runtime.block_on(task).unwrap();
            let (_peer, sent) = peer.join().unwrap();
            assert!(sent > 500, "{sent} segments went out");
            // Edge-triggered: at most one event a segment, and none without one.
            let seen = events(&runtime);
            assert!(seen <= 1100, "{seen} events for {sent} segments");
            let quiet = runtime.block_on(async {
                sleep(10 * MS).await;
                let before = events(&runtime);
                sleep(50 * MS).await;
                events(&runtime) - before
            });
            assert!(quiet <= 2, "{quiet} events while nothing happened");
            drop(stream);
        }
    });
}

/// However often it is waited for, a socket is registered once: the kernel's own list of what the selector watches holds
/// the same entry, with the same events and the same token, before and after.
#[cfg(target_os = "linux")]
#[test]
fn d11_a_socket_is_registered_once() {
    use std::collections::BTreeSet;
    use std::os::fd::AsRawFd;

    /// Every selector's entry for a descriptor: what it watches for, and the token. A selector has several descriptors.
    fn entries(fd: i32) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for info in std::fs::read_dir("/proc/self/fdinfo").unwrap() {
            let path = info.unwrap().path();
            // Other tests open and close theirs.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with("tfd:")) {
                let mut words = line.split_whitespace().skip(1);
                if words.next() == Some(&fd.to_string()) {
                    found.insert(line.to_owned());
                }
            }
        }
        found
    }

    within_limit(|| {
        for runtime in each_kind() {
            let task = runtime.spawn(async {
                let (mut client, mut server) = connected().await;
                let echo = rt::spawn(async move {
                    let mut byte = [0];
                    while server.read_exact(&mut byte).await.is_ok() {
                        server.write_all(&byte).await.unwrap();
                    }
                });
                let mut before = BTreeSet::new();
                for round in 0..2000 {
                    client.write_all(b"x").await.unwrap();
                    client.read_exact(&mut [0]).await.unwrap();
                    if round == 0 {
                        before = entries(client.as_raw_fd());
                    }
                }
                let after = entries(client.as_raw_fd());
                drop(client);
                echo.await.unwrap();
                (before, after)
            });
            let (before, after) = runtime.block_on(task).unwrap();
            assert_eq!(before.len(), 1, "{before:?}");
            assert_eq!(before, after);
        }
    });
}

/// A peer that resets while a large write waits: an error, promptly, and the runtime goes on.
#[test]
fn a_peer_that_resets_in_the_middle_of_a_write_is_an_error_of_that_write() {
    within_limit(|| {
        for runtime in each_kind() {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let peer = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                stream.read_exact(&mut [0; 1000]).unwrap();
                // Unread data is there: closing sends a reset.
                drop(stream);
            });
            let task = runtime.spawn(async move {
                let mut stream = TcpStream::connect(addr).await.unwrap();
                let error = stream.write_all(&vec![1; 64 << 20]).await.unwrap_err();
                // And every further use says so too, or that the stream is at its end.
                assert!(stream.write_all(b"x").await.is_err());
                assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
                error.kind()
            });
            let kind = runtime
                .block_on(async { timeout(LONG, task).await.expect("the write ends").unwrap() });
            assert!(
                matches!(
                    kind,
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                ),
                "{kind:?}"
            );
            peer.join().unwrap();
        }
    });
}

/// Addresses that are taken, do not exist, or refuse: the error names them.
#[test]
fn addresses_that_do_not_work_are_named() {
    within_limit(|| {
        for runtime in each_kind() {
            runtime.block_on(async {
                let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let addr = taken.local_addr().unwrap();
                let error = TcpListener::bind(addr).await.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
                assert!(error.to_string().contains(&addr.to_string()), "{error}");
                drop(taken);
                let error = timeout(LONG, TcpStream::connect(addr))
                    .await
                    .unwrap()
                    .unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
                assert!(error.to_string().contains(&addr.to_string()), "{error}");
                let host = "no-such-host.invalid:80";
                let error = timeout(LONG, TcpStream::connect(host))
                    .await
                    .unwrap()
                    .unwrap_err();
                assert!(
                    error.to_string().contains("no-such-host.invalid"),
                    "{error}"
                );
                for nonsense in ["", "host-without-port", "127.0.0.1:99999", ":"] {
                    let result = timeout(LONG, TcpListener::bind(nonsense)).await.unwrap();
                    assert!(result.is_err(), "{nonsense:?}");
                }
            });
        }
    });
}

/// Sockets of one `block_on` in the next one, and served by a stand-in in between.
#[test]
fn sockets_of_a_guest_seat_work_between_and_after_its_block_ons() {
    within_limit(|| {
        for runtime in each_kind() {
            let multi = runtime.metrics().num_workers > 0;
            let mut client = runtime.block_on(async {
                let (client, mut server) = connected().await;
                // Registers with the guest's selector, since it waits here first.
                let mut buf = [0; 1];
                assert!(timeout(MS, server.read_exact(&mut buf)).await.is_err());
                rt::spawn(async move {
                    let mut buf = [0; 1];
                    while server.read_exact(&mut buf).await.is_ok() {
                        if server.write_all(&buf).await.is_err() {
                            break;
                        }
                    }
                });
                client
            });
            for n in 0..20u8 {
                if multi && n % 2 == 0 {
                    // Nobody blocks on the runtime: a stand-in has to see the event.
                    let mut plain = client.into_std().unwrap();
                    plain.set_nonblocking(false).unwrap();
                    plain.write_all(&[n]).unwrap();
                    let mut back = [0; 1];
                    plain.read_exact(&mut back).unwrap();
                    assert_eq!(back, [n]);
                    plain.set_nonblocking(true).unwrap();
                    client = TcpStream::from_std(plain).unwrap();
                } else {
                    runtime.block_on(async {
                        client.write_all(&[n]).await.unwrap();
                        let mut back = [0; 1];
                        timeout(LONG, client.read_exact(&mut back))
                            .await
                            .expect("an answer")
                            .unwrap();
                        assert_eq!(back, [n]);
                    });
                }
            }
        }
    });
}
