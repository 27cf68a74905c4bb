//! What can go wrong with a queue.

use std::error::Error;
use std::fmt;

/// The queue is full: [`try_put`](super::BaseQueue::try_put) gives the item back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueFull<T>(pub T);

/// The queue is empty, or what is in it belongs to getters that were there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEmpty;

/// The queue was shut down: a put gives its item back; a get finds nothing left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueShutDown<T = ()>(pub T);

/// Why [`try_put`](super::BaseQueue::try_put) did not put.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TryPutError<T> {
    /// The queue is full, or its free places belong to putters that were there before.
    Full(QueueFull<T>),
    /// The queue was shut down.
    ShutDown(QueueShutDown<T>),
}

/// Why [`try_get`](super::BaseQueue::try_get) did not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryGetError {
    /// There is nothing now; something may come.
    Empty(QueueEmpty),
    /// There is nothing, and nothing will come.
    ShutDown(QueueShutDown),
}

/// [`task_done`](super::BaseQueue::task_done) was called more often than items were put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskDoneError(pub(super) ());

impl<T> QueueFull<T> {
    /// The item that was not put.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> QueueShutDown<T> {
    /// The item that was not put.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TryPutError<T> {
    /// The item that was not put.
    pub fn into_inner(self) -> T {
        match self {
            TryPutError::Full(error) => error.0,
            TryPutError::ShutDown(error) => error.0,
        }
    }

    /// Whether the queue was full; else it was shut down.
    pub fn is_full(&self) -> bool {
        matches!(self, TryPutError::Full(_))
    }
}

impl<T> fmt::Debug for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueFull").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for QueueShutDown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueShutDown").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TryPutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryPutError::Full(error) => error.fmt(f),
            TryPutError::ShutDown(error) => error.fmt(f),
        }
    }
}

impl<T> fmt::Display for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is full; `put` waits for a free place")
    }
}

impl fmt::Display for QueueEmpty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue has no item to give now; `get` waits for one")
    }
}

impl<T> fmt::Display for QueueShutDown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue was shut down")
    }
}

impl<T> fmt::Display for TryPutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryPutError::Full(error) => error.fmt(f),
            TryPutError::ShutDown(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for TryGetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryGetError::Empty(error) => error.fmt(f),
            TryGetError::ShutDown(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for TaskDoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "task_done was called more often than items were put; call it once for each item that was got",
        )
    }
}

impl<T> Error for QueueFull<T> {}
impl Error for QueueEmpty {}
impl<T> Error for QueueShutDown<T> {}
impl<T> Error for TryPutError<T> {}
impl Error for TryGetError {}
impl Error for TaskDoneError {}
