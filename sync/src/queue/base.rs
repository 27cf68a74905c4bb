//! What the three kinds of queue have in common: their methods.

use std::fmt;
use std::panic::{self, Location};

use super::error::{QueueEmpty, QueueFull, QueueShutDown, TaskDoneError, TryGetError, TryPutError};
use super::futures::{Get, Items, Join, Next, Put};
use super::state::{
    FAIL, GETTERS, GO, JOINERS, PUTTERS, QueueDesk, Refusal, State, get_fast, put_fast,
};
use super::store::{Store, take_all};
use crate::desk::{Desk, Wakes};

/// How [`shutdown`](BaseQueue::shutdown) treats what is still in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shutdown {
    /// Gets go on until the queue is empty.
    Draining,
    /// What is in the queue is dropped, and gets fail at once.
    Immediate,
}

/// What [`Queue`](super::Queue), [`PriorityQueue`](super::PriorityQueue) and [`LifoQueue`](super::LifoQueue) have in
/// common: each of them dereferences to it.
///
/// All methods take `&self`; the queue is shared by reference or by `Arc`.
pub struct BaseQueue<S: Store> {
    pub(super) desk: QueueDesk<S>,
    max: usize,
}

impl<S: Store> BaseQueue<S> {
    pub(super) fn with_max_size(max_size: usize) -> Self {
        let max = if max_size == 0 { usize::MAX } else { max_size };
        Self {
            desk: Desk::new(State::new(max)),
            max: max_size,
        }
    }

    /// Puts an item in, as soon as there is a place for it.
    ///
    /// # Errors
    /// After [`shutdown`](Self::shutdown), also when that comes while this waits: the item comes back.
    ///
    /// # Cancel safety
    /// When the future is dropped before it is ready, the item was not put, and is dropped with it. The place in the
    /// line of putters is lost.
    ///
    /// # Panics
    /// When a comparison of the items (of a [`PriorityQueue`](super::PriorityQueue)) panics; the item was not put then.
    #[inline]
    #[track_caller]
    pub fn put(&self, item: S::Item) -> Put<'_, S> {
        Put::new(self, item, Location::caller())
    }

    /// Takes the next item, as soon as there is one.
    ///
    /// # Errors
    /// After [`shutdown`](Self::shutdown), when the queue is empty.
    ///
    /// # Cancel safety
    /// When the future is dropped before it is ready, nothing was taken. The place in the line of getters is lost.
    ///
    /// # Panics
    /// When a comparison of the items (of a [`PriorityQueue`](super::PriorityQueue)) panics; nothing was taken then.
    #[inline]
    #[track_caller]
    pub fn get(&self) -> Get<'_, S> {
        Get::new(self, Location::caller())
    }

    /// [`get`](Self::get) for loops: `None` once the queue was shut down and is empty.
    ///
    /// # Cancel safety
    /// As for `get`.
    #[inline]
    #[track_caller]
    pub fn next(&self) -> Next<'_, S> {
        Next::new(self, Location::caller())
    }

    /// The items as they come, as a [`Stream`](futures_core::Stream), until the queue was shut down and is empty.
    #[track_caller]
    pub fn items(&self) -> Items<'_, S> {
        Items::new(self, Location::caller())
    }

    /// Puts an item in if there is a place for it now. asyncio's `put_nowait`.
    ///
    /// # Errors
    /// When the queue is full, or its free places belong to putters that wait already; after
    /// [`shutdown`](Self::shutdown). The item comes back.
    ///
    /// # Panics
    /// As for [`put`](Self::put).
    #[inline]
    pub fn try_put(&self, item: S::Item) -> Result<(), TryPutError<S::Item>> {
        match put_fast(&self.desk, item) {
            Ok(()) => Ok(()),
            Err(item) => self.try_put_slow(item),
        }
    }

    fn try_put_slow(&self, item: S::Item) -> Result<(), TryPutError<S::Item>> {
        let mut queue = self.desk.lock();
        let put = queue.put_now(item);
        drop(queue);
        match put {
            Ok(wake) => {
                if let Some(waker) = wake {
                    waker.wake();
                }
                Ok(())
            }
            Err((item, Refusal::Wait)) => Err(TryPutError::Full(QueueFull(item))),
            Err((item, Refusal::ShutDown)) => Err(TryPutError::ShutDown(QueueShutDown(item))),
            Err((_item, Refusal::Panicked(payload))) => panic::resume_unwind(payload),
        }
    }

    /// Takes the next item if there is one now. asyncio's `get_nowait`.
    ///
    /// # Errors
    /// When the queue is empty, or its items belong to getters that wait already; after [`shutdown`](Self::shutdown),
    /// when it is empty.
    ///
    /// # Panics
    /// As for [`get`](Self::get).
    #[inline]
    pub fn try_get(&self) -> Result<S::Item, TryGetError> {
        match get_fast(&self.desk) {
            Some(item) => Ok(item),
            None => self.try_get_slow(),
        }
    }

    fn try_get_slow(&self) -> Result<S::Item, TryGetError> {
        let mut queue = self.desk.lock();
        let got = queue.get_now();
        drop(queue);
        match got {
            Ok((item, after)) => {
                after.wake();
                Ok(item)
            }
            Err(Refusal::Wait) => Err(TryGetError::Empty(QueueEmpty)),
            Err(Refusal::ShutDown) => Err(TryGetError::ShutDown(QueueShutDown(()))),
            Err(Refusal::Panicked(payload)) => panic::resume_unwind(payload),
        }
    }

    /// Marks one item as done: whoever got it has finished with it. [`join`](Self::join) waits for that.
    ///
    /// # Errors
    /// When it is called more often than items were put.
    pub fn task_done(&self) -> Result<(), TaskDoneError> {
        let mut queue = self.desk.lock();
        let Some(left) = queue.outstanding.checked_sub(1) else {
            return Err(TaskDoneError(()));
        };
        queue.outstanding = left;
        if left == 0 && queue.waiting(JOINERS) > 0 {
            let mut wakes = Wakes::new();
            queue.grant_all(JOINERS, |_| GO, &mut wakes);
            drop(queue);
            wakes.wake_all();
        }
        Ok(())
    }

    /// Waits until every item that was put has been marked as done. At once, if none is outstanding.
    ///
    /// An item that is put while this waits is waited for too.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    #[inline]
    #[track_caller]
    pub fn join(&self) -> Join<'_, S> {
        Join::new(self, Location::caller())
    }

    /// Ends the queue. Puts fail from now on, and those that wait fail too.
    ///
    /// [`Draining`](Shutdown::Draining): gets go on until the queue is empty; then they fail.
    /// [`Immediate`](Shutdown::Immediate): what is in the queue is dropped and no longer outstanding, so gets fail at
    /// once, and `join` ends when the items that were taken before have been marked as done.
    ///
    /// May be called again: after `Draining`, `Immediate` drops what is left.
    pub fn shutdown(&self, how: Shutdown) {
        let mut wakes = Wakes::new();
        let mut queue = self.desk.lock();
        queue.shut = true;
        let dropped = match how {
            Shutdown::Draining => None,
            Shutdown::Immediate => {
                let items = take_all(&mut queue.items);
                // More may be marked as done than were got: it is not for us to say which.
                queue.outstanding = queue.outstanding.saturating_sub(items.len());
                Some(items)
            }
        };
        queue.grant_all(PUTTERS, |_| FAIL, &mut wakes);
        if queue.items.len() == 0 {
            queue.grant_all(GETTERS, |_| FAIL, &mut wakes);
        }
        if queue.is_done() {
            queue.grant_all(JOINERS, |_| GO, &mut wakes);
        }
        drop(queue);
        let _dropped_last = dropped;
        wakes.wake_all();
    }

    /// Whether the queue was shut down.
    pub fn is_shutdown(&self) -> bool {
        self.desk.lock().shut
    }

    /// How many items are in the queue.
    pub fn len(&self) -> usize {
        self.desk.lock().items.len()
    }

    /// Whether there is no item in the queue.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are as many items in the queue as it may hold. Never, if it has no limit.
    pub fn is_full(&self) -> bool {
        self.max != 0 && self.len() >= self.max
    }

    /// How many items it may hold; 0 if there is no limit.
    pub fn max_size(&self) -> usize {
        self.max
    }

    pub(super) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct(name);
        debug.field("max_size", &self.max);
        if let Some(queue) = self.desk.try_lock() {
            let (len, getters) = (queue.items.len(), queue.waiting(GETTERS));
            let (putters, outstanding) = (queue.waiting(PUTTERS), queue.outstanding);
            let shut = queue.shut;
            drop(queue);
            debug
                .field("len", &len)
                .field("getters", &getters)
                .field("putters", &putters)
                .field("outstanding", &outstanding)
                .field("shut_down", &shut);
        }
        debug.finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for BaseQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("BaseQueue", f)
    }
}
