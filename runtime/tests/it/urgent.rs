//! TCP urgent data: a read stops at the mark with more behind it.
#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as Plain;

use futures_lite::future;
use rt::io::{AsyncReadExt, Interest};
use rt::net::{TcpListener, TcpStream};
use rt::time::timeout;
use rustix::net::{RecvFlags, SendFlags};

use crate::pains_support::{LONG, each_kind};
use crate::support::within_limit;

/// A connection of ours whose readiness is known to the selector, and its other end.
async fn registered() -> (TcpStream, Plain) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = Plain::connect(listener.local_addr().unwrap()).unwrap();
    plain.set_nodelay(true).unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut buf = [0];
    // Has to wait, and so registers.
    assert!(future::poll_once(stream.read(&mut buf[..])).await.is_none());
    (stream, plain)
}

fn send_urgent(mut plain: &Plain, before: &[u8], urgent: &[u8], after: &[u8]) {
    plain.write_all(before).unwrap();
    assert_eq!(rustix::net::send(plain, urgent, SendFlags::OOB), Ok(1));
    plain.write_all(after).unwrap();
}

async fn read_exactly(stream: &mut TcpStream, expected: &[u8]) {
    let mut got = Vec::new();
    let mut buf = [0; 64];
    while got.len() < expected.len() {
        match timeout(LONG, stream.read(&mut buf)).await {
            Ok(n) => got.extend_from_slice(&buf[..n.unwrap()]),
            Err(_) => panic!("{:?} was read, the rest never", String::from_utf8(got)),
        }
    }
    assert_eq!(got, expected);
}

/// All of it lies in the socket when the first read comes, whose buffer is larger than what is before the mark.
#[test]
fn a_read_that_stops_at_the_urgent_mark_does_not_strand_what_follows() {
    within_limit(|| {
        for runtime in each_kind() {
            runtime.block_on(async {
                let (mut stream, plain) = registered().await;
                // Several times, as the mark moves.
                for _ in 0..3 {
                    send_urgent(&plain, b"one", b"!", b"two");
                    read_exactly(&mut stream, b"onetwo").await;
                }
                (&plain).write_all(b"three").unwrap();
                read_exactly(&mut stream, b"three").await;
            });
        }
    });
}

/// Who takes the urgent byte first, and says that there is no more, finds the rest as well.
#[test]
fn urgent_data_can_be_waited_for_and_taken() {
    within_limit(|| {
        for runtime in each_kind() {
            runtime.block_on(async {
                let (mut stream, plain) = registered().await;
                send_urgent(&plain, b"one", b"!", b"two");
                let urgent = timeout(LONG, stream.ready(Interest::PRIORITY)).await;
                assert!(urgent.unwrap().unwrap().is_priority());
                let take = || {
                    let mut buf = [0];
                    stream.try_io(Interest::PRIORITY, || {
                        match rustix::net::recv(&stream, &mut buf, RecvFlags::OOB) {
                            Ok(_) => Ok(buf[0]),
                            // None, or none any more.
                            Err(_) => Err(ErrorKind::WouldBlock.into()),
                        }
                    })
                };
                assert_eq!(take().unwrap(), b'!');
                assert_eq!(take().unwrap_err().kind(), ErrorKind::WouldBlock);
                assert!(
                    future::poll_once(stream.ready(Interest::PRIORITY))
                        .await
                        .is_none()
                );
                read_exactly(&mut stream, b"onetwo").await;
                drop(plain);
                assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            });
        }
    });
}

/// The side that sends urgent data hears what is sent back.
#[test]
fn urgent_data_both_ways_over_tasks() {
    within_limit(|| {
        for runtime in each_kind() {
            let (plain, task) = runtime.block_on(async {
                let (mut stream, plain) = registered().await;
                let task = rt::spawn(async move {
                    for _ in 0..200 {
                        read_exactly(&mut stream, b"abcdef").await;
                        rt::io::AsyncWriteExt::write_all(&mut stream, b"ok")
                            .await
                            .unwrap();
                    }
                });
                (plain, task)
            });
            // On a thread of its own, so that the parts come at any time of the reader's turn.
            let writer = std::thread::spawn(move || {
                for _ in 0..200 {
                    send_urgent(&plain, b"abc", b"!", b"def");
                    (&plain).read_exact(&mut [0; 2]).unwrap();
                }
            });
            runtime.block_on(task).unwrap();
            writer.join().unwrap();
        }
    });
}
