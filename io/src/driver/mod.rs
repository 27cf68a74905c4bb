//! The driver: one selector, turned by whoever holds it, and the sources registered with it.
//!
//! A source registers with the driver of the thread on which it first has to wait ([`Registered`]), edge-triggered, for
//! both directions, once for life. [`Driver::turn`] waits for events, sets the [`readiness`] of their sources, and then
//! wakes who waited. Who keeps the driver behind a lock uses [`Driver::select_now`] and [`Driver::select_until`]: they
//! hand the wakers out, to be woken when the lock is released.
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
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod async_io;
mod handle;
pub mod readiness;
mod ready;
mod registered;
mod registration;
mod slots;
mod source;
mod wait_ready;
mod woken;

pub use self::async_io::AsyncIo;
pub use self::handle::Handle;
pub use self::ready::{Interest, Ready};
pub use self::registered::Registered;
pub(crate) use self::source::Source;
pub use self::wait_ready::{Readable, ReadyEvent, WaitReady, WhenReady, Writable};
pub use self::woken::Woken;

use self::slots::Token;
use crate::sys::Timer;

/// Events fetched by one select. More come with the next; 12 kB, which fit into the cache with what they touch.
const EVENTS: usize = 1024;

/// A selector and what is needed to turn it.
pub struct Driver {
    poll: mio::Poll,
    events: mio::Events,
    timer: Timer,
    /// Wakers of one turn; kept for its capacity.
    woken: Woken,
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
            woken: Woken::new(),
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
        self.and_wake(|driver, woken| driver.select_now(woken))
    }

    /// One select that waits until `deadline` at most, and for ever without one.
    ///
    /// The deadline is met to some tens of microseconds. A deadline that is the same as in the last turn, or later,
    /// costs no system call. The turn may end early, as on a signal.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn turn_until(&mut self, deadline: Option<Instant>) -> io::Result<Turn> {
        self.and_wake(|driver, woken| {
            loop {
                let timeout = driver.timeout(deadline);
                let seen = driver.select(timeout, || {}, woken)?;
                let only_timer = seen.timer && seen.events == 0 && !seen.woken;
                // The timer was armed for a deadline that is no longer there, or for less than this one.
                if only_timer && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    continue;
                }
                return Ok(seen.turn());
            }
        })
    }

    /// As [`turn_now`](Self::turn_now), but wakes nobody: who is to be woken is added to `woken`.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn select_now(&mut self, woken: &mut Woken) -> io::Result<Turn> {
        Ok(self.select(Some(Duration::ZERO), || {}, woken)?.turn())
    }

    /// As [`turn_until`](Self::turn_until), but calls `awake` when the wait is over and nothing is dispatched yet, and wakes
    /// nobody: who is to be woken is added to `woken`.
    ///
    /// For a scheduler that has to say that it is awake before it wakes tasks. The turn may end early for no reason.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn select_until(
        &mut self,
        deadline: Option<Instant>,
        awake: impl FnOnce(),
        woken: &mut Woken,
    ) -> io::Result<Turn> {
        let timeout = self.timeout(deadline);
        Ok(self.select(timeout, awake, woken)?.turn())
    }

    fn and_wake(
        &mut self,
        turn: impl FnOnce(&mut Self, &mut Woken) -> io::Result<Turn>,
    ) -> io::Result<Turn> {
        let mut woken = mem::take(&mut self.woken);
        let turn = turn(self, &mut woken);
        woken.wake();
        self.woken = woken;
        turn
    }

    /// What to give the selector for this deadline.
    fn timeout(&mut self, deadline: Option<Instant>) -> Option<Duration> {
        deadline.and_then(|deadline| self.timer.prepare(self.poll.registry(), deadline))
    }

    fn select(
        &mut self,
        timeout: Option<Duration>,
        awake: impl FnOnce(),
        woken: &mut Woken,
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
        let dispatched = self.handle.dispatch(&self.events, woken.list());
        if dispatched.timer {
            self.timer.fired();
        }
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
