//! The ends of `broadcast` that send.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::buffer::Shared;
use super::error::SendError;
use super::receiver::Receiver;
use crate::coop;
use crate::notify::Notified;
use crate::primitive::Arc;
use crate::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::wait::{self, WaitKind};

/// The end that sends: made by [`channel`](super::channel) or [`Sender::new`].
///
/// When the last clone has gone, receivers get what is there, and then
/// [`RecvError::Closed`](super::error::RecvError::Closed).
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// A sender that does not keep the channel open: see [`Sender::downgrade`].
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// A channel without a receiver so far: see [`subscribe`](Self::subscribe). The capacity is rounded up to a power
    /// of two.
    ///
    /// # Panics
    /// If `capacity` is 0 or more than `usize::MAX / 2`.
    #[must_use]
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        Self {
            shared: Arc::new(Shared::new(capacity)),
        }
    }

    /// Sends a value to every receiver there is, and returns how many these are. Never waits: if there is no room the
    /// oldest value goes.
    ///
    /// That a value was sent does not say that it will be received: a receiver may go, or be too late.
    ///
    /// # Errors
    /// Gives the value back if there is no receiver. The channel is not over then: [`subscribe`](Self::subscribe) makes
    /// one.
    ///
    /// # Panics
    /// If the destructor of the value that had to go panics, or the waker of a receiver. The value is sent all the
    /// same.
    #[inline]
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        match self.shared.push(value) {
            Ok((receivers, old)) => {
                // In this order: a panic of a destructor must not keep receivers from being told.
                let _old = old;
                self.shared.sent.notify_waiters();
                Ok(receivers)
            }
            Err(value) => Err(SendError(value)),
        }
    }

    #[cfg(all(test, not(rt_loom)))]
    pub(super) fn more_cells(&self) -> (usize, usize) {
        self.shared.more_cells()
    }

    /// Another receiver, which gets the values that are sent from now on.
    ///
    /// # Panics
    /// If there are `u32::MAX` receivers already.
    #[track_caller]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(self.shared.clone())
    }

    /// A sender that does not keep the channel open.
    #[must_use = "downgrading does not drop the sender itself"]
    pub fn downgrade(&self) -> WeakSender<T> {
        // Relaxed: a count for who asks.
        self.shared.weak_senders.fetch_add(1, Relaxed);
        WeakSender {
            shared: self.shared.clone(),
        }
    }

    /// How many values are there that a receiver has not got yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether every receiver has got everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    /// How many receivers there are.
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers()
    }

    /// Whether both send to the same channel.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn closed(&self) -> Closed<'_, T> {
        Closed {
            shared: &self.shared,
            notified: self.shared.deserted.notified(),
            site: Location::caller(),
        }
    }

    /// How many senders there are.
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.shared.senders.load(Acquire)
    }

    /// How many weak senders there are.
    #[must_use]
    pub fn weak_count(&self) -> usize {
        self.shared.weak_senders.load(Acquire)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // Relaxed: the count cannot become 0 meanwhile, as we are in it.
        self.shared.senders.fetch_add(1, Relaxed);
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what every sender did comes before the end.
        if self.shared.senders.fetch_sub(1, AcqRel) == 1 {
            self.shared.sent.notify_waiters();
        }
    }
}

impl<T> WeakSender<T> {
    /// A sender, unless all have gone: then the channel is closed for ever.
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.shared.upgrade().then(|| Sender {
            shared: self.shared.clone(),
        })
    }

    /// How many senders there are.
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.shared.senders.load(Acquire)
    }

    /// How many weak senders there are.
    #[must_use]
    pub fn weak_count(&self) -> usize {
        self.shared.weak_senders.load(Acquire)
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        // Relaxed: as in `downgrade`.
        self.shared.weak_senders.fetch_add(1, Relaxed);
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        // Relaxed: as in `downgrade`.
        self.shared.weak_senders.fetch_sub(1, Relaxed);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("sent", &self.shared.next_number())
            .field("senders", &self.strong_count())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender")
            .field("senders", &self.strong_count())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`Sender::closed`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Closed<'a, T> {
        shared: &'a Shared<T>,
        #[pin]
        notified: Notified<'a>,
        site: &'static Location<'static>,
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut this = self.project();
        loop {
            if this.shared.receivers() == 0 {
                unit.made_progress();
                return Poll::Ready(());
            }
            if this.notified.as_mut().poll_inner(cx.waker()).is_pending() {
                wait::record(WaitKind::Broadcast, this.site);
                return Poll::Pending;
            }
            // Somebody may have subscribed since.
            this.notified
                .set(this.shared.deserted.notified_at(this.site));
        }
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}
