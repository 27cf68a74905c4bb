//! What came of a transition of the state word (`state.rs`), and what its caller has to do now.

/// What the holder of a `Runnable` has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StartPoll {
    /// Poll the future; the caller has the stage.
    Poll,
    /// Drop the future and complete as cancelled; the caller has the stage.
    Cancel,
    /// The task is over or claimed by shutdown: only the `Runnable`'s reference is left to drop.
    Gone,
}

/// How a poll that returned `Pending` ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EndPoll {
    /// The task waits; the `Runnable`'s reference is no longer the caller's, and others are left.
    Idle,
    /// The task waits, but the reference dropped was the last: free it.
    Dealloc,
    /// It was woken meanwhile: the caller holds a `Runnable` again.
    Reschedule,
    /// It was cancelled meanwhile: the caller still has the stage, and has to drop the future.
    Cancel,
}

/// What a wake, by value or by reference, has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Nothing: someone else will poll, or the task is over.
    Nothing,
    /// The caller now owns a `Runnable` and hands it to the scheduler.
    Submit,
    /// The waker's reference was the last: free the task.
    Dealloc,
}

/// What shutdown has to do for a task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing: it is over, or somebody else drops its future.
    Nothing,
    /// It was idle: the caller has the stage, and drops the future.
    Claimed,
    /// Its `Runnable` is somewhere.
    Scheduled,
}

/// What the one who completed a task finds.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) joiner: Joiner,
    /// Callbacks wait.
    pub(super) hooks: bool,
    /// There are no references but the caller's.
    pub(super) alone: bool,
}

/// The handle of a task that was just completed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joiner {
    /// There is none: drop the output.
    None,
    /// It has not stored a waker.
    Exists,
    /// It waits: take its waker and wake it.
    Waits,
}

/// What a handle that stores a waker finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoreWaker {
    /// The waker is stored, and belongs to whoever completes the task.
    Stored,
    /// The task is complete; the waker slot is the handle's.
    Complete,
}

/// What a handle that is dropped has to clean up, before it drops its reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DropHandle {
    /// Nothing, and its reference is dropped already.
    Done,
    /// As `Done`, but the reference dropped was the last: free the task.
    Dealloc,
    /// The waker that it stored is the handle's again, to drop.
    DropWaker,
    /// The task is complete: the output is the handle's to drop.
    DropOutput,
}
