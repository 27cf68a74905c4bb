//! UDP sockets.

use std::io::ErrorKind;
use std::pin::pin;
use std::task::Poll;

use futures_lite::future::zip;
use rt_io::net::{Datagram, RecvBatch, UdpSocket};
use rt_sync::coop;

use crate::exec::{Background, Counter, Owner};
use crate::support::{Random, within_limit};

async fn bound() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.expect("a free port")
}

#[test]
fn messages_are_echoed_to_who_sent_them() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let (server, one, two) = (bound().await, bound().await, bound().await);
            let addr = server.local_addr().unwrap();
            let serve = async {
                let mut buf = [0; 100];
                for _ in 0..20 {
                    let (length, peer) = server.recv_from(&mut buf).await.unwrap();
                    server.send_to(&buf[..length], peer).await.unwrap();
                }
            };
            let ask = async |socket: &UdpSocket, name: &str| {
                socket.connect(addr).await.unwrap();
                assert_eq!(socket.peer_addr().unwrap(), addr);
                for round in 0..10 {
                    let message = format!("{name} {round}");
                    socket.send(message.as_bytes()).await.unwrap();
                    let mut buf = [0; 100];
                    let length = socket.recv(&mut buf).await.unwrap();
                    assert_eq!(&buf[..length], message.as_bytes());
                }
            };
            zip(serve, zip(ask(&one, "one"), ask(&two, "two"))).await;
        });
    });
}

#[test]
fn a_peek_leaves_the_message_and_a_short_buffer_cuts_it_off() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let (one, two) = (bound().await, bound().await);
            let (from, to) = (one.local_addr().unwrap(), two.local_addr().unwrap());
            let mut buf = [0; 4];
            let error = two.try_recv(&mut buf).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            let (sent, sender) = zip(one.send_to(b"message", to), two.peek_sender()).await;
            assert_eq!((sent.unwrap(), sender.unwrap()), (7, from));
            assert_eq!(two.peek_from(&mut buf).await.unwrap(), (4, from));
            assert_eq!(two.peek(&mut buf).await.unwrap(), 4);
            assert_eq!(two.try_peek_sender().unwrap(), from);
            assert_eq!(two.recv_from(&mut buf).await.unwrap(), (4, from));
            assert_eq!(&buf, b"mess");
            let error = two.try_recv_from(&mut buf).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        });
    });
}

#[test]
fn several_tasks_receive_on_one_socket() {
    within_limit(|| {
        let background = Background::new("udp");
        let (socket, sender) = background.block_on(async { (bound().await, bound().await) });
        let addr = socket.local_addr().unwrap();
        std::thread::scope(|scope| {
            let receivers = [(); 3].map(|()| {
                scope.spawn(|| {
                    let mut buf = [0; 8];
                    background.block_on(socket.recv(&mut buf)).unwrap();
                    buf[0]
                })
            });
            for number in 1..=3 {
                background
                    .block_on(sender.send_to(&[number], addr))
                    .unwrap();
            }
            let mut got = receivers.map(|receiver| receiver.join().unwrap());
            got.sort_unstable();
            assert_eq!(got, [1, 2, 3]);
        });
    });
}

#[test]
fn a_task_with_endless_messages_gives_way_and_loses_none() {
    within_limit(|| {
        let mut owner = Owner::new("udp");
        let (one, two) = owner.block_on(async { (bound().await, bound().await) });
        let to = two.local_addr().unwrap();
        let total = 2 * u32::from(coop::BUDGET);
        for number in 0..total {
            one.try_send_to(&number.to_le_bytes(), to).unwrap();
        }
        let mut next = 0;
        let mut receive = pin!(async {
            while next < total {
                let mut buf = [0; 4];
                two.recv(&mut buf).await.unwrap();
                assert_eq!(u32::from_le_bytes(buf), next);
                next += 1;
            }
        });
        let counter = Counter::new(None);
        let mut polls = 0;
        loop {
            let saved = coop::start();
            let poll = owner.poll(receive.as_mut(), &counter);
            coop::restore(saved);
            polls += 1;
            if poll.is_ready() {
                break;
            }
            assert_eq!(counter.wakes(), polls, "it woke itself and did not wait");
        }
        assert!((2..=4).contains(&polls), "{polls} polls");
    });
}

#[test]
fn a_refused_message_is_an_error_of_the_next_call() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let (one, gone) = (bound().await, bound().await);
            one.connect(gone.local_addr().unwrap()).await.unwrap();
            drop(gone);
            one.send(b"x").await.unwrap();
            let error = one.recv(&mut [0; 8]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        });
    });
}

#[test]
fn options_are_kept_and_the_socket_comes_back_out() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let socket = bound().await;
            assert!(!socket.broadcast().unwrap());
            socket.set_broadcast(true).unwrap();
            assert!(socket.broadcast().unwrap());
            socket.set_ttl(42).unwrap();
            assert_eq!(socket.ttl().unwrap(), 42);
            socket.set_multicast_loop_v4(false).unwrap();
            assert!(!socket.multicast_loop_v4().unwrap());
            socket.set_multicast_ttl_v4(3).unwrap();
            assert_eq!(socket.multicast_ttl_v4().unwrap(), 3);
            socket.set_tos_v4(16).unwrap();
            assert_eq!(socket.tos_v4().unwrap(), 16);
            let addr = socket.local_addr().unwrap();
            let again = UdpSocket::from_std(socket.into_std().unwrap()).unwrap();
            assert_eq!(again.local_addr().unwrap(), addr);
            let error = again.connect(&[][..]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        });
    });
}

#[test]
fn without_a_runtime_only_what_waits_fails() {
    within_limit(|| {
        futures_lite::future::block_on(async {
            let (one, two) = (bound().await, bound().await);
            let to = two.local_addr().unwrap();
            one.send_to(b"x", to).await.unwrap();
            let mut buf = [0; 8];
            let mut got = two.recv(&mut buf).await;
            while got.as_ref().is_err_and(rt_io::error::is_no_runtime) {
                // Loopback delivers at once, but nobody promises it.
                got = two.recv(&mut buf).await;
            }
            assert_eq!(got.unwrap(), 1);
            let error = two.recv(&mut buf).await.unwrap_err();
            assert!(rt_io::error::is_no_runtime(&error), "{error}");
        });
    });
}

#[test]
fn poll_methods_wait_and_wake() {
    within_limit(|| {
        let mut owner = Owner::new("udp");
        owner.block_on(async {
            let (one, two) = (bound().await, bound().await);
            let (from, to) = (one.local_addr().unwrap(), two.local_addr().unwrap());
            let mut buf = [0; 8];
            let receive = std::future::poll_fn(|cx| two.poll_recv_from(cx, &mut buf));
            let send = std::future::poll_fn(|cx| match one.poll_send_ready(cx) {
                Poll::Ready(Ok(())) => one.poll_send_to(cx, b"abc", to),
                other => other.map_ok(|()| 0),
            });
            let (got, sent) = zip(receive, send).await;
            assert_eq!((got.unwrap(), sent.unwrap()), ((3, from), 3));
        });
    });
}

/// Sends bursts of messages of any length in batches and receives them in batches: nothing is lost, joined, cut or
/// reordered.
fn batches_arrive_as_single_messages_would(gro: bool, connected: bool) {
    within_limit(move || {
        Owner::new("udp").block_on(async {
            let (one, two) = (bound().await, bound().await);
            let (from, to) = (one.local_addr().unwrap(), two.local_addr().unwrap());
            two.set_gro(gro).unwrap();
            let target = if connected {
                one.connect(to).await.unwrap();
                None
            } else {
                Some(to)
            };
            let mut batch = RecvBatch::new(8, 65_535);
            let mut random = Random::new(23);
            for round in 0..100 {
                // What stays within the receive buffer is not thrown away.
                let data: Vec<Vec<u8>> = match round % 3_u32 {
                    0 => (0..20).map(|_| random.bytes(1_000)).collect(),
                    1 => [700, 700, 700, 10, 700, 0, 0, 1]
                        .map(|len| random.bytes(len))
                        .into(),
                    _ => (0..10).map(|len| random.bytes(100 * len)).collect(),
                };
                let messages: Vec<_> = data.iter().map(|data| Datagram { data, target }).collect();
                let mut rest = &messages[..];
                while !rest.is_empty() {
                    let sent = one.send_many(rest).await.unwrap();
                    assert!(sent > 0);
                    rest = &rest[sent..];
                }
                let mut got: Vec<Vec<u8>> = Vec::new();
                while got.len() < data.len() {
                    let count = two.recv_many(&mut batch).await.unwrap();
                    assert_eq!(count, batch.iter().count());
                    assert!(count > 0 && count == batch.len());
                    got.extend(batch.iter().map(|(message, sender)| {
                        assert_eq!(sender, from);
                        message.to_vec()
                    }));
                }
                assert!(got == data, "round {round}: other messages than were sent");
            }
            let error = two.try_recv_many(&mut batch).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            assert!(batch.is_empty());
        });
    });
}

#[test]
fn batches_arrive_as_single_messages_would_with_targets() {
    batches_arrive_as_single_messages_would(false, false);
}

#[test]
fn batches_arrive_as_single_messages_would_when_the_system_joins_them() {
    batches_arrive_as_single_messages_would(true, true);
}

#[test]
fn a_batch_keeps_senders_apart_and_cuts_off_what_is_too_long() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let (server, one, two) = (bound().await, bound().await, bound().await);
            let to = server.local_addr().unwrap();
            one.send_to(b"from one", to).await.unwrap();
            two.send_to(b"from two", to).await.unwrap();
            let mut batch = RecvBatch::new(4, 6);
            let mut got = Vec::new();
            while got.len() < 2 {
                server.recv_many(&mut batch).await.unwrap();
                got.extend(batch.iter().map(|(message, from)| (message.to_vec(), from)));
            }
            let (one, two) = (one.local_addr().unwrap(), two.local_addr().unwrap());
            assert_eq!(got, [(b"from o".to_vec(), one), (b"from t".to_vec(), two)]);
        });
    });
}

#[test]
fn an_error_of_the_first_message_of_a_batch_is_reported() {
    within_limit(|| {
        Owner::new("udp").block_on(async {
            let socket = bound().await;
            let unconnected = [Datagram {
                data: b"x",
                target: None,
            }];
            let error = socket.send_many(&unconnected).await.unwrap_err();
            assert_eq!(
                error.raw_os_error(),
                Some(rustix::io::Errno::DESTADDRREQ.raw_os_error())
            );
            assert_eq!(socket.send_many(&[]).await.unwrap(), 0);
        });
    });
}
