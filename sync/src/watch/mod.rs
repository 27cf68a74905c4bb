//! A channel that holds one value, the latest: any number of senders replace it, receivers see that it changed.
//!
//! [`channel`] makes both ends. Each [`Receiver`] knows which version of the value it has seen: the one that was there
//! when it was made (or cloned: what the other had seen) is seen already. [`Receiver::changed`] waits for one that is
//! not, and [`Receiver::borrow`] and [`Receiver::borrow_and_update`] look at the value. Versions in between may be
//! missed; the last one never is.
//!
//! # Examples
//! ```
//! use rt_sync::watch;
//!
//! let (sender, mut receiver) = watch::channel("starting");
//! let watching = std::thread::spawn(move || futures_lite::future::block_on(async {
//!     let mut last = *receiver.borrow_and_update();
//!     while receiver.changed().await.is_ok() {
//!         last = *receiver.borrow_and_update();
//!     }
//!     last
//! }));
//! sender.send("ready")?;
//! drop(sender);
//! assert_eq!(watching.join().unwrap(), "ready");
//! # Ok::<(), watch::error::SendError<&str>>(())
//! ```
//!
//! # What it guarantees
//! Who is told of a version sees that value or a later one. Every receiver that waits is told of every version that it
//! has not seen, and of the end.
//!
//! # The race
//! Sender: put the value in and bump the version (both under the write lock), then notify. Receiver: make a future of
//! [`Notify`], look at the version, then wait. A call of `notify_waiters` after the future was made completes it, so
//! either the version is seen or the future is completed. The same for the end and for [`Sender::closed`].
//!
//! # User code
//! A value that was replaced is dropped, and wakers are woken, with no lock held. Closures that are given the value
//! (`send_modify`, `send_if_modified`, `wait_for`) necessarily run under its lock; they may panic.
//!
//! # Where it comes from
//! tokio's `watch`, in names and meaning. That one has eight `Notify` to spread receivers over; here one is enough, as
//! waiting is one read-modify-write, and a send with nobody waiting has one instead of eight locks to take.

pub mod error;
mod receiver;
mod sender;
mod version;

use std::fmt;
use std::ops::Deref;

use self::version::{State, Version};
use crate::notify::Notify;
use crate::primitive::Arc;
use crate::primitive::atomic::AtomicUsize;
use crate::primitive::{RwLock, RwLockReadGuard};

pub use self::receiver::{Changed, Receiver, WaitFor};
pub use self::sender::{Closed, Sender};

/// Makes a channel with a first value, which the receiver has seen.
///
/// # Examples
/// ```
/// use rt_sync::watch;
///
/// let (sender, mut receiver) = watch::channel(1);
/// assert!(!receiver.has_changed()?);
/// sender.send_modify(|value| *value += 1);
/// assert!(receiver.has_changed()?);
/// assert_eq!(*receiver.borrow_and_update(), 2);
/// # Ok::<(), watch::error::RecvError>(())
/// ```
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        value: RwLock::new(init),
        state: State::new(),
        receivers: AtomicUsize::new(1),
        senders: AtomicUsize::new(1),
        changed: Notify::new(),
        deserted: Notify::new(),
    });
    let receiver = Receiver::with(shared.clone(), Version::FIRST);
    (Sender::with(shared), receiver)
}

/// What all ends share.
struct Shared<T> {
    value: RwLock<T>,
    /// Bumped under the write lock, so that who reads the value knows its version.
    state: State,
    receivers: AtomicUsize,
    senders: AtomicUsize,
    /// Notified after each version, and when the last sender goes.
    changed: Notify,
    /// Notified when the last receiver goes.
    deserted: Notify,
}

/// The value, borrowed: as long as one of these exists, sending blocks its thread.
///
/// So keep it for a short time, never across an `.await` (it is not `Send`, so that the compiler says so), and do not
/// borrow again meanwhile on the same thread: a sender that waits in between lets neither go on.
#[must_use = "a borrow that is not looked at only keeps senders waiting"]
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    has_changed: bool,
}

impl<T> Ref<'_, T> {
    /// Whether the receiver that was borrowed from had not seen this version. `false` if it comes from a sender.
    #[inline]
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("value", &**self)
            .field("has_changed", &self.has_changed)
            .finish()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
