//! TCP: listener, stream, halves, socket.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_lite::future::{or, poll_fn, zip};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use rt_io::Interest;
use rt_io::net::tcp::ReuniteError;
use rt_io::net::{TcpListener, TcpSocket, TcpStream, lookup_host};

use crate::exec::{Background, Counter, Owner};
use crate::support::{Random, within_limit};

fn listener() -> (TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    (TcpListener::from_std(listener).unwrap(), addr)
}

async fn connected() -> (TcpStream, TcpStream) {
    let (listener, addr) = listener();
    let (client, server) = zip(TcpStream::connect(addr), listener.accept()).await;
    (client.unwrap(), server.unwrap().0)
}

#[test]
fn echo_on_one_thread() {
    within_limit(|| {
        let mut owner = Owner::new("echo");
        owner.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addr = listener.local_addr().unwrap();
            let server = async {
                let (mut stream, peer) = listener.accept().await.unwrap();
                assert_eq!(peer, stream.peer_addr().unwrap());
                let mut buf = [0; 64];
                loop {
                    let n = stream.read(&mut buf).await.unwrap();
                    if n == 0 {
                        return;
                    }
                    stream.write_all(&buf[..n]).await.unwrap();
                }
            };
            let client = async {
                let mut stream = TcpStream::connect(addr).await.unwrap();
                stream.set_nodelay(true).unwrap();
                assert!(stream.nodelay().unwrap());
                for round in 0..1_000_u32 {
                    stream.write_all(&round.to_ne_bytes()).await.unwrap();
                    let mut back = [0; 4];
                    stream.read_exact(&mut back).await.unwrap();
                    assert_eq!(u32::from_ne_bytes(back), round);
                }
            };
            zip(server, client).await;
        });
        assert_eq!(owner.handle.registrations(), 0);
    });
}

#[test]
fn many_bytes_both_ways_with_odd_sizes() {
    const BYTES: usize = 1_000_000;
    async fn send(mut io: impl futures_lite::AsyncWrite + Unpin, seed: u64) {
        let bytes = Random::new(seed).bytes(BYTES);
        let mut random = Random::new(seed + 1);
        let mut sent = 0;
        while sent < BYTES {
            let end = (sent + random.up_to(100_000)).min(BYTES);
            sent += match random.up_to(2) {
                1 => io.write(&bytes[sent..end]).await.unwrap(),
                _ => {
                    let (a, b) = bytes[sent..end].split_at((end - sent) / 2);
                    let bufs = [IoSlice::new(a), IoSlice::new(b)];
                    io.write_vectored(&bufs).await.unwrap()
                }
            };
        }
        io.close().await.unwrap();
    }
    async fn receive(mut io: impl futures_lite::AsyncRead + Unpin, seed: u64) {
        let bytes = Random::new(seed).bytes(BYTES);
        let mut random = Random::new(seed + 2);
        let mut got = Vec::new();
        loop {
            let mut a = vec![0; random.up_to(5_000)];
            let mut b = vec![0; random.up_to(50)];
            let (len, n) = match random.up_to(2) {
                1 => (a.len(), io.read(&mut a).await.unwrap()),
                _ => {
                    let mut bufs = [IoSliceMut::new(&mut b), IoSliceMut::new(&mut a)];
                    let n = io.read_vectored(&mut bufs).await.unwrap();
                    b.extend_from_slice(&a);
                    a = b;
                    (a.len(), n)
                }
            };
            assert!(n <= len);
            got.extend_from_slice(&a[..n]);
            if n == 0 {
                break;
            }
        }
        assert!(got == bytes, "{} bytes came", got.len());
    }
    within_limit(|| {
        let mut owner = Owner::new("bulk");
        let (client, server) = owner.block_on(connected());
        let other = thread::spawn(move || {
            let mut owner = Owner::new("peer");
            let (read, write) = server.into_split();
            owner.block_on(zip(receive(read, 1), send(write, 2)));
        });
        owner.block_on(zip(send(&client, 1), receive(&client, 2)));
        other.join().unwrap();
    });
}

#[test]
fn a_reset_ends_a_write_that_waits() {
    within_limit(|| {
        let mut owner = Owner::new("reset");
        let (mut client, server) = owner.block_on(connected());
        let block = vec![1; 1 << 20];
        let write = async {
            loop {
                if let Err(error) = client.write_all(&block).await {
                    return error.kind();
                }
            }
        };
        let counter = Counter::new(None);
        let mut write = pin!(write);
        assert!(owner.poll(write.as_mut(), &counter).is_pending());
        owner.settle();
        assert!(owner.poll(write.as_mut(), &counter).is_pending());
        server.set_zero_linger().unwrap();
        drop(server);
        let kind = owner.block_on(write);
        assert!(
            matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
            "{kind}"
        );
    });
}

#[test]
fn a_half_closed_connection_still_carries_the_other_direction() {
    within_limit(|| {
        let mut owner = Owner::new("half");
        owner.block_on(async {
            let (mut client, mut server) = connected().await;
            client.write_all(b"question").await.unwrap();
            client.close().await.unwrap();
            let mut question = String::new();
            server.read_to_string(&mut question).await.unwrap();
            assert_eq!(question, "question");
            let ready = server.ready(Interest::READABLE).await.unwrap();
            assert!(ready.is_read_closed(), "{ready:?}");
            server.write_all(b"answer").await.unwrap();
            drop(server);
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "answer");
        });
    });
}

#[test]
fn a_connection_that_stands_at_once_registers_nothing() {
    within_limit(|| {
        let (_listener, addr) = listener();
        // No runtime at all: the connection stands when `connect` comes back, as it does on the loopback device.
        let stream = futures_lite::future::block_on(TcpStream::connect(addr)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addr);
        assert_eq!(stream.try_write(b"x").unwrap(), 1);
        let error = stream.try_read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let std = stream.into_std().unwrap();
        assert_eq!(std.peer_addr().unwrap(), addr);
    });
}

#[test]
fn a_socket_becomes_a_bare_descriptor_and_leaves_the_driver() {
    within_limit(|| {
        let mut owner = Owner::new("bare");
        let (listener, addr) = listener();
        let (client, server) = owner.block_on(async {
            let (client, server) = zip(TcpStream::connect(addr), listener.accept()).await;
            let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
            // Both wait for their driver once, so that they are registered.
            let mut word = [0; 4];
            let (read, wrote) = zip(server.read_exact(&mut word), client.write_all(b"ping")).await;
            read.unwrap();
            wrote.unwrap();
            (client, server)
        });
        assert!(owner.handle.registrations() > 0);
        let bare = [
            OwnedFd::from(client),
            OwnedFd::from(server),
            OwnedFd::from(listener),
        ];
        assert_eq!(owner.handle.registrations(), 0);

        let [client, server, listener] = bare;
        let client = TcpStream::try_from(std::net::TcpStream::from(client)).unwrap();
        let server = TcpStream::try_from(std::net::TcpStream::from(server)).unwrap();
        assert_eq!(client.peer_addr().unwrap(), addr);
        assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
        let listener = std::net::TcpListener::from(listener);
        assert_eq!(listener.local_addr().unwrap(), addr);
        let error = listener.accept().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "still non-blocking");
    });
}

#[test]
fn connect_tries_one_address_after_the_other_and_names_the_last() {
    within_limit(|| {
        let mut owner = Owner::new("connect");
        // Bound and not listening: nobody else gets this port, and connecting is refused.
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let refused = closed.local_addr().unwrap();
        let (_listener, addr) = listener();
        let stream = owner.block_on(TcpStream::connect([refused, addr])).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addr);

        let error = owner.block_on(TcpStream::connect(refused)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&refused.to_string()), "{error}");
        let socket = TcpSocket::new_v4().unwrap();
        let error = owner.block_on(socket.connect(refused)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = owner
            .block_on(TcpStream::connect(Vec::<SocketAddr>::new()))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(owner.handle.registrations(), 0);
    });
}

#[test]
fn addresses_come_in_many_forms() {
    within_limit(|| {
        let mut owner = Owner::new("addresses");
        let (_listener, addr) = listener();
        let port = addr.port();
        owner.block_on(async {
            TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            TcpStream::connect(format!("127.0.0.1:{port}"))
                .await
                .unwrap();
            TcpStream::connect((addr.ip(), port)).await.unwrap();
            TcpStream::connect(&[addr][..]).await.unwrap();
            TcpStream::connect((String::from("127.0.0.1"), port))
                .await
                .unwrap();
            // A name: looked up on a thread, as there is no hook in this test.
            let mut found = lookup_host(("localhost", port)).await.unwrap();
            assert!(found.all(|addr| addr.ip().is_loopback() && addr.port() == port));
            TcpStream::connect(format!("localhost:{port}"))
                .await
                .unwrap();
            for bad in ["127.0.0.1", "localhost:x", "localhost:65536", ""] {
                let error = TcpStream::connect(bad).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
            }
        });
        let error = owner.block_on(TcpListener::bind(addr)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&addr.to_string()), "{error}");
    });
}

#[test]
fn several_tasks_accept_on_one_listener() {
    const EACH: usize = 50;
    within_limit(|| {
        let background = Arc::new(Background::new("accept"));
        let (listener, addr) = listener();
        let listener = Arc::new(listener);
        let acceptors: Vec<_> = (0..4)
            .map(|_| {
                let (listener, background) = (Arc::clone(&listener), Arc::clone(&background));
                thread::spawn(move || {
                    background.block_on(async {
                        for _ in 0..EACH {
                            let (mut stream, _) = listener.accept().await.unwrap();
                            stream.write_all(b"!").await.unwrap();
                        }
                    });
                })
            })
            .collect();
        for _ in 0..4 * EACH {
            let mut stream = std::net::TcpStream::connect(addr).unwrap();
            stream.read_exact(&mut [0]).unwrap();
        }
        for acceptor in acceptors {
            acceptor.join().unwrap();
        }
    });
}

#[test]
fn poll_accept_waits_and_accepts() {
    within_limit(|| {
        let mut owner = Owner::new("poll");
        let (listener, addr) = listener();
        let counter = Counter::new(None);
        let mut accept = pin!(poll_fn(|cx| listener.poll_accept(cx)));
        assert!(owner.poll(accept.as_mut(), &counter).is_pending());
        let client = std::net::TcpStream::connect(addr).unwrap();
        let (_, peer) = owner.block_on(accept).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    });
}

#[test]
fn peek_leaves_the_bytes() {
    within_limit(|| {
        let mut owner = Owner::new("peek");
        owner.block_on(async {
            let (mut client, mut server) = connected().await;
            let mut buf = [0; 8];
            let write = async {
                client.write_all(b"abc").await.unwrap();
            };
            let (n, ()) = zip(server.peek(&mut buf), write).await;
            assert_eq!(&buf[..n.unwrap()], b"abc");
            let n = poll_fn(|cx| server.poll_peek(cx, &mut buf)).await.unwrap();
            assert_eq!(&buf[..n], b"abc");
            let (mut read, _write) = server.split();
            assert_eq!(read.peek(&mut buf).await.unwrap(), 3);
            assert_eq!(read.read(&mut buf).await.unwrap(), 3);
            assert_eq!(
                read.try_read(&mut buf).unwrap_err().kind(),
                ErrorKind::WouldBlock
            );
        });
    });
}

#[test]
fn owned_halves_reunite_and_the_writer_ends_the_stream_when_dropped() {
    within_limit(|| {
        let mut owner = Owner::new("halves");
        owner.block_on(async {
            let (client, mut server) = connected().await;
            let (other, _other_server) = connected().await;
            let (read, write) = client.into_split();
            let (other_read, other_write) = other.into_split();
            let ReuniteError(read, other_write) = read.reunite(other_write).unwrap_err();
            let client = write.reunite(read).unwrap();
            drop((other_read, other_write));

            // Forgotten: no end of stream. Dropped: there it is.
            let (mut read, write) = client.into_split();
            write.forget();
            let mut buf = [0; 8];
            let waited = or(async { server.read(&mut buf).await.unwrap() }, async {
                futures_lite::future::yield_now().await;
                99
            });
            assert_eq!(waited.await, 99);
            server.write_all(b"x").await.unwrap();
            assert_eq!(read.read(&mut buf).await.unwrap(), 1);

            let (client, mut server) = connected().await;
            let (mut read, write) = client.into_split();
            drop(write);
            assert_eq!(server.read(&mut buf).await.unwrap(), 0);
            server.write_all(b"y").await.unwrap();
            assert_eq!(read.read(&mut buf).await.unwrap(), 1);
        });
    });
}

#[test]
fn a_half_that_goes_takes_its_waker_along() {
    within_limit(|| {
        let mut owner = Owner::new("waker");
        let (client, _server) = owner.block_on(connected());
        let (mut read, _write) = client.into_split();
        let counter = Counter::new(None);
        {
            let mut buf = [0; 8];
            let mut waiting = pin!(read.read(&mut buf));
            assert!(owner.poll(waiting.as_mut(), &counter).is_pending());
        }
        assert_eq!(Arc::strong_count(&counter), 2);
        drop(read);
        assert_eq!(Arc::strong_count(&counter), 1);
    });
}

#[test]
fn options_are_those_of_the_system() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.set_reuseport(true).unwrap();
    socket.set_keepalive(true).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_send_buffer_size(32 * 1024).unwrap();
    socket.set_recv_buffer_size(32 * 1024).unwrap();
    socket.set_linger(Some(Duration::from_secs(3))).unwrap();
    socket.set_tos(0x10).unwrap();
    assert!(socket.reuseaddr().unwrap() && socket.reuseport().unwrap());
    assert!(socket.keepalive().unwrap() && socket.nodelay().unwrap());
    assert!(socket.send_buffer_size().unwrap() >= 32 * 1024);
    assert!(socket.recv_buffer_size().unwrap() >= 32 * 1024);
    assert_eq!(socket.linger().unwrap(), Some(Duration::from_secs(3)));
    assert_eq!(socket.tos().unwrap(), 0x10);
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    listener.set_ttl(17).unwrap();
    assert_eq!(listener.ttl().unwrap(), 17);
    assert!(listener.take_error().unwrap().is_none());

    let mut owner = Owner::new("options");
    let addr = listener.local_addr().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    let stream = owner.block_on(socket.connect(addr)).unwrap();
    stream.set_quickack(false).unwrap();
    assert!(!stream.quickack().unwrap());
    stream.set_ttl(42).unwrap();
    assert_eq!(stream.ttl().unwrap(), 42);
    stream.set_zero_linger().unwrap();
    assert_eq!(stream.linger().unwrap(), Some(Duration::ZERO));
    assert!(stream.take_error().unwrap().is_none());
}

#[test]
fn priority_data_is_reported_as_such() {
    within_limit(|| {
        let mut owner = Owner::new("priority");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let io = rt_io::driver::Registered::with_interest(
            server,
            Interest::READABLE | Interest::PRIORITY,
        );
        let counter = Counter::new(None);
        let mut waiting = pin!(io.ready(Interest::PRIORITY));
        assert!(owner.poll(waiting.as_mut(), &counter).is_pending());
        (&client).write_all(b"plain").unwrap();
        owner.settle();
        assert!(matches!(
            owner.poll(waiting.as_mut(), &counter),
            Poll::Pending
        ));
        socket2::SockRef::from(&client)
            .send_out_of_band(b"!")
            .unwrap();
        assert!(owner.block_on(waiting).unwrap().is_priority());
        client.shutdown(Shutdown::Both).unwrap();
    });
}

#[test]
fn more_buffers_than_one_call_takes_are_no_sign_of_a_full_or_drained_socket() {
    within_limit(|| {
        let mut owner = Owner::new("many buffers");
        let (mut client, mut server) = owner.block_on(connected());
        let counter = Counter::new(None);
        {
            // Registers both, so that from here on the readiness word decides.
            let mut buf = [0; 8];
            let mut reading = pin!(client.read(&mut buf));
            assert!(owner.poll(reading.as_mut(), &counter).is_pending());
            let mut buf = [0; 8];
            let mut reading = pin!(server.read(&mut buf));
            assert!(owner.poll(reading.as_mut(), &counter).is_pending());
        }
        owner.settle();
        owner.block_on(async {
            let parts = [IoSlice::new(b"x"); 2000];
            let written = client.write_vectored(&parts).await.unwrap();
            assert!(written < 2000, "the system took more buffers than expected");
            client.write_all(&vec![b'x'; 4000 - written]).await.unwrap();

            let mut rooms = vec![[0; 1]; 2000];
            let mut rooms: Vec<_> = rooms.iter_mut().map(|room| IoSliceMut::new(room)).collect();
            let read = server.read_vectored(&mut rooms).await.unwrap();
            assert!(read < 2000, "the system took more buffers than expected");
            let mut rest = vec![0; 4000 - read];
            server.read_exact(&mut rest).await.unwrap();
        });
    });
}

#[test]
fn several_buffers_arrive_whole_and_in_order_whatever_their_sum() {
    within_limit(|| {
        let mut owner = Owner::new("sums of buffers");
        let (mut client, mut server) = owner.block_on(connected());
        owner.block_on(async {
            // On both sides of the sizes up to which several buffers are copied into one.
            for sum in [0, 1, 255, 256, 257, 1023, 1024, 1025] {
                let bytes: Vec<u8> = (0..sum).map(|at| (at % 251) as u8).collect();
                let (head, rest) = bytes.split_at(sum / 3);
                let (middle, tail) = rest.split_at(rest.len() / 2);
                let parts = [head, middle, &[], tail].map(IoSlice::new);
                assert_eq!(client.write_vectored(&parts).await.unwrap(), sum);
                let mut got = vec![0; sum];
                server.read_exact(&mut got).await.unwrap();
                assert_eq!(got, bytes, "a sum of {sum}");
            }
        });
    });
}
