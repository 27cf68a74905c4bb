//! Task numbers, unique within the process, and the number of the task that runs on this thread.

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Identifies a task among all tasks that this process ever made.
///
/// Numbers are not in the order of spawning across threads, since each thread takes a block of them at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

/// Numbers a thread takes at a time, so that spawns on many threads do not meet at one counter.
const BLOCK: u64 = 1024;

static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
    static CURRENT: Cell<Option<Id>> = const { Cell::new(None) };
}

impl Id {
    #[inline]
    pub(crate) fn next() -> Self {
        NEXT.with(|next| {
            let mut number = next.get();
            if number % BLOCK == 0 {
                // A multiple of the block length says "used up", so a block gives one number less.
                number = NEXT_BLOCK.fetch_add(1, Relaxed) * BLOCK + 1;
            }
            next.set(number + 1);
            // Never zero: a block starts at a multiple plus one.
            Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MAX))
        })
    }

    /// The number itself.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

/// The task that runs on this thread.
///
/// # Panics
/// Outside a task; use [`try_id`] where that may happen.
#[must_use]
#[track_caller]
pub fn id() -> Id {
    match try_id() {
        Some(id) => id,
        None => panic!(
            "rt::task::id() called outside a task; use rt::task::try_id() where that may happen"
        ),
    }
}

/// The task that runs on this thread, if there is one.
#[must_use]
pub fn try_id() -> Option<Id> {
    CURRENT.get()
}

/// Restores the task that was current before, when dropped.
pub(crate) struct CurrentGuard(Option<Id>);

/// Makes `id` the current task of this thread.
#[inline]
pub(crate) fn set_current(id: Id) -> CurrentGuard {
    CurrentGuard(CURRENT.replace(Some(id)))
}

impl Drop for CurrentGuard {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_unique_across_threads() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..5_000).map(|_| Id::next()).collect::<Vec<_>>()))
            .collect();
        let all: Vec<Id> = threads
            .into_iter()
            .flat_map(|t| t.join().expect("no panic"))
            .collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
}
