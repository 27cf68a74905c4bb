//! Wakers collected under a lock, however many they are.

use std::task::Waker;

use crate::wake_batch::{WakeBatch, keep_first, resume};

/// Wakers of grants, collected under the lock and woken after it; more than a [`WakeBatch`] has room for.
pub(crate) struct Wakes {
    batch: WakeBatch,
    more: Vec<Waker>,
}

impl Wakes {
    pub(crate) const fn new() -> Self {
        Self {
            batch: WakeBatch::new(),
            more: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, waker: Waker) {
        if self.batch.is_full() {
            self.more.push(waker);
        } else {
            self.batch.push(waker);
        }
    }

    /// Wakes all, in order.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    pub(crate) fn wake_all(self) {
        let Wakes { mut batch, more } = self;
        let mut first = batch.wake_all_caught();
        for waker in more {
            if batch.is_full() {
                keep_first(&mut first, batch.wake_all_caught());
            }
            batch.push(waker);
        }
        keep_first(&mut first, batch.wake_all_caught());
        resume(first);
    }
}
