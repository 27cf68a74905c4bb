//! The life of a task, step by step: poll, completion, cancellation, and the end of its handle.
//!
//! User code runs here and nowhere else in `task/`: the future's `poll` and destructor, the output's destructor, the
//! joiner's waker, the callbacks of `on_done`. Each call is guarded by `catch_unwind`, with the state word whole at that moment: a panic in `poll`
//! ends the task with an error, a panic in a destructor is reported and goes no further.
#![expect(
    unsafe_code,
    reason = "works on the task cell under the rights that the state word hands out"
)]

use std::any::Any;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rt_sync::coop;
use rt_sync::wait;
use rt_sync::wake_batch::discard;

use super::cell::Cell;
use super::cold::Cold;
use super::done::{Done, Outcome};
use super::error::PanicReport;
use super::header::{Header, Vtable};
use super::id::set_current;
use super::raw::{Runnable, TaskRef};
use super::transition::{EndPoll, Joiner, StartPoll};
use super::{JoinError, Schedule, waker};
use crate::blocking::follow_up;

/// The functions of one type of future and scheduler.
pub(super) struct Functions<F, S>(std::marker::PhantomData<(F, S)>);

impl<F: Future, S: Schedule> Functions<F, S> {
    pub(super) const VTABLE: Vtable = Vtable {
        poll: poll::<F, S>,
        schedule: schedule::<F, S>,
        cancel_claimed: cancel_claimed::<F, S>,
        take_output: take_output::<F, S>,
        drop_output: drop_output::<F, S>,
        run_hooks: run_hooks::<F, S>,
        abort_after: abort_after::<F, S>,
        dealloc: dealloc::<F, S>,
        recycles: false,
    };

    /// The same, of a task whose memory its scheduler takes back.
    pub(super) const RECYCLING: Vtable = Vtable {
        dealloc: recycle::<F, S>,
        recycles: true,
        ..Self::VTABLE
    };
}

/// # Safety
/// The caller owns a `Runnable` of this task and gives it up.
unsafe fn poll<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // SAFETY: the vtable belongs to this type, and the `Runnable`'s reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    match cell.header.state.start_poll(&cell.header.steps) {
        StartPoll::Poll => {}
        StartPoll::Cancel => return cancel(cell, 1),
        StartPoll::Gone => return drop_refs(cell, 1),
    }
    let header = &cell.header;
    let (polled, refs) = poll_future(cell, ptr);
    match polled {
        Ok(Poll::Pending) => {
            header.wait.keep_last();
            if S::ON_ONE_THREAD {
                header.steps.renew();
            }
            match header.state.end_poll(refs) {
                EndPoll::Idle => {}
                EndPoll::Dealloc => free(cell),
                EndPoll::Reschedule => {
                    header.steps.renew();
                    // SAFETY: `Reschedule` leaves us the right to poll and its reference.
                    let again = unsafe { Runnable::from_raw(ptr) };
                    cell.scheduler.schedule_again(again);
                }
                EndPoll::Cancel => cancel(cell, refs),
            }
        }
        Ok(Poll::Ready(output)) => {
            wait::forget();
            finish(cell, Ok(output), refs);
        }
        Err(payload) => {
            wait::forget();
            let error = cell.scheduler.panicked(panic_error(cell, payload));
            finish(cell, Err(error), refs);
        }
    }
}

type Polled<T> = Result<Poll<T>, Box<dyn Any + Send>>;

/// Polls the future with a fresh budget. The caller has the stage, and a reference; the second value says whether it
/// has that still, one, or a waker has taken it over, none.
#[inline]
fn poll_future<F: Future, S: Schedule>(
    cell: &Cell<F, S>,
    ptr: NonNull<Header>,
) -> (Polled<F::Output>, usize) {
    /// Restores the budget also when the poll unwinds.
    struct Budget(coop::Saved);
    impl Drop for Budget {
        #[inline]
        fn drop(&mut self) {
            coop::restore(self.0);
        }
    }
    let current = set_current(&cell.header, S::PINS);
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let _budget = Budget(coop::start());
        // SAFETY: the caller's reference outlives this block.
        let waker = unsafe { waker::borrowed(ptr) };
        let mut cx = Context::from_waker(&waker);
        // SAFETY: the caller has the stage, on a thread that the scheduler chose.
        unsafe { cell.poll(&mut cx) }
    }));
    (polled, usize::from(!S::PINS || current.has_spare()))
}

/// Drops the future and completes with the error that says why. The caller has the stage and gives `refs`
/// references up.
#[cold]
fn cancel<F: Future, S: Schedule>(cell: &Cell<F, S>, refs: usize) {
    let error = if cell.header.state.has_given_up() {
        JoinError::given_to_group(cell.header.id, Outcome::Failed)
    } else {
        cell.scheduler.cancel_error(&cell.header)
    };
    finish(cell, Err(error), refs);
}

/// Stores the result in place of the future, and tells everyone. The caller has the stage and gives `refs`
/// references up.
#[inline]
fn finish<F: Future, S: Schedule>(
    cell: &Cell<F, S>,
    result: Result<F::Output, JoinError>,
    refs: usize,
) {
    let (report, outcome) = match &result {
        Ok(_) => (None, Outcome::Returned),
        Err(error) => (error.report().cloned(), error.outcome()),
    };
    let set_output = || {
        let _current = set_current(&cell.header, false);
        // SAFETY: the caller has the stage. The future is dropped here, before anyone hears of the end. If its
        // destructor panics, the result stands all the same: it is put there before the unwinding goes on.
        unsafe { cell.set_output(result) }
    };
    if mem::needs_drop::<F>() {
        contain_drop(cell, set_output)
    } else {
        set_output()
    }
    // Here, so that the way of all other tasks costs one look at the vtable.
    if S::RECYCLES && cell.header.vtable.recycles {
        finish_recycling(cell, report, outcome, refs);
    } else {
        let listed = cell.scheduler.release(&cell.header);
        let refs = refs + usize::from(listed);
        if tell_end(cell, report, outcome, refs) {
            // SAFETY: there are no references but the caller's, which go with it; the vtable has been asked.
            unsafe { dealloc::<F, S>(NonNull::from(cell).cast()) };
        } else {
            drop_refs(cell, refs);
        }
    }
}

/// The rest of [`finish`], for a task whose memory its scheduler takes back.
#[inline(never)]
fn finish_recycling<F: Future, S: Schedule>(
    cell: &Cell<F, S>,
    report: Option<Arc<PanicReport>>,
    outcome: Outcome,
    refs: usize,
) {
    let departs = cell.scheduler.departs(&cell.header);
    let listed = departs || cell.scheduler.release(&cell.header);
    let refs = refs + usize::from(listed);
    let alone = tell_end(cell, report, outcome, refs);
    if departs {
        // SAFETY: the reference of the live list, which is ours since the scheduler said so.
        let task = unsafe { TaskRef::from_raw(NonNull::from(cell).cast()) };
        cell.scheduler.depart(task, refs);
    } else if alone {
        free(cell);
    } else {
        drop_refs(cell, refs);
    }
}

/// Completes a task whose result is stored and which counts as released, and tells everyone. `true`: there are no references
/// but the `refs` of the caller.
///
/// The task leaves the list of the living before its end is seen, so that whoever awaited it does not find it there.
#[inline(always)]
fn tell_end<F: Future, S: Schedule>(
    cell: &Cell<F, S>,
    report: Option<Arc<PanicReport>>,
    outcome: Outcome,
    refs: usize,
) -> bool {
    let completed = cell.header.state.complete(outcome, refs);
    if let Some(report) = report {
        cell.scheduler
            .task_panicked(&report, completed.joiner != Joiner::None);
    }
    match completed.joiner {
        Joiner::None => {
            tell_failure(&cell.header);
            // An output without a destructor goes with the cell.
            if mem::needs_drop::<F::Output>() {
                clear(cell);
            }
        }
        Joiner::Exists => {}
        Joiner::Waits => wake_joiner(cell),
    }
    if completed.hooks {
        call_hooks(cell);
    }
    // Nothing of the user's runs on behalf of this task any more, but for what its handle still holds.
    cell.scheduler.ended();
    completed.alone
}

#[inline(always)]
fn wake_joiner<F: Future, S: Schedule>(cell: &Cell<F, S>) {
    let waker = cell.header.join_waker.with_mut(|slot| {
        // SAFETY: rule 3: `JOIN_WAKER` was set when the task completed, so the slot is ours for good.
        unsafe { (*slot).take() }
    });
    if let Some(waker) = waker {
        contain(cell, || waker.wake());
    }
}

/// Drops the output, which is the caller's (rule 4).
fn clear<F: Future, S: Schedule>(cell: &Cell<F, S>) {
    // SAFETY: the caller owns the output.
    let clear = || unsafe { cell.clear() };
    if mem::needs_drop::<F::Output>() {
        contain_drop(cell, clear)
    } else {
        clear()
    }
}

/// The output goes, and nobody has taken it.
#[inline]
fn tell_failure(task: &Header) {
    if let Some(cold) = task.cold.get() {
        tell_failure_of(task, cold);
    }
}

#[cold]
#[inline(never)]
fn tell_failure_of(task: &Header, cold: &Cold) {
    if let Some(failure) = cold.take_failure() {
        failure.tell(task);
    }
}

/// Runs user code that must not unwind into an innocent caller.
#[inline(always)]
fn contain<F: Future, S: Schedule>(cell: &Cell<F, S>, f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        cell.scheduler
            .destructor_panicked(&report_of(cell, &*payload));
        discard(payload);
    }
}

/// As [`contain`], for destructors of the task's own future and output: their panics may be of interest to whom the task
/// belongs to.
fn contain_drop<F: Future, S: Schedule>(cell: &Cell<F, S>, f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        let report = report_of(cell, &*payload);
        if let Some(payload) = cell.scheduler.own_destructor_panicked(&report, payload) {
            cell.scheduler.destructor_panicked(&report);
            discard(payload);
        }
    }
}

/// Runs the callbacks of a task that is complete, one after the other, unless somebody else does.
#[cold]
fn call_hooks<F: Future, S: Schedule>(cell: &Cell<F, S>) {
    let Some(cold) = cell.header.cold.get() else {
        return;
    };
    if !cold.start_hooks() {
        return;
    }
    follow_up::let_go();
    let done = Done {
        id: cell.header.id,
        name: cell.header.name().cloned(),
        outcome: cell.header.state.outcome().unwrap_or(Outcome::Returned),
    };
    while let Some(hook) = cold.next_hook() {
        contain(cell, || hook(&done));
    }
}

#[cold]
fn report_of<F: Future, S: Schedule>(
    cell: &Cell<F, S>,
    payload: &(dyn Any + Send),
) -> Arc<PanicReport> {
    PanicReport::new(
        cell.header.id,
        cell.header.name().cloned(),
        cell.header.site,
        payload,
    )
}

#[cold]
fn panic_error<F: Future, S: Schedule>(
    cell: &Cell<F, S>,
    payload: Box<dyn Any + Send>,
) -> JoinError {
    let report = report_of(cell, &*payload);
    JoinError::panicked(payload, report)
}

#[inline]
fn drop_refs<F: Future, S: Schedule>(cell: &Cell<F, S>, count: usize) {
    if cell.header.state.ref_dec(count) {
        free(cell);
    }
}

fn free<F: Future, S: Schedule>(cell: &Cell<F, S>) {
    if S::RECYCLES && cell.header.vtable.recycles {
        // SAFETY: every caller has just dropped the last reference; the vtable says how the task was made.
        return unsafe { recycle::<F, S>(NonNull::from(cell).cast()) };
    }
    // SAFETY: every caller has just dropped the last reference.
    unsafe { dealloc::<F, S>(NonNull::from(cell).cast()) };
}

/// # Safety
/// The caller owns a `Runnable` of this task and gives it up.
unsafe fn schedule<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // SAFETY: the vtable belongs to this type, and the `Runnable`'s reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    // SAFETY: the caller's promise.
    cell.scheduler.schedule(unsafe { Runnable::from_raw(ptr) });
}

/// # Safety
/// The caller has the stage by a claim, and a reference that it keeps.
unsafe fn cancel_claimed<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // SAFETY: the vtable belongs to this type, and the caller's reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    cancel(cell, 0);
}

/// # Safety
/// The task is complete, the caller is its handle, and `to` points at a `Poll<Result<F::Output, JoinError>>`.
unsafe fn take_output<F: Future, S: Schedule>(ptr: NonNull<Header>, to: *mut ()) {
    // SAFETY: the vtable belongs to this type, and the handle's reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    // SAFETY: rule 4: the task is complete and has a handle, so the output is the handle's.
    let Some(result) = (unsafe { cell.take() }) else {
        panic!("a JoinHandle was polled again after it had given its output");
    };
    if let Some(report) = result.as_ref().err().and_then(JoinError::report) {
        report.settle();
    }
    // SAFETY: the caller's promise about the type.
    let to = unsafe { &mut *to.cast::<Poll<Result<F::Output, JoinError>>>() };
    *to = Poll::Ready(result);
}

/// # Safety
/// The task is complete, and the caller is its handle.
unsafe fn drop_output<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // SAFETY: the vtable belongs to this type, and the handle's reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    // SAFETY: rule 4, as in `take_output`.
    if let Some(report) = unsafe { cell.peek_error() }.and_then(JoinError::report) {
        cell.scheduler.task_panicked(report, false);
    }
    tell_failure(&cell.header);
    clear(cell);
}

/// # Safety
/// The task is complete, and the caller holds a reference to it.
unsafe fn run_hooks<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // SAFETY: the vtable belongs to this type, and the caller's reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    call_hooks(cell);
}

/// # Safety
/// The caller holds a reference to the task.
unsafe fn abort_after<F: Future, S: Schedule>(ptr: NonNull<Header>, grace: Duration) {
    // SAFETY: the vtable belongs to this type, and the caller's reference keeps the task alive.
    let cell = unsafe { Cell::<F, S>::from_header(ptr) };
    // SAFETY: as above.
    let task = unsafe { TaskRef::borrow(ptr) };
    cell.scheduler.abort_after(TaskRef::clone(&task), grace);
}

/// # Safety
/// No reference to the task is left.
unsafe fn dealloc<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // The future is still there only if its task is in no live list and lost its last waker while it waited: nothing
    // could ever poll it again. Its destructor must not unwind into whoever dropped that waker.
    // SAFETY: the caller's promise.
    let free = || unsafe { Cell::<F, S>::free(ptr) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(free)) {
        discard(payload);
    }
}

/// # Safety
/// As for [`dealloc`], and the task was made in [`Memory`](super::memory::Memory).
#[inline(never)]
unsafe fn recycle<F: Future, S: Schedule>(ptr: NonNull<Header>) {
    // As in `dealloc`.
    // SAFETY: the caller's promise.
    let free = || unsafe { Cell::<F, S>::recycle(ptr) };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(free)) {
        discard(payload);
    }
}

/// Swaps what lies in the waker slot, for the handle (rule 3).
///
/// # Safety
/// The caller is the handle, and `JOIN_WAKER` is not set.
pub(super) unsafe fn swap_join_waker(header: &Header, waker: Option<Waker>) -> Option<Waker> {
    header.join_waker.with_mut(|slot| {
        // SAFETY: the caller's promise.
        unsafe { mem::replace(&mut *slot, waker) }
    })
}
