//! `send_timeout`: a limit on how long a send may wait for a slot.
//!
//! A trait of the runtime instead of a method of the channel, which knows no timers.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use rt_sync::mpsc::error::SendTimeoutError;
use rt_sync::mpsc::{Reserve, Sender};

use super::timeout::{Timeout, timeout};

/// Adds `send_timeout` to [`mpsc::Sender`](Sender): bring it into scope, and calls are written as for tokio.
pub trait SendTimeoutExt<T> {
    /// Sends a value; waits at most `limit` while the channel is full. A slot that is free at once is taken also with
    /// a limit of zero.
    ///
    /// # Errors
    /// Gives the value back if no slot came free in time, or if the receiver has closed the channel or has gone.
    ///
    /// # Panics
    /// The future panics when it has to wait outside a runtime, or when the runtime that it waits in has shut down.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has sent nothing, and the value is dropped with it.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use rt::sync::mpsc::{self, error::SendTimeoutError};
    /// use rt::time::SendTimeoutExt;
    ///
    /// #[rt::main]
    /// async fn main() {
    ///     let (sender, _receiver) = mpsc::channel(1);
    ///     let limit = Duration::from_millis(1);
    ///     assert_eq!(sender.send_timeout(1, limit).await, Ok(()));
    ///     assert_eq!(sender.send_timeout(2, limit).await, Err(SendTimeoutError::Timeout(2)));
    /// }
    /// ```
    #[track_caller]
    fn send_timeout(&self, value: T, limit: Duration) -> SendTimeout<'_, T>;
}

impl<T> SendTimeoutExt<T> for Sender<T> {
    #[track_caller]
    fn send_timeout(&self, value: T, limit: Duration) -> SendTimeout<'_, T> {
        SendTimeout {
            slot: timeout(limit, self.reserve()),
            value: Some(value),
        }
    }
}

pin_project! {
    /// Future of [`SendTimeoutExt::send_timeout`].
    ///
    /// # Panics
    /// Polled again after it was ready.
    #[must_use = "futures do nothing unless awaited"]
    pub struct SendTimeout<'a, T> {
        #[pin]
        slot: Timeout<Reserve<'a, T>>,
        value: Option<T>,
    }
}

impl<T> Future for SendTimeout<'_, T> {
    type Output = Result<(), SendTimeoutError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        assert!(
            this.value.is_some(),
            "the future of `send_timeout` was polled after it was ready"
        );
        let slot = ready!(this.slot.poll(cx));
        let Some(value) = this.value.take() else {
            unreachable!("looked at above");
        };
        Poll::Ready(match slot {
            Ok(Ok(permit)) => {
                permit.send(value);
                Ok(())
            }
            Ok(Err(_)) => Err(SendTimeoutError::Closed(value)),
            Err(_) => Err(SendTimeoutError::Timeout(value)),
        })
    }
}

impl<T> fmt::Debug for SendTimeout<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendTimeout").finish_non_exhaustive()
    }
}
