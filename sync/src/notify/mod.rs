//! Tells tasks that something happened, without saying what: a permit, or a wake for everybody.
//!
//! # What it guarantees
//! [`notify_one`](Notify::notify_one) completes the future that has waited longest; if none waits it leaves a permit,
//! at most one, which the next [`notified`](Notify::notified) that is polled takes.
//! [`notify_waiters`](Notify::notify_waiters) completes every future that exists, also those that were not polled yet,
//! and leaves no permit. A future that was notified by `notify_one` or [`notify_last`](Notify::notify_last) and is
//! dropped before it said so passes the notification on, in the same way as it was chosen itself.
//!
//! # Where it comes from
//! tokio's `Notify`, in names and meaning. How it works: `core.rs`.

mod core;
mod future;
mod list;

use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use self::core::{Choice, Core};
pub use self::future::{Notified, OwnedNotified};

/// Tells one or all waiting tasks that something happened.
///
/// Storing a permit and taking it are one read-modify-write each, without a lock; so are waiting, and waking one.
///
/// # Examples
/// ```
/// use rt_sync::notify::Notify;
/// use std::sync::Arc;
///
/// let notify = Arc::new(Notify::new());
/// let other = notify.clone();
/// let waiting = std::thread::spawn(move || {
///     futures_lite::future::block_on(other.notified());
/// });
/// // Whether it waits already or not.
/// notify.notify_one();
/// waiting.join().unwrap();
/// ```
///
/// A queue whose consumers look again after each wake:
/// ```
/// use rt_sync::notify::Notify;
/// use std::collections::VecDeque;
/// use std::sync::Mutex;
///
/// struct Queue<T> {
///     items: Mutex<VecDeque<T>>,
///     more: Notify,
/// }
///
/// impl<T> Queue<T> {
///     fn push(&self, item: T) {
///         self.items.lock().unwrap().push_back(item);
///         self.more.notify_one();
///     }
///
///     async fn pop(&self) -> T {
///         loop {
///             let notified = self.more.notified();
///             if let Some(item) = self.items.lock().unwrap().pop_front() {
///                 return item;
///             }
///             notified.await;
///         }
///     }
/// }
/// ```
pub struct Notify {
    core: Core,
}

impl Notify {
    /// Without a permit.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { core: Core::new() }
    }

    /// Without a permit.
    #[cfg(rt_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { core: Core::new() }
    }

    /// Same as [`new`](Self::new), which is `const` too: the name that tokio's users know.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn const_new() -> Self {
        Self::new()
    }

    /// Waits for a notification.
    ///
    /// Takes the permit if there is one; else it is completed by the next [`notify_one`](Self::notify_one) whose turn
    /// it is, or by any [`notify_waiters`](Self::notify_waiters) after this call (whether the future has been polled by
    /// then or not).
    ///
    /// # Cancel safety
    /// A notification for one that this future got and did not report goes to the next. Its place in the queue is lost
    /// when it is dropped.
    #[inline]
    #[track_caller]
    pub fn notified(&self) -> Notified<'_> {
        Notified::new(self, Location::caller())
    }

    /// `notified` for the futures of other primitives, which know where they were made.
    #[inline]
    pub(crate) fn notified_at(&self, site: &'static Location<'static>) -> Notified<'_> {
        Notified::new(self, site)
    }

    /// Same as [`notified`](Self::notified), with a future that keeps the `Notify` alive.
    ///
    /// # Cancel safety
    /// As for [`notified`](Self::notified).
    #[inline]
    #[track_caller]
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        OwnedNotified::new(self, Location::caller())
    }

    /// Completes the future that has waited longest, or leaves a permit for the next one. There is at most one permit:
    /// two calls before anybody waits are as one.
    ///
    /// # Panics
    /// If the waker of the task panics; it counts as notified all the same.
    #[inline]
    pub fn notify_one(&self) {
        self.core.notify(Choice::Oldest);
    }

    /// Same as [`notify_one`](Self::notify_one), but the future that began to wait last is the one that is completed.
    ///
    /// # Panics
    /// As for [`notify_one`](Self::notify_one).
    #[inline]
    pub fn notify_last(&self) {
        self.core.notify(Choice::Newest);
    }

    /// Completes every future that was made before this call. Leaves no permit, and takes none away.
    ///
    /// # Panics
    /// If a waker panics; all others have been woken then.
    #[inline]
    pub fn notify_waiters(&self) {
        self.core.notify_all();
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

// No user code runs while the word is locked, so a panic never finds it half-way.
impl UnwindSafe for Notify {}
impl RefUnwindSafe for Notify {}

#[cfg(all(test, not(rt_loom)))]
mod tests;
