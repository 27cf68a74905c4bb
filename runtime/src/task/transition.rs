//! What came of a transition of the state word (`state.rs`), and what its caller has to do now.

/// What the holder of a `Runnable` has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StartPoll {
    /// Poll the future; the caller holds `RUNNING`.
    Poll,
    /// Drop the future and complete as cancelled; the caller holds `RUNNING`.
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
    /// It was cancelled meanwhile: the caller still holds `RUNNING` and has to drop the future.
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

/// What the one who completed a task finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completed {
    /// No handle: drop the output.
    Detached,
    /// A handle that has not stored a waker.
    Joinable,
    /// A handle waits: take its waker and wake it.
    JoinerWaits,
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
