//! `pause`, `resume`, `advance`: a clock for tests that does not run by itself.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as RealInstant};

use rt_sync::wait::{self, WaitKind};

use super::clock::{Clock, ClockError};
use super::current;

/// Stops the clock of the current runtime.
///
/// From here on [`Instant::now`](super::Instant::now) stands still. When every task waits and no blocking closure
/// is under way, the clock jumps to the earliest deadline: a test that sleeps for an hour is over at once, and its
/// deadlines are met to the nanosecond. [`advance`] moves the clock by hand. Sockets and other programs know nothing of
/// it: a timeout around real I/O fires as soon as everything waits.
///
/// # Panics
/// Outside a runtime, in a runtime with several threads, and if the clock is paused already.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
/// use rt::time::{Instant, pause, sleep};
///
/// # async fn example() {
/// pause();
/// let start = Instant::now();
/// sleep(Duration::from_secs(3600)).await;
/// assert_eq!(start.elapsed(), Duration::from_secs(3600));
/// # }
/// ```
#[track_caller]
pub fn pause() {
    check("pause", current_clock("pause").pause());
}

/// Lets the clock of the current runtime run again, from where it stands.
///
/// # Panics
/// Outside a runtime, and if the clock is not paused.
#[track_caller]
pub fn resume() {
    check("resume", current_clock("resume").resume());
}

/// Moves the paused clock of the current runtime on by `duration`, and lets the tasks run whose timers are due then.
///
/// Timers that are due on the way fire in the order of their deadlines, give or take a tick of the wheel (0.26 ms), but
/// all of them see the clock at its new place. A task that goes to sleep again is not waited for.
///
/// # Panics
/// The future panics outside a runtime, and if the clock is not paused.
#[track_caller]
pub fn advance(duration: Duration) -> Advance {
    Advance {
        duration: Some(duration),
        site: Location::caller(),
    }
}

/// Future of [`advance`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Advance {
    duration: Option<Duration>,
    site: &'static Location<'static>,
}

impl Future for Advance {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(duration) = self.duration.take() else {
            return Poll::Ready(());
        };
        let moved = current::with_current(|timers| timers.cloned()).map(|timers| {
            let moved = timers.clock().advance(duration);
            timers.expire(RealInstant::now());
            moved
        });
        match moved {
            Some(Ok(())) => {}
            Some(Err(error)) => panic!("`time::advance` at {}: {error}", self.site),
            None => panic!("`time::advance` at {}: {NO_RUNTIME}", self.site),
        }
        wait::record(WaitKind::Yield, self.site);
        // A task that is woken in its own poll comes behind everything that is ready, and so behind what was fired.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

const NO_RUNTIME: &str = "there is no runtime whose clock that would be; call it inside `Runtime::block_on` or from a \
                          task of a current-thread runtime";

#[track_caller]
pub(super) fn current_clock(what: &str) -> Clock {
    match current::with_current(|timers| timers.map(|timers| timers.clock().clone())) {
        Some(clock) => clock,
        None => panic!("`time::{what}`: {NO_RUNTIME}"),
    }
}

#[track_caller]
pub(super) fn check(what: &str, result: Result<(), ClockError>) {
    if let Err(error) = result {
        panic!("`time::{what}`: {error}");
    }
}
