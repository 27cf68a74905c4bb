//! The clock of a runtime: the system's, or one that a test stops and moves.
//!
//! # Real and virtual time
//! An [`Instant`] of ours is a point on the virtual line, a [`std::time::Instant`] in a signature of this module one on
//! the real line. They are the same until the clock is paused for the first time. Wheels count on the virtual line,
//! from [`Clock::base`]; what the operating system is given is always real.
//!
//! # What it costs
//! As long as no clock of the process was ever paused, [`now`] is one relaxed load and the read of the system's clock.
//!
//! # Virtual time moves
//! by hand ([`Clock::advance`]), or by itself to the earliest deadline when the runtime has nothing else to do
//! ([`Clock::auto_advance`]), unless something outside the runtime's sight is under way: each blocking closure holds an
//! [`InhibitGuard`] from the moment it is handed over until it is done.
//!
//! # The race
//! The last guard is dropped while the runtime decides whether it may advance. The runtime: (1) sets `paused`, (2) fence,
//! (3) reads `inhibitors`. The guard: (1) takes itself off `inhibitors`, (2) fence, (3) reads `paused`. So either the
//! runtime sees no inhibitor, or the guard sees a paused clock and unparks the runtime, which then looks again.

use std::fmt;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Relaxed, SeqCst},
    fence,
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant as RealInstant};

use super::current;
use super::instant::Instant;
use super::timers::Timers;

/// Some clock of this process was paused at some time: from then on every reading has to ask which clock is meant.
static EVER_PAUSED: AtomicBool = AtomicBool::new(false);

/// Nanoseconds from the base that stand for "never".
pub(super) const NEVER: u64 = u64::MAX;

/// The latest deadline that counts: anything later never comes. It leaves room for the words of an entry's states and
/// for rounding up to a tick. 584 years.
const LAST: u64 = u64::MAX - (1 << 24);

/// The present on the clock of the current runtime.
#[inline]
pub(super) fn now() -> Instant {
    if EVER_PAUSED.load(Relaxed) {
        now_of_current()
    } else {
        Instant::from_std(RealInstant::now())
    }
}

#[cold]
fn now_of_current() -> Instant {
    current::with_current(|timers| timers.map(|timers| timers.clock().clone())).map_or_else(
        || Instant::from_std(RealInstant::now()),
        |clock| clock.now(),
    )
}

/// Handle to the clock of one runtime.
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    base: RealInstant,
    pausable: bool,
    /// Whether `line` was ever anything but the real line.
    ever_paused: AtomicBool,
    /// Whether `line` is `Paused`. Written under the lock of `line`.
    paused: AtomicBool,
    line: Mutex<Line>,
    /// Guards that live.
    inhibitors: AtomicUsize,
    unpark: OnceLock<Box<dyn Fn() + Send + Sync>>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    boot: super::boottime::Line,
}

/// How the virtual line lies to the real one.
#[derive(Debug, Clone, Copy)]
enum Line {
    Running {
        virtual_from: RealInstant,
        real_from: RealInstant,
    },
    Paused {
        at: RealInstant,
    },
}

/// What [`Clock::pause`], [`resume`](Clock::resume) or [`advance`](Clock::advance) cannot do, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockError {
    /// Several threads share this clock.
    NotPausable,
    /// It is paused already.
    Paused,
    /// It is not paused.
    Running,
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClockError::NotPausable => {
                "only the clock of a current-thread runtime can be paused: with several workers \
                 nobody could say when all of them have nothing to do. Make the runtime with \
                 `Builder::new_current_thread()`, or the test with `#[rt::test(start_paused = true)]`"
            }
            ClockError::Paused => {
                "the clock is paused already; each `pause` needs a `resume` before the next one"
            }
            ClockError::Running => {
                "the clock is not paused: call `time::pause()` first, or make the runtime with \
                 `start_paused(true)`"
            }
        })
    }
}

/// One reading of a clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Virtual nanoseconds since the base.
    pub(super) ns: u64,
    /// The clock is paused: what is due is due to the nanosecond.
    pub(super) exact: bool,
}

impl Clock {
    /// A clock that follows the system's and cannot be paused.
    #[must_use]
    pub fn new() -> Clock {
        Clock::with(false, false)
    }

    /// A clock that can be paused, and is so from the beginning if `start_paused`.
    #[must_use]
    pub fn pausable(start_paused: bool) -> Clock {
        Clock::with(true, start_paused)
    }

    fn with(pausable: bool, start_paused: bool) -> Clock {
        let base = RealInstant::now();
        if start_paused {
            EVER_PAUSED.store(true, Relaxed);
        }
        Clock(Arc::new(Inner {
            base,
            pausable,
            ever_paused: AtomicBool::new(start_paused),
            paused: AtomicBool::new(start_paused),
            line: Mutex::new(if start_paused {
                Line::Paused { at: base }
            } else {
                Line::Running {
                    virtual_from: base,
                    real_from: base,
                }
            }),
            inhibitors: AtomicUsize::new(0),
            unpark: OnceLock::new(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            boot: super::boottime::Line::default(),
        }))
    }

    /// Says how to wake the thread that would call [`auto_advance`](Self::auto_advance), should it be parked when the
    /// last guard goes or when the clock is moved from elsewhere. The first call counts.
    pub fn set_unpark(&self, unpark: Box<dyn Fn() + Send + Sync>) {
        drop(self.0.unpark.set(unpark));
    }

    /// Whether both are handles to one clock, that is: belong to one runtime.
    #[inline]
    #[must_use]
    pub fn same(&self, other: &Clock) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where the ticks of the wheels begin.
    #[inline]
    #[must_use]
    pub fn base(&self) -> RealInstant {
        self.0.base
    }

    /// Whether virtual time stands still.
    #[inline]
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.0.paused.load(Relaxed)
    }

    /// The present on the virtual line.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.at(RealInstant::now())
    }

    /// The point of the virtual line that belongs to a real one.
    #[inline]
    #[must_use]
    pub fn at(&self, real: RealInstant) -> Instant {
        if !self.0.ever_paused.load(Relaxed) {
            return Instant::from_std(real);
        }
        self.at_of_line(real)
    }

    #[cold]
    fn at_of_line(&self, real: RealInstant) -> Instant {
        Instant::from_std(match *self.line() {
            Line::Paused { at } => at,
            Line::Running {
                virtual_from,
                real_from,
            } => virtual_from + real.saturating_duration_since(real_from),
        })
    }

    /// The real time at which a virtual one comes; `None` if it does not come by itself, or lies too far away to be
    /// said.
    #[must_use]
    pub fn real(&self, at: Instant) -> Option<RealInstant> {
        if !self.0.ever_paused.load(Relaxed) {
            return Some(at.into_std());
        }
        match *self.line() {
            Line::Paused { .. } => None,
            Line::Running {
                virtual_from,
                real_from,
            } => real_from.checked_add(at.into_std().saturating_duration_since(virtual_from)),
        }
    }

    /// Nanoseconds from the base to `at`: zero for what lies before it, `u64::MAX` for what lies too far after it.
    #[inline]
    #[must_use]
    pub fn ns(&self, at: Instant) -> u64 {
        let since = at.into_std().saturating_duration_since(self.0.base);
        since
            .as_secs()
            .checked_mul(1_000_000_000)
            .and_then(|ns| ns.checked_add(u64::from(since.subsec_nanos())))
            .filter(|&ns| ns <= LAST)
            .unwrap_or(NEVER)
    }

    /// The point of the virtual line that lies `ns` after the base.
    #[must_use]
    pub fn instant(&self, ns: u64) -> Option<Instant> {
        let std = self.0.base.checked_add(Duration::from_nanos(ns));
        std.map(Instant::from_std)
    }

    /// What this clock shows at a real point of time.
    #[inline]
    pub(super) fn read(&self, real: RealInstant) -> Reading {
        Reading {
            ns: self.ns(self.at(real)).min(LAST),
            exact: self.is_paused(),
        }
    }

    /// Stops virtual time.
    ///
    /// # Errors
    /// If the runtime has several threads, or the clock is paused already.
    pub fn pause(&self) -> Result<(), ClockError> {
        if !self.0.pausable {
            return Err(ClockError::NotPausable);
        }
        let mut line = self.line();
        let Line::Running {
            virtual_from,
            real_from,
        } = *line
        else {
            return Err(ClockError::Paused);
        };
        EVER_PAUSED.store(true, Relaxed);
        let passed = RealInstant::now().saturating_duration_since(real_from);
        *line = Line::Paused {
            at: virtual_from + passed,
        };
        self.0.ever_paused.store(true, Relaxed);
        self.0.paused.store(true, Relaxed);
        drop(line);
        // The race, step 2: a guard that goes from here on sees `paused`.
        fence(SeqCst);
        // What waits by the boot clock of the system does not see this one move.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        self.0.boot.wake();
        self.unpark();
        Ok(())
    }

    /// Lets virtual time run again, from where it stands.
    ///
    /// # Errors
    /// If the clock is not paused.
    pub fn resume(&self) -> Result<(), ClockError> {
        let mut line = self.line();
        let Line::Paused { at } = *line else {
            return Err(ClockError::Running);
        };
        *line = Line::Running {
            virtual_from: at,
            real_from: RealInstant::now(),
        };
        self.0.paused.store(false, Relaxed);
        drop(line);
        self.unpark();
        Ok(())
    }

    /// Moves virtual time on. What is due then is fired by the next [`Timers::expire`].
    ///
    /// # Errors
    /// If the clock is not paused.
    pub fn advance(&self, by: Duration) -> Result<(), ClockError> {
        let mut line = self.line();
        let Line::Paused { at } = &mut *line else {
            return Err(ClockError::Running);
        };
        // A step that leads beyond the end of the clock leads to what is almost its end.
        *at = at.checked_add(by).unwrap_or_else(|| {
            let last = Duration::from_nanos(LAST);
            self.0.base.checked_add(last).unwrap_or(*at)
        });
        drop(line);
        self.unpark();
        Ok(())
    }

    /// For the scheduler, when it has nothing to do: moves a paused clock to the earliest deadline of `timers`, unless
    /// something [inhibits](Self::inhibit) that.
    ///
    /// `true` says that something is due now and [`Timers::expire`] will fire it.
    pub fn auto_advance(&self, timers: &Timers) -> bool {
        if !self.is_paused() {
            return false;
        }
        // The race, step 2.
        fence(SeqCst);
        // Relaxed: the fence orders it after the store of `paused`. What a closure did is seen through its own result.
        if self.0.inhibitors.load(Relaxed) != 0 {
            return false;
        }
        let Some(deadline) = timers.earliest_exact().and_then(|ns| self.instant(ns)) else {
            return false;
        };
        let mut line = self.line();
        let Line::Paused { at } = &mut *line else {
            return false;
        };
        *at = (*at).max(deadline.into_std());
        true
    }

    /// Keeps virtual time from advancing by itself while the guard lives.
    #[inline]
    pub fn inhibit(&self) -> InhibitGuard {
        // Relaxed: who takes the guard is the runtime itself, or a thread that the runtime cannot know about before.
        self.0.inhibitors.fetch_add(1, Relaxed);
        InhibitGuard(self.clone())
    }

    fn unpark(&self) {
        if let Some(unpark) = self.0.unpark.get() {
            unpark();
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Clock {
    /// The clock of the current runtime, if it was ever paused.
    pub(super) fn virtual_of_current() -> Option<Clock> {
        if !EVER_PAUSED.load(Relaxed) {
            return None;
        }
        Clock::pausable_of_current().filter(Clock::is_virtual)
    }

    /// The clock of the current runtime, if it can be paused.
    pub(super) fn pausable_of_current() -> Option<Clock> {
        current::with_current(|timers| {
            let clock = timers?.clock();
            clock.0.pausable.then(|| clock.clone())
        })
    }

    /// Whether it was ever paused.
    pub(super) fn is_virtual(&self) -> bool {
        self.0.ever_paused.load(Relaxed)
    }

    /// The boot clock that goes with it.
    pub(super) fn boot(&self) -> &super::boottime::Line {
        &self.0.boot
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock")
            .field("line", &*self.line())
            .field("inhibitors", &self.0.inhibitors.load(Relaxed))
            .finish_non_exhaustive()
    }
}

/// Something is under way that the runtime cannot see: virtual time stays where it is.
#[derive(Debug)]
#[must_use = "virtual time is held back until the guard is dropped"]
pub struct InhibitGuard(Clock);

impl Drop for InhibitGuard {
    fn drop(&mut self) {
        // The race, step 1. AcqRel: whoever is the last has everything behind it that the others did.
        if self.0.0.inhibitors.fetch_sub(1, AcqRel) == 1 {
            // The race, step 2.
            fence(SeqCst);
            if self.0.is_paused() {
                self.0.unpark();
            }
        }
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_running_clock_is_the_one_of_the_system() {
        let clock = Clock::new();
        let real = RealInstant::now();
        assert_eq!(clock.at(real).into_std(), real);
        assert_eq!(clock.real(Instant::from_std(real)), Some(real));
        assert_eq!(clock.pause(), Err(ClockError::NotPausable));
        assert_eq!(clock.resume(), Err(ClockError::Running));
        assert_eq!(
            clock.advance(Duration::from_secs(1)),
            Err(ClockError::Running)
        );
    }

    #[test]
    fn a_paused_clock_moves_only_by_hand_and_goes_on_where_it_stood() {
        let clock = Clock::pausable(true);
        let start = clock.now();
        assert_eq!(clock.pause(), Err(ClockError::Paused));
        assert_eq!(clock.real(start), None);
        clock.advance(Duration::from_secs(100)).unwrap();
        assert_eq!(clock.now() - start, Duration::from_secs(100));

        clock.resume().unwrap();
        let later = clock.now();
        assert!(later - start >= Duration::from_secs(100));
        assert!(later - start < Duration::from_secs(150));
        // One virtual second from now is one real second from now.
        let real = clock.real(later + Duration::from_secs(1)).unwrap();
        let ahead = real.saturating_duration_since(RealInstant::now());
        assert!(ahead <= Duration::from_secs(1));
        clock.pause().unwrap();
        assert!(clock.now() >= later);
    }

    #[test]
    fn what_lies_out_of_reach_is_never_and_what_lies_before_the_base_is_zero() {
        let clock = Clock::pausable(true);
        let base = Instant::from_std(clock.base());
        assert_eq!(clock.ns(Instant::far_future()), NEVER);
        assert_eq!(clock.ns(base), 0);
        if let Some(before) = base.checked_sub(Duration::from_secs(1)) {
            assert_eq!(clock.ns(before), 0);
        }
        assert_eq!(clock.ns(base + Duration::from_nanos(LAST)), LAST);
        assert_eq!(clock.ns(base + Duration::from_nanos(LAST + 1)), NEVER);
        clock.advance(Duration::MAX).unwrap();
        assert_eq!(clock.ns(clock.now()), LAST);
    }

    #[test]
    fn the_last_guard_unparks_a_paused_runtime() {
        let clock = Clock::pausable(true);
        let unparked = Arc::new(AtomicUsize::new(0));
        let count = unparked.clone();
        clock.set_unpark(Box::new(move || {
            count.fetch_add(1, Relaxed);
        }));
        let one = clock.inhibit();
        let two = clock.inhibit();
        drop(one);
        assert_eq!(unparked.load(Relaxed), 0);
        drop(two);
        assert_eq!(unparked.load(Relaxed), 1);
    }
}
