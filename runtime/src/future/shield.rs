//! `shield`: work that goes on when the one who waits for it is cancelled.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::task::{AbortHandle, Id, JoinError, JoinHandle};

/// Runs a future as a task of its own, which goes on when the one who waits for it is cancelled.
///
/// The task is spawned by this call, on the current runtime. Dropping what is returned (by a [`timeout`](crate::time::timeout), a
/// lost branch of [`select!`](crate::select!), an abort of the waiting task) drops the wait and not the work. The work is
/// lost if the runtime ends before it does.
///
/// A [`JoinHandle`] needs no shield: dropping it cancels nothing.
///
/// # Errors
/// [`JoinError`] if the task panicked or was cancelled by its [`abort_handle`](Shield::abort_handle).
///
/// # Panics
/// Outside a runtime.
///
/// # Cancel safety
/// The output is lost when the `Shield` is dropped, the work is done all the same. Awaiting `&mut shield` loses nothing.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use rt::sync::oneshot;
///
/// # #[rt::main]
/// # async fn main() {
/// let (go, gone) = oneshot::channel();
/// let (saved, is_saved) = oneshot::channel();
/// let save = rt::shield(async {
///     gone.await.unwrap();
///     saved.send("saved").unwrap();
/// });
/// assert!(rt::time::timeout(Duration::from_millis(1), save).await.is_err());
/// go.send(()).unwrap();
/// assert_eq!(is_saved.await, Ok("saved"));
/// # }
/// ```
#[track_caller]
pub fn shield<F>(future: F) -> Shield<F::Output>
where
    F: IntoFuture<IntoFuture: Send + 'static, Output: Send + 'static>,
{
    Shield {
        task: crate::spawn(future.into_future()),
    }
}

/// Waits for a shielded task: see [`shield`].
#[derive(Debug)]
#[must_use = "the task runs without it, but nobody waits for its end"]
pub struct Shield<T> {
    task: JoinHandle<T>,
}

impl<T> Shield<T> {
    /// Cancels the task that is shielded.
    pub fn abort_handle(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// The number of the task that is shielded.
    #[must_use]
    pub fn id(&self) -> Id {
        self.task.id()
    }

    /// The handle of the task that is shielded.
    #[must_use = "dropping the handle detaches the task"]
    pub fn into_handle(self) -> JoinHandle<T> {
        self.task
    }
}

impl<T> Future for Shield<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The handle records what is waited for.
        Pin::new(&mut self.task).poll(cx)
    }
}
