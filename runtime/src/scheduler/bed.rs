//! The sleep of the monitor: timed between two looks, and without limit while every worker sleeps.
//!
//! # What it guarantees
//! While a thread is awake that called [`wake`](Bed::wake) when it woke up, the monitor is not in a sleep without limit.
//! Guest seats that were left, and the end of the runtime, end any sleep.
//!
//! # The race
//! The monitor finds everybody asleep and lies down, while a worker wakes up.
//!
//! 1. The monitor says that it sleeps.
//! 2. It passes a `fence(SeqCst)`.
//! 3. It looks once more whether anybody is awake.
//!
//! The worker, at the same time:
//!
//! 1. is awake, as its park word says,
//! 2. passes a `fence(SeqCst)`,
//! 3. looks whether the monitor sleeps.
//!
//! One fence comes first: either the monitor sees that the worker is awake, or the worker sees that the monitor sleeps and
//! ends that. A worker that wakes up while the monitor is awake pays for a fence and a load.
//!
//! Model: `loom-tests/tests/bed.rs`.

use std::fmt;
use std::time::Duration;

use rt_sync::primitive::atomic::Ordering::{Relaxed, SeqCst};
use rt_sync::primitive::atomic::{AtomicBool, fence};
use rt_sync::primitive::{Condvar, Mutex};

/// See the module head.
pub struct Bed {
    asleep: AtomicBool,
    lock: Mutex<()>,
    condvar: Condvar,
    closed: AtomicBool,
    /// A guest seat was left with sources registered.
    guests: AtomicBool,
}

/// For how long the monitor sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// For so long at most.
    Tick(Duration),
    /// Until somebody is awake.
    UntilBusy,
    /// Until somebody else has a reason: nobody is watched.
    UntilCalled,
}

impl Bed {
    /// Nobody lies in it.
    #[must_use]
    pub fn new() -> Self {
        Self {
            asleep: AtomicBool::new(false),
            lock: Mutex::new(()),
            condvar: Condvar::new(),
            closed: AtomicBool::new(false),
            guests: AtomicBool::new(false),
        }
    }

    /// A worker woke up: a fence and a load, unless the monitor sleeps.
    #[inline]
    pub fn wake(&self) {
        // Pairs with the fence of `sleep`: see the module head.
        fence(SeqCst);
        if self.asleep.load(Relaxed) && self.asleep.swap(false, SeqCst) {
            self.rouse();
        }
    }

    /// Ends the present sleep.
    #[cold]
    fn rouse(&self) {
        // The monitor holds the lock from its last look until it waits.
        drop(self.lock.lock());
        self.condvar.notify_one();
    }

    /// A guest seat was left while something is registered with it.
    pub fn call_for_guests(&self) {
        if !self.guests.swap(true, SeqCst) {
            self.rouse();
        }
    }

    /// Whether a guest seat was left since the last [`set_guests(false)`](Self::set_guests).
    #[must_use]
    pub fn has_guests(&self) -> bool {
        self.guests.load(SeqCst)
    }

    /// The monitor has looked after the guest seats, or has not got a thread for all.
    pub fn set_guests(&self, left: bool) {
        self.guests.store(left, SeqCst);
    }

    /// The runtime closes.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.rouse();
    }

    /// Sleeps, for the monitor alone. No longer than until a guest seat is left, unless they are ignored, as there is no
    /// thread to serve them. `is_busy` says whether anybody is awake. `false`: the runtime closed.
    pub fn sleep(
        &self,
        sleep: Sleep,
        ignores_guests: bool,
        mut is_busy: impl FnMut() -> bool,
    ) -> bool {
        let is_done = || self.closed.load(SeqCst) || self.guests.load(SeqCst) && !ignores_guests;
        let mut guard = self.lock.lock();
        match sleep {
            Sleep::Tick(tick) => {
                if !is_done() {
                    drop(self.condvar.wait_timeout(guard, tick));
                }
            }
            Sleep::UntilBusy => {
                // Exchanges here and below: a plain store would leave open whether it comes before or after a `wake` of the
                // sleep before.
                self.asleep.swap(true, SeqCst);
                // Pairs with the fence of `wake`: see the module head.
                fence(SeqCst);
                while self.asleep.load(SeqCst) && !is_done() && !is_busy() {
                    guard = self.condvar.wait(guard);
                }
                self.asleep.swap(false, SeqCst);
            }
            Sleep::UntilCalled => {
                while !is_done() {
                    guard = self.condvar.wait(guard);
                }
            }
        }
        !self.closed.load(SeqCst)
    }
}

impl Default for Bed {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Bed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bed")
            .field("asleep", &self.asleep.load(Relaxed))
            .finish_non_exhaustive()
    }
}
