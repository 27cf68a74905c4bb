//! The boot clock: the system's, or what a runtime with a virtual clock takes for it.
//!
//! # Who may touch what
//! `sleepers` are the sleeps that wait on a clock that is virtual, or may be paused yet. The lock is held to enter and to leave and to take wakers out;
//! nobody is woken under it.
//!
//! # The race
//! [`suspend`] against a sleep that begins to wait: the sleep registers its waker before it reads the clock, `suspend` moves
//! the clock before it takes the wakers. Likewise `pause`, which makes the clock virtual: a sleep that waits by a timer of
//! the system's has to wait by the virtual clock from then on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant as RealInstant};

use rt_sync::AtomicWaker;
use rt_sync::wake_batch::{discard, wake_each};
use rustix::time::{ClockId, clock_gettime};

use crate::time::clock::{Clock, ClockError};
use crate::time::pause::{check, current_clock};
use crate::unpoisoned::lock;

/// The boot clock of one runtime whose clock is virtual.
#[derive(Default)]
pub(in crate::time) struct Line {
    /// What the system's showed when the clock of the runtime was at its base.
    origin: OnceLock<Duration>,
    /// Nanoseconds for which the machine was suspended, as it were.
    suspended: AtomicU64,
    sleepers: Mutex<Sleepers>,
}

#[derive(Default)]
struct Sleepers {
    wakers: BTreeMap<u64, Arc<AtomicWaker>>,
    /// The key of the next one.
    next: u64,
}

/// The time since the machine was started, on the clock of the current runtime.
pub(super) fn now() -> Duration {
    match Clock::virtual_of_current() {
        Some(clock) => clock.boot().now(&clock),
        None => of_system(),
    }
}

fn of_system() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    // It counts from zero, and nanoseconds are below a second.
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

impl Line {
    fn now(&self, clock: &Clock) -> Duration {
        let base = clock.base();
        let origin = self
            .origin
            .get_or_init(|| of_system().saturating_sub(RealInstant::now().duration_since(base)));
        let passed = clock.now().into_std().saturating_duration_since(base);
        // Acquire: pairs with `suspend`.
        let suspended = Duration::from_nanos(self.suspended.load(Acquire));
        origin.saturating_add(passed).saturating_add(suspended)
    }

    fn suspend(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let add = |before: u64| Some(before.saturating_add(ns));
        // Release: pairs with `now`. Before the wakers are taken: see the module head.
        let _ = self.suspended.fetch_update(Release, Acquire, add);
        self.wake();
    }

    /// The clock has been moved, or made virtual: whoever sleeps has to look at it.
    pub(in crate::time) fn wake(&self) {
        let wakers: Vec<Waker> = self
            .sleepers()
            .wakers
            .values()
            .filter_map(|sleeper| sleeper.take())
            .collect();
        // The others are woken all the same; the panic hook has told of it.
        if let Some(payload) = wake_each(wakers.into_iter()) {
            discard(payload);
        }
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        lock(&self.sleepers)
    }
}

/// A sleep that is woken when the clock is moved by [`suspend`], or is paused for the first time.
pub(super) struct Sleeper {
    clock: Clock,
    key: u64,
    waker: Arc<AtomicWaker>,
}

impl Sleeper {
    /// On the clock of the current runtime, if that can be paused.
    pub(super) fn new() -> Option<Self> {
        let clock = Clock::pausable_of_current()?;
        let waker = Arc::new(AtomicWaker::new());
        let mut sleepers = clock.boot().sleepers();
        let key = sleepers.next;
        sleepers.next += 1;
        sleepers.wakers.insert(key, waker.clone());
        drop(sleepers);
        Some(Self { clock, key, waker })
    }

    /// Whether the clock was ever paused.
    pub(super) fn is_virtual(&self) -> bool {
        self.clock.is_virtual()
    }

    /// To be called before the clock is read.
    pub(super) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self.clock.boot().sleepers();
        // `self.waker` outlives it: no waker is dropped under the lock.
        sleepers.wakers.remove(&self.key);
    }
}

/// Moves the boot clock of the current runtime on by `duration`, as if the machine had been suspended for so long. For
/// tests: the clock has to be [paused](crate::time::pause()), and itself stays where it is.
///
/// Sleeps of this module that are due then are woken.
///
/// # Panics
/// Outside a runtime, and if the clock is not paused.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use rt::time::{Instant, boottime};
///
/// #[rt::main(flavor = "current_thread", start_paused = true)]
/// async fn main() {
///     let start = Instant::now();
///     let hourly = rt::spawn(boottime::sleep(Duration::from_secs(3600)));
///     rt::task::yield_now().await;
///     boottime::suspend(Duration::from_secs(4000));
///     hourly.await.expect("no panic");
///     assert!(start.elapsed() < Duration::from_secs(1));
/// }
/// ```
#[track_caller]
pub fn suspend(duration: Duration) {
    let clock = current_clock("boottime::suspend");
    let paused = match clock.is_paused() {
        true => Ok(()),
        false => Err(ClockError::Running),
    };
    check("boottime::suspend", paused);
    clock.boot().suspend(duration);
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("suspended", &self.suspended.load(Acquire))
            .finish_non_exhaustive()
    }
}
