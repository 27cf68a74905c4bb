//! A value that is set once, and that tasks wait for.
//!
//! # What it guarantees
//! The first [`set`](SetOnce::set) wins and completes every [`wait`](SetOnce::wait); who loses finds the value there.
//!
//! # The race
//! Who waits makes a future of `Notify`, looks at the value, then waits; who sets puts it in, then notifies all.
//!
//! # Where it comes from
//! tokio's `SetOnce`, in names and meaning.

use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::coop;
use crate::notify::{Notified, Notify};
use crate::once_value::OnceValue;
use crate::primitive::Mutex;
use crate::wait::{self, WaitKind};

/// A value that is set once, and that tasks wait for.
///
/// # Examples
/// ```
/// use rt_sync::set_once::SetOnce;
///
/// static READY: SetOnce<u32> = SetOnce::const_new();
///
/// let waiting = std::thread::spawn(|| *futures_lite::future::block_on(READY.wait()));
/// READY.set(7)?;
/// assert_eq!(waiting.join().unwrap(), 7);
/// assert!(READY.set(8).is_err());
/// # Ok::<(), rt_sync::set_once::SetOnceError<u32>>(())
/// ```
pub struct SetOnce<T> {
    value: OnceValue<T>,
    /// Held by who puts the value in, so that who comes too late finds it there.
    setting: Mutex<()>,
    notify: Notify,
}

impl<T> SetOnce<T> {
    /// Without a value.
    #[must_use]
    pub fn new() -> Self {
        Self::with(OnceValue::new())
    }

    fn with(value: OnceValue<T>) -> Self {
        Self {
            value,
            setting: Mutex::new(()),
            notify: Notify::new(),
        }
    }

    /// Without a value, for a `static`.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn const_new() -> Self {
        Self {
            value: OnceValue::new(),
            setting: Mutex::new(()),
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
            setting: Mutex::new(()),
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

    /// Sets the value, and completes whoever waits for it.
    ///
    /// # Errors
    /// Gives the value back if there is one already.
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        let setting = self.setting.lock();
        let Ok(room) = self.value.begin() else {
            drop(setting);
            return Err(SetOnceError(value));
        };
        room.fill(value);
        drop(setting);
        self.notify.notify_waiters();
        Ok(())
    }

    /// The value, if there is one.
    #[must_use]
    pub fn into_inner(mut self) -> Option<T> {
        self.value.take()
    }

    /// Waits for the value.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn wait(&self) -> Wait<'_, T> {
        let site = Location::caller();
        Wait {
            once: self,
            notified: self.notify.notified_at(site),
            site,
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        Self::with(OnceValue::with(value))
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce")
            .field("value", &self.get())
            .finish()
    }
}

pin_project! {
    /// Future of [`SetOnce::wait`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Wait<'a, T> {
        once: &'a SetOnce<T>,
        #[pin]
        notified: Notified<'a>,
        site: &'static Location<'static>,
    }
}

impl<'a, T> Future for Wait<'a, T> {
    type Output = &'a T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        let unit = ready!(coop::poll_proceed(cx));
        let this = self.project();
        let once: &'a SetOnce<T> = this.once;
        let mut value = once.get();
        if value.is_none() && this.notified.poll_inner(cx.waker()).is_ready() {
            // The one notification there is comes after the value.
            value = once.get();
        }
        match value {
            Some(value) => {
                unit.made_progress();
                Poll::Ready(value)
            }
            None => {
                wait::record(WaitKind::OnceCell, this.site);
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Wait<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").finish_non_exhaustive()
    }
}

/// There is a value already: hands the new one back.
#[derive(Debug, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the SetOnce has a value already: it can be set once")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}

#[cfg(all(test, not(rt_loom)))]
mod tests;
