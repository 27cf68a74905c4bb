//! References to a task: counted ones, and the `Runnable`, which is the right to poll once.
#![expect(unsafe_code, reason = "counts references to a type-erased task")]

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::time::Duration;

use rt_io::fence;

use super::cell::Cell;
use super::cold::Hook;
use super::header::Header;
use super::transition::{Claim, Wake};
use super::{Id, JoinHandle, Schedule};

/// A counted reference to a task of any type.
pub struct TaskRef(NonNull<Header>);

// SAFETY: what is reached through the header is guarded by the state word (task/mod.rs, rules 1 to 4), and futures are
// only polled and dropped where their scheduler allows it (rule 5).
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// # Safety
    /// The caller owns one reference to a live task and gives it to the value made here.
    pub(super) unsafe fn from_raw(ptr: NonNull<Header>) -> Self {
        Self(ptr)
    }

    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        let ptr = self.0;
        mem::forget(self);
        ptr
    }

    /// A reference that is somebody else's, to look at.
    ///
    /// # Safety
    /// The task stays alive while the value is used: its owner keeps the reference.
    pub(crate) unsafe fn borrow(ptr: NonNull<Header>) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self(ptr))
    }

    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.header().id
    }

    /// Drops so many references, of which this is one.
    pub fn drop_many(self, count: usize) {
        let task = ManuallyDrop::new(self);
        if task.header().state.ref_dec(count) {
            let dealloc = task.header().vtable.dealloc;
            // SAFETY: those were the last references.
            unsafe { dealloc(task.0) };
        }
    }

    pub(super) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: our reference keeps the task alive, and headers are only ever shared (rule 1).
        unsafe { self.0.as_ref() }
    }

    /// Cancels the task: see [`JoinHandle::abort`].
    pub fn abort(&self) {
        if self.header().state.abort(&self.header().steps) == Wake::Submit {
            let schedule = self.header().vtable.schedule;
            // SAFETY: `Submit` made us the owner of a `Runnable`, which `schedule` takes.
            unsafe { schedule(self.0) };
        }
    }

    /// Asks the task to end: see [`JoinHandle::cancel`].
    pub fn ask(&self) {
        if self.header().state.is_complete() {
            return;
        }
        let cold = self.header().cold.get_or_init();
        // The wakers belong to futures inside that task, not to the caller.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| cold.ask())) {
            rt_sync::wake_batch::discard(payload);
        }
    }

    /// Asks the task to end, and aborts it after `grace`: see [`JoinHandle::cancel`].
    pub fn cancel(&self, grace: Duration) {
        self.ask();
        if grace.is_zero() {
            self.abort();
        } else if !self.header().state.is_complete() {
            let abort_after = self.header().vtable.abort_after;
            // SAFETY: our reference keeps the task alive meanwhile.
            unsafe { abort_after(self.0, grace) };
        }
    }

    /// Runs `hook` when the task is over: see [`JoinHandle::on_done`].
    pub fn on_done(&self, hook: Hook) {
        self.header().cold.get_or_init().push(hook);
        if self.header().state.add_hook() {
            let run_hooks = self.header().vtable.run_hooks;
            // SAFETY: the task is complete, and our reference keeps it alive meanwhile.
            unsafe { run_hooks(self.0) };
        }
    }

    /// Cancels tasks for shutdown: drops their futures on this thread. Who polls one of them at this moment does so for
    /// that one, and so does who has just scheduled one and not yet put it into a queue.
    pub fn shut_down_all(tasks: impl IntoIterator<Item = Self>) {
        let mut scheduled = Vec::new();
        Self::claim_each(tasks, |task| scheduled.push(task));
        // Without the fence all of them are left to who polls them, or drops the queue in which they lie.
        if !scheduled.is_empty() && fence::heavy() {
            scheduled.iter().for_each(Self::shut_down_queued);
        }
    }

    /// As [`shut_down_all`](Self::shut_down_all), for tasks that are polled on this thread only
    /// ([`Schedule::ON_ONE_THREAD`]): only those that this thread polls, further up its stack, are left.
    pub(crate) fn shut_down_own(tasks: impl IntoIterator<Item = Self>) {
        Self::claim_each(tasks, |task| task.shut_down_queued());
    }

    /// Ends those that are idle, and hands out those that are scheduled.
    fn claim_each(tasks: impl IntoIterator<Item = Self>, mut scheduled: impl FnMut(Self)) {
        for task in tasks {
            match task.header().state.claim() {
                Claim::Nothing => {}
                Claim::Claimed => task.cancel_claimed(),
                Claim::Scheduled => scheduled(task),
            }
        }
    }

    fn shut_down_queued(&self) {
        let header = self.header();
        if header.state.claim_queued(&header.steps) {
            self.cancel_claimed();
        }
    }

    /// Drops the future. For who has just claimed the task.
    fn cancel_claimed(&self) {
        let cancel = self.header().vtable.cancel_claimed;
        // SAFETY: by the claim the stage is ours; the reference stays ours.
        unsafe { cancel(self.0) };
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> Self {
        self.header().state.ref_inc();
        Self(self.0)
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        if self.header().state.ref_dec(1) {
            let dealloc = self.header().vtable.dealloc;
            // SAFETY: that was the last reference.
            unsafe { dealloc(self.0) };
        }
    }
}

impl fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header().fmt(f)
    }
}

/// The right to poll a task once. Exactly one exists while the task is scheduled.
///
/// Dropping it cancels the task: nobody could ever poll it again.
pub struct Runnable(TaskRef);

impl Runnable {
    /// # Safety
    /// As [`TaskRef::from_raw`]; and the caller owns the right to poll, which comes with `SCHEDULED`.
    #[inline]
    pub(super) unsafe fn from_raw(ptr: NonNull<Header>) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { TaskRef::from_raw(ptr) })
    }

    /// Polls the task once.
    #[inline]
    pub fn run(self) {
        let poll = self.0.header().vtable.poll;
        let ptr = self.into_raw();
        // SAFETY: we owned a `Runnable` and gave it up in the line above.
        unsafe { poll(ptr) };
    }

    /// Gives the `Runnable` up as a pointer, for queues that hold pointers; take it back with [`from_queue`](Self::from_queue).
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        let ptr = self.0.0;
        mem::forget(self);
        ptr
    }

    /// Takes back what [`into_raw`](Self::into_raw) gave up.
    ///
    /// # Safety
    /// `ptr` came from `into_raw`, and is taken back once.
    #[inline]
    pub(crate) unsafe fn from_queue(ptr: NonNull<Header>) -> Self {
        // SAFETY: the caller's promise; `into_raw` forgot the same right.
        unsafe { Self::from_raw(ptr) }
    }

    pub(crate) fn header(&self) -> &Header {
        self.0.header()
    }

    /// A reference to the task.
    pub(crate) fn to_ref(&self) -> TaskRef {
        self.0.clone()
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        if self.0.header().state.abandon() {
            self.0.cancel_claimed();
        }
    }
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Runnable").field(&self.0).finish()
    }
}

/// Hands out the references that a new task's state word counts: `Runnable`, handle, and live list if `listed`.
#[inline]
pub(super) fn split(ptr: NonNull<Header>, listed: bool) -> (Runnable, TaskRef, Option<TaskRef>) {
    // SAFETY: `State::new` counted this reference, with `SCHEDULED` set.
    let runnable = unsafe { Runnable::from_raw(ptr) };
    // SAFETY: `State::new` counted this reference.
    let handle = unsafe { TaskRef::from_raw(ptr) };
    // SAFETY: `State::new` counted this reference if `listed` is set.
    let list = listed.then(|| unsafe { TaskRef::from_raw(ptr) });
    (runnable, handle, list)
}

/// Shows a new task, and the scheduler in it, to `f`. The task was made with these types.
#[inline]
pub(super) fn enter<F: Future, S: Schedule>(task: &TaskRef, f: impl FnOnce(&S, &TaskRef)) {
    // SAFETY: callers have just made the task with these types; `task` keeps it alive.
    let cell = unsafe { Cell::<F, S>::from_header(task.0) };
    f(&cell.scheduler, task);
}

/// Lists a new task and hands its first `Runnable` to its scheduler, by `schedule`.
#[inline]
pub(super) fn start<F: Future, S: Schedule>(
    ptr: NonNull<Header>,
    insert: impl FnOnce(&S, TaskRef) -> Result<(), TaskRef>,
    schedule: impl FnOnce(&S, Runnable),
) -> JoinHandle<F::Output> {
    let (runnable, handle, listed) = split(ptr, true);
    // SAFETY: the caller has just made the task with these types; the handle keeps it alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    if let Some(listed) = listed
        && insert(&cell.scheduler, listed).is_err()
    {
        // Drops the `Runnable`, which ends the task.
        return JoinHandle::new(handle, PhantomData);
    }
    schedule(&cell.scheduler, runnable);
    JoinHandle::new(handle, PhantomData)
}
