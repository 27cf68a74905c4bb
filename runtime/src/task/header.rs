//! The part of a task that needs no type: what queues, wakers and handles see of it.
//!
//! # Who may touch what
//! See `task/mod.rs`; this file only lays the fields out.

use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
// For dumps: not modelled.
use std::sync::atomic::AtomicU32 as PlainU32;
use std::task::Waker;
use std::time::Duration;

use rt_sync::primitive::atomic::{AtomicU32, Ordering::Relaxed};
use rt_sync::primitive::cell::UnsafeCell;
use rt_sync::wait::WaitSlot;

use super::cold::{Cold, ColdSlot};
use super::state::State;
use super::steps::Steps;
use super::{Id, try_id};

/// The head of every task's allocation. `Cell` in `cell.rs` is `repr(C)` and starts with it.
pub struct Header {
    pub(super) state: State,
    pub(super) vtable: &'static Vtable,
    /// What the task waits for. Written after a poll, by whoever polled.
    pub(crate) wait: WaitSlot,
    /// How often the task was polled, and whether it is being polled.
    pub(crate) steps: Steps,
    /// Where the task lies in the live list of its scheduler, if that is a table. Written once, before the task is shared.
    pub(crate) list_key: AtomicU32,
    /// Neighbours in the live list, if that is linked: they belong to the holder of its lock.
    pub(crate) links: UnsafeCell<Links>,
    pub(crate) id: Id,
    /// The task that spawned this one, if a task did.
    pub(crate) parent: Option<Id>,
    /// Who awaited the handle last, by the lower half of its number; zero: nobody, or no task. Written by the handle, for
    /// dumps only.
    pub(crate) joiner: PlainU32,
    /// The number of the task's group; zero: none. Written once, before the task is shared.
    pub(crate) group: PlainU32,
    /// Where the task was spawned.
    pub(crate) site: &'static Location<'static>,
    /// The name, callbacks, and what a graceful cancel needs: most tasks have none of it and pay one word.
    pub(super) cold: ColdSlot,
    /// Rule 3 of `task/mod.rs`: whose this is depends on `JOIN_WAKER` and `COMPLETE`.
    pub(super) join_waker: UnsafeCell<Option<Waker>>,
}

/// What differs from one type of future and scheduler to the next.
pub(super) struct Vtable {
    /// Polls once. The caller gives a `Runnable` up.
    pub(super) poll: unsafe fn(NonNull<Header>),
    /// Hands a `Runnable`, which the caller gives up, to the scheduler.
    pub(super) schedule: unsafe fn(NonNull<Header>),
    /// Drops the future and completes as cancelled. The caller has the stage by a claim, and keeps its reference.
    pub(super) cancel_claimed: unsafe fn(NonNull<Header>),
    /// Moves the output to the `Poll<Result<T, JoinError>>` behind the pointer. The task is complete.
    pub(super) take_output: unsafe fn(NonNull<Header>, *mut ()),
    /// Drops the output, if it is still there. The task is complete, and the caller is its handle.
    pub(super) drop_output: unsafe fn(NonNull<Header>),
    /// Runs the callbacks of `on_done`. The task is complete.
    pub(super) run_hooks: unsafe fn(NonNull<Header>),
    /// Aborts the task when this time has passed, unless it has ended by then.
    pub(super) abort_after: unsafe fn(NonNull<Header>, Duration),
    /// Frees the task. The last reference is gone.
    pub(super) dealloc: unsafe fn(NonNull<Header>),
    /// Whether its memory is of a [`Size`](super::memory::Size), and its scheduler takes it back.
    pub(super) recycles: bool,
}

impl Header {
    /// What the task does at this moment.
    pub(crate) fn activity(&self) -> super::Activity {
        self.state.activity(&self.steps)
    }

    /// Whether the end of the task can be seen.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_complete()
    }

    /// The task that runs on this thread waits for this one: for dumps.
    #[inline]
    pub(super) fn note_joiner(&self) {
        // Truncated: enough to tell the living apart.
        let joiner = try_id().map_or(0, |id| id.get() as u32);
        self.joiner.store(joiner, Relaxed);
    }

    /// All polls together, and the longest, where they are timed.
    pub(crate) fn poll_time(&self) -> Option<(Duration, Duration)> {
        self.cold.get().and_then(Cold::poll_time)
    }

    /// A poll of this task took so long.
    pub(crate) fn add_poll_time(&self, took: Duration) {
        self.cold.get_or_init().add_poll_time(took);
    }

    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.cold.get().and_then(|cold| cold.name.as_ref())
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Neighbours in a live list.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) previous: Option<NonNull<Header>>,
    pub(crate) next: Option<NonNull<Header>>,
}
