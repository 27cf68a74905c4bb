//! A descriptor that registers itself with a driver when it first has to wait.
//!
//! # What it guarantees
//! Nothing is registered before an operation says `WouldBlock` (or somebody asks for readiness), so making a
//! source needs no runtime. The driver is that of the thread on which this happens, and stays the owner for life.
//!
//! # The race
//! The operation said `WouldBlock`, then the descriptor is registered: what arrives between the two is reported, since an
//! edge-triggered selector reports the present state of what is added to it. After that the protocol of
//! [`readiness`](super::readiness) holds. Two tasks that register the same source at once are told apart by a lock,
//! one of a few for all sources, taken once in the life of a source.
//!
//! # Assumptions before the first event
//! The direction that said `WouldBlock` is not ready; the other one is taken to be ready until it says otherwise, so that the
//! first write after a read that had to wait does not wait for the selector.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::panic::Location;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::async_io::AsyncIo;
use super::readiness::Direction;
use super::ready::{Interest, Ready};
use super::registration::{Registration, Target};
use super::wait_ready::{Readable, ReadyEvent, WaitReady, WhenReady, Writable};
use crate::context;

/// A non-blocking descriptor and its registration with a driver, which is made when it is first needed.
///
/// All methods take `&self`. The waker slots of [`poll_read_io`](Self::poll_read_io) and
/// [`poll_write_io`](Self::poll_write_io) have room for one task each; any number of tasks may await
/// [`readable`](Self::readable) and the like.
pub struct Registered<E: AsRawFd> {
    // Dropped before `io` is closed.
    registration: Registration,
    interest: Interest,
    io: E,
}

impl<E: AsRawFd> Registered<E> {
    /// Wraps a descriptor, which must be non-blocking. Needs no runtime.
    pub const fn new(io: E) -> Self {
        Self::with_interest(io, Interest::READABLE.add(Interest::WRITABLE))
    }

    /// Same as [`new`](Self::new), for sources that cannot be both read and written, or have priority events.
    pub const fn with_interest(io: E, interest: Interest) -> Self {
        Self {
            registration: Registration(OnceLock::new()),
            interest,
            io,
        }
    }

    /// What is wrapped.
    #[inline]
    pub const fn get_ref(&self) -> &E {
        &self.io
    }

    /// What is wrapped, mutably. It must keep its descriptor.
    pub const fn get_mut(&mut self) -> &mut E {
        &mut self.io
    }

    /// Deregisters, and gives back what was wrapped.
    pub fn into_inner(self) -> E {
        let Registered {
            registration, io, ..
        } = self;
        drop(registration);
        io
    }

    /// Whether the source is registered with a driver.
    pub fn is_registered(&self) -> bool {
        self.registration.0.get().is_some()
    }

    /// Registers with the driver of this thread now, if that has not happened yet.
    ///
    /// # Errors
    /// If this thread has no runtime, the runtime is closed, or the selector refuses the descriptor (as it does
    /// regular files).
    #[track_caller]
    pub fn register(&self) -> io::Result<()> {
        let site = Location::caller();
        self.target().source(Ready::EMPTY, site).map(drop)
    }

    /// Runs a reading operation; when it says `WouldBlock`, parks this task until the source is readable.
    ///
    /// The operation is called again on `Interrupted`, and whenever the source may have become ready.
    ///
    /// # Errors
    /// Those of the operation; if it would have to wait, those of [`register`](Self::register).
    #[inline]
    #[track_caller]
    pub fn poll_read_io<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnMut(&E) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_io(cx, Direction::Read, Location::caller(), f, |_| false)
    }

    /// Same as [`poll_read_io`](Self::poll_read_io), for writing.
    ///
    /// # Errors
    /// As [`poll_read_io`](Self::poll_read_io).
    #[inline]
    #[track_caller]
    pub fn poll_write_io<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnMut(&E) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_io(cx, Direction::Write, Location::caller(), f, |_| false)
    }

    /// Same as [`poll_read_io`](Self::poll_read_io), for byte streams: a read of less than `len` (but not of nothing)
    /// says that the source is drained, which saves the read that would say `WouldBlock`.
    ///
    /// Right for TCP and for pipes; wrong for datagrams and terminals, which return less although there is more. A source
    /// of urgent data needs the interest in priority events, so that a read that stops at its mark is known for what
    /// it is.
    ///
    /// # Errors
    /// As [`poll_read_io`](Self::poll_read_io).
    #[inline]
    #[track_caller]
    pub fn poll_read_stream(
        &self,
        cx: &mut Context<'_>,
        len: usize,
        f: impl FnMut(&E) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io(cx, Direction::Read, Location::caller(), f, |&n| {
            0 < n && n < len
        })
    }

    /// Same as [`poll_read_stream`](Self::poll_read_stream), for writing: a short write says that the buffer of the
    /// source is full.
    ///
    /// # Errors
    /// As [`poll_read_io`](Self::poll_read_io).
    #[inline]
    #[track_caller]
    pub fn poll_write_stream(
        &self,
        cx: &mut Context<'_>,
        len: usize,
        f: impl FnMut(&E) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        self.poll_io(cx, Direction::Write, Location::caller(), f, |&n| {
            0 < n && n < len
        })
    }

    /// Waits, as the one task of the reading direction, until the source is readable.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    #[track_caller]
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<ReadyEvent>> {
        self.poll_ready(cx, Direction::Read, Location::caller())
    }

    /// Waits, as the one task of the writing direction, until the source is writable.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    #[track_caller]
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<ReadyEvent>> {
        self.poll_ready(cx, Direction::Write, Location::caller())
    }

    /// Waits until the source is readable. Any number of tasks may wait.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    ///
    /// # Cancel safety
    /// Nothing is lost: a readiness that was not used stays.
    #[track_caller]
    pub fn readable(&self) -> Readable<'_> {
        Readable(self.wait_ready(Interest::READABLE))
    }

    /// Waits until the source is writable. Any number of tasks may wait.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn writable(&self) -> Writable<'_> {
        Writable(self.wait_ready(Interest::WRITABLE))
    }

    /// Waits until the source is ready for any part of `interest`, and says for which.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    ///
    /// # Cancel safety
    /// As [`readable`](Self::readable).
    #[track_caller]
    pub fn ready(&self, interest: Interest) -> WhenReady<'_> {
        WhenReady(self.wait_ready(interest))
    }

    /// Same as [`ready`](Self::ready), with what [`clear`](Self::clear) needs.
    #[track_caller]
    pub fn wait_ready(&self, interest: Interest) -> WaitReady<'_> {
        WaitReady::new(self.target(), interest, Location::caller())
    }

    /// Forgets the readiness of an event because an operation just said `WouldBlock`, unless a newer event came.
    ///
    /// Not for users: without the operation there is no proof that the readiness is used up, and the next wait hangs.
    pub fn clear(&self, event: ReadyEvent) {
        if let Some(source) = self.registration.0.get() {
            source.readiness.clear(event.ready, event.seen);
        }
    }

    /// Runs an operation if the source may be ready for it; clears that readiness if the operation says `WouldBlock`.
    ///
    /// # Errors
    /// `WouldBlock` if the source is not ready; those of the operation; that of a closed runtime.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce(&E) -> io::Result<R>,
    ) -> io::Result<R> {
        let Some(source) = self.registration.0.get() else {
            return f(&self.io);
        };
        let seen = source.readiness.load();
        let mask = interest.mask();
        if !seen.has(mask) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if seen.is_closed() {
            return Err(source.handle.closed_error());
        }
        let result = f(&self.io);
        if is_would_block(&result) {
            source.readiness.clear(mask, seen);
        }
        result
    }

    /// Runs an operation until it does not say `WouldBlock`, waiting for `interest` in between. Any number of tasks may
    /// do so.
    ///
    /// # Errors
    /// Those of the operation; if it would have to wait, those of [`register`](Self::register).
    ///
    /// # Cancel safety
    /// As safe as the operation: it has not run, or its result is returned.
    #[track_caller]
    pub fn async_io<R, F>(&self, interest: Interest, f: F) -> AsyncIo<'_, E, F>
    where
        F: FnMut(&E) -> io::Result<R>,
    {
        AsyncIo {
            io: self,
            wait: self.wait_ready(interest),
            f,
        }
    }

    /// Drops the waker of the reading direction, for a reading side that goes away before the source does.
    pub fn forget_reader(&self) {
        if let Some(source) = self.registration.0.get() {
            source.readiness.unpark(Direction::Read);
        }
    }

    /// Drops the waker of the writing direction.
    pub fn forget_writer(&self) {
        if let Some(source) = self.registration.0.get() {
            source.readiness.unpark(Direction::Write);
        }
    }

    #[inline]
    fn target(&self) -> Target<'_> {
        Target {
            registration: &self.registration,
            fd: self.io.as_raw_fd(),
            interest: self.interest,
        }
    }

    #[inline]
    fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        site: &'static Location<'static>,
        mut f: impl FnMut(&E) -> io::Result<R>,
        drained: impl Fn(&R) -> bool,
    ) -> Poll<io::Result<R>> {
        let unit = ready!(coop::poll_proceed(cx));
        loop {
            let Some(source) = self.registration.0.get() else {
                match f(&self.io) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        // See "Assumptions" in the module head.
                        self.target().source(direction.other().data(), site)?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => {
                        unit.made_progress();
                        return Poll::Ready(result);
                    }
                }
                continue;
            };
            let op = || f(&self.io);
            return match source.readiness.poll_op(direction, cx.waker(), op, drained) {
                Poll::Ready(Some(result)) => {
                    unit.made_progress();
                    Poll::Ready(result)
                }
                Poll::Ready(None) => Poll::Ready(Err(source.handle.closed_error())),
                Poll::Pending => {
                    context::waits(source, site);
                    wait::record(kind_of(direction), site);
                    Poll::Pending
                }
            };
        }
    }

    fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        site: &'static Location<'static>,
    ) -> Poll<io::Result<ReadyEvent>> {
        let unit = ready!(coop::poll_proceed(cx));
        let source = self.target().source(Ready::EMPTY, site)?;
        let mask = direction.mask();
        let mut seen = source.readiness.load();
        if !seen.has(mask) {
            match source.readiness.park(direction, cx.waker()) {
                Some(now) => seen = now,
                None => {
                    context::waits(source, site);
                    wait::record(kind_of(direction), site);
                    return Poll::Pending;
                }
            }
        }
        unit.made_progress();
        if seen.is_closed() {
            return Poll::Ready(Err(source.handle.closed_error()));
        }
        Poll::Ready(Ok(ReadyEvent {
            ready: seen.ready() & mask,
            seen,
        }))
    }
}

const fn kind_of(direction: Direction) -> WaitKind {
    match direction {
        Direction::Read => WaitKind::Read,
        Direction::Write => WaitKind::Write,
    }
}

fn is_would_block<R>(result: &io::Result<R>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl<E: AsRawFd + fmt::Debug> fmt::Debug for Registered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("io", &self.io)
            .field("source", &self.registration.0.get())
            .finish()
    }
}
