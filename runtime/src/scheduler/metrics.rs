//! Counters of a seat and of the runtime: always on, written with a plain load and store where one thread owns them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that one thread adds to and all may read.
#[derive(Debug, Default)]
pub(crate) struct OwnCount(AtomicU64);

impl OwnCount {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What one seat counts. Written by its sitter.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) turns: OwnCount,
    pub(crate) polls: OwnCount,
    /// Searches that brought a task.
    pub(crate) steals: OwnCount,
    pub(crate) parks: OwnCount,
    pub(crate) selects: OwnCount,
    pub(crate) events: OwnCount,
    pub(crate) timers: OwnCount,
    pub(crate) next_slot_hits: OwnCount,
}
