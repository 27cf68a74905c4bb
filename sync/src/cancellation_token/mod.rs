//! `CancellationToken`: tells many tasks that they should end, with the names and meaning of `tokio_util`.
//!
//! # What it guarantees
//! Cancelling a token cancels all that descend from it, never what it descends from, and for good. Everybody who waits
//! for one of them is woken. A token made from a cancelled one is cancelled. Dropping tokens cancels nothing, and takes
//! no token's ancestors away from it.
//!
//! # How it works
//! All clones of a token share a node. Whether it is cancelled is a flag of the node, so asking is one load; who waits
//! is in the node's [`WaitList`](crate::WaitList). The shape of a tree is kept in one arena with one lock (`tree.rs`), which is taken
//! when a child is made, when the last clone of a token with relatives goes, and to cancel; never to ask or to wait. A
//! token without relatives is in no arena. Neither are cancelled ones: nothing can happen to them any more.
//!
//! Where many threads make and drop children of *different* tokens of one tree at a high rate they meet at that lock,
//! for some tens of nanoseconds each. A lock for each node, as `tokio_util` has it, was not taken: it needs a protocol
//! of lock orders and retries, and threads that make children of one token meet at its lock all the same.
//!
//! # The races
//! Waiter: join the list, then look at the flag. Canceller: set the flag (under the lock of the tree, for all that are
//! cancelled together), then notify. The fences of the `WaitList` lie between. A child is made under the same lock: it
//! is in the tree before the flag of its parent is set, or it sees the flag.
//!
//! # User code
//! Wakers are woken without the lock of the tree, and one that panics keeps nobody from being woken.

mod guard;
mod run;
mod tree;
mod wait;

use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe, Location};

pub use self::guard::{DropGuard, DropGuardRef};
pub use self::run::{RunUntilCancelled, RunUntilCancelledOwned};
pub use self::wait::{WaitForCancellationFuture, WaitForCancellationFutureOwned};

use self::tree::{Node, Tree};
use crate::primitive::Arc;
use crate::primitive::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use crate::wake_batch::{keep_first, resume};

/// Tells tasks that they should end: clones of a token are cancelled together, children with their parents.
///
/// # Examples
/// ```
/// use rt_sync::cancellation_token::CancellationToken;
///
/// let server = CancellationToken::new();
/// let connection = server.child_token();
/// let task = connection.clone();
/// let thread = std::thread::spawn(move || futures_lite::future::block_on(task.cancelled()));
///
/// server.cancel();
/// assert!(connection.is_cancelled());
/// thread.join().unwrap();
/// ```
pub struct CancellationToken {
    node: Arc<Node>,
}

impl CancellationToken {
    /// A token that is not cancelled and has no parent.
    #[must_use]
    pub fn new() -> Self {
        Self {
            node: Node::new(Arc::new(Tree::new()), false),
        }
    }

    /// A token that is cancelled with this one; cancelling it does not cancel this one.
    ///
    /// If this token is cancelled, so is the child.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        CancellationToken {
            node: Tree::child(&self.node),
        }
    }

    /// Cancels the token and all that descend from it. If it is cancelled already, nothing happens.
    ///
    /// # Panics
    /// If a waker panics; everything is cancelled and all others have been woken then.
    pub fn cancel(&self) {
        if self.is_cancelled() {
            return;
        }
        let mut first = None;
        for node in Tree::cancel(&self.node) {
            let notified = panic::catch_unwind(AssertUnwindSafe(|| node.waiters.notify_all()));
            keep_first(&mut first, notified.err());
        }
        resume(first);
    }

    /// Whether the token is cancelled.
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Waits until the token is cancelled; at once if it is.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        WaitForCancellationFuture::new(self, Location::caller())
    }

    /// As [`cancelled`](Self::cancelled), with a future that keeps the token.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn cancelled_owned(self) -> WaitForCancellationFutureOwned {
        WaitForCancellationFutureOwned::new(self, Location::caller())
    }

    /// A guard that cancels the token when it is dropped.
    pub fn drop_guard(self) -> DropGuard {
        DropGuard::new(self)
    }

    /// A guard that cancels the token when it is dropped, and borrows it until then.
    pub fn drop_guard_ref(&self) -> DropGuardRef<'_> {
        DropGuardRef::new(self)
    }

    /// Runs a future until it is ready or the token is cancelled; `None` in the second case.
    ///
    /// If the token is cancelled when this is polled first, the future is not polled at all. Later, what is ready at
    /// the poll that finds the token cancelled is not lost: the output comes.
    ///
    /// # Cancel safety
    /// That of the future.
    #[inline]
    #[track_caller]
    pub fn run_until_cancelled<F: Future>(&self, future: F) -> RunUntilCancelled<'_, F> {
        RunUntilCancelled::new(self.cancelled(), future)
    }

    /// As [`run_until_cancelled`](Self::run_until_cancelled), with a future that keeps the token.
    ///
    /// # Cancel safety
    /// That of the future.
    #[inline]
    #[track_caller]
    pub fn run_until_cancelled_owned<F: Future>(self, future: F) -> RunUntilCancelledOwned<F> {
        RunUntilCancelledOwned::new(self.cancelled_owned(), future)
    }
}

impl Clone for CancellationToken {
    /// The same token once more.
    fn clone(&self) -> Self {
        // Relaxed: as for an `Arc`, whose counts this one goes with (and which ends the process long before a wrap).
        self.node.tokens.fetch_add(1, Relaxed);
        Self {
            node: self.node.clone(),
        }
    }
}

impl Drop for CancellationToken {
    fn drop(&mut self) {
        // Release: with the fence of who is last.
        if self.node.tokens.fetch_sub(1, Release) == 1 {
            // Acquire: what all other clones did, above all whether they made children.
            fence(Acquire);
            Tree::leave(&self.node);
        }
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
