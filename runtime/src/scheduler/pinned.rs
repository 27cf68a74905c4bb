//! Tasks that never leave one worker: their futures need not be `Send`.
//!
//! A pinned task is made on any thread from a closure that is `Send`; the closure makes the future on the worker, in
//! the task's first poll. Its `Runnable`s go to the inbox of the worker's seat, which no thief and no stand-in looks at.
//! So the future is made, polled and dropped on the worker's own thread (rule 5 of `task/mod.rs`).
//!
//! Inside such a task `spawn_local` makes another one on the same worker, from the future itself: it is on the right
//! thread already (`pinned/here.rs`).
//!
//! While the worker's thread blocks inside `block_in_place` its pinned tasks wait with it; everything else is served by
//! a stand-in.
//!
//! # The race
//! A task is woken while the worker's thread ends. Its future was dropped before, so the `Runnable` is a reference and no
//! more, and may be dropped anywhere; but it has to be: in the inbox it would keep the seat alive, of which it is a part.
//! So the inbox closes under its lock, when all its tasks are over, and what comes later is given back to who brings it.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::AtomicUsize;
use rt_sync::primitive::atomic::Ordering::Relaxed;

pub(super) use self::here::Hidden;
use self::here::OnSeat;
use super::live::LiveTasks;
use super::{Seat, Shared};
use crate::runtime::panics;
use crate::task::schedule::new_task_with;
use crate::task::{Header, JoinHandle, Meta, PanicReport, Runnable, Schedule, TaskRef, grace};

mod here;

/// The pinned tasks of one worker that are ready.
pub(crate) struct Inbox {
    /// `None` once it is closed.
    ready: Mutex<Option<VecDeque<Runnable>>>,
    /// Written under the lock.
    len: AtomicUsize,
    pub(crate) live: LiveTasks,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            ready: Mutex::new(Some(VecDeque::new())),
            len: AtomicUsize::new(0),
            live: LiveTasks::new(),
        }
    }

    fn push(&self, task: Runnable) -> Result<(), Runnable> {
        let mut ready = self.ready.lock();
        let Some(open) = &mut *ready else {
            return Err(task);
        };
        open.push_back(task);
        self.len.store(open.len(), Relaxed);
        Ok(())
    }

    /// Takes nothing any more, and gives out what is there. For the worker's own thread, when its tasks are over.
    pub(super) fn close(&self) -> Option<VecDeque<Runnable>> {
        let mut ready = self.ready.lock();
        self.len.store(0, Relaxed);
        ready.take()
    }

    /// The next ready task. For the worker's own thread.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.is_empty() {
            return None;
        }
        let mut ready = self.ready.lock();
        let open = ready.as_mut()?;
        let task = open.pop_front();
        self.len.store(open.len(), Relaxed);
        task
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Relaxed) == 0
    }
}

/// The scheduler handle in a pinned task.
pub(crate) struct Pinned(Arc<Seat>);

impl Schedule for Pinned {
    const PINS: bool = true;
    const ON_ONE_THREAD: bool = true;

    fn schedule(&self, task: Runnable) {
        // Cloned: the task, and with it this handle, may be gone as soon as it is in the inbox.
        let seat = self.0.clone();
        if let Err(task) = seat.inbox.push(task) {
            // Closed: a reference, dropped under no lock.
            return drop(task);
        }
        // The thread itself looks into the inbox before it sleeps; another one is told.
        seat.wakeup.unpark();
    }

    fn release(&self, task: &Header) -> bool {
        self.0.inbox.live.remove(task)
    }

    fn is_closed(&self) -> bool {
        self.0.shared.is_closed()
    }

    fn abort_after(&self, task: TaskRef, grace: Duration) {
        grace::abort_after(Some(&self.0.shared), task, grace);
    }

    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool) {
        panics::task_panicked(&self.0.shared, report, handle_alive);
    }

    fn destructor_panicked(&self, report: &Arc<PanicReport>) {
        panics::destructor_panicked(&self.0.shared, report);
    }
}

/// Makes its future in its first poll, on the thread where that one has to stay.
enum Lazy<M, F> {
    Make(Option<M>),
    Made(F),
}

impl<M, F> Future for Lazy<M, F>
where
    M: FnOnce() -> F + Unpin,
    F: Future + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if let Lazy::Make(make) = &mut *self {
            match make.take() {
                Some(make) => {
                    let future = make();
                    *self = Lazy::Made(future);
                }
                None => unreachable!("the closure panicked, and a task is not polled after that"),
            }
        }
        match &mut *self {
            Lazy::Made(future) => Pin::new(future).poll(cx),
            Lazy::Make(_) => unreachable!("made above"),
        }
    }
}

impl Shared {
    /// Spawns a task that is made, polled and dropped on worker `index`.
    pub(crate) fn spawn_pinned<M, F>(
        &self,
        index: usize,
        make: M,
        meta: Meta,
    ) -> io::Result<JoinHandle<F::Output>>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        if index >= self.workers {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "spawn_pinned: there is no worker {index} in runtime '{}', which has {} (0 means the current-thread \
                     flavour: use LocalSet there)",
                    self.name, self.workers
                ),
            ));
        }
        let Some(seat) = self.seats.get(index) else {
            return Err(io::Error::other(format!(
                "spawn_pinned: runtime '{}' is closed",
                self.name
            )));
        };
        // Boxed and pinned, so that `Lazy` may be moved before the future is made and its closure need not be `Unpin`.
        let make = Box::new(move || Box::pin(make()));
        // A closed list: the future was never made, so this thread may end the task.
        Ok(start(
            &seat,
            Lazy::Make(Some(make)),
            Pinned(seat.clone()),
            meta,
            |_, _| (),
        ))
    }
}

impl Pinned {
    /// The worker of the pinned task that runs on this thread, if one does.
    pub(crate) fn here() -> Option<Self> {
        here::seat().map(Self)
    }

    /// Spawns a task on this worker, on whose thread the caller is: `here` gave it to them. `scheduler` is built on a
    /// `Pinned` of this worker, and `enter` sees it, and the task, before that is ready to run.
    pub(crate) fn spawn_local<F, S: Schedule>(
        &self,
        future: F,
        scheduler: S,
        meta: Meta,
        enter: impl FnOnce(&S, &TaskRef),
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        start(&self.0, future, scheduler, meta, enter)
    }
}

impl Clone for Pinned {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Makes a task of `seat` and makes it ready; if its list is closed, ends it on this thread.
fn start<F, S: Schedule>(
    seat: &Arc<Seat>,
    future: F,
    scheduler: S,
    meta: Meta,
    enter: impl FnOnce(&S, &TaskRef),
) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let future = OnSeat::new(seat.clone(), future);
    let task = new_task_with(future, scheduler, meta, true, enter);
    if let Some(listed) = task.listed
        && seat.inbox.live.insert(listed).is_err()
    {
        return task.handle;
    }
    Pinned(seat.clone()).schedule(task.runnable);
    task.handle
}
