//! What the tasks of a `LocalSet` share: the queues, the live list, and the way to wake the set.
//!
//! # Who may touch what
//! `Local` is reached on the owner's thread only (`owner.rs`), where futures are polled and dropped. Any thread may push
//! a `Runnable` to `remote`.
//!
//! # The end of a set
//! 1. `closed`: spawns are refused, and cancelled tasks say "closed".
//! 2. Every task in the live list is shut down here, on the owner's thread. Wakes from elsewhere still go to `remote`,
//!    since a `Runnable` dropped there would drop the future there.
//! 3. All tasks are complete, so a `Runnable` is only a reference: `remote` closes, and whatever comes later may be
//!    dropped anywhere.
//!
//! A set that is leaked keeps its tasks for ever: their wakes pile up in `remote`, and nothing is dropped elsewhere.
//!
//! # User code
//! Tasks run, futures and wakers are dropped and wakers are woken with no `RefCell` borrowed.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::task::Waker;

use rt_sync::primitive::atomic::Ordering::Relaxed;
use rt_sync::wait;
use rt_sync::wake_batch::discard;
use slab::Slab;

use super::owner::OwnerCell;
use crate::context;
use crate::debug::{polls, tell_without_runtime};
use crate::runtime::panics;
use crate::task::schedule::new_task_with;
use crate::task::wake_queue::WakeQueue;
use crate::task::{Header, JoinHandle, Meta, PanicReport, Runnable, Schedule, TaskRef};

/// Polls in one turn, after which a set gives way. tokio's number: some tens of microseconds of short polls.
const TURN: usize = 61;

/// See the module head.
#[derive(Debug)]
pub(super) struct Shared {
    owner: OwnerCell<Local>,
    remote: WakeQueue<Runnable>,
}

/// The owner's part.
#[derive(Debug, Default)]
struct Local {
    ready: RefCell<VecDeque<Runnable>>,
    /// Woken in their own poll: ready from the next turn on, so that whoever drives the set is asked in between.
    again: RefCell<VecDeque<Runnable>>,
    live: RefCell<Slab<TaskRef>>,
    /// The driver waits: the next wake from this thread has to wake it. Clear while the set is polled.
    idle: Cell<bool>,
    closed: Cell<bool>,
    drivers: Cell<usize>,
    /// Wakers of drivers that were polled before the one whose waker is registered. Empty while there is one driver.
    others: RefCell<Vec<Waker>>,
}

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            owner: OwnerCell::new(Local::default()),
            remote: WakeQueue::new(),
        })
    }

    /// Only called through objects that are not `Send`.
    #[inline]
    fn local(&self) -> &Local {
        self.owner
            .get()
            .expect("a LocalSet is used on its own thread, since it is not Send")
    }

    pub(super) fn spawn<F>(self: &Arc<Self>, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_as(future, Scheduler(self.clone()), meta, |_, _| ())
    }

    /// As `spawn`, under a scheduler that is built on the [`Scheduler`] of this set. `enter` sees the task before it is
    /// ready to run.
    pub(super) fn spawn_as<F, S: Schedule>(
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
        let local = self.local();
        let open = !local.closed.get();
        let task = new_task_with(future, scheduler, meta, open, enter);
        if !open {
            // The runnable is dropped here, on the owner's thread, and with it the future.
            return task.handle;
        }
        if let Some(listed) = task.listed {
            let key = local.live.borrow_mut().insert(listed);
            let key = u32::try_from(key).expect("a LocalSet holds fewer than 2^32 tasks");
            task.runnable.header().list_key.store(key, Relaxed);
        }
        self.schedule_here(local, task.runnable);
        task.handle
    }

    #[inline]
    fn schedule_here(&self, local: &Local, task: Runnable) {
        local.ready.borrow_mut().push_back(task);
        if local.idle.take() {
            self.wake();
        }
    }

    #[cold]
    fn schedule_from_elsewhere(&self, task: Runnable) {
        // The waker is the user's, and this is the thread of an innocent.
        let pushed = catch_unwind(AssertUnwindSafe(|| self.remote.push(task)));
        match pushed {
            Ok(Ok(())) => {}
            // The set is gone: its tasks are complete (module head, step 3), so this is only a reference.
            Ok(Err(task)) => drop(task),
            Err(payload) => discard(payload),
        }
    }

    fn wake(&self) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.remote.wake())) {
            discard(payload);
        }
    }

    /// A future begins to drive the set.
    pub(super) fn enter_driver(&self) {
        let local = self.local();
        local.drivers.set(local.drivers.get() + 1);
    }

    /// A future that drove the set is over or dropped. The others take over.
    pub(super) fn leave_driver(&self) {
        let local = self.local();
        local.drivers.set(local.drivers.get() - 1);
        if local.drivers.get() == 0 {
            drop(self.remote.take_waker());
        }
        for waker in local.others.take() {
            waker.wake();
        }
    }

    /// The driver is polled: from here to the end of its poll no wake is needed.
    pub(super) fn begin_poll(&self, waker: &Waker) {
        let local = self.local();
        local.idle.set(false);
        if local.drivers.get() > 1 {
            self.keep_other(local, waker);
        }
        self.remote.register(waker);
    }

    /// Keeps the waker of the driver that was polled last, if it is not the one that is polled now.
    #[cold]
    fn keep_other(&self, local: &Local, waker: &Waker) {
        let last = self.remote.take_waker();
        let mut others = local.others.borrow_mut();
        let own = others
            .iter()
            .position(|other| other.will_wake(waker))
            .map(|at| others.swap_remove(at));
        let known = last.as_ref().is_none_or(|last| {
            last.will_wake(waker) || others.iter().any(|other| other.will_wake(last))
        });
        let surplus = if known {
            last
        } else {
            last.and_then(|last| {
                others.push(last);
                None
            })
        };
        drop(others);
        drop((own, surplus));
    }

    /// Polls tasks that are ready, at most [`TURN`] of them. `true`: more are left.
    pub(super) fn turn(&self) -> bool {
        let local = self.local();
        self.remote.take_into(&mut local.ready.borrow_mut());
        // The root future's wait is not one of the tasks that are polled now.
        let wait = wait::take();
        let noted = polls::notes_here();
        for _ in 0..TURN {
            let Some(task) = local.ready.borrow_mut().pop_front() else {
                break;
            };
            if noted {
                polls::run_local(task);
            } else {
                task.run();
            }
        }
        if let Some(site) = wait.site {
            wait::record(wait.kind, site);
        }
        let mut ready = local.ready.borrow_mut();
        ready.append(&mut local.again.borrow_mut());
        !ready.is_empty()
    }

    /// The driver's poll ends without an output. With `more` left to do it is woken at once.
    pub(super) fn end_poll(&self, waker: &Waker, more: bool) {
        if more {
            waker.wake_by_ref();
        } else {
            self.local().idle.set(true);
        }
    }

    /// The tasks that are alive.
    pub(super) fn snapshot(&self) -> Vec<TaskRef> {
        let live = self.local().live.borrow();
        live.iter().map(|(_, task)| task.clone()).collect()
    }

    pub(super) fn live(&self) -> usize {
        self.local().live.borrow().len()
    }

    /// Drops every future, on this thread. See the module head.
    pub(super) fn close(&self) {
        let local = self.local();
        // Step 1.
        local.closed.set(true);
        local.idle.set(false);
        // Step 2. A task's destructor may abort or wake others, but nothing new comes in.
        let live = mem::take(&mut *local.live.borrow_mut());
        TaskRef::shut_down_own(live.into_iter().map(|(_, task)| task));
        // Step 3.
        drop(local.ready.take());
        drop(local.again.take());
        drop(self.remote.close());
        drop(self.remote.take_waker());
    }
}

/// One task's way to its set.
#[derive(Debug)]
pub(super) struct Scheduler(pub(super) Arc<Shared>);

impl Schedule for Scheduler {
    const ON_ONE_THREAD: bool = true;

    #[inline]
    fn schedule(&self, task: Runnable) {
        match self.0.owner.get() {
            Some(local) => self.0.schedule_here(local, task),
            // Cloned: the task, and with it this handle, may be gone as soon as it is in the queue.
            None => self.0.clone().schedule_from_elsewhere(task),
        }
    }

    fn schedule_again(&self, task: Runnable) {
        match self.0.owner.get() {
            Some(local) => local.again.borrow_mut().push_back(task),
            // Cloned: the task, and with it this handle, may be gone as soon as it is in the queue.
            None => self.0.clone().schedule_from_elsewhere(task),
        }
    }

    fn release(&self, task: &Header) -> bool {
        let Some(local) = self.0.owner.get() else {
            return false;
        };
        let key = task.list_key.load(Relaxed) as usize;
        let mut live = local.live.borrow_mut();
        // By address: a task of a closed set is in no list, and its key means nothing.
        if !live
            .get(key)
            .is_some_and(|listed| ptr::eq(listed.header(), task))
        {
            return false;
        }
        // The caller drops this reference, at a moment when the header is no longer in use.
        live.remove(key).into_raw();
        true
    }

    fn is_closed(&self) -> bool {
        self.0.owner.get().is_none_or(|local| local.closed.get())
    }

    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool) {
        match context::current() {
            Some(runtime) => panics::task_panicked(&runtime, report, handle_alive),
            // No runtime, no policy: it is told when the last who could retrieve the error is gone.
            None if handle_alive || !report.settle() => {}
            // A set that is polled outside a runtime has no hook to ask.
            None => tell_without_runtime(&format_args!("{report} (nobody retrieved the error)")),
        }
    }

    fn destructor_panicked(&self, report: &Arc<PanicReport>) {
        match context::current() {
            Some(runtime) => panics::destructor_panicked(&runtime, report),
            None => tell_without_runtime(&format_args!(
                "{report} (in a destructor, a waker or a callback, which cannot fail)"
            )),
        }
    }
}
