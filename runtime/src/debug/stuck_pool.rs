//! A blocking pool that waits for itself: every thread of it is inside `block_on`, or `bridge`, and closures wait for a
//! thread. If one of these is what the others wait for, nothing goes on for ever.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::report::{Report, ReportKind};
use crate::scheduler::Shared;

/// How long it has to last.
const AFTER: Duration = Duration::from_secs(1);

/// How many threads of a blocking pool are inside `block_on`.
#[derive(Clone, Default)]
pub(crate) struct Inside(Arc<AtomicUsize>);

/// The closures of `block_in_place` and `bridge`, and how many of them are inside `block_on`.
#[derive(Clone, Default)]
pub(crate) struct InPlace {
    all: Arc<AtomicUsize>,
    inside: Inside,
}

/// Whether any pool of the process is counted.
static COUNTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The count of the pool whose thread this is, in the full debug mode; or that of the closures in place, in one of them.
    static POOL: RefCell<Option<Arc<AtomicUsize>>> = const { RefCell::new(None) };
}

/// Runs `body`, the life of a thread of a pool.
pub(crate) fn on_thread(inside: Option<Inside>, body: &mut dyn FnMut()) {
    if inside.is_some() {
        COUNTED.store(true, Relaxed);
    }
    POOL.set(inside.map(|inside| inside.0));
    body();
    POOL.set(None);
}

impl InPlace {
    /// A closure runs in place on this thread, until the guard is dropped.
    pub(crate) fn begin(&self) -> InPlaceGuard {
        COUNTED.store(true, Relaxed);
        self.all.fetch_add(1, Relaxed);
        let inside = self.inside.0.clone();
        InPlaceGuard {
            all: self.all.clone(),
            before: POOL
                .try_with(|pool| pool.replace(Some(inside)))
                .ok()
                .flatten(),
        }
    }

    /// Whether all of them are inside `block_on`.
    pub(crate) fn all_inside(&self) -> bool {
        self.all.load(Relaxed) == self.inside.0.load(Relaxed)
    }
}

/// See [`InPlace::begin`].
pub(crate) struct InPlaceGuard {
    all: Arc<AtomicUsize>,
    before: Option<Arc<AtomicUsize>>,
}

impl Drop for InPlaceGuard {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Relaxed);
        let _ = POOL.try_with(|pool| pool.replace(self.before.take()));
    }
}

/// This thread enters a `block_on`, until the guard is dropped.
#[inline]
pub(crate) fn enter() -> Guard {
    if COUNTED.load(Relaxed) {
        enter_counted()
    } else {
        Guard(None)
    }
}

#[cold]
fn enter_counted() -> Guard {
    let pool = POOL.try_with(|pool| pool.borrow().clone()).ok().flatten();
    if let Some(pool) = &pool {
        pool.fetch_add(1, Relaxed);
    }
    Guard(pool)
}

/// See [`enter`].
pub(crate) struct Guard(Option<Arc<AtomicUsize>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(pool) = &self.0 {
            pool.fetch_sub(1, Relaxed);
        }
    }
}

/// What the watcher remembers.
#[derive(Default)]
pub(super) struct Look {
    since: Option<Instant>,
    told: bool,
}

impl Look {
    pub(super) fn look(&mut self, shared: &Shared, now: Instant) {
        let pool = shared.blocking.metrics();
        let inside = shared.debug.inside.0.load(Relaxed);
        let stuck = pool.queue_depth > 0
            && pool.threads >= shared.blocking.max_threads()
            && inside >= pool.threads;
        if !stuck {
            *self = Self::default();
            return;
        }
        let since = *self.since.get_or_insert(now);
        if self.told || now.duration_since(since) < AFTER {
            return;
        }
        self.told = true;
        let oldest = pool.oldest_queued.unwrap_or_default();
        let text = format!(
            "all {} threads of the blocking pool wait inside block_on, and {} closures wait for a thread, the first for \
             {oldest:.1?}: if one of these is what the others wait for, none of them ends; raise max_blocking_threads, or \
             await in tasks instead of blocking closures",
            pool.threads, pool.queue_depth
        );
        let sink = &shared.debug.sink;
        sink.report(Report {
            duration: Some(now.duration_since(since)),
            ..Report::new(ReportKind::BlockingPoolStuck, &sink.runtime, text)
        });
    }
}
