//! The coop budget: how many operations a task may complete in one poll before it must give way.
//!
//! Each poll of a task starts with [`BUDGET`] units. A leaf future calls [`poll_proceed`] before it completes; at zero
//! it wakes its task and returns `Pending`, so a task whose every operation succeeds at once still yields. Code outside
//! a task of `rt` has no budget and is never held back.
//!
//! # Where it comes from
//! tokio's `coop`, with its names. The budget is a plain cell in thread-local storage: one read and one write a
//! successful operation.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

/// Units a task has in one poll. tokio's number: large enough that a budget check is rare, small enough that one task
/// holds its worker for some tens of microseconds only.
pub const BUDGET: u8 = 128;

/// No limit: code outside a task, or inside [`unconstrained`].
const UNCONSTRAINED: u16 = u16::MAX;

thread_local! {
    static LEFT: Cell<u16> = const { Cell::new(UNCONSTRAINED) };
}

/// A budget put aside by [`start`]; hand it to [`restore`] when the poll is over.
#[derive(Debug, Clone, Copy)]
#[must_use = "the budget outside must be restored"]
pub struct Saved(u16);

/// Starts a fresh budget for one poll of a task. For executors.
#[inline]
pub fn start() -> Saved {
    Saved(LEFT.replace(u16::from(BUDGET)))
}

/// Lifts the budget until [`restore`], as a blocking closure or a foreign future needs. For executors.
#[inline]
pub fn lift() -> Saved {
    Saved(LEFT.replace(UNCONSTRAINED))
}

/// Ends what [`start`] or [`lift`] began. For executors.
#[inline]
pub fn restore(saved: Saved) {
    LEFT.set(saved.0);
}

/// Whether this task may complete another operation before it has to give way. `true` outside a task.
///
/// A combinator that polls many futures in a loop should stop at `false`, wake itself and return `Pending`.
#[inline]
#[must_use]
pub fn budget_left() -> bool {
    LEFT.get() > 0
}

/// Whether a task is being polled on this thread, under a budget: where one must not block.
#[inline]
#[must_use]
pub fn in_task() -> bool {
    LEFT.get() != UNCONSTRAINED
}

/// Same as [`budget_left`], with tokio's name.
#[inline]
#[must_use]
pub fn has_budget_remaining() -> bool {
    budget_left()
}

/// Gives one unit back unless the operation made progress: see [`poll_proceed`].
#[derive(Debug)]
#[must_use = "dropping it without `made_progress` gives the unit back"]
pub struct RestoreOnPending(Cell<bool>);

impl RestoreOnPending {
    /// The operation completed: the unit is spent.
    #[inline]
    pub fn made_progress(&self) {
        self.0.set(false);
    }
}

impl Drop for RestoreOnPending {
    #[inline]
    fn drop(&mut self) {
        if self.0.get() {
            LEFT.set(LEFT.get().saturating_add(1));
        }
    }
}

/// Takes one unit, or wakes the task and returns `Pending` when there is none left.
///
/// Call it at the head of `poll`; call [`RestoreOnPending::made_progress`] where the operation completes.
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    match LEFT.get() {
        UNCONSTRAINED => Poll::Ready(RestoreOnPending(Cell::new(false))),
        0 => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        left => {
            LEFT.set(left - 1);
            Poll::Ready(RestoreOnPending(Cell::new(true)))
        }
    }
}

/// Spends one unit; waits for the next poll when there is none left.
///
/// For loops of a task's own that complete nothing of `rt` and should still give way now and then.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
pub async fn consume_budget() {
    std::future::poll_fn(|cx| {
        let unit = ready!(poll_proceed(cx));
        unit.made_progress();
        Poll::Ready(())
    })
    .await;
}

pin_project! {
    /// Future of [`unconstrained`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Unconstrained<F> {
        #[pin]
        inner: F,
    }
}

/// Runs a future without a budget: its operations never make it give way.
///
/// The task may then keep its worker for as long as its operations succeed at once.
pub fn unconstrained<F: Future>(inner: F) -> Unconstrained<F> {
    Unconstrained { inner }
}

struct RestoreOnDrop(Saved);

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        restore(self.0);
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _restore = RestoreOnDrop(lift());
        self.project().inner.poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn an_exhausted_budget_makes_a_future_pending_once() {
        let saved = start();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..BUDGET {
            match poll_proceed(&mut cx) {
                Poll::Ready(unit) => unit.made_progress(),
                Poll::Pending => panic!("pending with budget left"),
            }
        }
        assert!(!budget_left());
        assert!(poll_proceed(&mut cx).is_pending());
        let inner = std::pin::pin!(unconstrained(consume_budget()));
        assert!(inner.poll(&mut cx).is_ready());
        restore(saved);
        assert!(budget_left());
    }

    #[test]
    fn a_unit_comes_back_when_no_progress_was_made() {
        let saved = start();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..10_000 {
            assert!(poll_proceed(&mut cx).is_ready());
        }
        restore(saved);
    }
}
