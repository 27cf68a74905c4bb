//! The main path: block_on, spawn, join, timers, sockets, blocking closures, on both flavours.

use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::{Builder, Runtime};

fn both(test: impl Fn(&Runtime)) {
    for workers in [0, 1, 2, 4] {
        let runtime = if workers == 0 {
            Builder::new_current_thread().build()
        } else {
            Builder::new_multi_thread().worker_threads(workers).build()
        };
        test(&runtime.expect("a runtime"));
    }
}

#[test]
fn spawn_and_join() {
    both(|runtime| {
        let sum = runtime.block_on(async {
            let handles: Vec<_> = (0..1000u64).map(|i| rt::spawn(async move { i })).collect();
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.expect("no panic");
            }
            sum
        });
        assert_eq!(sum, 499_500);
    });
}

#[test]
fn spawn_from_outside() {
    both(|runtime| {
        let handles: Vec<_> = (0..1000u64)
            .map(|i| runtime.spawn(async move { i }))
            .collect();
        let sum = runtime.block_on(async {
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.expect("no panic");
            }
            sum
        });
        assert_eq!(sum, 499_500);
    });
}

#[test]
fn sleep_and_blocking() {
    both(|runtime| {
        let start = std::time::Instant::now();
        runtime.block_on(async {
            let sleeper = rt::spawn(rt::time::sleep(Duration::from_millis(20)));
            let blocked = rt::spawn_blocking(|| 5).await.expect("no panic");
            assert_eq!(blocked, 5);
            sleeper.await.expect("no panic");
        });
        assert!(start.elapsed() >= Duration::from_millis(20));
    });
}

#[test]
fn echo_over_tcp() {
    both(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
            let addr = listener.local_addr().expect("addr");
            let server = rt::spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.expect("accept");
                    rt::spawn(async move {
                        let mut buf = [0; 64];
                        loop {
                            let n = stream.read(&mut buf).await.expect("read");
                            if n == 0 {
                                break;
                            }
                            stream.write_all(&buf[..n]).await.expect("write");
                        }
                    });
                }
            });
            let clients: Vec<_> = (0..20)
                .map(|_| {
                    rt::spawn(async move {
                        let mut stream = TcpStream::connect(addr).await.expect("connect");
                        for i in 0..50u8 {
                            stream.write_all(&[i; 16]).await.expect("write");
                            let mut buf = [0; 16];
                            stream.read_exact(&mut buf).await.expect("read");
                            assert_eq!(buf, [i; 16]);
                        }
                    })
                })
                .collect();
            for client in clients {
                client.await.expect("no panic");
            }
            server.abort();
            assert!(server.await.expect_err("aborted").is_cancelled());
        });
    });
}
