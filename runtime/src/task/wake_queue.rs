//! A queue that any thread fills and one side empties, which is woken when there is something.
//!
//! # What it guarantees
//! An item that is pushed is either seen by the next [`take_into`](WakeQueue::take_into), or the waker that was
//! registered before that call is woken. Items come out in the order in which the lock was taken.
//!
//! # Who may touch what
//! `items` lies behind its lock. `filled` is written under that lock and read without it by the taking side, so that a
//! look at an empty queue costs one relaxed load.
//!
//! # The race
//! 1. The taking side registers its waker.
//! 2. It looks at `filled`.
//! 3. A pusher sets `filled`.
//! 4. It wakes.
//!
//! The waker slot orders 1 and 4: either 2 sees 3, or 4 finds the waker of 1. Only the push that makes the queue
//! non-empty wakes: what comes behind it is taken in one go with it.
//!
//! # User code
//! The waker is woken and dropped without the lock, and items are moved under it but never dropped.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::task::Waker;

use rt_sync::AtomicWaker;
use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};

/// See the module head.
pub struct WakeQueue<T> {
    items: Mutex<Items<T>>,
    filled: AtomicBool,
    waker: AtomicWaker,
}

struct Items<T> {
    queue: VecDeque<T>,
    closed: bool,
}

impl<T> WakeQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            items: Mutex::new(Items {
                queue: VecDeque::new(),
                closed: false,
            }),
            filled: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Adds an item, and wakes the taking side if the queue was empty.
    ///
    /// # Errors
    /// The item, if the queue is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock();
        if items.closed {
            return Err(item);
        }
        items.queue.push_back(item);
        let first = items.queue.len() == 1;
        if first {
            // Relaxed: the waker slot orders it before the wake (module head).
            self.filled.store(true, Relaxed);
        }
        drop(items);
        if first {
            self.waker.wake();
        }
        Ok(())
    }

    /// Moves everything to the back of `to`. One relaxed load if there is nothing.
    #[inline]
    pub fn take_into(&self, to: &mut VecDeque<T>) {
        // Relaxed: a value that is out of date comes before a wake that this poll has not consumed (module head).
        if self.filled.load(Relaxed) {
            self.take_filled(to);
        }
    }

    fn take_filled(&self, to: &mut VecDeque<T>) {
        let mut items = self.items.lock();
        self.filled.store(false, Relaxed);
        if to.is_empty() {
            // The queues change places: nothing is copied, and both keep their memory.
            mem::swap(to, &mut items.queue);
        } else {
            to.append(&mut items.queue);
        }
    }

    /// Makes `waker` the one to be woken. Look for items afterwards, not before.
    #[inline]
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Takes the registered waker out without waking it.
    #[inline]
    pub fn take_waker(&self) -> Option<Waker> {
        self.waker.take()
    }

    /// Wakes the taking side.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Refuses further items, and gives back what was left.
    pub fn close(&self) -> VecDeque<T> {
        let mut items = self.items.lock();
        items.closed = true;
        self.filled.store(false, Relaxed);
        mem::take(&mut items.queue)
    }
}

impl<T> Default for WakeQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for WakeQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeQueue")
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}
