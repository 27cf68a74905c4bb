//! `yield_now`: gives the other tasks a turn.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use rt_sync::wait::{self, WaitKind};

/// Lets every task that is ready now have its turn, and timers and sockets be looked at, before this one goes on.
///
/// A task that wakes itself during its own poll goes behind everything else that is ready on its worker. Inside a
/// combinator that polls several futures (`join!`, `select!`) the whole task gives way.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// for step in 0..3 {
///     // ... some work of this step ...
/// #   let _ = step;
///     rt::task::yield_now().await;
/// }
/// # }
/// ```
#[track_caller]
pub fn yield_now() -> YieldNow {
    YieldNow {
        site: Location::caller(),
        yielded: false,
    }
}

/// Future of [`yield_now`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct YieldNow {
    site: &'static Location<'static>,
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        wait::record(WaitKind::Yield, self.site);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
