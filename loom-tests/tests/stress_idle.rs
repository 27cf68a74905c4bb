//! The stress twin of `idle.rs`: eight workers with real sleeps, two spawners, and tasks that need several workers at
//! once, so that a task left lying is a hang.
#![cfg(not(rt_loom))]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self};
use std::sync::{Arc, Barrier};
use std::thread;

use crossbeam_deque::{Injector, Steal};

use rt::internals::scheduler::{Idle, Park, Rest};
use rt_loom_tests::stress::limited;

enum Task {
    /// Ends when as many tasks as the barrier holds run at once.
    Meet(Arc<Barrier>, mpsc::Sender<()>),
    Stop,
}

struct Runtime {
    idle: Idle,
    parks: Vec<Park>,
    queue: Injector<Task>,
    searches: AtomicUsize,
}

impl Runtime {
    fn inject(&self, task: Task) {
        self.queue.push(task);
        self.notify();
    }

    fn notify(&self) {
        if let Some(worker) = self.idle.claim() {
            self.parks[worker].unpark(|| ());
        }
    }

    fn look(&self) -> bool {
        !self.queue.is_empty()
    }

    fn search(&self) -> Option<Task> {
        self.searches.fetch_add(1, SeqCst);
        loop {
            match self.queue.steal() {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }

    fn work(&self, worker: usize) {
        let mut searching = false;
        loop {
            match self
                .idle
                .rest(worker, searching, || self.look(), || self.search())
            {
                Rest::Found { work, last } => {
                    searching = false;
                    if last && self.look() {
                        self.notify();
                    }
                    match work {
                        Task::Stop => return,
                        Task::Meet(barrier, done) => {
                            barrier.wait();
                            let _ = done.send(());
                        }
                    }
                }
                Rest::Sleep => {
                    self.parks[worker].park(None);
                    searching = self.idle.wake(worker);
                }
            }
        }
    }
}

#[test]
fn tasks_that_meet() {
    const WORKERS: usize = 8;
    const ROUNDS: usize = 6_000;
    limited(|| {
        let runtime = Arc::new(Runtime {
            idle: Idle::new(WORKERS),
            parks: (0..WORKERS).map(|_| Park::new()).collect(),
            queue: Injector::new(),
            searches: AtomicUsize::new(0),
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let runtime = runtime.clone();
                thread::spawn(move || runtime.work(worker))
            })
            .collect();
        let spawners: Vec<_> = (0..2)
            .map(|_| {
                let runtime = runtime.clone();
                thread::spawn(move || {
                    for round in 0..ROUNDS {
                        // Two spawners together need no more than all workers.
                        let width = 1 + round % (WORKERS / 2);
                        let (send, receive) = mpsc::channel();
                        let barrier = Arc::new(Barrier::new(width));
                        for _ in 0..width {
                            runtime.inject(Task::Meet(barrier.clone(), send.clone()));
                        }
                        for _ in 0..width {
                            receive.recv().unwrap();
                        }
                    }
                })
            })
            .collect();
        for spawner in spawners {
            spawner.join().unwrap();
        }
        for _ in 0..WORKERS {
            runtime.inject(Task::Stop);
        }
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!((runtime.idle.sleeping(), runtime.idle.searching()), (0, 0));
    });
}
