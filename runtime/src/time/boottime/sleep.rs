//! `sleep`: a future that is ready at a deadline of the boot clock.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rt_io::{AsyncFd, Interest};
use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::Instant;
use super::line::Sleeper;
use crate::time::sleep::{closed, no_runtime};
use crate::time::timer::ends_with_poll;
use crate::time::{self, current};

/// How late a sleep without a descriptor may be after a suspension.
const LOOK: Duration = Duration::from_secs(10);

/// Waits until `duration` has passed, counted from this call, on a clock that goes on while the machine is suspended.
///
/// A sleep never ends early. A duration that leads beyond the end of the clock never ends.
///
/// # Panics
/// The future panics when it is polled outside a runtime, or when the runtime that it waits in has shut down.
///
/// # Cancel safety
/// Dropping the future cancels the timer and loses nothing.
///
/// # Examples
/// A job for each hour, also on a machine that sleeps in between:
/// ```no_run
/// use std::time::Duration;
/// use rt::time::boottime;
///
/// # async fn example() {
/// let mut next = boottime::Instant::now();
/// loop {
///     println!("once an hour");
///     next += Duration::from_secs(3600);
///     boottime::sleep_until(next).await;
/// }
/// # }
/// ```
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now().saturating_add(duration))
}

/// Waits until `deadline`.
///
/// # Panics
/// As [`sleep`].
///
/// # Cancel safety
/// As [`sleep`].
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline,
        state: State::New,
        sleeper: None,
        site: Location::caller(),
    }
}

/// Future of [`sleep`] and [`sleep_until`].
///
/// The timer starts when the future is polled for the first time.
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    deadline: Instant,
    state: State,
    /// While it waits in a runtime whose clock is virtual, or may yet become so.
    sleeper: Option<Sleeper>,
    site: &'static Location<'static>,
}

enum State {
    New,
    /// By the system's timer.
    Timer(AsyncFd<OwnedFd>),
    /// By the runtime's, on a virtual clock.
    Virtual(Pin<Box<time::Sleep>>),
    /// By the runtime's: it looks at the clock now and then.
    Look(Pin<Box<time::Sleep>>),
    Over,
}

impl Sleep {
    /// The moment at which the future is ready.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the future has been ready.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn start(&mut self) {
        if !current::with_current(|timers| timers.is_some()) {
            no_runtime("boottime::sleep", self.site);
        }
        let left = self.deadline.duration_since(Instant::now());
        // The one before may belong to another runtime.
        self.sleeper = Sleeper::new();
        self.state = if self.is_virtual() {
            State::Virtual(Box::pin(time::sleep(left)))
        } else {
            match timer(self.deadline) {
                Ok(timer) => State::Timer(timer),
                // No descriptor left, say.
                Err(_) => State::Look(Box::pin(time::sleep(left.min(LOOK)))),
            }
        };
    }

    fn is_virtual(&self) -> bool {
        self.sleeper.as_ref().is_some_and(Sleeper::is_virtual)
    }
}

/// A timer of the system's that fires at `deadline`.
fn timer(deadline: Instant) -> io::Result<AsyncFd<OwnedFd>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
    let since_boot = deadline.since_boot();
    let setting = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: Timespec {
            // What the kernel cannot count is its end of time.
            tv_sec: since_boot.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: since_boot.subsec_nanos().into(),
        },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &setting)?;
    AsyncFd::with_interest(timer, Interest::READABLE)
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if let Some(sleeper) = &this.sleeper {
                sleeper.register(cx.waker());
            }
            let now = Instant::now();
            if now >= this.deadline {
                let unit = ready!(coop::poll_proceed(cx));
                unit.made_progress();
                this.state = State::Over;
                this.sleeper = None;
                return Poll::Ready(());
            }
            let is_virtual = this.is_virtual();
            let fired = match &mut this.state {
                // `Over`: the clock of another runtime.
                State::New | State::Over => {
                    this.start();
                    continue;
                }
                // The clock has been paused since.
                State::Timer(_) | State::Look(_) if is_virtual => true,
                State::Timer(timer) => match timer.poll_read_ready(cx) {
                    Poll::Ready(Ok(_)) => true,
                    Poll::Ready(Err(_)) if ends_with_poll(cx.waker()) => false,
                    Poll::Ready(Err(_)) => closed("boottime::sleep", this.site),
                    Poll::Pending => false,
                },
                State::Virtual(sleep) => {
                    // A suspension has brought the deadline nearer.
                    let left = this.deadline.duration_since(now);
                    sleep
                        .as_mut()
                        .reset(time::Instant::now().saturating_add(left));
                    sleep.as_mut().poll(cx).is_ready()
                }
                State::Look(sleep) => sleep.as_mut().poll(cx).is_ready(),
            };
            if !fired {
                wait::record(WaitKind::Sleep, this.site);
                return Poll::Pending;
            }
            // Should it be early, a new timer is right.
            this.state = State::New;
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
