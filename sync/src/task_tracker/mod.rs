//! `TaskTracker`: counts tasks and waits for their end, with the names of `tokio_util`.
//!
//! What needs a runtime (`spawn` and its like) is added by `rt::task::TaskTracker`.
//!
//! # The state word
//! Bit 0: closed. Above it: how many tokens there are. The tracker is *over* while the word is just the bit. Every step
//! that may make it so is one exchange, which sees whether it did.
//!
//! # The race
//! Waiter: join the list, then look at the word. Who makes the tracker over: the exchange, then notify everybody in the
//! list. The fences of the [`WaitList`] lie between the two steps on both sides.
//!
//! # User code
//! None: a token is dropped after the future that it goes with.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::coop;
use crate::primitive::Arc;
use crate::primitive::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use crate::wait::{self, WaitKind};
use crate::wait_list::{WaitList, Waiter};

const CLOSED: usize = 1;
const ONE: usize = 2;

/// Waits for a number of tasks to end: made for a graceful shutdown.
///
/// Unlike a set of tasks it keeps nothing of them, and it can be shared: clones track the same tasks. `wait` ends when
/// the tracker [is closed](Self::close) *and* no task is left.
///
/// # Examples
/// ```
/// use rt_sync::task_tracker::TaskTracker;
///
/// let tracker = TaskTracker::new();
/// for n in 0..3 {
///     let task = tracker.track_future(async move { n });
///     std::thread::spawn(move || futures_lite::future::block_on(task));
/// }
/// tracker.close();
/// futures_lite::future::block_on(tracker.wait());
/// assert!(tracker.is_empty());
/// ```
#[derive(Clone)]
pub struct TaskTracker {
    inner: Arc<Inner>,
}

struct Inner {
    state: AtomicUsize,
    waiters: WaitList,
}

/// Counts as one task of a [`TaskTracker`] for as long as it lives.
pub struct TaskTrackerToken {
    tracker: TaskTracker,
}

impl TaskTracker {
    /// A tracker without tasks, not closed.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                state: AtomicUsize::new(0),
                waiters: WaitList::new(),
            }),
        }
    }

    /// Waits until the tracker is closed and no task is left.
    ///
    /// It ends if that was so at any moment since the first poll, even if the tracker was reopened or another task came
    /// meanwhile.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn wait(&self) -> TaskTrackerWait<'_> {
        TaskTrackerWait {
            inner: &self.inner,
            waiter: Waiter::new(&self.inner.waiters, ()),
            site: Location::caller(),
        }
    }

    /// Closes the tracker: [`wait`](Self::wait) can end from now on. Tasks may still be added. Returns whether it was
    /// open before.
    pub fn close(&self) -> bool {
        // AcqRel: what the tasks did before they ended is seen by who is woken here, and what came before `close` too.
        let before = self.inner.state.fetch_or(CLOSED, AcqRel);
        if before == 0 {
            self.inner.waiters.notify_all();
        }
        before & CLOSED == 0
    }

    /// Opens the tracker again: [`wait`](Self::wait) does not end before the next [`close`](Self::close). Returns
    /// whether it was closed before.
    pub fn reopen(&self) -> bool {
        // AcqRel: as in `close`.
        self.inner.state.fetch_and(!CLOSED, AcqRel) & CLOSED != 0
    }

    /// Whether the tracker is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: with `close`.
        self.inner.state.load(Acquire) & CLOSED != 0
    }

    /// How many tasks are tracked.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: what ended tasks did is seen.
        self.inner.state.load(Acquire) / ONE
    }

    /// Whether no task is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts as one task for as long as it lives.
    #[must_use]
    pub fn token(&self) -> TaskTrackerToken {
        // Relaxed: as for the count of an `Arc`. A wrap would need as many tokens as there are addresses.
        self.inner.state.fetch_add(ONE, Relaxed);
        TaskTrackerToken {
            tracker: self.clone(),
        }
    }

    /// Tracks a future until it is dropped.
    ///
    /// It counts from now on, whether it is polled or not, and also when it is ready, until it is dropped. A task drops
    /// its future when it ends.
    pub fn track_future<F: Future>(&self, future: F) -> TrackedFuture<F> {
        TrackedFuture {
            future,
            token: self.token(),
        }
    }

    /// Whether both track the same tasks.
    #[must_use]
    pub fn ptr_eq(left: &TaskTracker, right: &TaskTracker) -> bool {
        Arc::ptr_eq(&left.inner, &right.inner)
    }
}

impl TaskTrackerToken {
    /// The tracker it counts for.
    #[must_use]
    pub fn task_tracker(&self) -> &TaskTracker {
        &self.tracker
    }
}

impl Clone for TaskTrackerToken {
    /// Another token of the same tracker: it counts as another task.
    fn clone(&self) -> Self {
        self.tracker.token()
    }
}

impl Drop for TaskTrackerToken {
    fn drop(&mut self) {
        let inner = &self.tracker.inner;
        // AcqRel: what this task did is seen by who waits, and what other tasks did, by who is woken here.
        if inner.state.fetch_sub(ONE, AcqRel) == CLOSED + ONE {
            inner.waiters.notify_all();
        }
    }
}

pin_project! {
    /// Future of [`TaskTracker::track_future`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct TrackedFuture<F> {
        // Dropped first: the token outlives it.
        #[pin]
        future: F,
        token: TaskTrackerToken,
    }
}

impl<F: Future> Future for TrackedFuture<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

pin_project! {
    /// Future of [`TaskTracker::wait`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskTrackerWait<'a> {
        inner: &'a Inner,
        #[pin]
        waiter: Waiter<&'a WaitList>,
        site: &'static Location<'static>,
    }
}

impl Inner {
    #[inline]
    fn is_over(&self) -> bool {
        // Acquire: with the exchange that made it so.
        self.state.load(Acquire) == CLOSED
    }
}

impl Future for TaskTrackerWait<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut this = self.project();
        if (!this.waiter.is_waiting() && this.inner.is_over())
            || this.waiter.as_mut().poll(cx).is_ready()
            || this.inner.is_over()
        {
            this.waiter.remove();
            unit.made_progress();
            return Poll::Ready(());
        }
        wait::record(WaitKind::TaskGroup, this.site);
        Poll::Pending
    }
}

impl Default for TaskTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TaskTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTracker")
            .field("len", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TaskTrackerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskTrackerToken")
            .field(&self.tracker)
            .finish()
    }
}

impl<F> fmt::Debug for TrackedFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedFuture")
            .field("tracker", &self.token.tracker)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TaskTrackerWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTrackerWait").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
