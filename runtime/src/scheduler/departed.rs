//! Tasks from outside that are over: their worker takes a batch of them out of the live list.
//!
//! Who spawns from outside puts its tasks into the list of the first seat, and a worker takes each out. They fought over
//! that lock: it was 110 of 300 ns of such a spawn. With batches the worker takes it once for [`FULL`] tasks.
//!
//! # What it guarantees
//! The list shows no task that is over, also if it still is in there (`live.rs`), and counts none: the worker counts it
//! before its end is seen. The memory of a task is kept for at most as long as its worker polls others, and [`FULL`] - 1 of
//! them; its future and output are not.
//!
//! # Who may touch what
//! A worker's batch is its own. Whoever has it owns the list's reference to each task in it.
//!
//! # User code
//! Runs when a scheduler's last reference is dropped. So a batch leaves the context before it is parted with.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use super::Seat;
use crate::task::TaskRef;

/// Tasks that leave together: the lock costs each next to nothing then, and their memory fits into a first-level cache.
const FULL: usize = 32;

/// The batch of one thread, while it sits. Dropped, it parts with the batch.
#[derive(Default)]
pub(crate) struct Departed(Cell<Option<Batch>>);

/// See the module head.
pub(crate) struct Batch {
    /// In whose list they are.
    seat: Arc<Seat>,
    /// Each with how many references we have.
    tasks: Vec<(TaskRef, usize)>,
}

impl Departed {
    /// Puts a task in, which is in the list of `seat`: the first seat always. A batch that is full comes out, for
    /// [`part`](Batch::part).
    #[inline]
    pub(crate) fn put(&self, seat: &Arc<Seat>, task: TaskRef, refs: usize) -> Option<Batch> {
        let mut batch = self.0.take().unwrap_or_else(|| Batch {
            seat: seat.clone(),
            tasks: Vec::with_capacity(FULL),
        });
        debug_assert!(Arc::ptr_eq(seat, &batch.seat));
        batch.tasks.push((task, refs));
        if batch.tasks.len() == FULL {
            return Some(batch);
        }
        self.0.set(Some(batch));
        None
    }

    /// Takes the batch out.
    pub(crate) fn take(&self) -> Option<Batch> {
        self.0.take()
    }

    /// Takes the empty batch back, for its memory.
    pub(crate) fn put_back(&self, batch: Batch) -> Option<Batch> {
        let other = self.0.take();
        if other.is_some() {
            self.0.set(other);
            return Some(batch);
        }
        self.0.set(Some(batch));
        None
    }
}

impl Batch {
    /// Takes the tasks out of the list, and drops the references.
    pub(crate) fn part(mut self) -> Self {
        let Self { seat, tasks } = &mut self;
        seat.live
            .remove_departed(tasks.iter().map(|(task, _)| task));
        for (task, refs) in tasks.drain(..) {
            task.drop_many(refs);
        }
        self
    }
}

impl Drop for Departed {
    fn drop(&mut self) {
        if let Some(batch) = self.take() {
            drop(batch.part());
        }
    }
}

impl fmt::Debug for Departed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Departed").finish_non_exhaustive()
    }
}
