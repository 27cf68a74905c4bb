//! `timeout`: a limit on how long another future may take.
//!
//! # What it costs
//! Around a future that is ready at its first poll: nothing but the moves. No clock is read and no timer is touched
//! before the future inside was pending for the first time.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use rt_sync::wait::{self, WaitKind};

use super::error::{Elapsed, RescheduleError};
use super::instant::Instant;
use super::sleep::{closed, no_runtime};
use super::timer::{Outcome, Timer};

/// Gives a future at most `duration`.
///
/// The duration counts from when the future has been polled for the first time and was not ready. (tokio counts from
/// the call of `timeout`. The two differ when a `Timeout` is kept before it is awaited, and by the time that the first
/// poll takes; where the difference matters, [`timeout_at`] has a fixed deadline.)
///
/// The future is polled before the deadline is looked at. So a value that is ready at the very poll at which the
/// deadline has passed wins, and with a duration of zero the future is polled once.
///
/// When the deadline passes, the future inside is not dropped before the `Timeout` is. A future that never returns from
/// `poll` cannot be stopped.
///
/// # Errors
/// [`Elapsed`] if the future was not ready in time.
///
/// # Panics
/// The future panics when it has to wait outside a runtime, or when the runtime that it waits in has shut down.
///
/// # Cancel safety
/// Dropping the `Timeout` drops the future inside and loses what that loses, no more.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
/// use rt::time::timeout;
///
/// # async fn example() {
/// let answer = timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
/// assert!(answer.is_err());
/// # }
/// ```
#[track_caller]
#[inline]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(future.into_future(), Limit::After(duration))
}

/// Gives a future time until `deadline`.
///
/// Everything else is as with [`timeout`]: in particular the future is polled first, also when the deadline has passed
/// already.
///
/// # Errors
/// [`Elapsed`] if the future was not ready in time.
///
/// # Panics
/// As [`timeout`].
///
/// # Cancel safety
/// As [`timeout`].
#[track_caller]
#[inline]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(future.into_future(), Limit::At(deadline))
}

pin_project! {
    /// Future of [`timeout`] and [`timeout_at`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F> {
        #[pin]
        inner: F,
        #[pin]
        timer: Timer,
        limit: Limit,
        site: &'static Location<'static>,
    }
}

/// How far a limit has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Not waited yet: so long from then on.
    After(Duration),
    /// Not waited yet: until then.
    At(Instant),
    /// The timer runs.
    Until(Instant),
    /// No deadline. The timer may have been started all the same, so that a deadline can come.
    Off,
    /// The future has given its value (`false`) or [`Elapsed`]; the last deadline.
    Over(bool, Option<Instant>),
}

impl Limit {
    #[inline]
    fn deadline(self) -> Option<Instant> {
        match self {
            Limit::After(_) | Limit::Off => None,
            Limit::At(deadline) | Limit::Until(deadline) => Some(deadline),
            Limit::Over(_, deadline) => deadline,
        }
    }
}

impl<F> Timeout<F> {
    #[track_caller]
    #[inline]
    fn new(inner: F, limit: Limit) -> Self {
        Timeout {
            inner,
            timer: Timer::new(),
            limit,
            site: Location::caller(),
        }
    }

    /// The future inside.
    pub fn get_ref(&self) -> &F {
        &self.inner
    }

    /// The future inside.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.inner
    }

    /// The future inside, without the limit.
    pub fn into_inner(self) -> F {
        self.inner
    }

    /// The deadline, once it is fixed: with [`timeout`] only after the first poll that had to wait.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.limit.deadline()
    }

    /// Whether the deadline has passed and the future has said so, with [`Elapsed`].
    #[must_use]
    pub fn expired(&self) -> bool {
        matches!(self.limit, Limit::Over(true, _))
    }

    /// Moves the deadline, or takes it away: asyncio's `reschedule`. [`reset`](Self::reset) that says whether it was in
    /// time.
    ///
    /// To move a deadline from inside the future that it limits, or from another task, see
    /// [`timeout_with`](super::timeout_with).
    ///
    /// # Errors
    /// If the timeout has ended: the deadline has passed, or the value was there before.
    ///
    /// # Examples
    /// ```
    /// use std::pin::pin;
    /// use std::time::Duration;
    /// use rt::time::{Instant, sleep, timeout};
    ///
    /// # #[rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut work = pin!(timeout(Duration::from_millis(1), sleep(Duration::from_millis(20))));
    /// work.as_mut().reschedule(Instant::now() + Duration::from_secs(10))?;
    /// work.as_mut().await?;
    /// assert!(!work.expired());
    /// assert!(work.as_mut().reschedule(None).is_err(), "it is over");
    /// # Ok(())
    /// # }
    /// ```
    pub fn reschedule(
        self: Pin<&mut Self>,
        deadline: impl Into<Option<Instant>>,
    ) -> Result<(), RescheduleError> {
        if let Limit::Over(expired, _) = self.limit {
            return Err(RescheduleError::new(expired));
        }
        match deadline.into() {
            Some(deadline) => self.reset(deadline),
            None => {
                let this = self.project();
                if let Limit::Until(_) = this.limit {
                    this.timer.reset(Instant::far_future());
                }
                *this.limit = Limit::Off;
            }
        }
        Ok(())
    }

    /// Moves the deadline, also of a timeout that waits already.
    ///
    /// A future that has been told of the deadline (its poll gave [`Elapsed`]) has ended and should not be polled
    /// again.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        match this.limit {
            Limit::Until(_) | Limit::Off if !this.timer.is_unused() => {
                *this.limit = Limit::Until(deadline);
                this.timer.reset(deadline);
            }
            _ => *this.limit = Limit::At(deadline),
        }
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let site = *this.site;
        wait::around(WaitKind::Timeout, site, || {
            if let Poll::Ready(value) = this.inner.poll(cx) {
                *this.limit = Limit::Over(false, this.limit.deadline());
                return Poll::Ready(Ok(value));
            }
            match poll_limit(this.timer, this.limit, site, cx) {
                true => {
                    *this.limit = Limit::Over(true, this.limit.deadline());
                    Poll::Ready(Err(Elapsed::new()))
                }
                false => Poll::Pending,
            }
        })
    }
}

/// Whether the time is over. It spends no coop budget: a future inside that has used it up must not keep the deadline
/// from being seen.
fn poll_limit(
    mut timer: Pin<&mut Timer>,
    limit: &mut Limit,
    site: &'static Location<'static>,
    cx: &mut Context<'_>,
) -> bool {
    let deadline = match *limit {
        Limit::After(Duration::ZERO) => return true,
        Limit::After(duration) => Instant::now().saturating_add(duration),
        Limit::At(deadline) if deadline <= Instant::now() => return true,
        Limit::At(deadline) | Limit::Until(deadline) => deadline,
        Limit::Off => {
            // Only so that a deadline that is set later wakes this task. Without a runtime there is none to set.
            let _ = timer.poll(cx, Instant::far_future());
            return false;
        }
        Limit::Over(..) => panic!("the `timeout` made at {site} was polled after it had ended"),
    };
    *limit = Limit::Until(deadline);
    match timer.as_mut().poll(cx, deadline) {
        Outcome::Ready => true,
        Outcome::Pending => {
            timer.check_runtime(site);
            false
        }
        Outcome::Closed => closed("timeout", site),
        Outcome::NoRuntime => no_runtime("timeout", site),
    }
}

impl<F: fmt::Debug> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("inner", &self.inner)
            .field("limit", &self.limit)
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}
