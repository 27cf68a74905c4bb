//! The end of `watch` that replaces the value.

use std::fmt;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::error::SendError;
use super::receiver::Receiver;
use super::{Ref, Shared};
use crate::coop;
use crate::notify::Notified;
use crate::primitive::Arc;
use crate::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::wait::{self, WaitKind};

/// The end that replaces the value: made by [`channel`](super::channel) or [`Sender::new`].
///
/// When the last clone has gone, receivers are told.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    pub(super) fn with(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// A channel without a receiver so far: see [`subscribe`](Self::subscribe).
    #[must_use]
    pub fn new(init: T) -> Self {
        super::channel(init).0
    }

    /// Replaces the value and tells every receiver.
    ///
    /// # Errors
    /// Gives the value back, and stores nothing, if there is no receiver.
    /// [`send_replace`](Self::send_replace) and [`send_modify`](Self::send_modify) do not mind.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        // The old value is dropped here, with no lock held.
        drop(self.send_replace(value));
        Ok(())
    }

    /// Replaces the value, tells every receiver, and returns the value that was there.
    #[inline]
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|old| mem::swap(old, &mut value));
        value
    }

    /// Changes the value in place and tells every receiver.
    ///
    /// `modify` runs under the lock of the value: receivers that borrow wait for it, and borrowing from this channel in
    /// it never ends.
    ///
    /// # Panics
    /// If `modify` panics. The channel remains usable; the value is as `modify` left it, and nobody is told.
    #[inline]
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Same as [`send_modify`](Self::send_modify), but receivers are told only if `modify` returns `true`, which is
    /// what this returns as well.
    ///
    /// # Panics
    /// As for [`send_modify`](Self::send_modify).
    #[inline]
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let mut value = self.shared.value.write();
        if !modify(&mut value) {
            return false;
        }
        self.shared.state.bump();
        drop(value);
        self.shared.changed.notify_waiters();
        true
    }

    /// The value as it is. See [`Ref`] for how long to keep it.
    #[inline]
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref {
            value: self.shared.value.read(),
            has_changed: false,
        }
    }

    /// Whether there is no receiver now. [`subscribe`](Self::subscribe) makes one.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn closed(&self) -> Closed<'_, T> {
        Closed {
            sender: self,
            notified: self.shared.deserted.notified(),
            site: Location::caller(),
        }
    }

    /// Another receiver, which has seen the value that is there now.
    pub fn subscribe(&self) -> Receiver<T> {
        let version = self.shared.state.load().version();
        // Relaxed: a count, which gives access to nothing.
        self.shared.receivers.fetch_add(1, Relaxed);
        Receiver::with(self.shared.clone(), version)
    }

    /// How many receivers there are.
    #[inline]
    pub fn receiver_count(&self) -> usize {
        // Acquire: who sees that a receiver has gone sees what it did.
        self.shared.receivers.load(Acquire)
    }

    /// How many senders there are.
    #[inline]
    pub fn sender_count(&self) -> usize {
        self.shared.senders.load(Relaxed)
    }

    /// Whether both send to the same channel.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // Relaxed: the count cannot become 0 meanwhile, as we are in it.
        self.shared.senders.fetch_add(1, Relaxed);
        Self::with(self.shared.clone())
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what every sender did comes before the end.
        if self.shared.senders.fetch_sub(1, AcqRel) == 1 {
            self.shared.state.close();
            self.shared.changed.notify_waiters();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("shared", &self.shared)
            .finish()
    }
}

pin_project! {
    /// Future of [`Sender::closed`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Closed<'a, T> {
        sender: &'a Sender<T>,
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
            if this.sender.is_closed() {
                unit.made_progress();
                return Poll::Ready(());
            }
            if this.notified.as_mut().poll_inner(cx.waker()).is_pending() {
                wait::record(WaitKind::Watch, this.site);
                return Poll::Pending;
            }
            // Somebody may have subscribed since.
            this.notified
                .set(this.sender.shared.deserted.notified_at(this.site));
        }
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}
