//! The driver: one selector, turned by whoever holds it, and the sources registered with it.
//!
//! A source registers with the driver of the thread on which it first has to wait ([`Registered`]), edge-triggered, for
//! both directions, once for life. [`Driver::turn`] waits for events, sets the [`readiness`] of their sources, and then
//! wakes who waited.
//!
//! # Who may touch what
//! The [`Driver`] has one user at a time, who holds it mutably. The [`Handle`] is shared: any thread registers,
//! deregisters and unparks through it, also during a turn.
//!
//! # User code
//! Wakers are woken after the readiness of the whole batch is set, in the order of the events, under no lock of ours.
//! One that panics does not keep the others from being woken.

use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

mod handle;
pub mod readiness;
mod ready;
mod registered;
mod slots;
mod source;
mod wait_ready;

pub use self::handle::Handle;
pub use self::ready::{Interest, Ready};
pub use self::registered::{AsyncIo, Registered};
pub use self::wait_ready::{Readable, ReadyEvent, WaitReady, WhenReady, Writable};

use self::slots::Token;
use crate::sys::Timer;

/// Events fetched by one select. More come with the next; 12 kB, which fit into the cache with what they touch.
const EVENTS: usize = 1024;

/// A selector and what is needed to turn it.
pub struct Driver {
    poll: mio::Poll,
    events: mio::Events,
    timer: Timer,
    /// Wakers of one batch; kept for its capacity.
    woken: Vec<Waker>,
    handle: Arc<Handle>,
}

/// What one turn saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Events of sources.
    pub events: usize,
    /// Whether [`Handle::unpark`] was called.
    pub woken: bool,
}

impl Driver {
    /// A driver with nothing registered. The name is that of the runtime, for the texts of errors.
    ///
    /// # Errors
    /// If the selector or its eventfd cannot be made.
    pub fn new(name: Arc<str>) -> io::Result<(Driver, Arc<Handle>)> {
        let poll = mio::Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = mio::Waker::new(&registry, mio::Token(Token::UNPARK.0))?;
        let handle = Arc::new(Handle::new(name, registry, waker));
        let driver = Driver {
            poll,
            events: mio::Events::with_capacity(EVENTS),
            timer: Timer::new(mio::Token(Token::TIMER.0)),
            woken: Vec::new(),
            handle: Arc::clone(&handle),
        };
        Ok((driver, handle))
    }

    /// The shared half.
    #[must_use]
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    /// One select that waits for at most `timeout`: `None` is for ever, zero does not wait.
    ///
    /// # Errors
    /// If the select fails. A signal is not an error: the turn ends early and saw nothing.
    pub fn turn(&mut self, timeout: Option<Duration>) -> io::Result<Turn> {
        match timeout {
            Some(Duration::ZERO) => self.turn_now(),
            // A timeout that cannot be represented never ends.
            Some(timeout) => self.turn_until(Instant::now().checked_add(timeout)),
            None => self.turn_until(None),
        }
    }

    /// One select that does not wait.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn turn_now(&mut self) -> io::Result<Turn> {
        let dispatched = self.select(Some(Duration::ZERO))?;
        Ok(dispatched.turn())
    }

    /// One select that waits until `deadline` at most, and for ever without one.
    ///
    /// The deadline is met to some tens of microseconds. A deadline that is the same as in the last turn, or later,
    /// costs no system call. The turn may end early, as on a signal.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn turn_until(&mut self, deadline: Option<Instant>) -> io::Result<Turn> {
        loop {
            let timeout = match deadline {
                None => None,
                Some(deadline) => self.timer.prepare(self.poll.registry(), deadline),
            };
            let dispatched = self.select(timeout)?;
            let only_timer = dispatched.timer && dispatched.events == 0 && !dispatched.woken;
            // The timer was armed for a deadline that is no longer there, or for less than this one.
            if only_timer && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                continue;
            }
            return Ok(dispatched.turn());
        }
    }

    /// As [`turn_until`](Self::turn_until), but calls `awake` when the wait is over and nothing is dispatched yet.
    ///
    /// For a scheduler that has to say that it is awake before it wakes tasks. The turn may end early for no reason.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn turn_until_then(
        &mut self,
        deadline: Option<Instant>,
        awake: impl FnOnce(),
    ) -> io::Result<Turn> {
        let timeout = match deadline {
            None => None,
            Some(deadline) => self.timer.prepare(self.poll.registry(), deadline),
        };
        Ok(self.select_then(timeout, awake)?.turn())
    }

    fn select(&mut self, timeout: Option<Duration>) -> io::Result<handle::Dispatched> {
        self.select_then(timeout, || {})
    }

    fn select_then(
        &mut self,
        timeout: Option<Duration>,
        awake: impl FnOnce(),
    ) -> io::Result<handle::Dispatched> {
        let polled = self.poll.poll(&mut self.events, timeout);
        awake();
        match polled {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(handle::Dispatched::default());
            }
            Err(error) => return Err(error),
        }
        if self.events.is_empty() {
            return Ok(handle::Dispatched::default());
        }
        let dispatched = self.handle.dispatch(&self.events, &mut self.woken);
        if dispatched.timer {
            self.timer.fired();
        }
        wake_all(&mut self.woken);
        Ok(dispatched)
    }
}

impl handle::Dispatched {
    fn turn(self) -> Turn {
        Turn {
            events: self.events,
            woken: self.woken,
        }
    }
}

impl Drop for Driver {
    /// Nobody can turn it any more, so nobody may wait for it.
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("handle", &self.handle)
            .field("timer", &self.timer)
            .finish_non_exhaustive()
    }
}

/// Wakes all, in order. A panic of one goes on after the others were woken.
fn wake_all(woken: &mut Vec<Waker>) {
    let mut wakers = woken.drain(..);
    let mut first = None;
    while let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| {
        for waker in wakers.by_ref() {
            waker.wake();
        }
    })) {
        if first.is_none() {
            first = Some(payload);
        } else {
            // Its destructor is user code once more, and nobody is left to hear of a panic in it.
            std::mem::forget(payload);
        }
    }
    drop(wakers);
    if let Some(payload) = first {
        panic::resume_unwind(payload);
    }
}
