//! Models of the idle accounting (`rt/src/scheduler/idle.rs`): workers that sleep and search, with the real
//! [`Idle`] and [`Park`], against whoever queues tasks.
//!
//! The queue is a list behind a lock; whether it is empty is told by a relaxed number beside it, so that the lock orders
//! nothing and only the fences of the protocol do. A task that is left lying shows as a deadlock.
//!
//! Seen to fail: without the fence of `claim`, and without that of `rest` (every model); without that of
//! `stop_searching` (`the_last_searcher_wakes_another`); with the search handed on after the event
//! (`claim_against_an_event_that_keeps_the_claimed`).
#![cfg(rt_loom)]

use std::collections::VecDeque;

use loom::thread;

use rt::internals::scheduler::{Idle, Park, Rest};
use rt_sync::primitive::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use rt_sync::primitive::{Arc, Condvar, Mutex};

fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(body);
}

struct Runtime {
    idle: Idle,
    parks: Vec<Park>,
    queue: Mutex<VecDeque<u32>>,
    len: AtomicUsize,
    /// Tasks that have not run.
    left: AtomicUsize,
    /// Set by an event that is worker 0's own.
    event: AtomicBool,
    /// Whether task 1 has run, for which task 0 keeps its thread waiting, if they meet.
    met: Mutex<bool>,
    meeting: Option<Condvar>,
}

impl Runtime {
    fn new(workers: usize, tasks: usize) -> Arc<Self> {
        Self::with(workers, tasks, None)
    }

    fn with(workers: usize, tasks: usize, meeting: Option<Condvar>) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers),
            parks: (0..workers).map(|_| Park::new()).collect(),
            queue: Mutex::new(VecDeque::new()),
            len: AtomicUsize::new(0),
            left: AtomicUsize::new(tasks),
            event: AtomicBool::new(false),
            met: Mutex::new(false),
            meeting,
        })
    }

    fn push(&self, task: u32) {
        let mut queue = self.queue.lock();
        queue.push_back(task);
        self.len.store(queue.len(), Relaxed);
    }

    fn pop(&self) -> Option<u32> {
        let mut queue = self.queue.lock();
        let task = queue.pop_front();
        self.len.store(queue.len(), Relaxed);
        task
    }

    fn look(&self) -> bool {
        self.len.load(Relaxed) > 0
    }

    /// As `Shared::inject` does.
    fn inject(&self, task: u32) {
        self.push(task);
        self.notify();
    }

    fn notify(&self) {
        if let Some(worker) = self.idle.claim() {
            self.parks[worker].unpark(|| ());
        }
    }

    /// The task runs; with the last of them the runtime closes.
    fn run(&self, task: u32) {
        if let Some(meeting) = &self.meeting {
            let mut met = self.met.lock();
            if task == 1 {
                *met = true;
                meeting.notify_one();
            }
            while !*met {
                met = meeting.wait(met);
            }
        }
        if self.left.fetch_sub(1, Relaxed) == 1 {
            for park in &self.parks {
                park.unpark(|| ());
            }
        }
    }

    fn hand_search_on(&self, worker: usize) {
        if self.idle.stop_searching(worker) && self.look() {
            self.notify();
        }
    }

    /// The waker of an event. If they meet, it keeps its thread until task 1 has run.
    fn attend(&self) {
        if let Some(meeting) = &self.meeting {
            let mut met = self.met.lock();
            while !*met {
                met = meeting.wait(met);
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    /// As `Loop::rest` does, until the runtime closes. `event`: worker 0 also waits for an event of its own, and is not
    /// done before it has come.
    fn work(&self, worker: usize, event: bool) {
        let mut event = event;
        let mut searching = false;
        loop {
            match self
                .idle
                .rest(worker, searching, || self.look(), || self.pop())
            {
                Rest::Found { work, last } => {
                    searching = false;
                    if last && self.look() {
                        self.notify();
                    }
                    self.run(work);
                    continue;
                }
                Rest::Sleep => {}
            }
            if event || !self.is_closed() {
                self.parks[worker].park(None);
            }
            let mut claimed = self.idle.wake(worker);
            // What is this worker's own comes first, and somebody else searches then.
            if event && self.event.load(Relaxed) {
                event = false;
                if claimed {
                    claimed = false;
                    self.hand_search_on(worker);
                }
                self.attend();
            }
            let over = self.is_closed() && !event;
            searching = claimed && !over;
            if claimed && over {
                self.hand_search_on(worker);
            }
            if over {
                return;
            }
        }
    }
}

fn workers_against(workers: usize, tasks: u32, preemptions: usize) {
    check(preemptions, move || {
        let runtime = Runtime::new(workers, tasks as usize);
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.work(worker, false))
            })
            .collect();
        for task in 0..tasks {
            runtime.inject(task);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((runtime.idle.sleeping(), runtime.idle.searching()), (0, 0));
    });
}

/// One worker goes to sleep while a task is injected: its last look sees the task, or it is claimed.
#[test]
fn inject_against_the_last_look() {
    workers_against(1, 1, 4);
}

/// The second task comes while the worker searches on account of the first: whoever trusted the count of the searching
/// is not let down.
#[test]
fn inject_against_a_searcher() {
    workers_against(1, 2, 3);
}

/// Two workers and one outside spawner.
#[test]
fn two_workers_against_a_spawner() {
    workers_against(2, 1, 2);
}

/// The same with two tasks: a claim that finds a searcher relies on it, and the last searcher looks once more.
#[test]
fn two_workers_against_two_tasks() {
    workers_against(2, 2, 2);
}

/// A task that keeps its worker waiting for the next one, which comes while that worker still counts as searching: it
/// wakes another, since it was the last to search.
#[test]
fn the_last_searcher_wakes_another() {
    check(2, || {
        let runtime = Runtime::with(2, 2, Some(Condvar::new()));
        let threads: Vec<_> = (0..2)
            .map(|worker| {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.work(worker, false))
            })
            .collect();
        runtime.inject(0);
        runtime.inject(1);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// A worker is claimed at the moment when an event of its own wakes it: it attends to that, and hands the search on.
#[test]
fn claim_against_an_event_of_the_claimed() {
    claimed_with_an_event(|| None, 0);
}

/// The same with a foreign waker that keeps the thread until the task has run: the search is handed on before.
#[test]
fn claim_against_an_event_that_keeps_the_claimed() {
    claimed_with_an_event(|| Some(Condvar::new()), 1);
}

fn claimed_with_an_event(meeting: fn() -> Option<Condvar>, task: u32) {
    check(2, move || {
        let runtime = Runtime::with(2, 1, meeting());
        let threads: Vec<_> = (0..2)
            .map(|worker| {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.work(worker, worker == 0))
            })
            .collect();
        runtime.event.store(true, Relaxed);
        runtime.parks[0].unpark(|| ());
        runtime.inject(task);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((runtime.idle.sleeping(), runtime.idle.searching()), (0, 0));
    });
}
