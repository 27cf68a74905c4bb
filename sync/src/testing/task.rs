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

/// The output of a future that has not to wait.
#[track_caller]
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match Task::new(future).poll() {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
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
