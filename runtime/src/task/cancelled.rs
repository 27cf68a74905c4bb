//! `cancelled`: what a task that is asked to end waits for.
#![expect(
    unsafe_code,
    reason = "promises that a task keeps its list of waiters in one place"
)]

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};
use rt_sync::wait_list::{ListRef, WaitList, Waiter};

use super::id::{current_task, with_current};
use super::raw::TaskRef;

/// Waits until the current task is asked to end, by [`JoinHandle::cancel`](super::JoinHandle::cancel).
///
/// What the task does then is its own affair: it may close connections and write files, with awaits, and return. When
/// the grace of the request is over it is aborted. From the request on the future is ready at once, however often it is
/// made.
///
/// It watches the task that *calls* this function, also where it is awaited by another one. Outside a task it never is
/// ready.
///
/// # Cancel safety
/// A request is not lost when the future is dropped.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// # #[rt::main]
/// # async fn main() -> Result<(), rt::task::JoinError> {
/// let server = rt::spawn(async {
///     rt::task::cancelled().await;
///     rt::time::sleep(Duration::from_millis(1)).await; // says good-bye
///     "closed in good order"
/// });
/// server.cancel(Duration::from_secs(10));
/// assert_eq!(server.await?, "closed in good order");
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn cancelled() -> Cancelled {
    Cancelled {
        waiter: current_task().map(|task| Waiter::new(Watched(task), ())),
        site: Location::caller(),
    }
}

/// Whether the current task was asked to end, or was aborted. `false` outside a task.
///
/// For loops without awaits, and for closures of [`spawn_blocking`](super::spawn_blocking), which an abort cannot stop.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), rt::task::JoinError> {
/// let search = rt::spawn_blocking(|| {
///     let mut rounds = 0_u64;
///     while !rt::task::is_cancelled() {
///         rounds += 1;
///     }
///     rounds
/// });
/// search.cancel(std::time::Duration::from_secs(10));
/// # match search.await {
/// #     Ok(_) => {}
/// #     Err(error) => assert!(error.is_cancelled()),
/// # }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn is_cancelled() -> bool {
    with_current(|task| {
        task.is_some_and(|task| {
            task.state.is_cancelled() || task.cold.get().is_some_and(|cold| cold.is_asked())
        })
    })
}

/// The task whose request is waited for.
struct Watched(TaskRef);

// SAFETY: the cold part is made once and stays where it is until the task is freed, which `self` keeps from happening.
unsafe impl ListRef for Watched {
    type Tag = ();

    fn list(&self) -> &WaitList {
        &self.0.header().cold.get_or_init().waiting
    }
}

pin_project! {
    /// Future of [`cancelled`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Cancelled {
        #[pin]
        waiter: Option<Waiter<Watched>>,
        site: &'static Location<'static>,
    }
}

impl Cancelled {
    /// Whether a task is watched at all.
    pub(super) fn has_task(&self) -> bool {
        self.waiter.is_some()
    }

    /// As `poll`, without budget and without telling dumps.
    pub(super) fn poll_request(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut waiter) = self.project().waiter.as_pin_mut() else {
            return Poll::Pending;
        };
        let asked = |waiter: &Waiter<Watched>| {
            let task = waiter.list_ref().0.header();
            task.cold.get().is_some_and(|cold| cold.is_asked())
        };
        if !asked(&waiter) && waiter.as_mut().poll(cx).is_pending() && !asked(&waiter) {
            return Poll::Pending;
        }
        waiter.remove();
        Poll::Ready(())
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        if self.as_mut().poll_request(cx).is_pending() {
            wait::record(WaitKind::CancellationToken, self.site);
            return Poll::Pending;
        }
        unit.made_progress();
        Poll::Ready(())
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancelled")
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}
