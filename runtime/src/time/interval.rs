//! `interval`: ticks at equal distances, and what to do about those that were missed.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::instant::Instant;
use super::sleep::{closed, no_runtime};
use super::timer::{Outcome, Timer};

/// A tick that is late by less than this (and by less than a period) is on time for [`MissedTickBehavior::Delay`]:
/// otherwise every tick would push all later ones back by the lateness of timers.
const ON_TIME: Duration = Duration::from_millis(5);

/// Ticks now, and then once every `period`.
///
/// What happens when a tick is not waited for in time is the [`MissedTickBehavior`]; the default is to catch up. After
/// a stall that means many ticks at once: work that must not come in a rush should set `Skip` or `Delay`.
///
/// # Panics
/// If `period` is zero. The ticks panic when they are waited for outside a runtime, or when the runtime has shut down.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
/// use rt::time::{MissedTickBehavior, interval};
///
/// # async fn example() {
/// let mut seconds = interval(Duration::from_secs(1));
/// seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// loop {
///     seconds.tick().await;
///     if seconds.missed() > 0 {
///         eprintln!("{} seconds went by unseen", seconds.missed());
///     }
/// }
/// # }
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks at `start`, and then once every `period`.
///
/// # Panics
/// As [`interval`].
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "the period of an interval is zero, and ticks without a distance never end: use at least a nanosecond, or \
         `task::yield_now` to do something on every turn"
    );
    Interval {
        timer: Box::pin(Timer::new()),
        next: start,
        period,
        behavior: MissedTickBehavior::default(),
        missed: 0,
        site: Location::caller(),
    }
}

/// What an [`Interval`] does about ticks that nobody waited for when they were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// Every tick comes; those that were missed come at once, one after another.
    ///
    /// ```text
    /// due:   1    2    3    4    5    6
    /// comes: 1    2 (stall)  34  5    6
    /// ```
    #[default]
    Burst,
    /// The tick that is late comes at once, and the next one a period after that.
    ///
    /// ```text
    /// due:   1    2    3    4    5    6
    /// comes: 1    2 (stall)  3    4    5
    /// ```
    Delay,
    /// The tick that is late comes at once, further ones that were missed do not come, and the next one comes when it
    /// would have come anyway.
    ///
    /// ```text
    /// due:   1    2    3    4    5    6
    /// comes: 1    2 (stall)  3   5    6
    /// ```
    Skip,
}

/// Ticks at equal distances; made by [`interval`] and [`interval_at`].
pub struct Interval {
    /// In a box so that an interval can be moved and used from `&mut`, as its name promises.
    timer: Pin<Box<Timer>>,
    /// When the next tick is due.
    next: Instant,
    period: Duration,
    behavior: MissedTickBehavior,
    missed: u64,
    site: &'static Location<'static>,
}

impl Interval {
    /// Waits for the next tick; gives the moment at which it was due.
    ///
    /// # Cancel safety
    /// A tick that was not given is not lost: it comes with the next call.
    pub fn tick(&mut self) -> Tick<'_> {
        Tick { interval: self }
    }

    /// Asks for the next tick; the task is woken when it is due.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        // A tick that is due already, as when catching up, needs no timer.
        if !self.timer.is_idle() || self.next > Instant::now() {
            match self.timer.as_mut().poll(cx, self.next) {
                Outcome::Ready => {}
                Outcome::Pending => {
                    self.timer.check_runtime(self.site);
                    wait::record(WaitKind::Interval, self.site);
                    return Poll::Pending;
                }
                Outcome::Closed => closed("interval", self.site),
                Outcome::NoRuntime => no_runtime("interval", self.site),
            }
        }
        let unit = ready!(coop::poll_proceed(cx));
        unit.made_progress();
        let tick = self.next;
        self.schedule(Instant::now());
        Poll::Ready(tick)
    }

    /// A tick comes at `now`: says when the next one is due, and how many are given up for it.
    fn schedule(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.next);
        let regular = self.next.saturating_add(self.period);
        let passed = late.as_nanos() / self.period.as_nanos();
        let (next, missed) = match self.behavior {
            MissedTickBehavior::Burst => (regular, 0),
            MissedTickBehavior::Delay if late < ON_TIME.min(self.period) => (regular, 0),
            MissedTickBehavior::Delay => (now.saturating_add(self.period), passed),
            MissedTickBehavior::Skip if passed == 0 => (regular, 0),
            MissedTickBehavior::Skip => {
                // Less than `late`, which is less than the 584 years of a `u64`.
                let over = (late.as_nanos() % self.period.as_nanos()) as u64;
                let rest = self.period.saturating_sub(Duration::from_nanos(over));
                (now.saturating_add(rest), passed)
            }
        };
        self.missed = u64::try_from(missed).unwrap_or(u64::MAX);
        self.reset_at(next);
    }

    /// How many ticks the last one made up for: they were due before it came, and will not come any more. Always zero
    /// with [`MissedTickBehavior::Burst`], which gives up none.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The next tick comes a period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// The next tick comes at once, and those after it from there.
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// The next tick comes so long from now, and those after it a period apart again.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(Instant::now().saturating_add(after));
    }

    /// The next tick comes at `deadline`, and those after it a period apart again.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.next = deadline;
        self.timer.as_mut().reset(deadline);
    }

    /// What happens to ticks that are missed.
    #[must_use]
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.behavior
    }

    /// Says what shall happen to ticks that are missed, from the next one on.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.behavior = behavior;
    }

    /// The distance of two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("next", &self.next)
            .field("period", &self.period)
            .field("missed_tick_behavior", &self.behavior)
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}

/// Future of [`Interval::tick`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Tick<'a> {
    interval: &'a mut Interval,
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        self.interval.poll_tick(cx)
    }
}
