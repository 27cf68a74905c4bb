//! A hand-written event loop that echoes: the floor that the echo rows are compared with.
//!
//! # What would mislead
//! Each connection has a buffer of its own, as the tasks of the runtimes have. A loop with one buffer for all
//! would stay in the cache with 1,000 connections of 16 KiB and measure the cache, not the runtime.
//! A read shorter than the buffer is not tried again: one `recv` and one `send` a message.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token, Waker};

const NEW_CONNECTIONS: Token = Token(usize::MAX);

/// Serves echo on a free loopback port with `workers` loops; the calling thread's part ends with the return.
///
/// # Errors
///
/// What the system says about the listener or the selectors.
pub fn serve(workers: usize, buffer: usize) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut hands = Vec::new();
    for _ in 0..workers.max(1) {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), NEW_CONNECTIONS)?);
        let (sender, receiver) = channel();
        hands.push((sender, waker));
        std::thread::spawn(move || EchoLoop::new(poll, receiver, buffer).run());
    }
    // Blocking accept on a thread of its own: nobody accepts while a row measures.
    std::thread::spawn(move || hand_out(&listener, &hands));
    Ok(address)
}

fn hand_out(listener: &std::net::TcpListener, hands: &[(Sender<TcpStream>, Arc<Waker>)]) {
    for (sender, waker) in hands.iter().cycle() {
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        let ready = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_nonblocking(true));
        if ready.is_ok() && sender.send(TcpStream::from_std(stream)).is_ok() {
            let _ = waker.wake();
        }
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    /// Bytes read and not yet written back; empty almost always.
    unsent: VecDeque<u8>,
}

struct EchoLoop {
    poll: Poll,
    newcomers: Receiver<TcpStream>,
    connections: Vec<Option<Connection>>,
    buffer: usize,
}

impl EchoLoop {
    fn new(poll: Poll, newcomers: Receiver<TcpStream>, buffer: usize) -> Self {
        Self {
            poll,
            newcomers,
            connections: Vec::new(),
            buffer,
        }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        loop {
            match self.poll.poll(&mut events, None) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => panic!("the selector of the hand-written loop failed: {error}"),
            }
            for event in &events {
                if event.token() == NEW_CONNECTIONS {
                    self.take_newcomers();
                    continue;
                }
                let slot = &mut self.connections[event.token().0];
                if let Some(connection) = slot
                    && !connection.turn().unwrap_or(false)
                {
                    *slot = None;
                }
            }
        }
    }

    fn take_newcomers(&mut self) {
        while let Ok(mut stream) = self.newcomers.try_recv() {
            let token = Token(self.connections.len());
            if register(self.poll.registry(), &mut stream, token).is_err() {
                continue;
            }
            self.connections.push(Some(Connection {
                stream,
                buffer: vec![0; self.buffer].into_boxed_slice(),
                unsent: VecDeque::new(),
            }));
        }
    }
}

fn register(registry: &Registry, stream: &mut TcpStream, token: Token) -> io::Result<()> {
    registry.register(stream, token, Interest::READABLE | Interest::WRITABLE)
}

impl Connection {
    /// Reads and writes until there is nothing left to do; false at the end of the stream.
    fn turn(&mut self) -> io::Result<bool> {
        loop {
            if !self.flush()? {
                return Ok(true);
            }
            let count = match self.stream.read(&mut self.buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            let mut sent = 0;
            while sent < count {
                match self.stream.write(&self.buffer[sent..count]) {
                    Ok(more) => sent += more,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.unsent.extend(&self.buffer[sent..count]);
                        return Ok(true);
                    }
                    Err(error) => return Err(error),
                }
            }
            if count < self.buffer.len() {
                return Ok(true);
            }
        }
    }

    /// True when nothing is left to send.
    fn flush(&mut self) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
