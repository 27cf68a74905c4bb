//! The receiver's side, of both kinds of channel.

#![expect(unsafe_code, reason = "takes what was handed over to the receiver")]

use std::fmt;
use std::mem;
use std::panic::{self, AssertUnwindSafe, Location};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use crate::coop;
use crate::primitive::Arc;
use crate::wait::{self, WaitKind};
use crate::wake_batch::{keep_first, resume};

use super::chan::Chan;
use super::error::TryRecvError;
use super::queue::{Queue, Taken};

pub(super) struct Rx<T> {
    chan: Arc<Chan<T>>,
    taken: Taken<T>,
    /// How many values were ever handed out (wraps).
    received: usize,
    /// Whether senders have to be told of slots that come free.
    bounded: bool,
    /// Whether our waker may be in the channel.
    registered: bool,
}

/// What a look at the queue found.
enum Found {
    Values,
    Nothing,
    /// Nothing, and nothing will come.
    End,
}

impl<T> Rx<T> {
    pub(super) fn new(chan: Arc<Chan<T>>, bounded: bool) -> Self {
        Self {
            chan,
            taken: Taken::new(),
            received: 0,
            bounded,
            registered: false,
        }
    }

    #[inline]
    pub(super) fn chan(&self) -> &Chan<T> {
        &self.chan
    }

    /// How many values could be received now.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.chan.sent().wrapping_sub(self.received)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.chan.is_closed() || self.chan.strong() == 0
    }

    pub(super) fn close(&mut self) {
        resume(self.chan.close());
    }

    /// Takes the oldest of the values that are here.
    #[inline]
    fn pop(&mut self) -> Option<T> {
        // What was taken out is older than what was handed over: one waits only if nothing of the former is left.
        let value = match self.taken.pop() {
            Some(value) => value,
            None => self.handed_over()?,
        };
        self.note(1);
        Some(value)
    }

    #[inline]
    fn handed_over(&mut self) -> Option<T> {
        // SAFETY: we are the receiver.
        unsafe { self.chan.handoff().take() }
    }

    /// Counts values that were taken out, and gives their slots back.
    #[inline]
    fn note(&mut self, count: usize) {
        self.received = self.received.wrapping_add(count);
        if self.bounded {
            self.chan.freed(count);
        }
    }

    /// Gets values out of the queue; only if none are here. If there are none and `waker` is given, waits.
    fn refill(&mut self, waker: Option<&Waker>) -> Found {
        // So that the waker is cloned without the lock, and mostly only if it is needed.
        let mut new = match waker {
            Some(waker) if self.len() == 0 => Some(waker.clone()),
            _ => None,
        };
        loop {
            let mut state = self.chan.lock();
            // One may have been handed over since `pop` looked; it is older than those in the queue.
            let found = if self.chan.handoff().is_full() || self.taken.refill(&mut state.queue) {
                Found::Values
            } else if self.chan.is_over(&state) {
                Found::End
            } else {
                Found::Nothing
            };
            if let (Found::Nothing, Some(waker)) = (&found, waker) {
                if new.is_none() {
                    drop(state);
                    new = Some(waker.clone());
                    continue;
                }
                let old = mem::replace(&mut state.rx_waker, new);
                drop(state);
                self.registered = true;
                drop(old);
                return found;
            }
            // Who has polled and now only has a look goes on waiting.
            let old = waker.and_then(|_| state.rx_waker.take());
            drop(state);
            if waker.is_some() {
                self.registered = false;
            }
            drop((old, new));
            return found;
        }
    }

    pub(super) fn try_recv(&mut self) -> Result<T, TryRecvError> {
        if let Some(value) = self.pop() {
            return Ok(value);
        }
        match self.refill(None) {
            Found::Values => self.pop().ok_or(TryRecvError::Empty),
            Found::Nothing => Err(TryRecvError::Empty),
            Found::End => Err(TryRecvError::Disconnected),
        }
    }

    #[inline]
    pub(super) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<Option<T>> {
        let unit = ready!(coop::poll_proceed(cx));
        if let Some(value) = self.pop() {
            unit.made_progress();
            return Poll::Ready(Some(value));
        }
        let polled = self.poll_refill(cx.waker(), site);
        if polled.is_ready() {
            unit.made_progress();
        }
        polled
    }

    /// The way of a receive that finds nothing here: once in as many values as the queue held.
    #[inline(never)]
    fn poll_refill(&mut self, waker: &Waker, site: &'static Location<'static>) -> Poll<Option<T>> {
        match self.refill(Some(waker)) {
            Found::Nothing => {
                wait::record(WaitKind::Recv, site);
                Poll::Pending
            }
            Found::Values | Found::End => Poll::Ready(self.pop()),
        }
    }

    pub(super) fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
        site: &'static Location<'static>,
    ) -> Poll<usize> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut count = 0;
        while count < limit {
            let some = self.taken.pop_many(buffer, limit - count);
            if some > 0 {
                count += some;
                continue;
            }
            if let Some(value) = self.handed_over() {
                buffer.push(value);
                count += 1;
                continue;
            }
            // Whoever has something need not wait.
            let waker = (count == 0).then(|| cx.waker());
            match self.refill(waker) {
                Found::Values => {}
                Found::Nothing if count == 0 => {
                    wait::record(WaitKind::Recv, site);
                    return Poll::Pending;
                }
                Found::Nothing | Found::End => break,
            }
        }
        unit.made_progress();
        if count > 0 {
            self.note(count);
        }
        Poll::Ready(count)
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.taken.kept(&self.chan.lock().queue)
    }

    /// The waiting future goes: so does its waker.
    #[inline]
    fn stop_waiting(&mut self) {
        if self.registered {
            self.registered = false;
            let waker = self.chan.lock().rx_waker.take();
            drop(waker);
        }
    }
}

impl<T> Drop for Rx<T> {
    fn drop(&mut self) {
        let mut panicked = self.chan.close();
        let mut state = self.chan.lock();
        state.rx_gone = true;
        let mut queue = mem::replace(&mut state.queue, Queue::new());
        let left = self.len();
        let waker = state.rx_waker.take();
        drop(state);

        // A value may panic in its destructor: the others are dropped all the same.
        let mut waker = Some(waker);
        while let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| {
            drop(waker.take());
            drop(self.handed_over());
            loop {
                while let Some(value) = self.taken.pop() {
                    drop(value);
                }
                if !self.taken.refill(&mut queue) {
                    break;
                }
            }
        })) {
            keep_first(&mut panicked, Some(payload));
        }
        if self.bounded {
            self.chan.freed_at_end(left);
        }
        resume(panicked);
    }
}

/// Future of [`Receiver::recv`](super::Receiver::recv) and
/// [`UnboundedReceiver::recv`](super::UnboundedReceiver::recv).
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a, T> {
    rx: &'a mut Rx<T>,
    site: &'static Location<'static>,
}

impl<'a, T> Recv<'a, T> {
    #[inline]
    pub(super) fn new(rx: &'a mut Rx<T>, site: &'static Location<'static>) -> Self {
        Self { rx, site }
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let site = self.site;
        self.rx.poll_recv(cx, site)
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.rx.stop_waiting();
    }
}

/// Future of [`Receiver::recv_many`](super::Receiver::recv_many) and
/// [`UnboundedReceiver::recv_many`](super::UnboundedReceiver::recv_many).
#[must_use = "futures do nothing unless awaited"]
pub struct RecvMany<'a, T> {
    rx: &'a mut Rx<T>,
    buffer: &'a mut Vec<T>,
    limit: usize,
    site: &'static Location<'static>,
}

impl<'a, T> RecvMany<'a, T> {
    #[inline]
    pub(super) fn new(
        rx: &'a mut Rx<T>,
        buffer: &'a mut Vec<T>,
        limit: usize,
        site: &'static Location<'static>,
    ) -> Self {
        Self {
            rx,
            buffer,
            limit,
            site,
        }
    }
}

impl<T> Future for RecvMany<'_, T> {
    type Output = usize;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = &mut *self;
        this.rx
            .poll_recv_many(cx, this.buffer, this.limit, this.site)
    }
}

impl<T> Drop for RecvMany<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.rx.stop_waiting();
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for RecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvMany")
            .field("limit", &self.limit)
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}
