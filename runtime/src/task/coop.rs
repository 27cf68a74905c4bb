//! The budget of a task: how many operations it may complete in one poll before it gives way.
//!
//! Every operation of `rt` that completes at once spends a unit. At zero the next operation answers `Pending` and wakes
//! the task, so that a task whose operations always succeed still lets the others have their turn.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pub use rt_sync::coop::{
    RestoreOnPending, Unconstrained, budget_left, consume_budget, has_budget_remaining,
    poll_proceed, unconstrained,
};

/// Makes a future spend a unit of its task's budget when it completes.
///
/// For futures that are not built on operations of `rt`, such as a foreign channel that is always ready.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// use rt::task::coop::cooperative;
///
/// let mut sum = 0;
/// for n in 0..1000 {
///     sum += cooperative(std::future::ready(n)).await;
/// }
/// assert_eq!(sum, 499_500);
/// # }
/// ```
pub fn cooperative<F: Future>(future: F) -> Coop<F> {
    Coop { future }
}

pin_project! {
    /// Future of [`cooperative`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Coop<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let unit = ready!(poll_proceed(cx));
        let output = ready!(self.project().future.poll(cx));
        unit.made_progress();
        Poll::Ready(output)
    }
}
