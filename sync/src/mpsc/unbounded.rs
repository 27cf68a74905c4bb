//! The two ends of an unbounded channel.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::blocking::{block_on, forbid_in_task};

use super::chan::Chan;
use super::error::{SendError, TryRecvError};
use super::rx::{Recv, RecvMany, Rx};
use super::send::Closed;
use super::tx::{Tx, WeakTx};

/// Makes a channel without a limit: sending never waits.
///
/// If values come in faster than they are taken out, the memory that they need grows without bound; prefer
/// [`channel`](super::channel) where the senders can wait.
///
/// # Examples
/// ```
/// use rt_sync::mpsc;
///
/// # futures_lite::future::block_on(async {
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// for n in 0..1_000 {
///     sender.send(n)?;
/// }
/// drop(sender);
/// let mut sum = 0;
/// while let Some(n) = receiver.recv().await {
///     sum += n;
/// }
/// assert_eq!(sum, 499_500);
/// # Ok::<(), mpsc::error::SendError<i32>>(())
/// # }).unwrap();
/// ```
#[must_use]
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let chan = Chan::new(usize::MAX);
    let receiver = UnboundedReceiver {
        rx: Rx::new(chan.clone(), false),
    };
    let sender = UnboundedSender {
        tx: Tx::first(chan),
    };
    (sender, receiver)
}

/// The end that sends into an unbounded channel: made by [`unbounded_channel`]; clone it for more of them.
pub struct UnboundedSender<T> {
    tx: Tx<T>,
}

/// A sender that does not keep the channel open: made by [`UnboundedSender::downgrade`].
///
/// When the last [`UnboundedSender`] has gone the receiver is told so, whatever weak ones there are.
pub struct WeakUnboundedSender<T> {
    tx: WeakTx<T>,
}

/// The end that receives from an unbounded channel: made by [`unbounded_channel`].
///
/// It is a [`Stream`] itself; tokio has a wrapper for that. Dropping it closes the channel and drops what is in it.
pub struct UnboundedReceiver<T> {
    rx: Rx<T>,
}

impl<T> UnboundedSender<T> {
    /// Sends a value; never waits.
    ///
    /// `Ok` does not say that the value will be received: the receiver may go before that.
    ///
    /// # Errors
    /// Gives the value back if the receiver has closed the channel or has gone.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.tx.chan().send_unbounded(value).map_err(SendError)
    }

    /// Waits until the receiver has closed the channel or has gone: nobody wants values any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[track_caller]
    pub fn closed(&self) -> Closed<'_, T> {
        Closed::new(self.tx.chan(), Location::caller())
    }

    /// Whether the receiver has closed the channel or has gone, so that [`send`](Self::send) would fail.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.tx.chan().is_closed()
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.tx.same_channel(&other.tx)
    }

    /// A sender that does not keep the channel open.
    #[must_use = "`downgrade` makes a weak sender and leaves this one as it is"]
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender {
            tx: self.tx.downgrade(),
        }
    }

    /// How many [`UnboundedSender`]s there are.
    pub fn strong_count(&self) -> usize {
        self.tx.chan().strong()
    }

    /// How many [`WeakUnboundedSender`]s there are.
    pub fn weak_count(&self) -> usize {
        self.tx.chan().weak()
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> WeakUnboundedSender<T> {
    /// A sender, unless the last one has gone.
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        self.tx.upgrade().map(|tx| UnboundedSender { tx })
    }

    /// How many [`UnboundedSender`]s there are.
    pub fn strong_count(&self) -> usize {
        self.tx.chan().strong()
    }

    /// How many [`WeakUnboundedSender`]s there are.
    pub fn weak_count(&self) -> usize {
        self.tx.chan().weak()
    }
}

impl<T> Clone for WeakUnboundedSender<T> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<T> fmt::Debug for WeakUnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakUnboundedSender")
            .finish_non_exhaustive()
    }
}

impl<T> UnboundedReceiver<T> {
    /// Receives the oldest value; waits while there is none. `None` when the channel is closed, or all senders have
    /// gone, and nothing is in it.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped: only a ready future takes a value.
    #[inline]
    #[track_caller]
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv::new(&mut self.rx, Location::caller())
    }

    /// Appends up to `limit` values to `buffer`; waits while there is none. Ready with how many: 0 at the end of the
    /// channel (as for [`recv`](Self::recv)), or if `limit` is 0.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn recv_many<'a>(&'a mut self, buffer: &'a mut Vec<T>, limit: usize) -> RecvMany<'a, T> {
        RecvMany::new(&mut self.rx, buffer, limit, Location::caller())
    }

    /// Receives the oldest value, if there is one.
    ///
    /// # Errors
    /// If there is none now, or none any more.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.rx.try_recv()
    }

    /// Same as [`recv`](Self::recv), but blocks this thread. For threads that are not workers of a runtime: a worker
    /// that blocks polls nothing meanwhile.
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        forbid_in_task(
            "UnboundedReceiver::blocking_recv",
            "UnboundedReceiver::recv",
        );
        // First without a waker: it costs an allocation.
        match self.try_recv() {
            Ok(value) => Some(value),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => block_on(self.recv()),
        }
    }

    /// Same as [`recv_many`](Self::recv_many), but blocks this thread.
    ///
    /// # Panics
    /// Inside a task.
    #[track_caller]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        forbid_in_task(
            "UnboundedReceiver::blocking_recv_many",
            "UnboundedReceiver::recv_many",
        );
        block_on(self.recv_many(buffer, limit))
    }

    /// Lets nobody send any more. What is in the channel can still be received.
    pub fn close(&mut self) {
        self.rx.close();
    }

    /// Whether the channel is closed: by [`close`](Self::close), or because all senders have gone.
    pub fn is_closed(&self) -> bool {
        self.rx.is_closed()
    }

    /// Whether there is nothing to receive now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values can be received now.
    pub fn len(&self) -> usize {
        self.rx.len()
    }

    /// How many [`UnboundedSender`]s there are.
    pub fn sender_strong_count(&self) -> usize {
        self.rx.chan().strong()
    }

    /// How many [`WeakUnboundedSender`]s there are.
    pub fn sender_weak_count(&self) -> usize {
        self.rx.chan().weak()
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.rx.kept()
    }

    /// Polls for the oldest value, as [`recv`](Self::recv) does. Only the waker of the latest call is kept, until a
    /// value comes or the receiver goes.
    #[inline]
    #[track_caller]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.rx.poll_recv(cx, Location::caller())
    }

    /// Polls for up to `limit` values, as [`recv_many`](Self::recv_many) does. Only the waker of the latest call is
    /// kept.
    #[inline]
    #[track_caller]
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.rx
            .poll_recv_many(cx, buffer, limit, Location::caller())
    }
}

// Values are moved out, never pinned.
impl<T> Unpin for UnboundedReceiver<T> {}

impl<T> Stream for UnboundedReceiver<T> {
    type Item = T;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), None)
    }
}

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedReceiver")
            .field("len", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
