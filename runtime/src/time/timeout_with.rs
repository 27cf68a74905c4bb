//! `timeout_with`: a time limit that can be moved while it counts, from inside the future that it limits.
//!
//! # Who may touch what
//! The deadline lies behind a lock of its own, where the future and the handles read and write it. The timer is the
//! future's: it follows the deadline when the future is polled, and a handle wakes it for that.
//!
//! # The race
//! A handle moves the deadline while the timer fires: the future looks at the deadline under the lock, and expires in the
//! same critical section. Either the handle comes first, and the future goes on to wait, or it is refused.
//!
//! A handle moves the deadline and then wakes; the future registers its waker and then looks at the deadline.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use rt_sync::AtomicWaker;
use rt_sync::primitive::{Arc, Mutex};
use rt_sync::wait::{self, WaitKind};

use super::error::{Elapsed, RescheduleError};
use super::instant::Instant;
use super::sleep::{closed, no_runtime};
use super::timer::{Outcome, Timer};

/// Gives the future that `make` makes at most `duration`, with a handle to move the deadline: asyncio's `timeout`.
///
/// The duration counts from this call; `None` means no deadline for now. Whoever has the [`TimeoutHandle`] (the future
/// itself, another task, a thread) may move the deadline, take it away, and ask whether it has passed.
///
/// Everything else is as with [`timeout`](super::timeout): the future is polled before the deadline is looked at, and a
/// value that is ready at the very poll at which the deadline has passed wins.
///
/// # Errors
/// [`Elapsed`] if the future was not ready in time.
///
/// # Panics
/// As [`timeout`](super::timeout).
///
/// # Cancel safety
/// As [`timeout`](super::timeout).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use rt::time::{Instant, sleep, timeout_with};
///
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lines = timeout_with(Duration::from_secs(1), async |limit| {
///     for _line in 0..3 {
///         sleep(Duration::from_millis(1)).await;
///         // Every line gives another second.
///         let _ = limit.reschedule(Instant::now() + Duration::from_secs(1));
///     }
///     3
/// })
/// .await?;
/// assert_eq!(lines, 3);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn timeout_with<F: Future>(
    duration: impl Into<Option<Duration>>,
    make: impl FnOnce(TimeoutHandle) -> F,
) -> TimeoutWith<F> {
    let deadline = duration
        .into()
        .map(|duration| Instant::now().saturating_add(duration));
    TimeoutWith::new(deadline, make)
}

/// Gives the future that `make` makes time until `deadline`, with a handle to move it: see [`timeout_with`].
///
/// # Errors
/// [`Elapsed`] if the future was not ready in time.
///
/// # Panics
/// As [`timeout`](super::timeout).
///
/// # Cancel safety
/// As [`timeout`](super::timeout).
#[track_caller]
pub fn timeout_at_with<F: Future>(
    deadline: impl Into<Option<Instant>>,
    make: impl FnOnce(TimeoutHandle) -> F,
) -> TimeoutWith<F> {
    TimeoutWith::new(deadline.into(), make)
}

/// Moves the deadline of [`timeout_with`].
#[derive(Clone)]
pub struct TimeoutHandle {
    control: Arc<Control>,
}

struct Control {
    state: Mutex<State>,
    /// Whoever awaits the timeout.
    waker: AtomicWaker,
}

#[derive(Debug, Clone, Copy)]
struct State {
    deadline: Option<Instant>,
    /// Whether the timeout has ended, and by its deadline.
    over: Option<bool>,
}

impl TimeoutHandle {
    /// The deadline, if there is one. Of a timeout that has ended: the last one.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.control.state.lock().deadline
    }

    /// Whether the deadline has passed and the future inside was given up for it.
    #[must_use]
    pub fn expired(&self) -> bool {
        self.control.state.lock().over == Some(true)
    }

    /// Moves the deadline, or takes it away.
    ///
    /// # Errors
    /// If the timeout has ended: by its deadline, by its value, or since it was dropped.
    pub fn reschedule(&self, deadline: impl Into<Option<Instant>>) -> Result<(), RescheduleError> {
        let deadline = deadline.into();
        let mut state = self.control.state.lock();
        if let Some(expired) = state.over {
            return Err(RescheduleError::new(expired));
        }
        state.deadline = deadline;
        drop(state);
        self.control.waker.wake();
        Ok(())
    }
}

impl Control {
    fn end(&self) {
        let mut state = self.state.lock();
        state.over = state.over.or(Some(false));
        drop(state);
        // Handles may stay for long, and must not keep the task that waited.
        self.waker.clear();
    }

    /// Ends the timeout, if its deadline is this one still.
    fn expire(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        let expires = state.deadline == Some(deadline);
        if expires {
            state.over = Some(true);
        }
        expires
    }
}

pin_project! {
    /// Future of [`timeout_with`] and [`timeout_at_with`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct TimeoutWith<F> {
        #[pin]
        inner: F,
        #[pin]
        timer: Timer,
        // For which the timer runs.
        deadline: Option<Instant>,
        control: Arc<Control>,
        site: &'static Location<'static>,
    }

    impl<F> PinnedDrop for TimeoutWith<F> {
        fn drop(this: Pin<&mut Self>) {
            this.control.end();
        }
    }
}

impl<F: Future> TimeoutWith<F> {
    #[track_caller]
    fn new(deadline: Option<Instant>, make: impl FnOnce(TimeoutHandle) -> F) -> Self {
        let site = Location::caller();
        let control = Arc::new(Control {
            state: Mutex::new(State {
                deadline,
                over: None,
            }),
            waker: AtomicWaker::new(),
        });
        let handle = TimeoutHandle {
            control: control.clone(),
        };
        TimeoutWith {
            inner: make(handle),
            timer: Timer::new(),
            deadline: None,
            control,
            site,
        }
    }
}

impl<F> TimeoutWith<F> {
    /// A handle to move the deadline.
    #[must_use]
    pub fn handle(&self) -> TimeoutHandle {
        TimeoutHandle {
            control: self.control.clone(),
        }
    }
}

impl<F: Future> Future for TimeoutWith<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let site = self.site;
        wait::around(WaitKind::Timeout, site, || self.poll_inside(cx))
    }
}

impl<F: Future> TimeoutWith<F> {
    fn poll_inside(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<F::Output, Elapsed>> {
        let mut this = self.project();
        // The future inside may move the deadline, which need not wake who is polling it.
        this.control.waker.clear();
        if let Poll::Ready(value) = this.inner.poll(cx) {
            this.control.end();
            return Poll::Ready(Ok(value));
        }
        this.control.waker.register(cx.waker());
        loop {
            let wanted = this.control.state.lock().deadline;
            let moved = wanted != *this.deadline;
            *this.deadline = wanted;
            let Some(deadline) = wanted else {
                this.timer.as_mut().cancel();
                return Poll::Pending;
            };
            if moved {
                this.timer.as_mut().reset(deadline);
            }
            let passed = (moved && deadline <= Instant::now())
                || match this.timer.as_mut().poll(cx, deadline) {
                    Outcome::Ready => true,
                    Outcome::Pending => false,
                    Outcome::Closed => closed("timeout_with", this.site),
                    Outcome::NoRuntime => no_runtime("timeout_with", this.site),
                };
            if !passed {
                return Poll::Pending;
            }
            if this.control.expire(deadline) {
                return Poll::Ready(Err(Elapsed::new()));
            }
        }
    }
}

impl<F: fmt::Debug> fmt::Debug for TimeoutWith<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutWith")
            .field("inner", &self.inner)
            .field("deadline", &self.control.state.lock().deadline)
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TimeoutHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = *self.control.state.lock();
        f.debug_struct("TimeoutHandle")
            .field("deadline", &state.deadline)
            .field("expired", &(state.over == Some(true)))
            .finish_non_exhaustive()
    }
}
