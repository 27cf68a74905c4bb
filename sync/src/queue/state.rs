//! What the lock of a queue guards, and every change of it. The module head of [`queue`](super) has the rules.

use std::panic;
use std::task::Waker;

use super::store::{Panicked, Refused, Store};
use crate::desk::{Clerk, Desk, Locked, Place, Wakes};
use crate::wake_batch::contain;

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

/// What the lock guards. The rules are those of the module head of `queue`.
pub(crate) struct State<S> {
    pub(super) items: S,
    /// `usize::MAX` if there is no limit.
    max: usize,
    /// Getters that were granted an item and have not come for it.
    getting: usize,
    /// Putters that were granted a place and have not come for it.
    putting: usize,
    /// Items that were put and not yet marked as done.
    pub(super) outstanding: usize,
    pub(super) shut: bool,
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
    /// An empty queue for at most so many items.
    pub(super) fn new(max: usize) -> Self {
        Self {
            items: S::new(),
            max,
            getting: 0,
            putting: 0,
            outstanding: 0,
            shut: false,
        }
    }

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

impl<S: Store> Clerk<LINES> for State<S> {
    fn pass_on(queue: &mut QueueLocked<'_, S>, line: usize, grant: usize) -> Option<Waker> {
        match (line, grant) {
            (GETTERS, GO) => queue.give_item_back(),
            (PUTTERS, GO) => queue.give_place_back(),
            _ => None,
        }
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

/// What is to be woken after a get, when the lock is not held.
pub(super) struct After {
    wake: Option<Waker>,
    wakes: Option<Box<Wakes>>,
}

impl After {
    /// The caller has an item, which a panic of a waker must not take along.
    #[inline]
    pub(super) fn wake(self) {
        if let Some(waker) = self.wake {
            wake_putter(waker);
        }
        if let Some(wakes) = self.wakes {
            contain(|| wakes.wake_all());
        }
    }
}

/// Puts an item if nothing stands in the way, as nearly always: one lock, and nothing that the compiler has to carry
/// along for the other cases. What it costs is what a message costs.
///
/// # Errors
/// `put_now` or a wait are needed: the item.
// `always`: as the polls that it is the usual way of.
#[inline(always)]
pub(super) fn put_fast<S: Store>(desk: &QueueDesk<S>, item: S::Item) -> Result<(), S::Item> {
    let mut queue = desk.lock();
    if queue.shut || !queue.has_place() {
        drop(queue);
        return Err(item);
    }
    if let Err(refused) = queue.items.push(item) {
        drop(queue);
        refuse(refused);
    }
    queue.outstanding += 1;
    let wake = queue.offer_item();
    drop(queue);
    if let Some(waker) = wake {
        wake_getter(waker);
    }
    Ok(())
}

/// Gets an item if nothing stands in the way. `None`: `get_now` or a wait are needed.
// `always`: as `put_fast`.
#[inline(always)]
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
                wake_putter(waker);
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

/// A comparison panicked, and the item of the put goes.
#[cold]
#[inline(never)]
fn refuse<T>(refused: Refused<T>) -> ! {
    let Refused { item, panicked } = refused;
    drop(item);
    panic::resume_unwind(panicked);
}

/// Once in a batch of items.
#[cold]
#[inline(never)]
fn wake_getter(waker: Waker) {
    waker.wake();
}

/// Likewise, for a getter that has its item.
#[cold]
#[inline(never)]
fn wake_putter(waker: Waker) {
    contain(|| waker.wake());
}
