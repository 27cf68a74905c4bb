//! A child as a task: the scheduler around the one of its runtime, and the future around its own.
//!
//! # What it costs
//! Beyond a bare spawn and its end: two counts of the group, two locks (into the list and out of it), two references to
//! the group, 32 bytes in the task. No allocation.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicU32, Ordering::Relaxed};

use super::core::Core;
use super::error::{Cause, Failure};
use super::{GroupOutput, TaskGroup};
use crate::task::error::{PanicReport, Refusal};
use crate::task::id::current_task;
use crate::task::{
    Header, JoinError, JoinHandle, Meta, Outcome, Runnable, Schedule, TaskRef, spawn_listed,
};

/// A place in a group for one child: it is counted. Dropped unused, it is not counted any more.
pub(crate) struct Entry<E>(Option<Arc<Core<E>>>);

impl<E> Entry<E> {
    pub(super) fn new(core: &Arc<Core<E>>) -> Result<Self, Refusal> {
        core.join()?;
        Ok(Self(Some(core.clone())))
    }

    /// The scheduler of the child, around that of its runtime.
    #[inline]
    pub(crate) fn member<S>(mut self, inner: S) -> Member<S, E> {
        let core = self.0.take().expect("used once");
        Member {
            inner,
            core,
            key: AtomicU32::new(0),
        }
    }

    #[inline]
    fn core(&self) -> &Arc<Core<E>> {
        self.0.as_ref().expect("used once")
    }
}

impl<E> Drop for Entry<E> {
    fn drop(&mut self) {
        if let Some(core) = &self.0 {
            core.leave();
        }
    }
}

impl<E> fmt::Debug for Entry<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry")
    }
}

/// The scheduler of a child.
pub(crate) struct Member<S, E> {
    inner: S,
    core: Arc<Core<E>>,
    /// Where the child lies in the list of its group. Written once, before the task is shared.
    key: AtomicU32,
}

impl<S, E> Member<S, E> {
    /// Enters the list of the group. Once, before the task can be polled.
    #[inline]
    pub(crate) fn insert(&self, task: &TaskRef) {
        // Relaxed: whatever hands the task on orders it.
        self.key.store(self.core.insert(task), Relaxed);
    }

    /// The scheduler of the runtime.
    #[inline]
    pub(crate) fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Schedule, E: Send + 'static> Schedule for Member<S, E> {
    const PINS: bool = S::PINS;
    const ON_ONE_THREAD: bool = S::ON_ONE_THREAD;

    #[inline]
    fn schedule(&self, task: Runnable) {
        self.inner.schedule(task);
    }

    #[inline]
    fn schedule_again(&self, task: Runnable) {
        self.inner.schedule_again(task);
    }

    #[inline]
    fn release(&self, task: &Header) -> bool {
        self.core.remove(self.key.load(Relaxed));
        self.inner.release(task)
    }

    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn cancel_error(&self, task: &Header) -> JoinError {
        if self.is_closed() && !self.core.is_closed() {
            // Nobody cancelled it: its work is missing, and the owner has to know. The group is closed from now on, so
            // one such failure stands for all.
            drop(self.core.fail(Failure::runtime_closed(task)));
        }
        self.inner.cancel_error(task)
    }

    fn panicked(&self, error: JoinError) -> JoinError {
        let id = error.id();
        match self.core.fail(Failure::panic(error)) {
            Ok(()) => JoinError::given_to_group(id, Outcome::Panicked),
            Err(failure) => match failure.into_cause() {
                Cause::Panic(error) => error,
                Cause::Error(_) | Cause::RuntimeClosed(_) => unreachable!("it was a panic"),
            },
        }
    }

    fn own_destructor_panicked(
        &self,
        report: &StdArc<PanicReport>,
        payload: Box<dyn Any + Send>,
    ) -> Option<Box<dyn Any + Send>> {
        let error = JoinError::panicked(payload, report.clone());
        let failure = self.core.fail(Failure::panic(error)).err()?;
        match failure.into_cause() {
            Cause::Panic(error) => error.try_into_panic().ok(),
            Cause::Error(_) | Cause::RuntimeClosed(_) => None,
        }
    }

    #[inline]
    fn ended(&self) {
        self.core.leave();
    }

    fn abort_after(&self, task: TaskRef, grace: Duration) {
        self.inner.abort_after(task, grace);
    }

    fn task_panicked(&self, report: &StdArc<PanicReport>, handle_alive: bool) {
        self.inner.task_panicked(report, handle_alive);
    }

    fn destructor_panicked(&self, report: &StdArc<PanicReport>) {
        self.inner.destructor_panicked(report);
    }
}

impl<S, E> fmt::Debug for Member<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a child: gives an error to the group, and a value to the handle.
    pub(crate) struct Child<F, E> {
        #[pin]
        future: F,
        core: Arc<Core<E>>,
    }
}

impl<F, E> Child<F, E> {
    #[inline]
    pub(crate) fn new(future: F, entry: &Entry<E>) -> Self {
        Self {
            future,
            core: entry.core().clone(),
        }
    }
}

impl<F, E> Future for Child<F, E>
where
    F: Future,
    F::Output: GroupOutput<E>,
{
    type Output = <F::Output as GroupOutput<E>>::Value;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match ready!(this.future.poll(cx)).into_result() {
            Ok(value) => Poll::Ready(value),
            Err(error) => {
                fail(this.core, error);
                // There is no value: the task ends as cancelled, as soon as this poll is over.
                Poll::Pending
            }
        }
    }
}

#[cold]
fn fail<E>(core: &Core<E>, error: E) {
    let task = current_task();
    let task = task.as_ref().map(TaskRef::header);
    // A group that was dropped has nobody to tell.
    drop(core.fail(Failure::of_child(error, task)));
    if let Some(task) = task {
        task.state.give_up();
    }
}

impl<F, E> fmt::Debug for Child<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}

/// For models: spawns a child under a scheduler of one's own, into whose live list `insert` puts it. `None`: the group
/// takes no more.
pub fn member_on<F, S, E>(
    group: &TaskGroup<E>,
    future: F,
    scheduler: S,
    insert: impl FnOnce(&S, TaskRef) -> Result<(), TaskRef>,
) -> Option<JoinHandle<<F::Output as GroupOutput<E>>::Value>>
where
    F: Future + Send + 'static,
    F::Output: GroupOutput<E>,
    <F::Output as GroupOutput<E>>::Value: 'static,
    S: Schedule,
    E: Send + 'static,
{
    let entry = Entry::new(&group.core).ok()?;
    let child = Child::new(future, &entry);
    let member = entry.member(scheduler);
    Some(spawn_listed(child, member, Meta::here(), |member, task| {
        member.insert(&task);
        insert(&member.inner, task)
    }))
}

/// The scheduler of children that a group did not take in: they end at once, without having been polled.
pub(super) struct Refused(pub(super) Refusal);

impl Schedule for Refused {
    fn schedule(&self, task: Runnable) {
        drop(task);
    }

    fn release(&self, _task: &Header) -> bool {
        false
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn cancel_error(&self, task: &Header) -> JoinError {
        JoinError::refused(task.id, self.0)
    }

    fn task_panicked(&self, _report: &StdArc<PanicReport>, _handle_alive: bool) {}

    fn destructor_panicked(&self, _report: &StdArc<PanicReport>) {}
}
