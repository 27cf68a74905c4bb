//! The live tasks of one seat: for shutdown, and for whoever wants to see them.
//!
//! A task is in the list of the seat on which it was spawned, from before it can be polled until just before its end is
//! seen. Once closed, the list takes nobody in: that is where a spawn meets the end of its runtime.
//!
//! # The race
//! Spawn against shutdown: both take the lock. Either the task is in the list before it closes, and shutdown cancels
//! it; or the list is closed, and the spawn cancels the task itself.

use std::fmt;

use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::AtomicUsize;
use rt_sync::primitive::atomic::Ordering::Relaxed;
use slab::Slab;

use crate::task::{Header, TaskRef};

/// Where a task lies that is in no list.
const NOWHERE: u32 = u32::MAX;

/// See the module head.
pub struct LiveTasks {
    list: Mutex<List>,
    /// Written under the lock.
    count: AtomicUsize,
}

struct List {
    tasks: Slab<TaskRef>,
    closed: bool,
}

impl LiveTasks {
    /// An open list with nobody in it.
    #[must_use]
    pub fn new() -> Self {
        Self { list: Mutex::new(List { tasks: Slab::new(), closed: false }), count: AtomicUsize::new(0) }
    }

    /// Takes a new task in. `Err`: the list is closed, and the task is nobody's.
    #[inline]
    pub fn insert(&self, task: TaskRef) -> Result<(), TaskRef> {
        let mut list = self.list.lock();
        if list.closed {
            drop(list);
            task.header().list_key.store(NOWHERE, Relaxed);
            return Err(task);
        }
        let entry = list.tasks.vacant_entry();
        // Relaxed: read by `remove`, which the queue that hands the task on orders after this.
        task.header().list_key.store(u32::try_from(entry.key()).unwrap_or(NOWHERE), Relaxed);
        entry.insert(task);
        self.count.store(list.tasks.len(), Relaxed);
        Ok(())
    }

    /// Takes a task out that is over. `true`: it was there, and its reference is the caller's to drop.
    #[inline]
    pub fn remove(&self, task: &Header) -> bool {
        let key = task.list_key.load(Relaxed);
        if key == NOWHERE {
            return false;
        }
        let mut list = self.list.lock();
        let removed = list.tasks.try_remove(key as usize);
        self.count.store(list.tasks.len(), Relaxed);
        drop(list);
        match removed {
            // The caller drops the reference together with its own.
            Some(task) => {
                task.forget();
                true
            }
            None => false,
        }
    }

    /// Closes the list and hands out its tasks, which stay in the list until they are over.
    pub fn close(&self) -> Vec<TaskRef> {
        let mut list = self.list.lock();
        list.closed = true;
        list.tasks.iter().map(|(_, task)| task.clone()).collect()
    }

    /// Every live task.
    #[must_use]
    pub fn snapshot(&self) -> Vec<TaskRef> {
        self.list.lock().tasks.iter().map(|(_, task)| task.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }
}

impl Default for LiveTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LiveTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveTasks").field("len", &self.len()).finish_non_exhaustive()
    }
}
