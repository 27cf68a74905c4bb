//! Running a future until a token is cancelled.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::wait;

use super::{WaitForCancellationFuture, WaitForCancellationFutureOwned};

macro_rules! run {
    ($(#[$doc:meta])* $name:ident<$($life:lifetime,)? F>, $wait:ty) => {
        pin_project! {
            $(#[$doc])*
            #[must_use = "futures do nothing unless awaited"]
            pub struct $name<$($life,)? F> {
                #[pin]
                cancelled: $wait,
                #[pin]
                future: F,
                begun: bool,
            }
        }

        impl<$($life,)? F> $name<$($life,)? F> {
            #[inline]
            pub(super) fn new(cancelled: $wait, future: F) -> Self {
                Self {
                    cancelled,
                    future,
                    begun: false,
                }
            }
        }

        impl<$($life,)? F: Future> Future for $name<$($life,)? F> {
            type Output = Option<F::Output>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
                let this = self.project();
                if !*this.begun && this.cancelled.token().is_cancelled() {
                    // It is ready, and spends budget.
                    return this.cancelled.poll(cx).map(|()| None);
                }
                *this.begun = true;
                wait::of_parts(|| match this.future.poll(cx) {
                    Poll::Ready(output) => Poll::Ready(Some(output)),
                    Poll::Pending => this.cancelled.poll(cx).map(|()| None),
                })
            }
        }

        impl<$($life,)? F> fmt::Debug for $name<$($life,)? F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("token", self.cancelled.token())
                    .finish_non_exhaustive()
            }
        }
    };
}

run! {
    /// Future of [`CancellationToken::run_until_cancelled`](super::CancellationToken::run_until_cancelled).
    RunUntilCancelled<'a, F>, WaitForCancellationFuture<'a>
}

run! {
    /// Future of [`CancellationToken::run_until_cancelled_owned`](super::CancellationToken::run_until_cancelled_owned).
    RunUntilCancelledOwned<F>, WaitForCancellationFutureOwned
}
