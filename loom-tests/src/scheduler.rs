//! A scheduler as small as one can be: a queue behind a lock, which any thread may drain.
//!
//! It holds what the real one has around the task protocol, and is used by the models and by their stress twins.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::Arc as StdArc;
use std::time::Duration;

use rt::internals::scheduler::{LiveTasks, Park};
use rt::internals::task::{
    Header, Memory, Meta, NewTask, PanicReport, Runnable, Schedule, TaskRef, member_on, new_task,
    size_of_task, spawn_in, spawn_listed,
};
use rt::task::group::GroupOutput;
use rt::task::{Id, JoinHandle, TaskGroup};
use rt_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};
use rt_sync::primitive::cell::UnsafeCell;
use rt_sync::primitive::{Arc, Mutex};

/// Shared by the tasks, by whoever spawns and by whoever runs.
#[derive(Clone)]
pub struct Scheduler(Arc<Inner>, Touch);

/// Read through the scheduler of a task, written when the task is freed: loom sees whether all of the one comes before
/// the other.
struct Touch(UnsafeCell<()>);

impl Touch {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }
}

impl Clone for Touch {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for Touch {
    fn drop(&mut self) {
        // A task is freed under a `catch_unwind`, which would swallow what loom has to say.
        let written = catch_unwind(AssertUnwindSafe(|| self.0.with_mut(|_| ())));
        if written.is_err() {
            process::abort();
        }
    }
}

struct Inner {
    ready: Mutex<VecDeque<Runnable>>,
    park: Park,
    live: LiveTasks,
    listed: bool,
    /// Tasks that are over stay in the list until they are taken out.
    late: bool,
    closed: AtomicBool,
    /// Tasks from outside that are over and still in the list, each with the references that are given up with it.
    departed: Mutex<Vec<(TaskRef, usize)>>,
    /// Of tasks from outside that are gone.
    memory: Mutex<Vec<Memory>>,
}

impl Scheduler {
    /// Without a live list.
    #[must_use]
    pub fn new() -> Self {
        Self::with(false, false)
    }

    /// With a live list, so that it can be shut down.
    #[must_use]
    pub fn listed() -> Self {
        Self::with(true, false)
    }

    /// With a live list from which [`clean_up`](Self::clean_up) takes the tasks that are over.
    #[must_use]
    pub fn late() -> Self {
        Self::with(true, true)
    }

    fn with(listed: bool, late: bool) -> Self {
        let inner = Inner {
            ready: Mutex::new(VecDeque::new()),
            park: Park::new(),
            live: LiveTasks::new(),
            listed,
            late,
            closed: AtomicBool::new(false),
            departed: Mutex::new(Vec::new()),
            memory: Mutex::new(Vec::new()),
        };
        Self(Arc::new(inner), Touch::new())
    }

    /// Makes a task that is in no list, and leaves its first `Runnable` to the caller.
    pub fn make<F: Future + Send + 'static>(&self, future: F) -> NewTask<F::Output> {
        new_task(future, self.clone(), Meta::here(), false)
    }

    /// Spawns a task.
    pub fn spawn<F: Future + Send + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        if self.0.listed {
            let insert = |this: &Listed<false>, task| this.0.0.live.insert(task);
            return spawn_listed(future, Listed(self.clone()), Meta::here(), insert);
        }
        let task = self.make(future);
        self.push(task.runnable);
        task.handle
    }

    /// Spawns a task as a thread that sits on no seat does: its memory is kept for the next, and it leaves the live list when
    /// [`part`](Self::part) takes it out. For a scheduler with a live list.
    pub fn spawn_from_outside<F: Future + Send + 'static>(
        &self,
        future: F,
    ) -> JoinHandle<F::Output> {
        let size = size_of_task::<F, Listed<true>>().expect("tasks here are small");
        let kept = self.0.memory.lock().pop();
        let memory = kept.unwrap_or_else(|| Memory::new(size));
        let insert = |this: &Listed<true>, task| this.0.0.live.insert(task);
        let outside = Listed(self.clone());
        spawn_in(
            memory,
            future,
            outside,
            Meta::here(),
            insert,
            Schedule::schedule,
        )
    }

    /// Takes the tasks out of the list that have departed.
    pub fn part(&self) {
        let departed = std::mem::take(&mut *self.0.departed.lock());
        self.0
            .live
            .remove_departed(departed.iter().map(|(task, _)| task));
        for (task, refs) in departed {
            task.drop_many(refs);
        }
    }

    /// Pieces of memory that are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.0.memory.lock().len()
    }

    /// Spawns a child of a group. `None`: the group takes no more. For a scheduler with a live list.
    pub fn spawn_into<F, E>(
        &self,
        group: &TaskGroup<E>,
        future: F,
    ) -> Option<JoinHandle<<F::Output as GroupOutput<E>>::Value>>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: 'static,
        E: Send + 'static,
    {
        let insert = |this: &Listed<false>, task| this.0.0.live.insert(task);
        member_on(group, future, Listed(self.clone()), insert)
    }

    /// Puts a `Runnable` into the queue.
    pub fn push(&self, task: Runnable) {
        self.0.ready.lock().push_back(task);
        self.0.park.unpark(|| ());
    }

    /// Takes the next `Runnable`.
    #[must_use]
    pub fn pop(&self) -> Option<Runnable> {
        self.0.ready.lock().pop_front()
    }

    /// Polls until the queue is empty; the number of polls.
    pub fn run(&self) -> usize {
        let mut polls = 0;
        while let Some(task) = self.pop() {
            task.run();
            polls += 1;
        }
        polls
    }

    /// As the loop of a worker: runs and sleeps by turns, until the task is over. One thread only.
    pub fn run_until<T>(&self, handle: &JoinHandle<T>) {
        loop {
            self.run();
            if handle.is_finished() {
                return;
            }
            self.0.park.park(None);
        }
    }

    /// Ends every task, as shutdown does; what is queued afterwards is a shell.
    pub fn shut_down(&self) {
        self.0.closed.store(true, Relaxed);
        TaskRef::shut_down_all(self.0.live.close());
    }

    /// References to the tasks in the live list.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskRef> {
        self.0.live.snapshot()
    }

    /// Takes tasks out of the list that are over, and gives up the list's reference to each, and this one.
    pub fn clean_up(&self, tasks: Vec<TaskRef>) {
        self.0.live.remove_departed(tasks.iter());
        for task in tasks {
            task.drop_many(2);
        }
    }

    /// The tasks in the live list.
    #[must_use]
    pub fn ids(&self) -> Vec<Id> {
        self.0.live.ids()
    }

    /// How many tasks are in the live list.
    #[must_use]
    pub fn living(&self) -> usize {
        self.ids().len()
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Schedule for Scheduler {
    fn schedule(&self, task: Runnable) {
        self.1.0.with(|_| ());
        // Cloned: the task, and with it this handle, may be gone as soon as another thread can take it.
        self.clone().push(task);
    }

    fn release(&self, task: &Header) -> bool {
        self.1.0.with(|_| ());
        self.0.listed && !self.0.late && self.0.live.remove(task)
    }

    fn is_closed(&self) -> bool {
        self.0.closed.load(Relaxed)
    }

    /// There is no clock here: a graceful cancel is the request alone.
    fn abort_after(&self, _task: TaskRef, _grace: Duration) {}

    fn task_panicked(&self, report: &StdArc<PanicReport>, _handle_alive: bool) {
        panic!("no task here panics: {report:?}");
    }

    fn destructor_panicked(&self, report: &StdArc<PanicReport>) {
        panic!("no destructor here panics: {report:?}");
    }
}

/// In a task that is in the live list, which keeps it alive through its polls; one from outside, or not.
struct Listed<const FROM_OUTSIDE: bool>(Scheduler);

impl<const FROM_OUTSIDE: bool> Schedule for Listed<FROM_OUTSIDE> {
    const PINS: bool = true;
    const RECYCLES: bool = FROM_OUTSIDE;

    fn schedule(&self, task: Runnable) {
        self.0.schedule(task);
    }

    fn release(&self, task: &Header) -> bool {
        self.0.release(task)
    }

    fn departs(&self, task: &Header) -> bool {
        self.0.1.0.with(|_| ());
        LiveTasks::has_taken(task)
    }

    fn depart(&self, task: TaskRef, refs: usize) {
        // Cloned: by the next `part` of another thread the task may be gone.
        let inner = self.0.0.clone();
        inner.departed.lock().push((task, refs));
    }

    fn recycle(self, memory: Memory) {
        self.0.0.memory.lock().push(memory);
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn abort_after(&self, task: TaskRef, grace: Duration) {
        self.0.abort_after(task, grace);
    }

    fn task_panicked(&self, report: &StdArc<PanicReport>, handle_alive: bool) {
        self.0.task_panicked(report, handle_alive);
    }

    fn destructor_panicked(&self, report: &StdArc<PanicReport>) {
        self.0.destructor_panicked(report);
    }
}
