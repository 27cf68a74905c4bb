//! How a task ended, as callbacks of [`JoinHandle::on_done`](super::JoinHandle::on_done) are told.

use std::sync::Arc;

use super::Id;

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Its future was ready.
    Returned,
    /// It was aborted, or its runtime closed.
    Cancelled,
    /// It panicked.
    Panicked,
    /// It was a child of a [`TaskGroup`](super::TaskGroup) and failed: the error is part of the group's.
    Failed,
}

/// A task that is over, for a callback of [`JoinHandle::on_done`](super::JoinHandle::on_done).
#[derive(Debug, Clone)]
pub struct Done {
    pub(super) id: Id,
    pub(super) name: Option<Arc<str>>,
    pub(super) outcome: Outcome,
}

impl Done {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// The task's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How it ended.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}
