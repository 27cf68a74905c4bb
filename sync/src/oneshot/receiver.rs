//! The end of `oneshot` that receives.
#![expect(unsafe_code, reason = "an end owns what the state word says (mod.rs)")]

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use super::error::{RecvError, TryRecvError};
use super::inner::{CLOSED, End, Leaving, Ptr, RX_GONE, RX_WAKER, TX_GONE, TX_WAKER, VALUE};
use crate::blocking;
use crate::coop;
use crate::primitive::atomic::Ordering::Acquire;
use crate::wait::{self, WaitKind};
use crate::wake_batch::in_drop;

/// The end that receives: made by [`channel`](super::channel), and a future of the value.
///
/// # Cancel safety
/// As long as it is polled by reference (`&mut receiver`), nothing is lost when that is dropped. Dropping the receiver
/// itself drops the value, if there is one.
///
/// # Panics
/// Polled again after it was ready.
#[must_use = "a receiver is a future, and dropping it closes the channel"]
pub struct Receiver<T> {
    /// `None` once it is over.
    pub(super) channel: Option<Ptr<T>>,
    pub(super) site: &'static Location<'static>,
}

impl<T> Receiver<T> {
    /// The value, if it has been sent.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if it may still come, [`TryRecvError::Closed`] if it never will: the sender has gone
    /// without a value, the channel was closed before one was sent, or the value has been received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(channel) = self.channel else {
            return Err(TryRecvError::Closed);
        };
        // Acquire: with the exchange of the sender; the value is seen.
        let state = channel.get().state.load(Acquire);
        if state & (TX_GONE | CLOSED) == 0 {
            return Err(TryRecvError::Empty);
        }
        self.finish(state)
            .map_err(|RecvError(())| TryRecvError::Closed)
    }

    /// Lets no value in any more: a later [`send`](super::Sender::send) fails. One that was
    /// sent before can still be received.
    pub fn close(&mut self) {
        if let Some(channel) = self.channel
            && let Ok((_, Some(sender))) = channel.change(CLOSED, TX_WAKER, TX_GONE | CLOSED)
        {
            sender.wake();
        }
    }

    /// Blocks this thread until the value is there: for threads that run no tasks.
    ///
    /// # Errors
    /// If the sender has gone without a value, the channel was closed before one, or it has been received already.
    ///
    /// # Panics
    /// Inside a task, whose worker it would block.
    #[track_caller]
    pub fn blocking_recv(mut self) -> Result<T, RecvError> {
        blocking::forbid_in_task("oneshot::Receiver::blocking_recv", "the receiver itself");
        // Without a waker first: it costs an allocation.
        match self.try_recv() {
            Ok(value) => Ok(value),
            Err(TryRecvError::Closed) => Err(RecvError(())),
            Err(TryRecvError::Empty) => blocking::block_on(self),
        }
    }

    /// Whether the receiver is over: its value has been received, or it was told that none will come.
    #[inline]
    pub fn is_terminated(&self) -> bool {
        self.channel.is_none()
    }

    /// Whether there is no value to be received now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Acquire: with the exchange of the sender; what it did before is seen.
        self.channel
            .is_none_or(|channel| channel.get().state.load(Acquire) & VALUE == 0)
    }

    #[inline]
    #[track_caller]
    fn poll_recv(&mut self, waker: &Waker) -> Poll<Result<T, RecvError>> {
        let Some(channel) = self.channel else {
            panic!("oneshot::Receiver polled after it was ready; ask `is_terminated` first");
        };
        match channel.register(End::Rx, waker, TX_GONE | CLOSED) {
            Ok(()) => Poll::Pending,
            Err(state) => Poll::Ready(self.finish(state)),
        }
    }

    /// The end: `state` has `TX_GONE` or `CLOSED`.
    #[inline]
    fn finish(&mut self, state: u64) -> Result<T, RecvError> {
        let Some(channel) = self.channel else {
            return Err(RecvError(()));
        };
        if state & VALUE == 0 {
            self.leave();
            return Err(RecvError(()));
        }
        self.channel = None;
        // SAFETY: `VALUE` comes with `TX_GONE`, so the channel is ours, without wakers and with a value.
        Ok(unsafe { channel.into_value() })
    }

    fn leave(&mut self) {
        let Some(channel) = self.channel.take() else {
            return;
        };
        match channel.change(CLOSED | RX_GONE, RX_WAKER | TX_WAKER, TX_GONE) {
            // The channel may be gone from here on.
            Ok((own, other)) => in_drop(|| Leaving { other, own }.tell()),
            // SAFETY: the sender has gone, with the wakers; `VALUE` says whether it left a value.
            Err(state) => unsafe { channel.free(state & VALUE != 0) },
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let polled = self.poll_recv(cx.waker());
        if polled.is_ready() {
            unit.made_progress();
        } else {
            wait::record(WaitKind::Oneshot, self.site);
        }
        polled
    }
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("terminated", &self.is_terminated())
            .field("empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}
