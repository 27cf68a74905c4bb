//! The end of `watch` that looks at the value and waits for another one.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::error::RecvError;
use super::{Ref, Shared, Version};
use crate::coop;
use crate::notify::Notified;
use crate::primitive::Arc;
use crate::primitive::atomic::Ordering::{AcqRel, Relaxed};
use crate::wait::{self, WaitKind};

/// The end that looks at the value: made by [`channel`](super::channel), by
/// [`Sender::subscribe`](super::Sender::subscribe), or cloned.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// What has been seen.
    version: Version,
}

impl<T> Receiver<T> {
    /// The caller has counted it.
    pub(super) fn with(shared: Arc<Shared<T>>, version: Version) -> Self {
        Self { shared, version }
    }

    /// The value as it is, which does not count as seen. See [`Ref`] for how long to keep it.
    ///
    /// In a loop with [`changed`](Self::changed), [`borrow_and_update`](Self::borrow_and_update) is the better one:
    /// with this one a value that comes between the two is seen twice.
    #[inline]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.shared.read(self.version).0
    }

    /// The value as it is, which counts as seen from now on. See [`Ref`] for how long to keep it.
    #[inline]
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let (value, version) = self.shared.read(self.version);
        self.version = version;
        value
    }

    /// Whether there is a value that was not seen; it still is not afterwards.
    ///
    /// # Errors
    /// If every sender has gone, also when there is such a value: [`changed`](Self::changed) does not fail then.
    #[inline]
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let state = self.shared.state.load();
        if state.is_closed() {
            return Err(RecvError(()));
        }
        Ok(state.version() != self.version)
    }

    /// Whether every sender has gone.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.shared.state.load().is_closed()
    }

    /// The value that is there counts as one that was not seen.
    #[inline]
    pub fn mark_changed(&mut self) {
        self.version = self.version.before();
    }

    /// The value that is there counts as seen.
    #[inline]
    pub fn mark_unchanged(&mut self) {
        self.version = self.shared.state.load().version();
    }

    /// Waits for a value that was not seen (there may be one already); it counts as seen afterwards.
    ///
    /// # Errors
    /// If every sender has gone and the last value was seen.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped: a value counts as seen only when it said so.
    #[inline]
    #[track_caller]
    pub fn changed(&mut self) -> Changed<'_, T> {
        let site = Location::caller();
        Changed {
            shared: &self.shared,
            version: &mut self.version,
            notified: self.shared.changed.notified_at(site),
            site,
        }
    }

    /// Waits until the value is one that `predicate` likes, and returns it; looks first at the one that is there. All
    /// values that were looked at count as seen.
    ///
    /// `predicate` runs under the lock of the value, as a borrow does.
    ///
    /// # Errors
    /// If every sender has gone and `predicate` did not like the last value.
    ///
    /// # Panics
    /// If `predicate` panics; the channel and this receiver remain usable.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped, except that values `predicate` did not like count as seen.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::watch;
    ///
    /// let (sender, mut receiver) = watch::channel(0);
    /// std::thread::spawn(move || (1..=10).for_each(|n| drop(sender.send(n))));
    /// futures_lite::future::block_on(async {
    ///     assert_eq!(*receiver.wait_for(|n| *n == 10).await?, 10);
    ///     Ok::<(), watch::error::RecvError>(())
    /// })?;
    /// # Ok::<(), watch::error::RecvError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn wait_for<F: FnMut(&T) -> bool>(&mut self, predicate: F) -> WaitFor<'_, T, F> {
        WaitFor {
            changed: self.changed(),
            predicate,
            looked: false,
        }
    }

    /// Whether both receive from the same channel.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Shared<T> {
    /// The value for who has seen `seen`, and its version.
    #[inline]
    fn read(&self, seen: Version) -> (Ref<'_, T>, Version) {
        let value = self.value.read();
        // Bumped under the write lock only, so this is the version of what we see.
        let version = self.state.load().version();
        let has_changed = version != seen;
        (Ref { value, has_changed }, version)
    }
}

impl<T> Clone for Receiver<T> {
    /// The clone has seen what this one has.
    fn clone(&self) -> Self {
        // Relaxed: a count, which gives access to nothing.
        self.shared.receivers.fetch_add(1, Relaxed);
        Self::with(self.shared.clone(), self.version)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // AcqRel: who sees 0 sees what every receiver did.
        if self.shared.receivers.fetch_sub(1, AcqRel) == 1 {
            self.shared.deserted.notify_waiters();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("shared", &self.shared)
            .field("seen", &self.version)
            .finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load();
        let mut shared = f.debug_struct("Shared");
        // Never blocks: a `Ref` or a sender of this thread may be there.
        match self.value.try_read() {
            Some(value) => shared.field("value", &&*value),
            None => shared.field("value", &format_args!("<locked>")),
        };
        shared
            .field("version", &state.version())
            .field("is_closed", &state.is_closed())
            .field("receivers", &self.receivers.load(Relaxed))
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`Receiver::changed`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Changed<'a, T> {
        shared: &'a Shared<T>,
        version: &'a mut Version,
        #[pin]
        notified: Notified<'a>,
        site: &'static Location<'static>,
    }
}

impl<T> Changed<'_, T> {
    /// `poll` without the budget.
    #[inline]
    fn poll_changed(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), RecvError>> {
        let mut this = self.project();
        loop {
            // After the future of `Notify` was made: see the race in mod.rs.
            let state = this.shared.state.load();
            if state.version() != **this.version {
                **this.version = state.version();
                return Poll::Ready(Ok(()));
            }
            if state.is_closed() {
                return Poll::Ready(Err(RecvError(())));
            }
            if this.notified.as_mut().poll_inner(cx.waker()).is_pending() {
                wait::record(WaitKind::Watch, this.site);
                return Poll::Pending;
            }
            this.notified
                .set(this.shared.changed.notified_at(this.site));
        }
    }
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<(), RecvError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let polled = self.poll_changed(cx);
        if polled.is_ready() {
            unit.made_progress();
        }
        polled
    }
}

impl<T> fmt::Debug for Changed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changed").finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`Receiver::wait_for`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct WaitFor<'a, T, F> {
        #[pin]
        changed: Changed<'a, T>,
        predicate: F,
        // Whether the value that was there at first has been looked at.
        looked: bool,
    }
}

impl<'a, T, F: FnMut(&T) -> bool> Future for WaitFor<'a, T, F> {
    type Output = Result<Ref<'a, T>, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            // A unit for each value, so that a sender that does not stop does not keep the task here.
            let unit = ready!(coop::poll_proceed(cx));
            if *this.looked && ready!(this.changed.as_mut().poll_changed(cx)).is_err() {
                unit.made_progress();
                return Poll::Ready(Err(RecvError(())));
            }
            unit.made_progress();
            let changed = this.changed.as_mut().project();
            let shared: &'a Shared<T> = changed.shared;
            // Whether it has changed is asked of what had been seen before the first look; afterwards it has.
            let (mut value, version) = shared.read(**changed.version);
            value.has_changed |= *this.looked;
            **changed.version = version;
            *this.looked = true;
            if (this.predicate)(&value) {
                return Poll::Ready(Ok(value));
            }
        }
    }
}

impl<T, F> fmt::Debug for WaitFor<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitFor").finish_non_exhaustive()
    }
}
