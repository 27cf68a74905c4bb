//! The names of tokio's `RuntimeMetrics`, as far as they are stable there.

use std::time::Duration;

use super::{RuntimeMetrics, WorkerMetrics};

impl RuntimeMetrics {
    /// How many workers there are: 1 for the current-thread flavour, as in tokio. The field
    /// [`num_workers`](Self#structfield.num_workers) is 0 there.
    #[must_use]
    pub fn num_workers(&self) -> usize {
        self.num_workers.max(1)
    }

    /// Tasks that are not over.
    #[must_use]
    pub fn num_alive_tasks(&self) -> usize {
        self.live_tasks
    }

    /// Tasks in the queue for tasks from outside.
    #[must_use]
    pub fn global_queue_depth(&self) -> usize {
        self.injector_depth
    }

    /// How long a worker was awake.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    #[track_caller]
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        let time = &self.worker(worker).time;
        time.total() - time.parked
    }

    /// How often a worker went to sleep.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    #[track_caller]
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.worker(worker).parks
    }

    /// How often a worker went to sleep and woke up again: odd while it sleeps.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    #[track_caller]
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        let worker = self.worker(worker);
        let awake_again = worker.parks - u64::from(worker.parked.is_some() && worker.parks > 0);
        worker.parks + awake_again
    }

    #[track_caller]
    fn worker(&self, worker: usize) -> &WorkerMetrics {
        // A runtime that is over has none.
        let known = self.num_workers().min(self.workers.len());
        match self.workers.get(worker).filter(|_| worker < known) {
            Some(found) => found,
            None => panic!(
                "runtime '{}' has no worker {worker}: it has {known}, counted from 0",
                self.name
            ),
        }
    }
}
