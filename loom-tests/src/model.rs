//! What the models share: how far they are explored, and a waker that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};

/// Explores the interleavings of `body` with at most so many preemptions.
pub fn model(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    // A wait for a lock that is a bit of a word takes a branch each time that it looks.
    model.max_branches = 20_000;
    model.check(body);
}

/// The same, for bodies that poll tasks.
pub fn model_tasks(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    model(preemptions, move || {
        // The threads of a model share their thread-local storage, so the budget is nobody's.
        let _ = rt_sync::coop::lift();
        body();
    });
}

/// Counts wakes; its `Arc` counts the wakers. Not of loom: it is what a model looks at, not what is modelled.
#[derive(Debug, Default)]
pub struct Probe(AtomicUsize);

impl Probe {
    /// A new one, and its first waker.
    #[must_use]
    pub fn new() -> (Arc<Self>, Waker) {
        let probe = Arc::new(Self::default());
        let waker = Waker::from(probe.clone());
        (probe, waker)
    }

    /// How often it was woken.
    #[must_use]
    pub fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Probe {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
