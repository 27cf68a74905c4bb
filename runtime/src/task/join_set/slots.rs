//! The slots of a `JoinSet`, and the queue of those whose tasks may be over. See `join_set/mod.rs`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use rt_sync::coop;

use crate::task::wake_queue::WakeQueue;
use crate::task::{Id, JoinError, JoinHandle};

/// Slots that a set keeps when it becomes empty: 48 bytes each, and as much again for the waker.
const KEEP: usize = 1024;

/// See the module head.
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Numbers of slots without a task.
    free: Vec<u32>,
    /// Numbers that were taken out of `over` in one go.
    taken: VecDeque<u32>,
    /// Made with the first task.
    over: Option<Arc<WakeQueue<u32>>>,
}

struct Slot<T> {
    /// Puts the number of this slot into `over`.
    waker: Waker,
    handle: Option<JoinHandle<T>>,
}

struct SlotWaker {
    over: Arc<WakeQueue<u32>>,
    slot: u32,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Never closed.
        let _ = self.over.push(self.slot);
    }
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            taken: VecDeque::new(),
            over: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, handle: JoinHandle<T>) {
        let over = self.over.get_or_insert_with(Arc::default);
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number =
                    u32::try_from(self.slots.len()).expect("a JoinSet holds fewer than 2^32 tasks");
                let waker = Waker::from(Arc::new(SlotWaker {
                    over: over.clone(),
                    slot: number,
                }));
                self.slots.push(Slot {
                    waker,
                    handle: None,
                });
                number
            }
        };
        let slot = &mut self.slots[number as usize];
        let complete = handle.register(&slot.waker);
        slot.handle = Some(handle);
        if complete {
            slot.waker.wake_by_ref();
        }
    }

    /// Takes out a task that is over, if one is known.
    pub(super) fn take_next(&mut self) -> Option<Result<(Id, T), JoinError>> {
        loop {
            let Some(number) = self.taken.pop_front() else {
                self.over.as_ref()?.take_into(&mut self.taken);
                if self.taken.is_empty() {
                    return None;
                }
                continue;
            };
            if let Some(result) = self.take(number) {
                return Some(result);
            }
        }
    }

    /// Waits for a task that is over. The set is not empty.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Id, T), JoinError>> {
        if let Some(result) = self.take_next() {
            return Poll::Ready(result);
        }
        if let Some(over) = &self.over {
            over.register(cx.waker());
        }
        // Once more: what ended before the waker was there.
        match self.take_next() {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    /// Takes the output out of this slot. `None`: the number was only a hint.
    fn take(&mut self, number: u32) -> Option<Result<(Id, T), JoinError>> {
        let slot = self.slots.get_mut(number as usize)?;
        let handle = slot.handle.as_mut()?;
        let id = handle.id();
        let Poll::Ready(result) = poll_unbudgeted(handle, &slot.waker) else {
            return None;
        };
        // Over: the handle holds nothing any more, and dropping it runs no user code.
        slot.handle = None;
        self.free.push(number);
        self.shrink_if_empty();
        Some(result.map(|output| (id, output)))
    }

    /// Gives back the memory of a burst. Numbers that are still in the queue point to no slot then, or to a later one.
    fn shrink_if_empty(&mut self) {
        if self.slots.len() > KEEP && self.len() == 0 {
            self.slots = Vec::new();
            self.free = Vec::new();
            self.taken = VecDeque::new();
        }
    }

    pub(super) fn for_each(&self, mut f: impl FnMut(&JoinHandle<T>)) {
        for slot in &self.slots {
            if let Some(handle) = &slot.handle {
                f(handle);
            }
        }
    }

    /// Drops every handle.
    pub(super) fn clear(&mut self) {
        for number in 0..self.slots.len() {
            // Out of the set before it is dropped, since that may run the destructor of an output.
            let handle = self.slots[number].handle.take();
            if handle.is_some() {
                self.free.push(number as u32);
            }
            drop(handle);
        }
        self.shrink_if_empty();
    }
}

/// Polls a handle without spending budget: the set spends a unit for each output, with its own task's waker.
fn poll_unbudgeted<T>(handle: &mut JoinHandle<T>, waker: &Waker) -> Poll<Result<T, JoinError>> {
    struct Restore(coop::Saved);
    impl Drop for Restore {
        fn drop(&mut self) {
            coop::restore(self.0);
        }
    }
    let _restore = Restore(coop::lift());
    Pin::new(handle).poll(&mut Context::from_waker(waker))
}
