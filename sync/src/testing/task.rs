//! Tasks that a test polls by hand.

use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Probe;
use crate::coop;

/// A future with a waker that counts.
pub(crate) struct Task<F: Future> {
    future: Pin<Box<F>>,
    pub(crate) probe: Arc<Probe>,
}

impl<F: Future> Task<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            probe: Probe::new(),
        }
    }

    /// One that waits.
    #[track_caller]
    pub(crate) fn waiting(future: F) -> Self {
        let mut task = Self::new(future);
        assert!(task.poll().is_pending(), "it has not to wait");
        task
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = self.probe.waker();
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub(crate) fn wakes(&self) -> usize {
        self.probe.wakes()
    }

    /// Gives it another waker from the next poll on; returns the probe of the old one.
    pub(crate) fn renew(&mut self) -> Arc<Probe> {
        mem::replace(&mut self.probe, Probe::new())
    }

    /// The output of one that was woken, once.
    #[track_caller]
    pub(crate) fn woken(mut self) -> F::Output {
        assert_eq!(self.wakes(), 1, "how often it was woken");
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("woken for nothing"),
        }
    }
}

/// Polls once with a waker of the probe.
pub(crate) fn poll<F: Future>(future: Pin<&mut F>, probe: &Arc<Probe>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&probe.waker()))
}

/// The same for a future in a box.
pub(crate) fn poll_boxed<F: Future>(
    future: &mut Pin<Box<F>>,
    probe: &Arc<Probe>,
) -> Poll<F::Output> {
    poll(future.as_mut(), probe)
}

/// What a poll gave that had not to wait.
#[track_caller]
pub(crate) fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// The output of a future, unless it has to wait.
pub(crate) fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Ten thousand polls, in one task, of futures that have nothing to wait for: `attempt` makes and polls the one of this
/// number. The task must yield every time that its budget is spent, and wake itself for that.
#[track_caller]
pub(crate) fn ten_thousand_yield(mut attempt: impl FnMut(usize, &Arc<Probe>) -> Poll<()>) {
    let probe = Probe::new();
    let saved = coop::start();
    let (mut done, mut yields) = (0, 0);
    while done < 10_000 {
        if attempt(done, &probe).is_ready() {
            done += 1;
        } else {
            yields += 1;
            // The next poll of the task.
            let _ = coop::start();
        }
    }
    coop::restore(saved);
    assert!(yields >= 10_000 / usize::from(coop::BUDGET) - 1, "{yields}");
    assert_eq!(probe.wakes(), yields);
}

/// The output of a future that has not to wait.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    ready(Task::new(future).poll())
}

/// How many polls, each with a fresh coop budget, a future needs that has nothing to wait for.
pub(crate) fn polls(future: impl Future) -> usize {
    let mut future = pin!(future);
    for polls in 1.. {
        let budget = coop::start();
        let poll = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        coop::restore(budget);
        if poll.is_ready() {
            return polls;
        }
    }
    unreachable!()
}
