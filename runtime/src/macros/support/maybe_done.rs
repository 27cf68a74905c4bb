//! A future, and after its end its output in the same place.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

pin_project! {
    /// A leaf of a `join!`: polled until it is done, and not again.
    #[project = Stage]
    #[project_replace = Before]
    pub enum MaybeDone<F: Future> {
        /// Not done.
        Waits { #[pin] future: F },
        /// Done.
        Done { output: F::Output },
        /// The output was taken.
        Taken,
    }
}

/// A leaf that is not done.
#[inline]
pub fn maybe_done<F: IntoFuture>(future: F) -> MaybeDone<F::IntoFuture> {
    MaybeDone::Waits {
        future: future.into_future(),
    }
}

impl<F: Future> MaybeDone<F> {
    /// Polls the future unless it is done; whether it is done.
    #[inline]
    pub(super) fn poll_done(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        let Stage::Waits { future } = self.as_mut().project() else {
            return true;
        };
        let Poll::Ready(output) = future.poll(cx) else {
            return false;
        };
        self.set(MaybeDone::Done { output });
        true
    }

    /// The output, if it is there.
    #[inline]
    pub(super) fn output(self: Pin<&mut Self>) -> Option<&mut F::Output> {
        match self.project() {
            Stage::Done { output } => Some(output),
            _ => None,
        }
    }

    /// Takes the output.
    ///
    /// # Panics
    /// If the future is not done, or its output was taken.
    #[inline]
    pub(super) fn take(self: Pin<&mut Self>) -> F::Output {
        match self.project_replace(MaybeDone::Taken) {
            Before::Done { output } => output,
            _ => panic!("the output of a join was asked for before its end, or twice"),
        }
    }
}

impl<F: Future> fmt::Debug for MaybeDone<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MaybeDone::Waits { .. } => "Waits",
            MaybeDone::Done { .. } => "Done",
            MaybeDone::Taken => "Taken",
        })
    }
}
