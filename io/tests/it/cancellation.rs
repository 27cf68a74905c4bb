//! Every operation that waits, given up after some polls, given up when it was woken already, polled by one task after the
//! other: nothing is lost, the last task that polled is woken, and the next user gets on.

use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rt_io::net::unix::{UnixDatagram, UnixListener, UnixStream, pipe};
use rt_io::net::{RecvBatch, TcpListener, TcpStream, UdpSocket, lookup_host};
use rt_io::util::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter,
    copy_buf, duplex, simplex,
};
use rt_io::{AsyncFd, Interest};

use crate::exec::{Counter, Owner};
use crate::support::{Random, within_limit};
use crate::unix::TempPath;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
type Operation<S> = for<'a> fn(&'a S) -> Boxed<'a, io::Result<usize>>;

/// Turns until the waker was woken; the watchdog of the test sees to it that this ends.
fn turn_until_woken(owner: &mut Owner, counter: &Arc<Counter>) {
    while counter.wakes() == 0 {
        owner.driver.turn(None).expect("a turn");
    }
}

/// Polls `future` at most so often, by another task each time, and drops it.
fn polled_times<T>(owner: &mut Owner, times: usize, mut future: Boxed<'_, T>) -> Option<T> {
    for _ in 0..times {
        if let Poll::Ready(output) = owner.poll(future.as_mut(), &Counter::new(None)) {
            return Some(output);
        }
        owner.driver.turn(Some(Duration::ZERO)).expect("a turn");
    }
    None
}

/// An operation that waits until `provide` was called, once for each time that it completes.
fn check<S, T>(
    owner: &mut Owner,
    subject: &mut S,
    operation: impl for<'a> Fn(&'a mut S) -> Boxed<'a, T>,
    mut provide: impl FnMut(),
    accept: impl Fn(T),
) {
    for times in 0..4 {
        let output = polled_times(owner, times, operation(subject));
        assert!(output.is_none(), "it has not to wait");
    }

    // Given up when it was woken, and not polled again.
    let counter = Counter::new(None);
    let mut future = operation(subject);
    assert!(owner.poll(future.as_mut(), &counter).is_pending());
    provide();
    turn_until_woken(owner, &counter);
    drop(future);
    accept(owner.block_on(operation(subject)));

    // Begun by one task and continued by another.
    let (one, other) = (Counter::new(None), Counter::new(None));
    let mut future = operation(subject);
    for counter in [&one, &other, &one, &other] {
        assert!(owner.poll(future.as_mut(), counter).is_pending());
    }
    provide();
    turn_until_woken(owner, &other);
    accept(owner.block_on(future));
    let output = polled_times(owner, 2, operation(subject));
    assert!(output.is_none(), "it came twice");
}

/// [`check`] for what any number of tasks may wait for: one gives up, and the other gets on.
fn check_shared<S, T>(
    owner: &mut Owner,
    subject: &S,
    operation: impl for<'a> Fn(&'a S) -> Boxed<'a, T>,
    mut provide: impl FnMut(),
    accept: impl Fn(T),
) {
    let mut shared = subject;
    check(owner, &mut shared, |s| operation(s), &mut provide, &accept);
    for given_up in 0..3 {
        let (gone, left) = (Counter::new(None), Counter::new(None));
        let (mut first, mut second) = (operation(subject), operation(subject));
        let mut third = operation(subject);
        assert!(owner.poll(first.as_mut(), &gone).is_pending());
        assert!(owner.poll(second.as_mut(), &left).is_pending());
        assert!(owner.poll(third.as_mut(), &gone).is_pending());
        match given_up {
            // Before it is ready.
            0 => {
                drop(first);
                provide();
            }
            // When it was woken.
            1 => {
                provide();
                turn_until_woken(owner, &gone);
                drop(first);
            }
            // By a task that took nothing.
            _ => {
                provide();
                turn_until_woken(owner, &gone);
                drop((first, third));
                turn_until_woken(owner, &left);
                accept(owner.block_on(second));
                continue;
            }
        }
        turn_until_woken(owner, &left);
        drop(third);
        accept(owner.block_on(second));
    }
}

fn one_byte(result: io::Result<usize>) {
    assert_eq!(result.expect("no error"), 1);
}

/// A reader that one byte at a time is sent to.
fn reading<R: AsyncRead + Unpin>(owner: &mut Owner, mut reader: R, mut send: impl FnMut()) {
    check(
        owner,
        &mut reader,
        |reader| Box::pin(async { reader.read(&mut [0; 4]).await }),
        &mut send,
        one_byte,
    );
    check(
        owner,
        &mut reader,
        |reader| Box::pin(async { reader.read_buf(&mut Vec::new()).await }),
        &mut send,
        one_byte,
    );
    let mut reader = BufReader::new(reader);
    check(
        owner,
        &mut reader,
        |reader| {
            Box::pin(async {
                let filled = reader.fill_buf().await?.len();
                reader.consume(filled);
                Ok(filled)
            })
        },
        &mut send,
        one_byte,
    );
}

#[test]
fn reads_that_are_given_up_or_moved() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let (mut sender, receiver) = tcp_pair();
        reading(&mut owner, receiver, || sender.write_all(b"x").unwrap());
        let (mut sender, receiver) = tcp_pair();
        let (receiver, _writer) = receiver.into_split();
        reading(&mut owner, receiver, || sender.write_all(b"x").unwrap());

        let (mut sender, receiver) = std::os::unix::net::UnixStream::pair().unwrap();
        let receiver = UnixStream::from_std(receiver).unwrap();
        reading(&mut owner, receiver, || sender.write_all(b"x").unwrap());

        let (sender, receiver) = pipe::pipe().unwrap();
        reading(&mut owner, receiver, || {
            sender.try_write(b"x").unwrap();
        });
    });
}

/// A writer to a peer that reads all there is when it is called, until nothing more comes.
fn writing<W: AsyncWrite + Unpin>(owner: &mut Owner, mut writer: W, mut drain: impl FnMut()) {
    owner.block_on(fill(&mut writer));
    check(
        owner,
        &mut writer,
        |writer| {
            Box::pin(async {
                let written = writer.write(&[1; 16 * 1024]).await?;
                fill(writer).await;
                Ok::<_, io::Error>(written)
            })
        },
        &mut drain,
        |written| assert!(written.unwrap() > 0),
    );
}

/// Writes until that would have to wait.
async fn fill<W: AsyncWrite + Unpin>(writer: &mut W) {
    let chunk = [0; 16 * 1024];
    loop {
        let polled =
            std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *writer).poll_write(cx, &chunk)));
        match polled.await {
            Poll::Ready(written) => assert!(written.unwrap() > 0),
            Poll::Pending => return,
        }
    }
}

#[test]
fn writes_that_are_given_up_or_moved() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let (sender, receiver) = std::os::unix::net::UnixStream::pair().unwrap();
        receiver.set_nonblocking(true).unwrap();
        let sender = UnixStream::from_std(sender).unwrap();
        let mut buf = vec![0; 64 * 1024];
        writing(&mut owner, sender, || {
            while (&receiver).read(&mut buf).is_ok() {}
        });

        let (sender, receiver) = pipe::pipe().unwrap();
        writing(&mut owner, sender, || {
            while receiver.try_read(&mut buf).is_ok() {}
        });
    });
}

#[test]
fn connections_and_messages_that_many_wait_for() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let listener = owner.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let to = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        check_shared(
            &mut owner,
            &listener,
            |listener| Box::pin(async { listener.accept().await.map(drop) }),
            || clients.push(std::net::TcpStream::connect(to).unwrap()),
            Result::unwrap,
        );

        let path = TempPath::new("cancellation");
        let listener = UnixListener::bind(&path.0).unwrap();
        let mut clients = Vec::new();
        check_shared(
            &mut owner,
            &listener,
            |listener| Box::pin(async { listener.accept().await.map(drop) }),
            || clients.push(std::os::unix::net::UnixStream::connect(&path.0).unwrap()),
            Result::unwrap,
        );

        let socket = owner.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
        let to = socket.local_addr().unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut send = || assert_eq!(sender.send_to(b"x", to).unwrap(), 1);
        let operations: [Operation<UdpSocket>; 6] = [
            |s| Box::pin(async { s.recv(&mut [0; 4]).await }),
            |s| Box::pin(async { Ok(s.recv_from(&mut [0; 4]).await?.0) }),
            |s| {
                Box::pin(async {
                    s.peek(&mut [0; 4]).await?;
                    s.try_recv(&mut [0; 4])
                })
            },
            |s| {
                Box::pin(async {
                    s.peek_sender().await?;
                    s.try_recv(&mut [0; 4])
                })
            },
            |s| Box::pin(async { s.recv_many(&mut RecvBatch::new(4, 4)).await }),
            |s| {
                Box::pin(async {
                    s.async_io(Interest::READABLE, || s.try_recv(&mut [0; 4]))
                        .await
                })
            },
        ];
        for operation in operations {
            check_shared(&mut owner, &socket, operation, &mut send, one_byte);
        }

        let (socket, sender) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let socket = UnixDatagram::from_std(socket).unwrap();
        check_shared(
            &mut owner,
            &socket,
            |s| Box::pin(async { s.recv(&mut [0; 4]).await }),
            || assert_eq!(sender.send(b"x").unwrap(), 1),
            one_byte,
        );
    });
}

#[test]
fn readiness_that_many_wait_for() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let (mut sender, stream) = tcp_pair();
        let operations: [Operation<TcpStream>; 2] = [
            // A hint: who finds nothing waits again.
            |s| {
                Box::pin(async {
                    loop {
                        s.readable().await?;
                        match s.try_read(&mut [0; 4]) {
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                            result => return result,
                        }
                    }
                })
            },
            |s| {
                Box::pin(async {
                    s.peek(&mut [0; 4]).await?;
                    s.try_read(&mut [0; 4])
                })
            },
        ];
        for operation in operations {
            let send = || sender.write_all(b"x").unwrap();
            check_shared(&mut owner, &stream, operation, send, one_byte);
        }

        let (sender, receiver) = pipe::pipe().unwrap();
        let fd = receiver.into_nonblocking_fd().unwrap();
        let fd = AsyncFd::with_interest(fd, Interest::READABLE).unwrap();
        let operations: [Operation<AsyncFd<OwnedFd>>; 2] = [
            |fd| {
                Box::pin(async {
                    loop {
                        let mut guard = fd.readable().await?;
                        let read = |fd: &AsyncFd<_>| Ok(rustix::io::read(fd, &mut [0; 4])?);
                        if let Ok(result) = guard.try_io(read) {
                            return result;
                        }
                    }
                })
            },
            |fd| {
                Box::pin(fd.async_io(Interest::READABLE, |fd| {
                    Ok(rustix::io::read(fd, &mut [0; 4])?)
                }))
            },
        ];
        for operation in operations {
            let send = || assert_eq!(sender.try_write(b"x").unwrap(), 1);
            check_shared(&mut owner, &fd, operation, send, one_byte);
        }
    });
}

#[test]
fn connecting_and_looking_up_that_are_given_up() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let listener = owner.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let to = listener.local_addr().unwrap();
        for times in 0..3 {
            drop(polled_times(
                &mut owner,
                times,
                Box::pin(TcpStream::connect(to)),
            ));
            let lookup = lookup_host(("localhost", to.port()));
            drop(polled_times(&mut owner, times, Box::pin(lookup)));
        }
        let one = owner.block_on(TcpStream::connect(("localhost", to.port())));
        let connected = one.unwrap().local_addr().unwrap();
        // Of those that were given up, some had come into being and are closed.
        while owner.block_on(listener.accept()).unwrap().1 != connected {}
    });
}

/// What is written to `writer`, by operations of which some are given up, comes out of `reader` in the same way: every byte
/// that an operation did not say it had moved, the next one moves.
fn bytes_pass<R, W>(owner: &mut Owner, mut random: Random, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    const LENGTH: usize = 20_000;
    let sent = random.bytes(LENGTH);
    let mut left = &sent[..];
    let mut writer = BufWriter::with_capacity(64, writer);
    let mut reader = BufReader::with_capacity(100, reader);
    let (mut got, mut until) = (Vec::new(), Vec::new());
    while got.len() + until.len() < LENGTH {
        let times = random.up_to(3) - 1;
        let part = &left[..left.len().min(random.up_to(500))];
        match random.up_to(3) {
            1 => {
                let write: Boxed<'_, _> = Box::pin(writer.write(part));
                if let Some(written) = polled_times(owner, times, write) {
                    left = &left[written.unwrap()..];
                }
            }
            2 => {
                let (mut buf, before) = (part, part.len());
                let write: Boxed<'_, _> = Box::pin(writer.write_all_buf(&mut buf));
                polled_times(owner, times, write).transpose().unwrap();
                left = &left[before - buf.len()..];
            }
            _ => {
                let flush: Boxed<'_, _> = Box::pin(writer.flush());
                polled_times(owner, times, flush).transpose().unwrap();
            }
        }
        let mut buf = vec![0; random.up_to(300)];
        let how = if until.is_empty() { random.up_to(4) } else { 4 };
        match how {
            1 => {
                let read: Boxed<'_, _> = Box::pin(reader.read(&mut buf));
                if let Some(read) = polled_times(owner, times, read) {
                    got.extend_from_slice(&buf[..read.unwrap()]);
                }
            }
            2 => {
                let read: Boxed<'_, _> = Box::pin(reader.read_buf(&mut got));
                let _ = polled_times(owner, times, read);
            }
            3 => {
                let fill: Boxed<'_, _> = Box::pin(reader.fill_buf());
                if let Some(filled) = polled_times(owner, times, fill) {
                    let filled = filled.unwrap();
                    let used = random.up_to(filled.len());
                    got.extend_from_slice(&filled[..used]);
                    reader.consume(used);
                }
            }
            _ => {
                let read: Boxed<'_, _> = Box::pin(reader.read_until(7, &mut until));
                if polled_times(owner, times, read).is_some() {
                    got.append(&mut until);
                }
            }
        }
        assert!(sent.starts_with(&got), "other bytes came, of {}", got.len());
        if left.is_empty() {
            let flush: Boxed<'_, _> = Box::pin(writer.flush());
            polled_times(owner, 1, flush).transpose().unwrap();
        }
    }
    got.append(&mut until);
    assert!(sent == got);
}

#[test]
fn no_byte_is_lost_or_doubled_when_operations_are_given_up() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        for seed in 0..5 {
            let (one, two) = duplex(77);
            bytes_pass(&mut owner, Random::new(seed), one, two);
            let (reader, writer) = simplex(200);
            bytes_pass(&mut owner, Random::new(seed), reader, writer);
            let (one, two) = UnixStream::pair().unwrap();
            bytes_pass(&mut owner, Random::new(seed), one, two);
            let (writer, reader) = pipe::pipe().unwrap();
            bytes_pass(&mut owner, Random::new(seed), reader, writer);
            let (one, two) = tcp_pair();
            let one = TcpStream::from_std(one).unwrap();
            bytes_pass(&mut owner, Random::new(seed), one, two);
        }
    });
}

#[test]
fn a_copy_out_of_a_buffer_can_be_given_up_and_begun_anew() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let mut random = Random::new(3);
        let sent = random.bytes(5_000);
        let (mut from, source) = duplex(50);
        let (target, mut to) = duplex(30);
        let (mut source, mut target) = (BufReader::new(source), target);
        let (mut left, mut got) = (&sent[..], Vec::new());
        while got.len() < sent.len() {
            let times = random.up_to(3) - 1;
            let write: Boxed<'_, _> = Box::pin(from.write_all_buf(&mut left));
            let _ = polled_times(&mut owner, times, write);
            let copy: Boxed<'_, _> = Box::pin(copy_buf(&mut source, &mut target));
            assert!(polled_times(&mut owner, times, copy).is_none());
            let read: Boxed<'_, _> = Box::pin(to.read_buf(&mut got));
            let _ = polled_times(&mut owner, times, read);
        }
        assert!(sent == got);
    });
}

#[test]
fn lines_that_are_waited_for_in_vain_come_whole_afterwards() {
    within_limit(|| {
        let mut owner = Owner::new("cancellation");
        let mut random = Random::new(9);
        let text: String = (0..500)
            .map(|n| format!("{}\r\n", "ä".repeat(random.up_to(n + 1) - 1)))
            .collect();
        let (one, two) = duplex(13);
        let mut from = one;
        let (mut lines, mut left) = (BufReader::new(two).lines(), text.as_bytes());
        let mut got = Vec::new();
        while got.len() < 500 {
            let times = random.up_to(3) - 1;
            let write: Boxed<'_, _> = Box::pin(from.write_all_buf(&mut left));
            let _ = polled_times(&mut owner, times, write);
            let line: Boxed<'_, _> = Box::pin(lines.next_line());
            got.extend(polled_times(&mut owner, times, line).map(|line| line.unwrap().unwrap()));
        }
        assert!(text.lines().eq(got.iter().map(String::as_str)));
        drop(from);
        assert_eq!(owner.block_on(lines.next_line()).unwrap(), None);
    });
}

/// A connection, of which this end waits by itself.
fn tcp_pair() -> (std::net::TcpStream, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    one.set_nodelay(true).unwrap();
    let (other, _) = listener.accept().unwrap();
    (one, TcpStream::from_std(other).unwrap())
}
