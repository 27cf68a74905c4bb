//! A thread that reads a descriptor which no selector can watch.
//!
//! # What it guarantees
//! Bytes come out once, in order. The thread reads only while somebody waits for bytes, and what it read after the
//! waiting side went away is kept for the next reader: a cancelled read eats nothing. The thread is never joined, so
//! a read that never returns keeps no runtime and no process alive.
//!
//! # Who may touch what
//! All state lies behind one lock. No waker is cloned, woken or dropped while it is held.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, Waker};
use std::{mem, thread};

use rt_sync::primitive::{Condvar, Mutex};
use rt_sync::wake_batch::{discard, wake_each};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// One read of the thread. A line of a terminal fits, and a file costs few hand-overs.
const CHUNK: usize = 16 * 1024;

/// The shared end of the thread; one for each descriptor, for the life of the process.
#[derive(Debug, Default)]
pub(super) struct ThreadReader {
    state: Mutex<State>,
    wanted: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Read and not yet taken.
    bytes: VecDeque<u8>,
    /// How the last read ended, if it brought no bytes: 0 at the end of the stream. Taken by one reader; the next one
    /// makes the thread read again, as more may follow the end on a terminal.
    ended: Option<io::Result<usize>>,
    /// Somebody waits: the thread is to read.
    wanted: bool,
    started: bool,
    /// Who waits, by the key of the reader.
    waiting: Vec<(u64, Waker)>,
}

impl State {
    fn take(&mut self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        if self.bytes.is_empty() {
            return self.ended.take();
        }
        let mut taken = 0;
        // Twice: reading from a ring gives its first half only.
        for _ in 0..2 {
            match self.bytes.read(&mut buf[taken..]) {
                Ok(read) => taken += read,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(taken))
    }
}

impl ThreadReader {
    /// Reads what the thread has; makes it read, and waits, if there is nothing. `key` tells readers apart.
    ///
    /// `fd` is what the thread reads if this call starts it.
    pub(super) fn poll_read(
        &'static self,
        cx: &mut Context<'_>,
        key: u64,
        fd: BorrowedFd<'static>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let own = cx.waker().clone();
        let mut state = self.state.lock();
        if let Some(result) = state.take(buf) {
            drop(state);
            return Poll::Ready(result);
        }
        let old = state
            .waiting
            .iter()
            .position(|&(other, _)| other == key)
            .map(|at| state.waiting.swap_remove(at));
        state.waiting.push((key, own));
        state.wanted = true;
        let start = !mem::replace(&mut state.started, true);
        drop(state);
        drop(old);
        self.wanted.notify_one();
        if start && let Err(error) = self.start(fd) {
            self.not_started(key);
            return Poll::Ready(Err(error));
        }
        Poll::Pending
    }

    /// A reader goes: its waker is dropped.
    pub(super) fn forget(&self, key: u64) {
        let mut state = self.state.lock();
        let gone = state
            .waiting
            .iter()
            .position(|&(other, _)| other == key)
            .map(|at| state.waiting.swap_remove(at));
        drop(state);
        drop(gone);
    }

    fn start(&'static self, fd: BorrowedFd<'static>) -> io::Result<()> {
        thread::Builder::new()
            .name("rt-stdin".to_owned())
            .spawn(move || self.run(fd))
            .map(drop)
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("no thread could be started to read standard input: {error}"),
                )
            })
    }

    /// There is no thread. The others that wait for it come again, and one of them tries to start it.
    fn not_started(&self, key: u64) {
        let mut state = self.state.lock();
        state.started = false;
        state.wanted = false;
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        wake(waiting.into_iter().filter(|&(other, _)| other != key));
    }

    fn run(&self, fd: BorrowedFd<'_>) {
        let mut chunk = vec![0; CHUNK];
        loop {
            let mut state = self.state.lock();
            while !state.wanted {
                state = self.wanted.wait(state);
            }
            drop(state);
            let result = read_blocking(fd, &mut chunk);
            let mut state = self.state.lock();
            match result {
                Ok(read) if read > 0 => state.bytes.extend(&chunk[..read]),
                ended => state.ended = Some(ended),
            }
            state.wanted = false;
            let waiting = mem::take(&mut state.waiting);
            drop(state);
            wake(waiting.into_iter());
        }
    }
}

/// One's panic must not cost everybody their input; the panic hook has told of it.
fn wake(waiting: impl Iterator<Item = (u64, Waker)>) {
    if let Some(payload) = wake_each(waiting.map(|(_, waker)| waker)) {
        discard(payload);
    }
}

/// A blocking read, also if somebody else made the shared description non-blocking.
fn read_blocking(fd: impl AsFd, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(&fd, &mut *buf) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => block_until(&fd, PollFlags::IN)?,
            other => return other.map_err(io::Error::from),
        }
    }
}

/// Blocks the thread until `fd` is ready for `what`, or has failed.
pub(super) fn block_until(fd: impl AsFd, what: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(&fd, what)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
