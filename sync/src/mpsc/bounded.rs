//! The two ends of a bounded channel.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::blocking::{block_on, forbid_in_task};

use super::chan::{Admission, Chan, MAX_SLOTS};
use super::ends::{receiver, sender, weak_sender};
use super::error::{SendError, TryRecvError, TrySendError};
use super::permit::{OwnedPermit, Permit, PermitIterator};
use super::rx::{Recv, RecvMany, Rx};
use super::send::{Closed, Reserve, ReserveMany, ReserveOwned, Sending};
use super::tx::{Tx, WeakTx};

/// Makes a channel that holds up to `capacity` values; a sender that finds it full waits.
///
/// Nothing is allocated for the slots: the channel grows as it is filled.
///
/// # Panics
/// If `capacity` is 0, or more than `usize::MAX >> 3`.
///
/// # Examples
/// ```
/// use rt_sync::mpsc;
///
/// # futures_lite::future::block_on(async {
/// let (sender, mut receiver) = mpsc::channel(2);
/// sender.send("one").await?;
/// sender.send("two").await?;
/// assert!(sender.try_send("three").is_err());
///
/// assert_eq!(receiver.recv().await, Some("one"));
/// assert_eq!(receiver.recv().await, Some("two"));
/// drop(sender);
/// assert_eq!(receiver.recv().await, None);
/// # Ok::<(), mpsc::error::SendError<&str>>(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(
        capacity > 0,
        "mpsc::channel(0): a bounded channel needs room for at least one value; use `channel(1)`, or `oneshot` for a \
         single value"
    );
    assert!(
        capacity <= MAX_SLOTS,
        "mpsc::channel({capacity}): at most {MAX_SLOTS} slots; use `unbounded_channel` for no limit"
    );
    let chan = Chan::new(capacity);
    let receiver = Receiver {
        rx: Rx::new(chan.clone(), true),
    };
    let sender = Sender {
        tx: Tx::first(chan),
    };
    (sender, receiver)
}

/// The end that sends into a bounded channel: made by [`channel`]; clone it for more of them.
pub struct Sender<T> {
    pub(super) tx: Tx<T>,
}

/// A sender that does not keep the channel open: made by [`Sender::downgrade`].
///
/// When the last [`Sender`] has gone the receiver is told so, whatever weak ones there are.
pub struct WeakSender<T> {
    tx: WeakTx<T>,
}

/// The end that receives from a bounded channel: made by [`channel`].
///
/// It is a [`Stream`] itself; tokio has a wrapper for that. Dropping it closes the channel and drops what is in it.
pub struct Receiver<T> {
    rx: Rx<T>,
}

impl<T> Sender<T> {
    #[inline]
    pub(super) fn chan(&self) -> &Chan<T> {
        self.tx.chan()
    }

    /// Sends a value; waits while the channel is full. Senders are let in first come first served.
    ///
    /// `Ok` does not say that the value will be received: the receiver may go before that.
    ///
    /// # Errors
    /// Gives the value back if the receiver has closed the channel or has gone.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has sent nothing, its place in the line is lost, and the value is
    /// dropped with it. Where the value must not be lost, wait with [`reserve`](Self::reserve), then send.
    #[inline]
    #[track_caller]
    pub fn send(&self, value: T) -> Sending<'_, T> {
        Sending::new(self.chan(), value, Location::caller())
    }

    /// Sends a value if a slot is free and nobody waits for it.
    ///
    /// # Errors
    /// Gives the value back if the channel is full, or if it is closed.
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.chan().try_send(value)
    }

    /// Sends a value; blocks this thread while the channel is full. For threads that are not workers of a runtime: a
    /// worker that blocks polls nothing meanwhile.
    ///
    /// # Errors
    /// Gives the value back if the receiver has closed the channel or has gone.
    ///
    /// # Panics
    /// Inside a task.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// std::thread::spawn(move || sender.blocking_send(7));
    /// assert_eq!(receiver.blocking_recv(), Some(7));
    /// assert_eq!(receiver.blocking_recv(), None);
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        forbid_in_task("Sender::blocking_send", "Sender::send");
        // First without a waker: it costs an allocation.
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(value)) => Err(SendError(value)),
            Err(TrySendError::Full(value)) => block_on(self.send(value)),
        }
    }

    /// Waits for a slot and keeps it for one value, which can then be sent without waiting.
    ///
    /// # Errors
    /// If the receiver has closed the channel or has gone.
    ///
    /// # Cancel safety
    /// Only the place in the line is lost.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::mpsc;
    ///
    /// # futures_lite::future::block_on(async {
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let permit = sender.reserve().await?;
    /// assert!(sender.try_send(1).is_err());
    /// permit.send(2);
    /// assert_eq!(receiver.recv().await, Some(2));
    /// # Ok::<(), mpsc::error::SendError<()>>(())
    /// # }).unwrap();
    /// ```
    #[inline]
    #[track_caller]
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve::new(self.chan(), Location::caller())
    }

    /// Waits for `n` slots at once and keeps them.
    ///
    /// # Errors
    /// If the receiver has closed the channel or has gone, or if the channel will never have `n` slots.
    ///
    /// # Cancel safety
    /// Only the place in the line is lost.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::mpsc;
    ///
    /// # futures_lite::future::block_on(async {
    /// let (sender, mut receiver) = mpsc::channel(2);
    /// for (permit, value) in sender.reserve_many(2).await?.zip(["one", "two"]) {
    ///     permit.send(value);
    /// }
    /// assert_eq!(receiver.len(), 2);
    /// # Ok::<(), mpsc::error::SendError<()>>(())
    /// # }).unwrap();
    /// ```
    #[inline]
    #[track_caller]
    pub fn reserve_many(&self, n: usize) -> ReserveMany<'_, T> {
        ReserveMany::new(self.chan(), n, Location::caller())
    }

    /// Same as [`reserve`](Self::reserve), with a permit that owns the sender and gives it back.
    ///
    /// # Errors
    /// If the receiver has closed the channel or has gone.
    ///
    /// # Cancel safety
    /// The place in the line is lost, and the sender is dropped; clone it before if it is needed.
    #[inline]
    #[track_caller]
    pub fn reserve_owned(self) -> ReserveOwned<T> {
        ReserveOwned::new(self, Location::caller())
    }

    /// Keeps a slot for one value if one is free and nobody waits for it.
    ///
    /// # Errors
    /// If the channel is full, or closed.
    #[inline]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.take_slots(1)?;
        Ok(Permit::new(self.chan()))
    }

    /// Keeps `n` slots if so many are free and nobody waits for them.
    ///
    /// # Errors
    /// If fewer are free, or if the channel is closed.
    #[inline]
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        self.take_slots(n)?;
        Ok(PermitIterator::new(self.chan(), n))
    }

    /// Same as [`try_reserve`](Self::try_reserve), with a permit that owns the sender and gives it back.
    ///
    /// # Errors
    /// Gives the sender back if the channel is full, or closed.
    #[inline]
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.take_slots(1) {
            Ok(()) => Ok(OwnedPermit::new(self)),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    fn take_slots(&self, n: usize) -> Result<(), TrySendError<()>> {
        let chan = self.chan();
        let mut state = chan.lock();
        match chan.reserve(&mut state, n) {
            Admission::Granted => Ok(()),
            Admission::Full => Err(TrySendError::Full(())),
            Admission::Closed => Err(TrySendError::Closed(())),
        }
    }

    /// How many values could be sent now without waiting: 0 also while others wait.
    pub fn capacity(&self) -> usize {
        self.chan().capacity()
    }

    /// How many values the channel holds at most.
    pub fn max_capacity(&self) -> usize {
        self.chan().max()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("closed", &self.is_closed())
            .field("max_capacity", &self.max_capacity())
            .finish_non_exhaustive()
    }
}

sender!(Sender, WeakSender);
weak_sender!(WeakSender, Sender);
receiver!(Receiver, Sender, WeakSender);

impl<T> Receiver<T> {
    /// How many values could be sent now without waiting: 0 also while senders wait.
    pub fn capacity(&self) -> usize {
        self.rx.chan().capacity()
    }

    /// How many values the channel holds at most.
    pub fn max_capacity(&self) -> usize {
        self.rx.chan().max()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("closed", &self.is_closed())
            .field("max_capacity", &self.max_capacity())
            .finish_non_exhaustive()
    }
}
