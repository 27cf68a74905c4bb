//! A value that is made once, by an async function, when it is first needed.
//!
//! # What it guarantees
//! One initialiser runs at a time, and the first that succeeds sets the value for ever. When one fails, panics or is
//! dropped, one of those that wait runs its own.
//!
//! # The race
//! Who waits makes a future of `Notify`, tries to take the room, then waits. Who gives the room back frees it, then
//! notifies one; who fills it, all. A notification for one that finds nobody stays as a permit, and lets a later one
//! try in vain.
//!
//! # User code
//! The initialiser and its future run while other callers wait, but with no lock held: who has the room just knows it.
//!
//! # Where it comes from
//! tokio's `OnceCell`, in names and meaning. That one keeps those that wait in a semaphore.

mod init;

use std::error::Error;
use std::fmt;
use std::mem;
use std::panic::Location;

use self::init::Init;
pub use self::init::{GetOrInit, GetOrTryInit};
use crate::notify::Notify;
use crate::once_value::{OnceValue, Taken};

/// A value that is made once, when it is first needed.
///
/// # Examples
/// ```
/// use rt_sync::once_cell::OnceCell;
///
/// static ANSWER: OnceCell<u32> = OnceCell::const_new();
///
/// async fn answer() -> u32 {
///     *ANSWER.get_or_init(|| async { 6 * 7 }).await
/// }
///
/// assert_eq!(futures_lite::future::block_on(answer()), 42);
/// assert_eq!(ANSWER.get(), Some(&42));
/// ```
pub struct OnceCell<T> {
    value: OnceValue<T>,
    notify: Notify,
}

impl<T> OnceCell<T> {
    /// Without a value.
    #[must_use]
    pub fn new() -> Self {
        Self {
            value: OnceValue::new(),
            notify: Notify::new(),
        }
    }

    /// Without a value, for a `static`.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn const_new() -> Self {
        Self {
            value: OnceValue::new(),
            notify: Notify::const_new(),
        }
    }

    /// With a value, if there is one.
    #[must_use]
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(Self::new, Self::from)
    }

    /// With a value, for a `static`.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn const_new_with(value: T) -> Self {
        Self {
            value: OnceValue::with(value),
            notify: Notify::const_new(),
        }
    }

    /// Whether there is a value.
    #[inline]
    #[must_use]
    pub fn initialized(&self) -> bool {
        self.value.is_set()
    }

    /// The value, if there is one.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, if there is one, to be changed.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Sets the value, if there is none and nobody is making one.
    ///
    /// # Errors
    /// Gives the value back otherwise: see [`SetError`].
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        match self.value.begin() {
            Ok(room) => {
                room.fill(value);
                self.notify.notify_waiters();
                Ok(())
            }
            Err(Taken::Busy) => Err(SetError::InitializingError(value)),
            Err(Taken::Set) => Err(SetError::AlreadyInitializedError(value)),
        }
    }

    /// The value; makes it with `init` if there is none.
    ///
    /// While somebody else makes one this waits, and does it itself only if the other one panics or is dropped. An
    /// `init` that waits for its own cell waits for ever.
    ///
    /// # Cancel safety
    /// The future of `init`, if it was begun, is dropped with this one; then the next caller that waits begins anew.
    #[inline]
    #[track_caller]
    pub fn get_or_init<F, Fut>(&self, init: F) -> GetOrInit<'_, T, F, Fut>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        GetOrInit::new(Init::new(self, init, Location::caller()))
    }

    /// The value; makes it with `init` if there is none.
    ///
    /// As [`get_or_init`](Self::get_or_init); when `init` fails, the next caller that waits begins anew.
    ///
    /// # Errors
    /// Those of `init`.
    ///
    /// # Cancel safety
    /// As for [`get_or_init`](Self::get_or_init).
    #[inline]
    #[track_caller]
    pub fn get_or_try_init<E, F, Fut>(&self, init: F) -> GetOrTryInit<'_, T, F, Fut>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        GetOrTryInit::new(Init::new(self, init, Location::caller()))
    }

    /// The value, if there is one.
    #[must_use]
    pub fn into_inner(mut self) -> Option<T> {
        self.value.take()
    }

    /// Takes the value out, if there is one; the cell has none then.
    pub fn take(&mut self) -> Option<T> {
        mem::take(self).into_inner()
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        Self {
            value: OnceValue::with(value),
            notify: Notify::new(),
        }
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCell")
            .field("value", &self.get())
            .finish()
    }
}

/// Why [`OnceCell::set`] did not set the value: hands it back.
#[derive(Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// There is a value already.
    AlreadyInitializedError(T),
    /// Somebody is making one.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// Whether there is a value already.
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, SetError::AlreadyInitializedError(_))
    }

    /// Whether somebody is making a value.
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, SetError::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetError::AlreadyInitializedError(_) => {
                "the OnceCell has a value already: it can be set once"
            }
            SetError::InitializingError(_) => {
                "the OnceCell is being initialised: `get_or_init` waits for that"
            }
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}

#[cfg(all(test, not(rt_loom)))]
mod tests;
