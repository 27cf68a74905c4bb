//! The thread that makes reports which take time: those with a stack, whose names have to be looked up.
//!
//! One for the process, started when there is something to do, and gone when that is done. It is nice to others: the
//! first look-up reads the debug information of the program. Reports leave in the order in which they came.
//!
//! # Bounds
//! At most [`MOST`] reports wait. What comes beyond that is not made.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

const MOST: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    jobs: VecDeque<Job>,
    /// Whether the thread is there.
    running: bool,
    /// Jobs taken in, and jobs done, since the process began.
    taken: u64,
    done: u64,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    jobs: VecDeque::new(),
    running: false,
    taken: 0,
    done: 0,
});
static DONE: Condvar = Condvar::new();

thread_local! {
    static REPORTER: Cell<bool> = const { Cell::new(false) };
}

/// Runs `job` on the reporter's thread. If there is none to be had, or too much to do, the job is dropped.
pub(super) fn later(job: impl FnOnce() + Send + 'static) {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.jobs.len() >= MOST {
        return;
    }
    queue.jobs.push_back(Box::new(job));
    queue.taken += 1;
    if queue.running {
        return;
    }
    queue.running = true;
    drop(queue);
    let thread = thread::Builder::new().name("rt-reporter".to_owned());
    if thread.spawn(work).is_err() {
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        queue.running = false;
        queue.done += queue.jobs.len() as u64;
        let jobs = mem::take(&mut queue.jobs);
        drop(queue);
        DONE.notify_all();
        drop(jobs);
    }
}

/// Whether the thread is there.
pub(super) fn is_running() -> bool {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner).running
}

/// Waits until everything is told that was noticed before, at most until `deadline`.
pub(crate) fn flush(deadline: Instant) {
    if REPORTER.get() {
        return;
    }
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = queue.taken;
    while queue.done < target {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        queue = DONE
            .wait_timeout(queue, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

fn work() {
    REPORTER.set(true);
    rt_io::stack::be_nice();
    loop {
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(job) = queue.jobs.pop_front() else {
            queue.running = false;
            return;
        };
        drop(queue);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
            mem::forget(payload);
        }
        QUEUE.lock().unwrap_or_else(PoisonError::into_inner).done += 1;
        DONE.notify_all();
    }
}
