//! `sleep`: a future that is ready at a deadline.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::instant::Instant;
use super::timer::{Outcome, Timer};

/// Waits until `duration` has passed, counted from this call.
///
/// The clock is that of [`Instant`]. A sleep never ends early; on an idle worker it ends some tenths of a millisecond
/// late, on a busy one when the worker comes round to it. A duration that leads beyond the end of the clock
/// (`Duration::MAX`) never ends. A duration of zero gives way once to everything else that is ready.
///
/// # Panics
/// The future panics when it is polled outside a runtime, or when the runtime that it waits in has shut down.
/// In a task of that runtime, and in `block_on`, it does not: those end with the poll that is under way, as "runtime closed".
///
/// # Cancel safety
/// Dropping the future cancels the timer and loses nothing. A new one starts from zero: to wait for one deadline across
/// several `select!`s keep one `Sleep` pinned and poll that, or use [`sleep_until`].
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
///
/// # async fn example() {
/// rt::time::sleep(Duration::from_millis(100)).await;
/// # }
/// ```
#[track_caller]
#[inline]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep {
        timer: Timer::new(),
        deadline: Instant::now().saturating_add(duration),
        zero: duration.is_zero(),
        site: Location::caller(),
    }
}

/// Waits until `deadline`. It does not read the clock.
///
/// A deadline that has passed makes the future ready at once or within one turn of the worker.
///
/// # Panics
/// As [`sleep`].
///
/// # Cancel safety
/// As [`sleep`].
#[track_caller]
#[inline]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        timer: Timer::new(),
        deadline,
        zero: false,
        site: Location::caller(),
    }
}

pin_project! {
    /// Future of [`sleep`] and [`sleep_until`].
    ///
    /// The timer starts when the future is polled for the first time; before that it costs nothing, also when it is
    /// [`reset`](Sleep::reset) or dropped.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Sleep {
        #[pin]
        timer: Timer,
        deadline: Instant,
        // A sleep of zero: gives way once instead of waiting.
        zero: bool,
        site: &'static Location<'static>,
    }
}

impl Sleep {
    /// The moment at which the future is ready.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the deadline has passed and the future knows of it.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.timer.has_fired()
    }

    /// Gives the future another deadline, before or after it has ended.
    ///
    /// The timer stays in the wheel that it is in; the task that polled it last is woken at the new deadline, without
    /// another poll. Moving a deadline back takes no lock.
    ///
    /// # Examples
    /// ```no_run
    /// use std::time::Duration;
    /// use rt::time::{Instant, sleep};
    ///
    /// # async fn example() {
    /// let idle = sleep(Duration::from_secs(30));
    /// let mut idle = std::pin::pin!(idle);
    /// // A message came:
    /// idle.as_mut().reset(Instant::now() + Duration::from_secs(30));
    /// # }
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        *this.deadline = deadline;
        *this.zero = false;
        this.timer.reset(deadline);
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if *this.zero {
            *this.zero = false;
            this.timer.set_fired();
            wait::record(WaitKind::Yield, this.site);
            // A task that is woken in its own poll comes behind everything that is ready.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match this.timer.as_mut().poll(cx, *this.deadline) {
            Outcome::Ready => {
                let unit = ready!(coop::poll_proceed(cx));
                unit.made_progress();
                Poll::Ready(())
            }
            Outcome::Pending => {
                this.timer.check_runtime(this.site);
                wait::record(WaitKind::Sleep, this.site);
                Poll::Pending
            }
            Outcome::Closed => closed("sleep", this.site),
            Outcome::NoRuntime => no_runtime("sleep", this.site),
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .field("is_elapsed", &self.is_elapsed())
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}

#[cold]
#[track_caller]
pub(super) fn no_runtime(what: &str, site: &Location<'_>) -> ! {
    panic!(
        "the `{what}` made at {site} was polled outside a runtime, so no thread would fire its timer: poll it inside \
         `Runtime::block_on` or a task of a runtime, or enter one with `Handle::enter` before"
    );
}

#[cold]
#[track_caller]
pub(super) fn closed(what: &str, site: &Location<'_>) -> ! {
    panic!(
        "the `{what}` made at {site} was polled after its runtime had shut down, so nothing would ever fire its timer: \
         keep the runtime alive for as long as its futures are polled elsewhere"
    );
}
