//! Handles to a task: one that awaits its output, and ones that can only abort it.
#![expect(
    unsafe_code,
    reason = "stores a waker in, and takes the output out of, a type-erased task"
)]

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::harness::swap_join_waker;
use super::raw::TaskRef;
use super::transition::{DropHandle, StoreWaker};
use super::{Done, Id, JoinError};

/// Awaits the output of a task.
///
/// Dropping the handle detaches the task: it runs on, and its output is dropped. A panic that nobody retrieves is
/// reported (see [`Builder::unhandled_panic`](crate::runtime::Builder::unhandled_panic)).
///
/// # Cancel safety
/// Awaiting `&mut handle` loses nothing when it is dropped early.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), rt::task::JoinError> {
/// let handle = rt::spawn(async { 6 * 7 });
/// assert_eq!(handle.await?, 42);
/// # Ok(())
/// # }
/// ```
pub struct JoinHandle<T> {
    task: ManuallyDrop<TaskRef>,
    /// The output was taken: nothing but the reference is left to drop.
    taken: bool,
    output: PhantomData<fn() -> T>,
}

// SAFETY: the handle moves a `T` out of the task on whatever thread it lives.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the output.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}
impl<T> std::panic::UnwindSafe for JoinHandle<T> {}
impl<T> std::panic::RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    pub(super) fn new(task: TaskRef, _output: PhantomData<T>) -> Self {
        Self {
            task: ManuallyDrop::new(task),
            taken: false,
            output: PhantomData,
        }
    }

    /// Cancels the task: its future is dropped the next time it would be polled, on its own worker.
    ///
    /// Awaiting the handle then gives an error for which [`JoinError::is_cancelled`] holds, unless the task ended
    /// before. Works from any thread, more than once, and after the runtime's end. A blocking closure that runs
    /// already cannot be stopped.
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Asks the task to end, and aborts it when `grace` is over.
    ///
    /// Inside the task [`cancelled`](super::cancelled) is ready from now on, and [`is_cancelled`](super::is_cancelled)
    /// holds. A task that answers the request cleans up, with awaits if it likes, and returns: its handle then gives what
    /// it returned. One that does not is aborted, as by [`abort`](Self::abort). A
    /// [`TaskGroup`](super::TaskGroup) that the task runs hands the request on to its children.
    ///
    /// With a grace of zero the task is aborted at once. Of several calls the one whose grace is over first counts. The
    /// time is kept by a small task of the runtime, which ends with the task at the latest; for a task of a
    /// [`LocalSet`](super::LocalSet) by the runtime of the thread that calls this, and if that thread is in none the task
    /// is aborted at once.
    ///
    /// # Examples
    /// See [`cancelled`](super::cancelled).
    pub fn cancel(&self, grace: Duration) {
        self.task.cancel(grace);
    }

    /// Runs `callback` once, when the task is over: asyncio's `add_done_callback`.
    ///
    /// It runs however the task ends: also when it panics, is aborted, or its runtime closes. Callbacks run in the order
    /// in which they were registered, on the thread that ends the task, or on this one before the call returns if the
    /// task is over already. By then the output can be awaited. No lock is held, so a callback may do anything but block.
    /// One that panics is reported like a panic in a destructor, and the others run.
    ///
    /// # Examples
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # #[rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (tell, told) = mpsc::channel();
    /// let task = rt::spawn(async { 1 + 1 });
    /// task.on_done(move |done| tell.send((done.id(), done.outcome())).expect("somebody listens"));
    /// let id = task.id();
    /// task.await?;
    /// assert_eq!(told.recv()?, (id, rt::task::Outcome::Returned));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_done(&self, callback: impl FnOnce(&Done) + Send + 'static) {
        self.task.on_done(Box::new(callback));
    }

    /// A handle that can only abort.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::new(TaskRef::clone(&self.task))
    }

    /// Whether the task is over: its output, or the error, is there.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.task.header().id
    }

    /// The task's name, if it was given one by [`Builder::name`](crate::task::Builder::name).
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.task.header().name().map(|name| &**name)
    }

    /// `true`: the task is complete, and the output can be taken.
    pub(super) fn register(&self, waker: &Waker) -> bool {
        let header = self.task.header();
        if header.state.is_complete() {
            return true;
        }
        if header.state.has_join_waker() && !header.state.take_join_waker() {
            return true;
        }
        // SAFETY: we are the handle, and `JOIN_WAKER` is not set: never was, or we have just cleared it (rule 3).
        let before = unsafe { swap_join_waker(header, Some(waker.clone())) };
        drop(before);
        match header.state.store_join_waker() {
            StoreWaker::Stored => false,
            StoreWaker::Complete => {
                // SAFETY: complete without `JOIN_WAKER`: the slot is the handle's (rule 3).
                drop(unsafe { swap_join_waker(header, None) });
                true
            }
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        if !self.register(cx.waker()) {
            let header = self.task.header();
            wait::record(WaitKind::Join, header.site);
            header.note_joiner();
            return Poll::Pending;
        }
        unit.made_progress();
        let mut output: Poll<Self::Output> = Poll::Pending;
        let take_output = self.task.header().vtable.take_output;
        // SAFETY: the task is complete, we are its handle, and `T` is the output type it was made with.
        unsafe { take_output(self.task.as_ptr(), (&raw mut output).cast()) };
        self.taken = true;
        output
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken once, in the destructor.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        if self.taken {
            // Only the reference is left.
            drop(task);
            return;
        }
        match task.header().state.drop_handle() {
            DropHandle::Done => {
                task.into_raw();
            }
            DropHandle::Dealloc => {
                let dealloc = task.header().vtable.dealloc;
                // SAFETY: the transition dropped the last reference, which was ours.
                unsafe { dealloc(task.into_raw()) };
            }
            DropHandle::DropWaker => {
                // SAFETY: the transition cleared `JOIN_WAKER` before the end: the slot is ours (rule 3).
                let waker = unsafe { swap_join_waker(task.header(), None) };
                // A waker's destructor is user code; a handle's owner is not the one to hear of its panic.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(waker)));
            }
            DropHandle::DropOutput => {
                let drop_output = task.header().vtable.drop_output;
                // SAFETY: the task is complete, and we are its handle.
                unsafe { drop_output(task.as_ptr()) };
            }
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("task", &*self.task)
            .finish()
    }
}

/// Cancels a task, and asks whether it is over. It does not keep the output alive.
#[derive(Clone, Debug)]
pub struct AbortHandle {
    task: TaskRef,
}

impl AbortHandle {
    pub(super) fn new(task: TaskRef) -> Self {
        Self { task }
    }

    /// Cancels the task: see [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Asks the task to end, and aborts it when `grace` is over: see [`JoinHandle::cancel`].
    pub fn cancel(&self, grace: Duration) {
        self.task.cancel(grace);
    }

    /// Runs `callback` once, when the task is over: see [`JoinHandle::on_done`].
    pub fn on_done(&self, callback: impl FnOnce(&Done) + Send + 'static) {
        self.task.on_done(Box::new(callback));
    }

    /// The task's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.task.header().name().map(|name| &**name)
    }

    /// Whether the task is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.task.header().id
    }
}
