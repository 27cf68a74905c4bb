//! Blocking closures of a kind, so many at a time: [`spawn_blocking_limited`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use rt_sync::semaphore::{AcquireCapacityOwned, CapacityLimiter};

use crate::runtime::Handle;
use crate::task::{JoinError, JoinHandle, Meta};

/// Runs a closure that blocks once the limiter has a token for it; anyio's `to_thread.run_sync` with a limiter.
///
/// For calls that something else than the number of threads sets a limit to: connections of a database, files that may be
/// open, a library that is slow with many. First come, first served, over all that use the limiter. While it waits for a
/// token it takes no thread of the pool.
///
/// The closure keeps its token until it ends, also when the future is dropped meanwhile: what it does is still going on.
///
/// # Errors
/// As the handle of [`spawn_blocking`](crate::spawn_blocking): the closure panicked, or the runtime has ended.
///
/// # Panics
/// If the thread is in no runtime.
///
/// # Cancel safety
/// Dropped while it waits for a token, it drops the closure without a call. Later, the closure runs to its end, and its
/// result is dropped.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use rt::sync::CapacityLimiter;
///
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let files = Arc::new(CapacityLimiter::new(8));
/// let text = rt::spawn_blocking_limited(&files, || std::fs::read_to_string("Cargo.toml")).await??;
/// assert!(text.contains("[package]"));
/// assert_eq!(files.borrowed_tokens(), 0);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn spawn_blocking_limited<F, R>(
    limiter: &Arc<CapacityLimiter>,
    f: F,
) -> SpawnBlockingLimited<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    SpawnBlockingLimited {
        token: limiter.clone().acquire_owned(),
        start: Some((Handle::current(), Meta::here(), f)),
        running: None,
    }
}

pin_project! {
    /// Future of [`spawn_blocking_limited`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct SpawnBlockingLimited<F, R> {
        #[pin]
        token: AcquireCapacityOwned,
        // Until there is a token.
        start: Option<(Handle, Meta, F)>,
        running: Option<JoinHandle<R>>,
    }
}

impl<F, R> Future for SpawnBlockingLimited<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    type Output = Result<R, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.running.is_none() {
            let token = ready!(this.token.poll(cx));
            let Some((handle, meta, f)) = this.start.take() else {
                unreachable!("a token is handed out once");
            };
            let closure = move || {
                // Given back when `f` and its result's way are over, also by a panic.
                let _token = token;
                f()
            };
            *this.running = Some(handle.spawn_blocking_meta(closure, meta));
        }
        match this.running {
            Some(running) => Pin::new(running).poll(cx),
            None => unreachable!("it was just set"),
        }
    }
}

impl<F, R> fmt::Debug for SpawnBlockingLimited<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnBlockingLimited")
            .field("running", &self.running.is_some())
            .finish_non_exhaustive()
    }
}
