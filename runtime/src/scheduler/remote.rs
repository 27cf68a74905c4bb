//! Spawning and waking: from which thread a task comes, and where it goes.

use std::future::Future;
use std::sync::Arc;

use super::{Seat, Shared};
use crate::context;
use crate::runtime::panics;
use crate::task::{Header, JoinHandle, Meta, PanicReport, Runnable, Schedule, new_task};

/// The scheduler handle in a task: the seat on which it was spawned, which keeps its live list.
pub(crate) struct Home(pub(crate) Arc<Seat>);

impl Schedule for Home {
    #[inline]
    fn schedule(&self, task: Runnable) {
        let shared = &self.0.shared;
        let rejected = context::with(|cx| match cx {
            Some(cx) if Arc::ptr_eq(&cx.shared, shared) => cx.push_woken(task).err(),
            _ => Some(task),
        });
        if let Some(task) = rejected {
            shared.inject(task);
        }
    }

    #[inline]
    fn schedule_again(&self, task: Runnable) {
        let shared = &self.0.shared;
        let rejected = context::with(|cx| match cx {
            Some(cx) if Arc::ptr_eq(&cx.shared, shared) => cx.push_again(task).err(),
            _ => Some(task),
        });
        if let Some(task) = rejected {
            shared.inject(task);
        }
    }

    #[inline]
    fn release(&self, task: &Header) -> bool {
        self.0.live.remove(task)
    }

    fn is_closed(&self) -> bool {
        self.0.shared.is_closed()
    }

    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool) {
        panics::task_panicked(&self.0.shared, report, handle_alive);
    }

    fn destructor_panicked(&self, report: &Arc<PanicReport>) {
        panics::destructor_panicked(&self.0.shared, report);
    }
}

/// Of tasks that are spawned after the runtime's end: their `Runnable` is dropped at once, which ends them as closed.
struct Nowhere(Arc<Shared>);

impl Schedule for Nowhere {
    fn schedule(&self, task: Runnable) {
        drop(task);
    }

    fn release(&self, _task: &Header) -> bool {
        false
    }

    fn is_closed(&self) -> bool {
        true
    }

    fn task_panicked(&self, _report: &Arc<PanicReport>, _handle_alive: bool) {}

    fn destructor_panicked(&self, report: &Arc<PanicReport>) {
        panics::destructor_panicked(&self.0, report);
    }
}

impl Shared {
    /// Spawns a task from whatever thread this is.
    #[inline]
    pub(crate) fn spawn<F>(self: &Arc<Self>, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Some(home) = self.home() else {
            return new_task(future, Nowhere(self.clone()), meta, false).handle;
        };
        let task = new_task(future, Home(home.clone()), meta, true);
        if let Some(listed) = task.listed {
            // A closed list gives the reference back; the dropped `Runnable` then ends the task as "runtime closed".
            if home.live.insert(listed).is_err() {
                return task.handle;
            }
        }
        Home(home).schedule(task.runnable);
        task.handle
    }

    /// The seat of this thread, if it sits on one of this runtime; else the first. `None` after the runtime's end.
    #[inline]
    fn home(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let own = context::with(|cx| match cx {
            Some(cx) if Arc::ptr_eq(&cx.shared, self) => {
                cx.sitting.borrow().as_ref().map(|sitting| sitting.seat.clone())
            }
            _ => None,
        });
        own.or_else(|| self.seats.get(0))
    }

    /// Rule 3: a task that no seat of this thread can take.
    pub(crate) fn inject(&self, task: Runnable) {
        self.remote_schedules.add(1);
        self.injector.push(task);
        self.notify_injected();
    }

    /// Something was put into the injector.
    pub(crate) fn notify_injected(&self) {
        if let Some(index) = self.idle.claim() {
            self.unpark(index);
        }
    }

    /// Rule 5: `from` has more than it polls next.
    #[inline]
    pub(crate) fn notify(&self, _from: &Seat) {
        if let Some(index) = self.idle.claim_unfenced() {
            self.unpark(index);
        }
    }

    /// Wakes the worker of a place in the idle accounting.
    fn unpark(&self, idle_index: usize) {
        // Places and seats are the same numbers: workers first, and guests have places only if there are no workers.
        if let Some(seat) = self.seats.get(idle_index)
            && seat.wakeup.unpark()
        {
            self.unparks.add(1);
            self.monitor.wake();
        }
    }
}
