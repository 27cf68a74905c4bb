//! The two ends of an unbounded channel.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::blocking::{block_on, forbid_in_task};

use super::chan::Chan;
use super::ends::{receiver, sender, weak_sender};
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
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

sender!(UnboundedSender, WeakUnboundedSender);
weak_sender!(WeakUnboundedSender, UnboundedSender);
receiver!(UnboundedReceiver, UnboundedSender, WeakUnboundedSender);

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedReceiver")
            .field("len", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
