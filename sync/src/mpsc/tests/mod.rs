//! Tests of channels: what each call does (`api`), who is let in when (`line`), how it ends (`end`), and what user code
//! may do meanwhile (`user_code`).

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use crate::testing::Probe;

mod api;
mod end;
mod line;
mod user_code;

/// Polls once with a waker that does nothing.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls once with a waker of the probe.
fn poll_with<F: Future>(future: Pin<&mut F>, probe: &Arc<Probe>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&probe.waker()))
}

/// The output of a future that is ready at once.
#[track_caller]
fn now<F: Future>(future: F) -> F::Output {
    match poll_once(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready at once"),
    }
}

/// Counts its drops.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}
