//! What the three kinds of queue have in common: the state, its rules, and the methods.

use std::fmt;
use std::panic::{self, Location};
use std::task::Waker;

use super::error::{QueueEmpty, QueueFull, QueueShutDown, TaskDoneError, TryGetError, TryPutError};
use super::futures::{Get, Items, Join, Next, Put};
use super::store::{Panicked, Refused, Store, take_all};
use crate::desk::{Desk, Locked, Place, Wakes};

/// The lines.
pub(super) const GETTERS: usize = 0;
pub(super) const PUTTERS: usize = 1;
pub(super) const JOINERS: usize = 2;
const LINES: usize = 3;

/// The grants: go on, or fail because of shutdown.
pub(super) const GO: usize = 0;
pub(super) const FAIL: usize = 1;

pub(super) type QueueDesk<S> = Desk<State<S>, LINES>;
pub(super) type QueueLocked<'a, S> = Locked<'a, State<S>, LINES>;
pub(super) type QueuePlace<'a, S> = Place<'a, State<S>, LINES>;

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

/// What the lock guards. The rules are those of the module head of `queue`.
pub(crate) struct State<S> {
    items: S,
    /// `usize::MAX` if there is no limit.
    max: usize,
    /// Getters that were granted an item and have not come for it.
    getting: usize,
    /// Putters that were granted a place and have not come for it.
    putting: usize,
    /// Items that were put and not yet marked as done.
    outstanding: usize,
    shut: bool,
}

/// Why an operation did not happen at once.
pub(super) enum Refusal {
    /// It has to wait.
    Wait,
    /// The queue was shut down.
    ShutDown,
    /// A comparison panicked; nothing has changed.
    Panicked(Panicked),
}

impl<S: Store> State<S> {
    /// Whether there is an item that belongs to nobody. By rule 1 nobody waits for it.
    #[inline]
    fn has_item(&self) -> bool {
        self.items.len() > self.getting
    }

    /// Whether there is a place that belongs to nobody. By rule 2 nobody waits for it.
    #[inline]
    fn has_place(&self) -> bool {
        // No overflow: there are never more putters granted than places.
        self.items.len() + self.putting < self.max
    }
}

impl<S: Store> QueueLocked<'_, S> {
    /// Puts an item, if there is a place for who has none granted. The waker is to be woken after the lock.
    #[inline]
    pub(super) fn put_now(&mut self, item: S::Item) -> Result<Option<Waker>, (S::Item, Refusal)> {
        if self.shut {
            return Err((item, Refusal::ShutDown));
        }
        if !self.has_place() {
            return Err((item, Refusal::Wait));
        }
        self.store(item)
    }

    /// The same for who was granted a place. When it fails, the grant stays.
    pub(super) fn put_granted(
        &mut self,
        item: S::Item,
    ) -> Result<Option<Waker>, (S::Item, Refusal)> {
        if self.shut {
            return Err((item, Refusal::ShutDown));
        }
        let wake = self.store(item)?;
        self.putting -= 1;
        Ok(wake)
    }

    #[inline]
    fn store(&mut self, item: S::Item) -> Result<Option<Waker>, (S::Item, Refusal)> {
        match self.items.push(item) {
            Ok(()) => {
                self.outstanding += 1;
                Ok(self.offer_item())
            }
            Err(Refused { item, panicked }) => Err((item, Refusal::Panicked(panicked))),
        }
    }

    /// Gets an item, if there is one for who has none granted.
    #[inline]
    pub(super) fn get_now(&mut self) -> Result<(S::Item, After), Refusal> {
        if !self.has_item() {
            let over = self.shut && self.items.len() == 0;
            return Err(if over {
                Refusal::ShutDown
            } else {
                Refusal::Wait
            });
        }
        self.take()
    }

    /// The same for who was granted an item. When it fails, the grant stays.
    pub(super) fn get_granted(&mut self) -> Result<(S::Item, After), Refusal> {
        // After an immediate shutdown the item may be gone.
        self.getting -= 1;
        let taken = self.take();
        if taken.is_err() {
            self.getting += 1;
        }
        taken
    }

    #[inline]
    fn take(&mut self) -> Result<(S::Item, After), Refusal> {
        match self.items.pop() {
            Ok(Some(item)) => Ok((item, self.after_take())),
            Ok(None) => Err(Refusal::ShutDown),
            Err(panicked) => Err(Refusal::Panicked(panicked)),
        }
    }

    #[inline]
    fn after_take(&mut self) -> After {
        if self.shut {
            return self.after_take_shut();
        }
        After {
            wake: self.offer_place(),
            wakes: None,
        }
    }

    /// Rule 3: getters that wait for what others let go fail when the last item goes.
    #[cold]
    fn after_take_shut(&mut self) -> After {
        let mut after = After {
            wake: None,
            wakes: None,
        };
        if self.items.len() == 0 && self.waiting(GETTERS) > 0 {
            let mut wakes = Box::new(Wakes::new());
            self.grant_all(GETTERS, |_| FAIL, &mut wakes);
            after.wakes = Some(wakes);
        }
        after
    }

    /// Rule 1: an item that belongs to nobody goes to who waits longest.
    #[inline]
    fn offer_item(&mut self) -> Option<Waker> {
        if self.waiting(GETTERS) == 0 || !self.has_item() {
            return None;
        }
        self.getting += 1;
        self.grant_first(GETTERS, GO)
    }

    /// Rule 2: a place that belongs to nobody goes to who waits longest.
    #[inline]
    fn offer_place(&mut self) -> Option<Waker> {
        if self.waiting(PUTTERS) == 0 || !self.has_place() {
            return None;
        }
        self.putting += 1;
        self.grant_first(PUTTERS, GO)
    }

    /// A granted getter goes without its item.
    pub(super) fn give_item_back(&mut self) -> Option<Waker> {
        self.getting -= 1;
        self.offer_item()
    }

    /// A granted putter goes without having put.
    pub(super) fn give_place_back(&mut self) -> Option<Waker> {
        self.putting -= 1;
        self.offer_place()
    }

    pub(super) fn is_done(&self) -> bool {
        self.outstanding == 0
    }
}

/// Puts an item if nothing stands in the way, as nearly always: one lock, and nothing that the compiler has to carry
/// along for the other cases. What it costs is what a message costs.
///
/// # Errors
/// `put_now` or a wait are needed: the item.
#[inline]
pub(super) fn put_fast<S: Store>(desk: &QueueDesk<S>, item: S::Item) -> Result<(), S::Item> {
    let mut queue = desk.lock();
    if queue.shut || !queue.has_place() {
        drop(queue);
        return Err(item);
    }
    if let Err(refused) = queue.items.push(item) {
        drop(queue);
        let Refused { item, panicked } = refused;
        drop(item);
        panic::resume_unwind(panicked);
    }
    queue.outstanding += 1;
    let wake = queue.offer_item();
    drop(queue);
    if let Some(waker) = wake {
        wake_other(waker);
    }
    Ok(())
}

/// Gets an item if nothing stands in the way. `None`: `get_now` or a wait are needed.
#[inline]
pub(super) fn get_fast<S: Store>(desk: &QueueDesk<S>) -> Option<S::Item> {
    let mut queue = desk.lock();
    if queue.shut || !queue.has_item() {
        return None;
    }
    match queue.items.pop() {
        Ok(Some(item)) => {
            let wake = queue.offer_place();
            drop(queue);
            if let Some(waker) = wake {
                wake_other(waker);
            }
            Some(item)
        }
        Ok(None) => None,
        Err(panicked) => {
            drop(queue);
            panic::resume_unwind(panicked);
        }
    }
}

/// Once in a batch of items.
#[cold]
fn wake_other(waker: Waker) {
    waker.wake();
}

/// What is to be woken after a get, when the lock is not held.
pub(super) struct After {
    wake: Option<Waker>,
    wakes: Option<Box<Wakes>>,
}

impl After {
    #[inline]
    pub(super) fn wake(self) {
        if let Some(waker) = self.wake {
            waker.wake();
        }
        if let Some(wakes) = self.wakes {
            wakes.wake_all();
        }
    }
}

impl<S: Store> BaseQueue<S> {
    pub(super) fn with_max_size(max_size: usize) -> Self {
        let max = if max_size == 0 { usize::MAX } else { max_size };
        Self {
            desk: Desk::new(State {
                items: S::new(),
                max,
                getting: 0,
                putting: 0,
                outstanding: 0,
                shut: false,
            }),
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
