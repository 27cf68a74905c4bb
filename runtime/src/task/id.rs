//! Task numbers, unique within the process, and the task that runs on this thread.
//!
//! # Who may touch what
//! `CURRENT` is null or points at the header of the task that this thread polls, or whose future it drops: whoever does
//! so keeps the task alive, and puts the pointer back that was there before when it is done ([`set_current`]). Its lowest
//! bit says that the reference of the `Runnable` is still there to be taken over by a waker (`waker.rs`).
#![expect(
    unsafe_code,
    reason = "the current task is a bare pointer, so that setting it counts no reference"
)]

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;

use super::header::Header;
use super::raw::TaskRef;
use crate::debug::{ReportedTask, forgotten::Failure};

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
}

#[cfg(not(rt_loom))]
thread_local! {
    static CURRENT: Cell<*const Header> = const { Cell::new(ptr::null()) };
}

// The threads of a model share the storage of the thread that explores it.
#[cfg(rt_loom)]
loom::thread_local! {
    static CURRENT: Cell<*const Header> = Cell::new(ptr::null());
}

/// See the module head.
const SPARE: usize = 1;

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
#[inline]
pub fn try_id() -> Option<Id> {
    with_current(|task| task.map(|task| task.id))
}

#[inline]
fn current_ptr() -> *const Header {
    CURRENT.with(Cell::get).map_addr(|address| address & !SPARE)
}

/// Lends the header of the task that runs on this thread, if there is one.
#[inline]
pub(super) fn with_current<R>(f: impl FnOnce(Option<&Header>) -> R) -> R {
    // SAFETY: null, or the header of a task that is polled or dropped further up this thread's stack (module head).
    f(unsafe { current_ptr().as_ref() })
}

/// Gives the task that runs on this thread what is told if nobody takes its error.
pub(crate) fn keep_failure(failure: Failure) {
    let left = with_current(|task| match task {
        Some(task) => {
            task.cold.get_or_init().keep_failure(failure);
            None
        }
        None => Some(failure),
    });
    drop(left);
}

/// The task that runs on this thread, as reports show it.
pub(crate) fn current_report() -> Option<ReportedTask> {
    with_current(|task| {
        let task = ReportedTask::of(task?);
        // What it waited for last is of no interest.
        Some(ReportedTask { wait: None, ..task })
    })
}

/// Whether `waker` is that of the task that runs on this thread, and the task is cancelled: then it ends with this poll,
/// unless that is ready. Of the waker of a loop inside the task this is not said, since that loop goes on.
pub(crate) fn ends_with_poll(waker: &Waker) -> bool {
    with_current(|task| {
        task.is_some_and(|task| {
            ptr::eq(waker.data(), ptr::from_ref(task).cast()) && task.state.is_cancelled()
        })
    })
}

/// A reference to the task that runs on this thread, if there is one.
pub(super) fn current_task() -> Option<TaskRef> {
    with_current(|task| {
        task.map(|task| {
            // SAFETY: as in `with_current`: the task is alive while we look at it.
            let task = unsafe { TaskRef::borrow(task.into()) };
            TaskRef::clone(&task)
        })
    })
}

/// Restores the task that was current before, when dropped.
pub(super) struct CurrentGuard(*const Header);

/// Makes this the current task of the thread, until the guard is dropped, before which the task must not go. `spare`: a
/// waker may take a reference of the caller's over.
#[inline]
pub(super) fn set_current(task: &Header, spare: bool) -> CurrentGuard {
    let task = ptr::from_ref(task).map_addr(|address| address | if spare { SPARE } else { 0 });
    CurrentGuard(CURRENT.with(|current| current.replace(task)))
}

/// Takes the spare reference of this task over, if this thread polls it and nobody has taken the reference yet.
#[inline]
pub(super) fn take_spare(task: *const Header) -> bool {
    let taken = CURRENT.try_with(|current| {
        let spare = current.get() == task.map_addr(|address| address | SPARE);
        if spare {
            current.set(task);
        }
        spare
    });
    // While the thread ends it polls nothing.
    taken.unwrap_or(false)
}

impl CurrentGuard {
    /// Whether the reference that was offered is still there.
    #[inline]
    pub(super) fn has_spare(&self) -> bool {
        CURRENT.with(Cell::get).addr() & SPARE != 0
    }
}

impl Drop for CurrentGuard {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
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
