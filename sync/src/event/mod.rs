//! `Event`: a flag that tasks wait for, with asyncio's names and meaning.
//!
//! # What it guarantees
//! Who waits while the event is set, or is waiting when it is set, goes on; it does so even if the event was cleared
//! before it ran. Waiting takes nothing away: any number of tasks go on.
//!
//! # The race
//! Waiter: join the list, then look at the flag. Setter: set the flag, then notify everybody in the list. The fences of
//! the [`WaitList`] lie between the two steps on both sides, so one of the two sees the other. Who joins after
//! `notify_all` has begun sees the flag as it is then: it waits if the event has been cleared meanwhile, as it came
//! after the clear.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::coop;
use crate::primitive::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use crate::wait::{self, WaitKind};
use crate::wait_list::{WaitList, Waiter};

/// A flag that tasks wait for. Shared by reference or by `Arc`.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use rt_sync::event::Event;
///
/// let ready = Arc::new(Event::new());
/// let setter = ready.clone();
/// std::thread::spawn(move || setter.set());
/// futures_lite::future::block_on(ready.wait());
/// assert!(ready.is_set());
/// ```
pub struct Event {
    set: AtomicBool,
    waiters: WaitList,
}

impl Event {
    /// An event that is not set.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            set: AtomicBool::new(false),
            waiters: WaitList::new(),
        }
    }

    /// An event that is not set.
    #[cfg(rt_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            set: AtomicBool::new(false),
            waiters: WaitList::new(),
        }
    }

    /// Sets the event: everybody who waits goes on, and nobody has to wait until it is [cleared](Self::clear).
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    pub fn set(&self) {
        // Release: what was done before is seen by who goes on.
        self.set.store(true, Release);
        // Also when it was set already: it may have been cleared and set by others, who are still at it.
        self.waiters.notify_all();
    }

    /// Clears the event: who comes now waits. Who was there when it was set goes on all the same.
    pub fn clear(&self) {
        // Release: a chain of sets and clears hands on what came before each of them.
        self.set.store(false, Release);
    }

    /// Whether the event is set.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        // Acquire: with `set`.
        self.set.load(Acquire)
    }

    /// Waits until the event is set; at once if it is.
    ///
    /// It counts as waiting from the first poll on.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn wait(&self) -> EventWait<'_> {
        EventWait {
            event: self,
            waiter: Waiter::new(&self.waiters, ()),
            site: Location::caller(),
        }
    }
}

pin_project! {
    /// Future of [`Event::wait`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct EventWait<'a> {
        event: &'a Event,
        #[pin]
        waiter: Waiter<&'a WaitList>,
        site: &'static Location<'static>,
    }
}

impl Future for EventWait<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut this = self.project();
        let waiting = this.waiter.is_waiting();
        if (!waiting && this.event.is_set())
            || this.waiter.as_mut().poll(cx).is_ready()
            || this.event.is_set()
        {
            // The waker goes now, even if the future is kept.
            this.waiter.remove();
            unit.made_progress();
            return Poll::Ready(());
        }
        wait::record(WaitKind::Event, this.site);
        Poll::Pending
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("set", &self.is_set())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EventWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventWait").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
