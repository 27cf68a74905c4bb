//! hyper on this runtime: [`Executor`] starts hyper's own tasks, [`Timer`] measures its timeouts.
//!
//! The stream types of `rt::net` implement hyper's `Read` and `Write` themselves, so a connection is handed over as it
//! is.
//!
//! # Small answers
//! By default hyper hands head and body of an answer over as two buffers, which is right for bodies of some kilobytes and
//! more: they are not copied, and one `Bytes` serves any number of connections. A server whose answers are all small does
//! better with `http1::Builder::writev(false)`: then hyper puts the body behind the head by itself, which takes a tenth of
//! the user instructions of a request less. It would copy large bodies too, whole, and once for each connection.
//!
//! # Examples
//!
//! ```no_run
//! use std::convert::Infallible;
//!
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use hyper::server::conn::http1;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response};
//!
//! # #[rt::main]
//! # async fn main() -> std::io::Result<()> {
//! let listener = rt::net::TcpListener::bind("127.0.0.1:8080").await?;
//! loop {
//!     let (stream, _) = listener.accept().await?;
//!     drop(rt::spawn(async move {
//!         let hello = service_fn(|_request: Request<_>| async {
//!             Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
//!         });
//!         http1::Builder::new()
//!             .timer(rt::hyper::Timer::new())
//!             .serve_connection(stream, hello)
//!             .await
//!     }));
//! }
//! # }
//! ```

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use crate::time;

/// Runs the tasks that hyper starts, for instance one per stream of HTTP/2, with [`rt::spawn`](crate::spawn).
///
/// Like `spawn`, it must be used inside the runtime.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Executor;

impl Executor {
    /// An executor for the runtime in whose context hyper uses it.
    pub const fn new() -> Executor {
        Executor
    }
}

impl<F> ::hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[track_caller]
    fn execute(&self, future: F) {
        // The task is detached: hyper learns its result by channels of its own.
        drop(crate::spawn(future));
    }
}

/// hyper's timeouts on the clock and the timer wheels of this runtime.
///
/// A paused clock holds for hyper too. Like [`sleep`](crate::time::sleep), it must be used inside the runtime.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Timer;

impl Timer {
    /// A timer for the runtime in whose context hyper uses it.
    pub const fn new() -> Timer {
        Timer
    }
}

impl ::hyper::rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn ::hyper::rt::Sleep>> {
        Box::pin(Sleep {
            inner: time::sleep(duration),
        })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn ::hyper::rt::Sleep>> {
        Box::pin(Sleep {
            inner: time::sleep_until(time::Instant::from_std(deadline)),
        })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn ::hyper::rt::Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            // Without a new box, and the entry stays with its wheel.
            Some(sleep) => sleep
                .project()
                .inner
                .reset(time::Instant::from_std(new_deadline)),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

pin_project! {
    /// What `dyn hyper::rt::Sleep` is with this timer.
    struct Sleep {
        #[pin]
        inner: time::Sleep,
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().inner.poll(cx)
    }
}

impl ::hyper::rt::Sleep for Sleep {}
