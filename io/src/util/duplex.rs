//! A pair of connected streams in memory, and one direction of it alone.
//!
//! # What it guarantees
//! What one end writes the other end reads, in order, with at most `max_buf` bytes under way in each direction: a
//! writer waits while the pipe is full. When an end is dropped or closed its peer reads what is left and then the end
//! of the stream; writing to an end that is gone gives `BrokenPipe`.
//!
//! # Who may touch what
//! Two pipes, each behind one lock, each with one reader and one writer. No waker is cloned, woken or dropped while
//! the lock is held: see [`Pipe::poll_with`].

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use futures_io::{AsyncRead, AsyncWrite};
use futures_lite::io::{ReadHalf, WriteHalf};
use rt_sync::coop;
use rt_sync::primitive::{Arc, Mutex};
use rt_sync::wait::{self, WaitKind};
use rt_sync::wake_batch::{discard, wake_each};

/// One end of a pair made by [`duplex`].
///
/// Dropping it closes both directions.
pub struct DuplexStream {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    site: &'static Location<'static>,
}

/// Makes two connected streams; each direction holds at most `max_buf` bytes.
///
/// # Panics
/// If `max_buf` is 0: such a pipe could never carry a byte.
///
/// # Examples
/// ```
/// use rt_io::util::{AsyncReadExt, AsyncWriteExt, duplex};
///
/// # futures_lite::future::block_on(async {
/// let (mut client, mut server) = duplex(64);
/// client.write_all(b"ping").await?;
/// drop(client);
/// let mut got = String::new();
/// server.read_to_string(&mut got).await?;
/// assert_eq!(got, "ping");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[must_use]
#[track_caller]
pub fn duplex(max_buf: usize) -> (DuplexStream, DuplexStream) {
    let site = Location::caller();
    let (one, two) = (Arc::new(Pipe::new(max_buf)), Arc::new(Pipe::new(max_buf)));
    let left = DuplexStream {
        incoming: one.clone(),
        outgoing: two.clone(),
        site,
    };
    let right = DuplexStream {
        incoming: two,
        outgoing: one,
        site,
    };
    (left, right)
}

impl fmt::Debug for DuplexStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DuplexStream")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl Drop for DuplexStream {
    fn drop(&mut self) {
        // Both are closed before any waker is woken or dropped: it may panic.
        let outgoing = self.outgoing.close(Side::Writer);
        let incoming = self.incoming.close(Side::Reader);
        wake(outgoing.other.into_iter().chain(incoming.other));
        drop((outgoing.own, incoming.own));
    }
}

impl DuplexStream {
    /// Hands what has arrived, at most `room` bytes of it, to `take`, which says how many bytes it took.
    #[cfg(any(feature = "tokio-io", feature = "hyper"))]
    pub(crate) fn poll_read_with(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        take: impl FnMut(&mut VecDeque<u8>) -> usize,
    ) -> Poll<io::Result<usize>> {
        self.incoming.poll_read_with(cx, self.site, room, take)
    }
}

/// One direction alone, made by [`simplex`]: what is written to it can be read from it.
pub struct SimplexStream {
    pipe: Pipe,
    site: &'static Location<'static>,
}

/// Makes a pipe that holds at most `max_buf` bytes; the halves may go to different tasks.
///
/// Closing the writing half ends the stream. Dropping it does not, for the halves share the pipe: close it.
///
/// # Panics
/// If `max_buf` is 0.
///
/// # Examples
/// ```
/// use rt_io::util::{AsyncReadExt, AsyncWriteExt, simplex};
///
/// # futures_lite::future::block_on(async {
/// let (mut reader, mut writer) = simplex(64);
/// writer.write_all(b"ping").await?;
/// writer.shutdown().await?;
/// let mut got = String::new();
/// reader.read_to_string(&mut got).await?;
/// assert_eq!(got, "ping");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[must_use]
#[track_caller]
pub fn simplex(max_buf: usize) -> (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) {
    futures_lite::io::split(SimplexStream::new_unsplit(max_buf))
}

impl SimplexStream {
    /// The pipe in one piece; see [`simplex`].
    ///
    /// # Panics
    /// If `max_buf` is 0.
    #[must_use]
    #[track_caller]
    pub fn new_unsplit(max_buf: usize) -> SimplexStream {
        SimplexStream {
            pipe: Pipe::new(max_buf),
            site: Location::caller(),
        }
    }
}

impl fmt::Debug for SimplexStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimplexStream")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

/// The traits for a type that reads from one pipe and writes to one.
macro_rules! impl_stream {
    ($stream:ty, $incoming:ident, $outgoing:ident) => {
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                self.$incoming
                    .poll_read_with(cx, self.site, buf.len(), |bytes| read_both(bytes, buf))
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let room = bufs.iter().map(|buf| buf.len()).sum();
                self.$incoming.poll_read_with(cx, self.site, room, |bytes| {
                    bufs.iter_mut().map(|buf| read_both(bytes, buf)).sum()
                })
            }
        }

        impl AsyncWrite for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.$outgoing
                    .poll_write(cx, self.site, &[IoSlice::new(buf)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.$outgoing.poll_write(cx, self.site, bufs)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let closed = self.$outgoing.close(Side::Writer);
                wake(closed.other);
                drop(closed.own);
                Poll::Ready(Ok(()))
            }
        }
    };
}

impl_stream!(DuplexStream, incoming, outgoing);
impl_stream!(SimplexStream, pipe, pipe);

/// Reads out of both halves of the ring.
fn read_both(bytes: &mut VecDeque<u8>, buf: &mut [u8]) -> usize {
    let mut taken = 0;
    // Twice: reading from a ring gives its first half only.
    for _ in 0..2 {
        taken += bytes
            .read(&mut buf[taken..])
            .expect("reading from a ring in memory never fails");
    }
    taken
}

fn broken_pipe() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "write to a stream in memory that was closed or whose other end is gone",
    )
}

/// Who uses a pipe; the index of its waker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Reader = 0,
    Writer = 1,
}

/// One direction.
struct Pipe {
    state: Mutex<State>,
    max: usize,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    /// One of the two sides is gone: no byte comes in any more.
    closed: bool,
    /// Who waits, by [`Side`].
    waiting: [Option<Waker>; 2],
}

impl Pipe {
    #[track_caller]
    fn new(max: usize) -> Self {
        assert!(
            max > 0,
            "a pipe of 0 bytes can never carry anything: give it at least 1"
        );
        Self {
            state: Mutex::new(State::default()),
            max,
        }
    }

    /// Hands what has arrived, at most `room` bytes of it, to `take`, which says how many bytes it took.
    fn poll_read_with(
        &self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
        room: usize,
        mut take: impl FnMut(&mut VecDeque<u8>) -> usize,
    ) -> Poll<io::Result<usize>> {
        if room == 0 {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, Side::Reader, site, |state| {
            if state.bytes.is_empty() {
                return state.closed.then_some((Ok(0), false));
            }
            let taken = take(&mut state.bytes);
            Some((Ok(taken), taken > 0))
        })
    }

    /// Writes as much as there is room for.
    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if bufs.iter().all(|buf| buf.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, Side::Writer, site, |state| {
            if state.closed {
                return Some((Err(broken_pipe()), false));
            }
            let room = self.max - state.bytes.len();
            (room > 0).then(|| {
                let mut left = room;
                for buf in bufs {
                    let part = &buf[..buf.len().min(left)];
                    state.bytes.extend(part);
                    left -= part.len();
                }
                (Ok(room - left), left < room)
            })
        })
    }

    /// Runs `attempt` on the state. `None` means that it cannot proceed: then the task is kept as waiting. The flag
    /// beside a result says that the other side may have something to do now.
    ///
    /// A waker is cloned between two attempts, with the lock released; a waker that was replaced is dropped, and the
    /// other side woken, after the release.
    fn poll_with<R>(
        &self,
        cx: &mut Context<'_>,
        side: Side,
        site: &'static Location<'static>,
        mut attempt: impl FnMut(&mut State) -> Option<(R, bool)>,
    ) -> Poll<R> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut own: Option<Waker> = None;
        loop {
            let mut state = self.state.lock();
            if let Some((result, changed)) = attempt(&mut state) {
                let other = if changed {
                    state.waiting[1 - side as usize].take()
                } else {
                    None
                };
                drop(state);
                unit.made_progress();
                wake(other);
                return Poll::Ready(result);
            }
            let slot = &mut state.waiting[side as usize];
            let replaced = if slot.as_ref().is_some_and(|kept| kept.will_wake(cx.waker())) {
                None
            } else if let Some(own) = own.take() {
                slot.replace(own)
            } else {
                drop(state);
                own = Some(cx.waker().clone());
                continue;
            };
            drop(state);
            drop(replaced);
            wait::record(
                match side {
                    Side::Reader => WaitKind::Read,
                    Side::Writer => WaitKind::Write,
                },
                site,
            );
            return Poll::Pending;
        }
    }

    /// `side` goes. A reader that goes frees what is left.
    fn close(&self, side: Side) -> Closed {
        let mut state = self.state.lock();
        state.closed = true;
        let own = state.waiting[side as usize].take();
        let other = state.waiting[1 - side as usize].take();
        let unread = match side {
            Side::Reader => std::mem::take(&mut state.bytes),
            Side::Writer => VecDeque::new(),
        };
        drop(state);
        drop(unread);
        Closed { other, own }
    }
}

/// The wakers that were in a pipe when a side went: that of the other side is to be woken, its own to be dropped. Once it is
/// closed nobody waits.
struct Closed {
    other: Option<Waker>,
    own: Option<Waker>,
}

/// Who wakes has moved bytes already, which a panic of the other side's waker must not take along: it goes no further. The panic
/// hook has told of it.
fn wake(others: impl IntoIterator<Item = Waker>) {
    if let Some(payload) = wake_each(others.into_iter()) {
        discard(payload);
    }
}
