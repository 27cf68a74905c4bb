//! The load generator of the echo rows: a closed loop over many connections, in one thread of its own process.
//!
//! Each connection has one message in flight: it is sent, read back in full, timed, and followed by the next, at once or
//! after a pause.
//!
//! # What would mislead
//! A closed loop slows down with the server, so p99 here is latency under saturation and not at a given rate. On a
//! machine of two cores generator and server share them; compare cells of one run, never with another machine.
//! The generator is a plain selector loop and costs about as much as the hand-written server.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// When a measured stretch ends: no new message is sent, and those in flight are waited for.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After so many messages were sent.
    Sent(u64),
}

/// What a stretch came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Messages that came back whole.
    pub messages: u64,
    /// From the first message to the last answer.
    pub elapsed: Duration,
    /// Median time of a message.
    pub p50: Duration,
    /// Time that one message of a hundred exceeds.
    pub p99: Duration,
    /// Time that one message of a thousand exceeds.
    pub p999: Duration,
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the current message still to send, and still to come back.
    unsent: usize,
    missing: usize,
    began: Instant,
}

/// Open connections to an echo server.
#[derive(Debug)]
pub struct Load {
    poll: Poll,
    connections: Vec<Connection>,
    message: Box<[u8]>,
    buffer: Box<[u8]>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Load {
    /// Opens `count` connections for messages of `size` bytes, and sends one through each.
    ///
    /// # Errors
    ///
    /// If a connection cannot be opened, for want of descriptors for example.
    pub fn connect(address: SocketAddr, count: usize, size: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut connections = Vec::with_capacity(count);
        let message = vec![b'x'; size].into_boxed_slice();
        let mut buffer = vec![0; size.max(64 * 1024)].into_boxed_slice();
        for index in 0..count {
            let mut stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            // One message there and back before the next connect: else the listener's queue overruns, and the kernel
            // tries the lost connect again only after a second.
            stream.write_all(&message)?;
            stream.read_exact(&mut buffer[..size])?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(
                &mut stream,
                Token(index),
                Interest::READABLE | Interest::WRITABLE,
            )?;
            connections.push(Connection {
                stream,
                unsent: 0,
                missing: 0,
                began: Instant::now(),
            });
        }
        Ok(Self {
            poll,
            connections,
            message,
            buffer,
        })
    }

    /// Keeps one message in flight on each connection until the stretch ends and all have come back; after an answer the
    /// connection pauses.
    ///
    /// # Errors
    ///
    /// If the server closes a connection or a socket fails.
    pub fn run(&mut self, until: Until, pause: Duration) -> io::Result<Outcome> {
        // Connections that pause, in the order in which they go on.
        let mut pausing: VecDeque<(Instant, usize)> = VecDeque::new();
        let mut events = Events::with_capacity(1024);
        let mut latencies: Vec<Duration> = Vec::with_capacity(1 << 16);
        let start = Instant::now();
        let mut sent = 0;
        let mut in_flight = 0;
        let may_send = |now: Instant, sent: u64| match until {
            Until::Elapsed(limit) => now - start < limit,
            Until::Sent(limit) => sent < limit,
        };
        for connection in &mut self.connections {
            if may_send(start, sent) {
                connection.begin(&self.message, Instant::now())?;
                sent += 1;
                in_flight += 1;
            }
        }
        let mut now = Instant::now();
        while in_flight > 0 || !pausing.is_empty() {
            let timeout = pausing
                .front()
                .map(|(at, _)| at.saturating_duration_since(Instant::now()));
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error);
            }
            for event in &events {
                let connection = &mut self.connections[event.token().0];
                connection.send(&self.message)?;
                if !connection.receive(&mut self.buffer)? {
                    continue;
                }
                now = Instant::now();
                latencies.push(now - connection.began);
                if !pause.is_zero() {
                    in_flight -= 1;
                    pausing.push_back((now + pause, event.token().0));
                } else if may_send(now, sent) {
                    connection.begin(&self.message, now)?;
                    sent += 1;
                } else {
                    in_flight -= 1;
                }
            }
            while let Some((at, index)) = pausing.front().copied() {
                let go_on = Instant::now();
                if at > go_on {
                    break;
                }
                pausing.pop_front();
                if may_send(go_on, sent) {
                    self.connections[index].begin(&self.message, go_on)?;
                    sent += 1;
                    in_flight += 1;
                }
            }
        }
        Ok(outcome(latencies, now - start))
    }
}

fn outcome(mut latencies: Vec<Duration>, elapsed: Duration) -> Outcome {
    latencies.sort_unstable();
    let at = |share: usize| {
        let last = latencies.len().saturating_sub(1);
        latencies
            .get(last * share / 1000)
            .copied()
            .unwrap_or_default()
    };
    Outcome {
        messages: latencies.len() as u64,
        elapsed,
        p50: at(500),
        p99: at(990),
        p999: at(999),
    }
}

impl Connection {
    fn begin(&mut self, message: &[u8], now: Instant) -> io::Result<()> {
        self.began = now;
        self.unsent = message.len();
        self.missing = message.len();
        self.send(message)
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        while self.unsent > 0 {
            match self.stream.write(&message[message.len() - self.unsent..]) {
                Ok(count) => self.unsent -= count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// True when the current message has just come back whole.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        while self.missing > 0 {
            match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.missing -= count;
                    if self.missing == 0 {
                        return Ok(true);
                    }
                    if count < buffer.len() {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
