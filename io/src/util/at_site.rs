//! [`AtSite`]: a future that says where it was made.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;
use rt_sync::wait;

pin_project! {
    /// A future, or a stream, of the methods of [`AsyncReadExt`](super::AsyncReadExt) and its sisters.
    ///
    /// A dump of the tasks tells the line where the method was called. The futures inside are those of `futures-lite`, and
    /// by themselves would tell a line of that crate.
    #[must_use = "futures do nothing unless awaited"]
    pub struct AtSite<F> {
        #[pin]
        inner: F,
        site: &'static Location<'static>,
    }
}

impl<F> AtSite<F> {
    /// At the line of the caller.
    #[inline]
    #[track_caller]
    pub(crate) fn here(inner: F) -> Self {
        Self {
            inner,
            site: Location::caller(),
        }
    }
}

impl<F: Future> Future for AtSite<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let result = this.inner.poll(cx);
        if result.is_pending() {
            wait::record_site(this.site);
        }
        result
    }
}

impl<S: Stream> Stream for AtSite<S> {
    type Item = S::Item;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        let result = this.inner.poll_next(cx);
        if result.is_pending() {
            wait::record_site(this.site);
        }
        result
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<F: fmt::Debug> fmt::Debug for AtSite<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtSite")
            .field("inner", &self.inner)
            .field("site", &self.site)
            .finish()
    }
}
