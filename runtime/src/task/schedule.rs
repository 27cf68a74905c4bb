//! What a scheduler and its tasks promise each other, and how a task is made.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::header::Header;
use super::memory::{Memory, Size};
use super::raw::{Runnable, TaskRef};
use super::{Id, JoinError, JoinHandle, PanicReport, cell, grace, harness, raw};
use crate::context;

/// Where a task's `Runnable`s go, and who keeps account of the task.
///
/// Methods are called with the state word whole and no lock held; they must not panic.
pub trait Schedule: Sized + 'static {
    /// Whether every task that is polled lies in a live list, whose reference is dropped after [`release`](Self::release)
    /// and no sooner: then a poll need not hold a reference of its own.
    const PINS: bool = false;

    /// Whether tasks are polled and shut down on one thread, so that the end of a poll may say that it is over before the
    /// state word does: then a task that some other thread has just woken can be ended all the same, which the queue
    /// of that thread could not do (rule 5 of `task/mod.rs`).
    const ON_ONE_THREAD: bool = false;

    /// Whether tasks are made in [`Memory`], by `spawn_in`, which [`recycle`](Self::recycle) takes back.
    const RECYCLES: bool = false;

    /// The task was woken: put its `Runnable` where it will be polled.
    ///
    /// `self` lies in the task. Once another thread can take the `Runnable`, the task may run to its end and be freed:
    /// whatever is used after that is cloned before.
    fn schedule(&self, task: Runnable);

    /// The task was woken during its own poll, which is over: it goes behind everything else.
    fn schedule_again(&self, task: Runnable) {
        self.schedule(task);
    }

    /// The task is over. `true` if it was in the scheduler's live list, whose reference the caller then drops.
    fn release(&self, task: &Header) -> bool;

    /// As [`release`](Self::release), of a task that was made in [`Memory`]. `true`: it counts as released, and the caller
    /// gives the reference to [`depart`](Self::depart) when it has done with the task. Else it calls `release`.
    fn departs(&self, task: &Header) -> bool {
        let _ = task;
        false
    }

    /// The task is over, and still in the scheduler's live list. `task` stands for so many references: that of the list, and
    /// those that the caller had. `self` lies in the task.
    fn depart(&self, task: TaskRef, refs: usize) {
        self.release(task.header());
        task.drop_many(refs);
    }

    /// Whether the scheduler has shut down: tells "cancelled" from "runtime closed".
    fn is_closed(&self) -> bool;

    /// Why a task that was cancelled has no output. For schedulers that cancel for a reason of their own.
    fn cancel_error(&self, task: &Header) -> JoinError {
        if self.is_closed() {
            JoinError::closed(task.id)
        } else {
            JoinError::cancelled(task.id)
        }
    }

    /// A poll panicked: with which error the task ends. For schedulers that hand the panic to somebody.
    fn panicked(&self, error: JoinError) -> JoinError {
        error
    }

    /// The destructor of the task's future or output panicked. Gives the payload back if the panic is only to be
    /// reported, by [`destructor_panicked`](Self::destructor_panicked).
    fn own_destructor_panicked(
        &self,
        report: &Arc<PanicReport>,
        payload: Box<dyn Any + Send>,
    ) -> Option<Box<dyn Any + Send>> {
        let _ = report;
        Some(payload)
    }

    /// The task has ended: its end was told to everyone, and its output, if it has no handle, dropped.
    #[inline]
    fn ended(&self) {}

    /// The task that was made in this memory is freed: nothing but the scheduler is left of it.
    fn recycle(self, memory: Memory) {
        drop(memory);
    }

    /// Aborts `task`, which is one of this scheduler's, when `grace` is over.
    fn abort_after(&self, task: TaskRef, grace: Duration) {
        grace::abort_after(context::current().as_ref(), task, grace);
    }

    /// A task ended in a panic. With a handle alive, its owner may still retrieve the error.
    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool);

    /// A destructor or a waker panicked; the report names the task to which it belongs.
    fn destructor_panicked(&self, report: &Arc<PanicReport>);
}

/// What a spawn says about a task.
#[derive(Debug, Clone)]
pub struct Meta {
    /// The task's name, if it has one.
    pub name: Option<Arc<str>>,
    /// Where the task was spawned.
    pub site: &'static Location<'static>,
}

impl Meta {
    /// No name; the caller's place.
    #[must_use]
    #[track_caller]
    pub fn here() -> Self {
        Self {
            name: None,
            site: Location::caller(),
        }
    }
}

/// A task that was just made.
#[derive(Debug)]
pub struct NewTask<T> {
    /// The right to its first poll.
    pub runnable: Runnable,
    /// Its handle.
    pub handle: JoinHandle<T>,
    /// The reference of the live list, if the task was made for one.
    pub listed: Option<TaskRef>,
}

/// Makes a task.
///
/// For a future that is not `Send`, `S` must keep rule 5 of `task/mod.rs`.
#[inline]
pub fn new_task<F, S>(future: F, scheduler: S, meta: Meta, listed: bool) -> NewTask<F::Output>
where
    F: Future + 'static,
    S: Schedule,
{
    new_task_with(future, scheduler, meta, listed, |_, _| ())
}

/// As [`new_task`]; `enter` sees the task, and the scheduler in it, before anyone else does.
#[inline]
pub(crate) fn new_task_with<F, S>(
    future: F,
    scheduler: S,
    meta: Meta,
    listed: bool,
    enter: impl FnOnce(&S, &TaskRef),
) -> NewTask<F::Output>
where
    F: Future + 'static,
    S: Schedule,
{
    let id = Id::next();
    let place = (id, meta.name, meta.site);
    let ptr = cell::Cell::allocate(
        future,
        scheduler,
        &harness::Functions::<F, S>::VTABLE,
        place,
        listed,
    );
    let (runnable, handle, list) = raw::split(ptr, listed);
    raw::enter::<F, S>(&handle, enter);
    NewTask {
        runnable,
        handle: JoinHandle::new(handle, PhantomData),
        listed: list,
    }
}

/// Makes a task, lists it, and hands its first `Runnable` to its scheduler.
///
/// `insert` puts the task into the live list of its scheduler; a list that is closed gives the reference back, and the
/// task ends as "runtime closed" without having been polled.
#[inline]
pub fn spawn_listed<F, S>(
    future: F,
    scheduler: S,
    meta: Meta,
    insert: impl FnOnce(&S, TaskRef) -> Result<(), TaskRef>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    S: Schedule,
{
    let place = (Id::next(), meta.name, meta.site);
    let ptr = cell::Cell::allocate(
        future,
        scheduler,
        &harness::Functions::<F, S>::VTABLE,
        place,
        true,
    );
    raw::start::<F, S>(ptr, insert, S::schedule)
}

/// The size of memory for [`spawn_in`], if there is one.
#[must_use]
pub const fn size_of_task<F, S>() -> Option<Size>
where
    F: Future,
    S: Schedule,
{
    cell::Cell::<F, S>::SIZE
}

/// As [`spawn_listed`], in memory that `S` takes back. `schedule` gets the first `Runnable`, likewise as
/// [`Schedule::schedule`].
///
/// # Panics
/// If the memory is of another size than [`size_of_task`] says.
#[inline]
pub fn spawn_in<F, S>(
    memory: Memory,
    future: F,
    scheduler: S,
    meta: Meta,
    insert: impl FnOnce(&S, TaskRef) -> Result<(), TaskRef>,
    schedule: impl FnOnce(&S, Runnable),
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    S: Schedule,
{
    const { assert!(S::RECYCLES) };
    let place = (Id::next(), meta.name, meta.site);
    let ptr = cell::Cell::make_in(
        memory,
        future,
        scheduler,
        &harness::Functions::<F, S>::RECYCLING,
        place,
        true,
    );
    raw::start::<F, S>(ptr, insert, schedule)
}
