//! The thread that makes reports which take time: those with a stack, whose names have to be looked up.
//!
//! One for the process, started when there is something to do, and gone when that is done. It is nice to others: the
//! first look-up reads the debug information of the program. Reports leave in the order in which they came.
//!
//! # Bounds
//! At most [`MOST`] reports wait. What comes beyond that is not made. A runtime that ends waits for its own, up to its
//! grace, and then tells them without what takes time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rt_sync::wake_batch::discard;

use super::sink::Sink;

use crate::unpoisoned::lock;

const MOST: usize = 64;

/// A report that takes time to make.
pub(super) trait Job: Send + Sync {
    /// Where it goes.
    fn sink(&self) -> &Sink;
    /// Makes it and tells it, unless it was told by then.
    fn run(&self);
    /// Tells what can be told at once, unless it was told by then: the runtime ends.
    fn tell_now(&self);
}

struct Queue {
    jobs: VecDeque<Arc<dyn Job>>,
    /// The one that is being made.
    current: Option<Arc<dyn Job>>,
    /// Whether the thread is there.
    running: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    jobs: VecDeque::new(),
    current: None,
    running: false,
});
static DONE: Condvar = Condvar::new();

thread_local! {
    static REPORTER: Cell<bool> = const { Cell::new(false) };
}

impl Queue {
    fn lock() -> MutexGuard<'static, Queue> {
        lock(&QUEUE)
    }

    fn of<'a>(&'a self, sink: &Sink) -> impl Iterator<Item = &'a Arc<dyn Job>> {
        self.current
            .iter()
            .chain(&self.jobs)
            .filter(move |job| ptr::eq(job.sink(), sink))
    }
}

/// Runs a job on the reporter's thread. If there is too much to do, or no thread to be had, it is told at once or not at
/// all.
pub(super) fn later(job: Arc<dyn Job>) {
    let mut queue = Queue::lock();
    if queue.jobs.len() >= MOST {
        return;
    }
    queue.jobs.push_back(job);
    if mem::replace(&mut queue.running, true) {
        return;
    }
    drop(queue);
    let thread = thread::Builder::new().name("rt-reporter".to_owned());
    if thread.spawn(work).is_err() {
        let mut queue = Queue::lock();
        queue.running = false;
        let jobs = mem::take(&mut queue.jobs);
        drop(queue);
        jobs.iter().for_each(|job| job.tell_now());
        DONE.notify_all();
    }
}

/// Whether the thread is there.
pub(super) fn is_running() -> bool {
    Queue::lock().running
}

/// Waits until everything is told that goes to `sink`. What is not ready at `deadline` is told in short.
pub(super) fn flush(sink: &Sink, deadline: Instant) {
    if REPORTER.get() {
        // A hook that ends its runtime: what follows is told when it returns.
        return;
    }
    let mut queue = Queue::lock();
    while queue.of(sink).next().is_some() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        queue = DONE
            .wait_timeout(queue, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    let late: Vec<_> = queue.of(sink).cloned().collect();
    queue.jobs.retain(|job| !ptr::eq(job.sink(), sink));
    drop(queue);
    late.iter().for_each(|job| job.tell_now());
}

fn work() {
    REPORTER.set(true);
    rt_io::stack::be_nice();
    loop {
        let mut queue = Queue::lock();
        let Some(job) = queue.jobs.pop_front() else {
            queue.running = false;
            return;
        };
        queue.current = Some(Arc::clone(&job));
        drop(queue);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job.run())) {
            discard(payload);
        }
        let over = Queue::lock().current.take();
        DONE.notify_all();
        drop(over);
    }
}
