//! Spawning and waking: from which thread a task comes, and where it goes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::live::LiveTasks;
use super::{Seat, Shared, shutdown};
use crate::context::{self, Place};
use crate::runtime::panics;
use crate::task::group::{Entry, Member};
use crate::task::memory::Memory;
use crate::task::schedule::{new_task_with, size_of_task, spawn_in};
use crate::task::{
    Header, JoinHandle, Meta, PanicReport, Runnable, Schedule, TaskRef, grace, new_task,
    spawn_listed,
};

/// The scheduler handle in a task: the seat on which it was spawned, which keeps its live list.
pub(crate) struct Home(
    /// Taken when it is dropped.
    Option<Arc<Seat>>,
);

impl Drop for Home {
    #[inline]
    fn drop(&mut self) {
        if let Some(seat) = self.0.take() {
            context::leave(seat);
        }
    }
}

impl Home {
    #[inline]
    pub(crate) fn new(seat: Arc<Seat>) -> Self {
        Self(Some(seat))
    }

    #[inline]
    fn seat(&self) -> &Arc<Seat> {
        match &self.0 {
            Some(seat) => seat,
            None => unreachable!("only the destructor takes it"),
        }
    }

    /// Spawns a task that belongs to this seat.
    #[inline]
    pub(crate) fn spawn<F>(self, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_listed(future, self, meta, |home, task| {
            home.seat().live.insert(task)
        })
    }

    /// As `spawn`, into a group.
    #[inline]
    pub(crate) fn spawn_member<F, E>(
        self,
        future: F,
        meta: Meta,
        entry: Entry<E>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        E: Send + 'static,
    {
        spawn_listed(future, entry.member(self), meta, |member, task| {
            member.insert(&task);
            member.inner().seat().live.insert(task)
        })
    }
}

impl Schedule for Home {
    const PINS: bool = true;
    const RECYCLES: bool = true;

    #[inline]
    fn schedule(&self, task: Runnable) {
        let shared = &self.seat().shared;
        let rejected = context::with(|cx| match cx {
            Some(cx) if Arc::ptr_eq(&cx.shared, shared) => cx.push_woken(task).err(),
            _ => Some(task),
        });
        if let Some(task) = rejected {
            inject(shared, task);
        }
    }

    #[inline]
    fn schedule_again(&self, task: Runnable) {
        let shared = &self.seat().shared;
        let rejected = context::with(|cx| match cx {
            Some(cx) if Arc::ptr_eq(&cx.shared, shared) => cx.push_again(task).err(),
            _ => Some(task),
        });
        if let Some(task) = rejected {
            inject(shared, task);
        }
    }

    #[inline]
    fn release(&self, task: &Header) -> bool {
        self.seat().live.remove(task)
    }

    #[inline]
    fn departs(&self, task: &Header) -> bool {
        LiveTasks::has_taken(task) && context::departs(self.seat())
    }

    fn depart(&self, task: TaskRef, refs: usize) {
        context::depart(self.seat(), task, refs);
    }

    fn recycle(mut self, memory: Memory) {
        if let Some(seat) = self.0.take() {
            context::recycle(seat, memory);
        }
    }

    fn is_closed(&self) -> bool {
        self.seat().shared.is_closed()
    }

    fn abort_after(&self, task: TaskRef, grace: Duration) {
        grace::abort_after(Some(&self.seat().shared), task, grace);
    }

    fn task_panicked(&self, report: &Arc<PanicReport>, handle_alive: bool) {
        panics::task_panicked(&self.seat().shared, report, handle_alive);
    }

    fn destructor_panicked(&self, report: &Arc<PanicReport>) {
        panics::destructor_panicked(&self.seat().shared, report);
    }
}

/// Apart, so that the way to the own seat is short.
#[inline(never)]
fn inject(shared: &Arc<Shared>, task: Runnable) {
    // Cloned: the task, and with it the handle that lent `shared`, may be gone as soon as it is in the injector.
    Arc::clone(shared).inject(task);
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
    pub(crate) fn spawn<F>(self: &Arc<Self>, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match context::place() {
            Some(Place::Seat(seat)) if Arc::ptr_eq(&seat.shared, self) => {
                Home::new(seat).spawn(future, meta)
            }
            _ => self.spawn_from_outside(future, meta),
        }
    }

    /// Spawns a task on the first seat, from a thread that sits on none. A worker will free its memory, so that is kept
    /// (`task/stock.rs`), and with it the task's reference to the seat: else spawner and worker would count it up and down
    /// against each other.
    fn spawn_from_outside<F>(self: &Arc<Self>, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let size = size_of_task::<F, Home>();
        let (memory, seat) = match size.and_then(|size| self.memory.take(size)) {
            Some((memory, seat)) => (Some(memory), seat),
            None => match self.seats.get(0) {
                Some(seat) => (size.map(Memory::new), seat),
                // After the runtime's end: the dropped `Runnable` ends the task as "runtime closed".
                None => return new_task(future, Nowhere(self.clone()), meta, false).handle,
            },
        };
        let home = Home::new(seat);
        let Some(memory) = memory else {
            return home.spawn(future, meta);
        };
        let insert = |home: &Home, task| home.seat().live.insert(task);
        spawn_in(memory, future, home, meta, insert, |home, task| {
            if context::is_entered() {
                home.schedule(task);
            } else {
                // Not by way of the task, which may be over as soon as it is in the injector: `self` is there for longer.
                self.inject(task);
            }
        })
    }

    /// As [`spawn`](Self::spawn), into a group.
    pub(crate) fn spawn_member<F, E>(
        self: &Arc<Self>,
        future: F,
        meta: Meta,
        entry: Entry<E>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        E: Send + 'static,
    {
        match self.own_seat() {
            Some(seat) => Home::new(seat).spawn_member(future, meta, entry),
            None => {
                let member = entry.member(Nowhere(self.clone()));
                // As in `spawn`.
                new_task_with(future, member, meta, false, Member::insert).handle
            }
        }
    }

    /// The live tasks of every seat, each with the index of the seat.
    pub(crate) fn live_tasks(&self) -> Vec<(usize, TaskRef)> {
        let mut tasks = Vec::new();
        for seat in self.seats.snapshot().iter() {
            for list in [&seat.live, &seat.inbox.live] {
                tasks.extend(list.snapshot().into_iter().map(|task| (seat.index, task)));
            }
        }
        tasks
    }

    /// The seat under this thread, if it is one of this runtime; or the first. `None` after the runtime's end.
    #[inline]
    fn own_seat(self: &Arc<Self>) -> Option<Arc<Seat>> {
        match context::place() {
            Some(Place::Seat(seat)) if Arc::ptr_eq(&seat.shared, self) => Some(seat),
            _ => self.seats.get(0),
        }
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
        // After the last emptying of the injector at shutdown. The fence of `claim` pairs with that of `finish`: either
        // the task is found there, or the end is seen here.
        if self.seats.is_closed() {
            shutdown::drain_injector(self);
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
            self.monitor.bed.wake();
        }
    }
}
