//! Sleep of one seat: a three-state word, and two kinds of bed.
//!
//! A seat that owns registered sockets sleeps in its selector; one without sleeps on a condition variable, and no
//! `epoll_wait` is ever called for it. Whoever unparks it pays a system call only if it is really asleep.
//!
//! # What it guarantees
//! An [`unpark`](Park::unpark) that comes before, during or after the owner's decision to sleep ends that sleep, or
//! makes the next one return at once. Unparks do not add up.
//!
//! # Who may touch what
//! `word` goes from `RUNNING` to `PARKED_*` by the owner only, to `NOTIFIED` by anyone, back to `RUNNING` by the owner
//! only. The lock holds nothing; it keeps an unpark from slipping between the owner's last look and its wait.
//!
//! # The race
//! The owner sees nothing to do and is about to sleep, while a foreign thread queues a task and unparks it. Both aim at
//! `word` with an exchange: either the owner finds `NOTIFIED` and does not sleep, or the foreign thread finds
//! `PARKED_*` and wakes it.
//!
//! # Where it comes from
//! The word is tokio's and Go's; the two beds come from pains I3 (per-worker selectors that are polled for nothing).

use std::fmt;
use std::time::{Duration, Instant};

use rt_sync::primitive::atomic::AtomicU8;
use rt_sync::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use rt_sync::primitive::{Condvar, Mutex};

const RUNNING: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED_THREAD: u8 = 2;
const PARKED_SELECTOR: u8 = 3;

/// The sleep of one seat. See the module head.
pub struct Park {
    word: AtomicU8,
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Park {
    /// A seat that is awake.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU8::new(RUNNING),
            lock: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }

    /// Sleeps on the condition variable until unparked, or until `deadline`. For the owner.
    pub fn park(&self, deadline: Option<Instant>) {
        let mut guard = self.lock.lock();
        if !self.enter(PARKED_THREAD) {
            return;
        }
        // Acquire, here and below: pairs with the exchange of `unpark`, so that what was queued before it is seen.
        while self.word.load(Acquire) == PARKED_THREAD {
            guard = match deadline {
                None => self.condvar.wait(guard),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left == Duration::ZERO {
                        break;
                    }
                    self.condvar.wait_timeout(guard, left).0
                }
            };
        }
        self.word.swap(RUNNING, AcqRel);
    }

    /// Says that the owner is about to sleep in its selector. `false`: it was notified and must not.
    #[must_use]
    pub fn before_select(&self) -> bool {
        self.enter(PARKED_SELECTOR)
    }

    /// The owner is back from its selector.
    pub fn after_select(&self) {
        // AcqRel: acquire as in `park`.
        self.word.swap(RUNNING, AcqRel);
    }

    /// `RUNNING` becomes `parked`; `NOTIFIED` is used up.
    fn enter(&self, parked: u8) -> bool {
        // AcqRel: pairs with the exchange of `unpark`; what was queued before a notification is seen.
        match self.word.compare_exchange(RUNNING, parked, AcqRel, Acquire) {
            Ok(_) => true,
            Err(_) => {
                self.word.swap(RUNNING, AcqRel);
                false
            }
        }
    }

    /// Wakes the owner, or keeps it from falling asleep. `selector` is called if it sleeps in its selector.
    ///
    /// Returns whether the owner was asleep, that is, whether a system call was made.
    pub fn unpark(&self, selector: impl FnOnce()) -> bool {
        // AcqRel: release publishes what was queued before; acquire orders a later look at the same word.
        match self.word.swap(NOTIFIED, AcqRel) {
            PARKED_THREAD => {
                // The owner holds the lock from before it set the word until it waits.
                drop(self.lock.lock());
                self.condvar.notify_one();
                true
            }
            PARKED_SELECTOR => {
                selector();
                true
            }
            _ => false,
        }
    }

    /// Whether the owner sleeps at this moment. For the monitor and for metrics.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        matches!(self.word.load(Relaxed), PARKED_THREAD | PARKED_SELECTOR)
    }
}

impl Default for Park {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Park {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.word.load(Relaxed) {
            RUNNING => "running",
            NOTIFIED => "notified",
            PARKED_THREAD => "parked",
            _ => "parked in its selector",
        };
        f.debug_tuple("Park").field(&word).finish()
    }
}
