//! Readiness is a hint. Two objects on one open description are both told of each message, and only one gets it: the
//! other must go on waiting, without an error, an empty read or a spin.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::Poll;

use rt_io::net::unix::{UnixDatagram, UnixListener, UnixStream, pipe};
use rt_io::net::{TcpListener, TcpStream, UdpSocket};
use rt_io::util::{AsyncRead, AsyncReadExt};
use rt_io::{AsyncFd, Interest};

use crate::exec::{Counter, Owner};
use crate::support::within_limit;
use crate::unix::TempPath;

/// Two waiting operations on one description. `send` makes one message: one of them completes, then the other.
fn check<T: PartialEq + std::fmt::Debug>(
    owner: &mut Owner,
    one: impl Future<Output = io::Result<T>>,
    two: impl Future<Output = io::Result<T>>,
    expected: T,
    mut send: impl FnMut(),
) {
    let mut waiting: Vec<Pin<Box<dyn Future<Output = io::Result<T>> + '_>>> =
        vec![Box::pin(one), Box::pin(two)];
    let counter = Counter::new(None);
    for left in [2, 1] {
        for _ in 0..3 {
            for future in &mut waiting {
                assert!(owner.poll(Pin::new(&mut *future), &counter).is_pending());
            }
            owner.settle();
        }
        send();
        let before = counter.wakes();
        owner.settle();
        assert_eq!(counter.wakes() - before, left, "each is told once");
        let mut done = Vec::new();
        waiting.retain_mut(
            |future| match owner.poll(Pin::new(&mut *future), &counter) {
                Poll::Ready(result) => {
                    done.push(result.expect("no error"));
                    false
                }
                Poll::Pending => true,
            },
        );
        assert_eq!(done.len(), 1, "one got it");
        assert_eq!(done[0], expected);
    }
}

async fn one_byte(mut reader: impl AsyncRead + Unpin) -> io::Result<usize> {
    reader.read(&mut [0; 8]).await
}

#[test]
fn udp_sockets_go_on_waiting() {
    within_limit(|| {
        let mut owner = Owner::new("false readiness");
        let one = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = one.local_addr().unwrap();
        let two = UdpSocket::from_std(one.try_clone().unwrap()).unwrap();
        let one = UdpSocket::from_std(one).unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mut first, mut second) = ([0; 8], [0; 8]);
        check(
            &mut owner,
            one.recv(&mut first),
            two.recv(&mut second),
            1,
            || {
                sender.send_to(b"x", to).unwrap();
            },
        );
    });
}

#[test]
fn unix_sockets_go_on_waiting() {
    within_limit(|| {
        let mut owner = Owner::new("false readiness");
        let (one, sender) = std::os::unix::net::UnixStream::pair().unwrap();
        let two = UnixStream::from_std(one.try_clone().unwrap()).unwrap();
        let one = UnixStream::from_std(one).unwrap();
        check(&mut owner, one_byte(one), one_byte(two), 1, || {
            io::Write::write_all(&mut &sender, b"x").unwrap();
        });

        let (one, sender) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let two = UnixDatagram::from_std(one.try_clone().unwrap()).unwrap();
        let one = UnixDatagram::from_std(one).unwrap();
        let (mut first, mut second) = ([0; 8], [0; 8]);
        check(
            &mut owner,
            one.recv(&mut first),
            two.recv(&mut second),
            1,
            || {
                sender.send(b"x").unwrap();
            },
        );
    });
}

#[test]
fn tcp_streams_go_on_waiting() {
    within_limit(|| {
        let mut owner = Owner::new("false readiness");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sender.set_nodelay(true).unwrap();
        let (one, _) = listener.accept().unwrap();
        let two = TcpStream::from_std(one.try_clone().unwrap()).unwrap();
        let one = TcpStream::from_std(one).unwrap();
        check(&mut owner, one_byte(one), one_byte(two), 1, || {
            io::Write::write_all(&mut &sender, b"x").unwrap();
        });
    });
}

#[test]
fn listeners_go_on_waiting() {
    within_limit(|| {
        let mut owner = Owner::new("false readiness");
        let one = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = one.local_addr().unwrap();
        let two = TcpListener::from_std(one.try_clone().unwrap()).unwrap();
        let one = TcpListener::from_std(one).unwrap();
        let mut clients = Vec::new();
        let accept = async |listener: &TcpListener| listener.accept().await.map(drop);
        check(&mut owner, accept(&one), accept(&two), (), || {
            clients.push(std::net::TcpStream::connect(to).unwrap());
        });

        let path = TempPath::new("false-readiness");
        let one = std::os::unix::net::UnixListener::bind(&path.0).unwrap();
        let two = UnixListener::from_std(one.try_clone().unwrap()).unwrap();
        let one = UnixListener::from_std(one).unwrap();
        let mut clients = Vec::new();
        let accept = async |listener: &UnixListener| listener.accept().await.map(drop);
        check(&mut owner, accept(&one), accept(&two), (), || {
            clients.push(std::os::unix::net::UnixStream::connect(&path.0).unwrap());
        });
    });
}

#[test]
fn pipes_and_other_descriptors_go_on_waiting() {
    within_limit(|| {
        let mut owner = Owner::new("false readiness");
        let (sender, receiver) = pipe::pipe().unwrap();
        let one = receiver.into_nonblocking_fd().unwrap();
        let two = pipe::Receiver::from_owned_fd(one.try_clone().unwrap()).unwrap();
        let one = pipe::Receiver::from_owned_fd(one).unwrap();
        check(&mut owner, one_byte(one), one_byte(two), 1, || {
            sender.try_write(b"x").unwrap();
        });

        let (sender, receiver) = pipe::pipe().unwrap();
        let one = receiver.into_nonblocking_fd().unwrap();
        let two = AsyncFd::with_interest(one.try_clone().unwrap(), Interest::READABLE).unwrap();
        let one = AsyncFd::with_interest(one, Interest::READABLE).unwrap();
        let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut [0; 8])?);
        check(
            &mut owner,
            one.async_io(Interest::READABLE, read),
            two.async_io(Interest::READABLE, read),
            1,
            || {
                sender.try_write(b"x").unwrap();
            },
        );
    });
}
