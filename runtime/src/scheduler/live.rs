//! The live tasks of one seat: for shutdown, and for whoever wants to see them.
//!
//! A task is in the list of the seat on which it was spawned, from before it can be polled until just before its end is
//! seen. One that was spawned from outside may be taken out later (`departed.rs`); nobody who looks is shown it. Once closed,
//! the list takes nobody in: that is where a spawn meets the end of its runtime.
//!
//! # Who may touch what
//! The links lie in the task headers and belong to the holder of the list's lock. A task in the list is kept alive by
//! the reference that it was inserted with; whoever removes it gets that reference.
//!
//! # The race
//! Spawn against shutdown: both take the lock. Either the task is in the list before it closes, and shutdown cancels
//! it; or the list is closed, and the spawn cancels the task itself.
//!
//! # A walk
//! A million tasks take some tens of ms to look at, and nobody may wait that long for this lock, which is one to spin at. So
//! they are copied [`PORTION`] by portion. Between two portions `cursor` is the next task to copy; one that is removed hands
//! it on to its successor. New tasks come in at the front, behind whoever walks: so a task that is there all the while is
//! met once, and the walk has an end. One walks at a time (`walking`). Whoever found the lock taken goes first then
//! (`waiting`): it is not a fair lock, and one who takes it again at once would keep it.
//!
//! # Where it comes from
//! A doubly linked list through the tasks, as tokio's. A slab of references was tried first: 50 instructions more for
//! a spawn and its end, and 21 bytes a task instead of 16.
#![expect(
    unsafe_code,
    reason = "a list that is linked through the headers of its tasks"
)]

use std::fmt;
use std::ptr::NonNull;

use rt_sync::primitive::atomic::AtomicUsize;
use rt_sync::primitive::atomic::Ordering::Relaxed;
use rt_sync::primitive::{Mutex, ShortGuard, ShortMutex, thread};

use crate::task::{Header, Id, Links, TaskRef};

/// [`Header::list_key`] of a task that is in no list.
const NOWHERE: u32 = u32::MAX;

/// Tasks that are copied in one go. Each may cost a cache miss: together some µs.
#[cfg(not(rt_loom))]
const PORTION: usize = 64;
#[cfg(rt_loom)]
const PORTION: usize = 1;

/// How often a walk gives its core away for the sake of those who wait, between two portions.
#[cfg(not(rt_loom))]
const MOST_YIELDS: u32 = 100;
#[cfg(rt_loom)]
const MOST_YIELDS: u32 = 1;

/// See the module head.
pub struct LiveTasks {
    list: ShortMutex<List>,
    /// Written under the lock.
    count: AtomicUsize,
    /// Those that found the lock taken and do not have it yet.
    waiting: AtomicUsize,
    walking: Mutex<()>,
}

struct List {
    first: Option<NonNull<Header>>,
    /// See the module head, "A walk".
    cursor: Option<NonNull<Header>>,
    len: usize,
    closed: bool,
}

// SAFETY: the pointers stand for references to tasks, which are `Send` (`TaskRef`).
unsafe impl Send for List {}

impl LiveTasks {
    /// An open list with nobody in it.
    #[must_use]
    pub fn new() -> Self {
        let list = List {
            first: None,
            cursor: None,
            len: 0,
            closed: false,
        };
        Self {
            list: ShortMutex::new(list),
            count: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            walking: Mutex::new(()),
        }
    }

    #[inline]
    fn lock(&self) -> ShortGuard<'_, List> {
        match self.list.try_lock() {
            Some(list) => list,
            None => self.lock_slow(),
        }
    }

    #[cold]
    fn lock_slow(&self) -> ShortGuard<'_, List> {
        self.waiting.fetch_add(1, Relaxed);
        let list = self.list.lock();
        self.waiting.fetch_sub(1, Relaxed);
        list
    }

    /// Takes a new task in. `Err`: the list is closed, and the task is nobody's.
    #[inline]
    pub fn insert(&self, task: TaskRef) -> Result<(), TaskRef> {
        let mut list = self.lock();
        if list.closed {
            drop(list);
            // Relaxed: read by `remove`, which the queue that hands the task on orders after this.
            task.header().list_key.store(NOWHERE, Relaxed);
            return Err(task);
        }
        let task = task.into_raw();
        set_links(
            task,
            Links {
                previous: None,
                next: list.first,
            },
        );
        if let Some(first) = list.first {
            change_links(first, |links| links.previous = Some(task));
        }
        list.first = Some(task);
        list.len += 1;
        self.count
            .store(self.count.load(Relaxed).wrapping_add(1), Relaxed);
        Ok(())
    }

    /// Takes a task out that is over, once. `true`: it was there, and its reference is the caller's to drop.
    #[inline]
    pub fn remove(&self, task: &Header) -> bool {
        if task.list_key.load(Relaxed) == NOWHERE {
            return false;
        }
        let mut list = self.lock();
        list.unlink(NonNull::from(task));
        self.count
            .store(self.count.load(Relaxed).wrapping_sub(1), Relaxed);
        true
    }

    /// Whether a task was taken in. For who ends it.
    #[inline]
    pub fn has_taken(task: &Header) -> bool {
        task.list_key.load(Relaxed) != NOWHERE
    }

    /// Takes tasks out that are over, each once. Their references are the caller's. [`len`](Self::len) counts them on: the
    /// caller has counted them before their ends were seen.
    pub fn remove_departed<'a>(&self, tasks: impl Iterator<Item = &'a TaskRef>) {
        let mut list = self.lock();
        for task in tasks {
            list.unlink(NonNull::from(task.header()));
        }
    }

    /// Closes the list and hands out its tasks, which stay in the list until they are over.
    pub fn close(&self) -> Vec<TaskRef> {
        self.all(true)
    }

    /// Every live task.
    #[must_use]
    pub fn snapshot(&self) -> Vec<TaskRef> {
        self.all(false)
    }

    /// The numbers of all live tasks. For models.
    #[doc(hidden)]
    #[must_use]
    pub fn ids(&self) -> Vec<Id> {
        let tasks = self.snapshot();
        tasks.iter().map(|task| task.header().id).collect()
    }

    fn all(&self, close: bool) -> Vec<TaskRef> {
        let mut tasks = Vec::with_capacity(self.listed());
        self.walk(close, |portion| tasks.append(portion));
        tasks
    }

    /// Hands out the tasks in portions, with the list unlocked. `f` calls no foreign code, and drops no task.
    fn walk(&self, close: bool, mut f: impl FnMut(&mut Vec<TaskRef>)) {
        let _one = self.walking.lock();
        // Memory is not asked for under the lock either.
        let mut portion = Vec::with_capacity(PORTION);
        let mut list = self.lock();
        list.closed |= close;
        list.cursor = list.first;
        loop {
            list.copy_portion(&mut portion);
            let more = list.cursor.is_some();
            drop(list);
            f(&mut portion);
            if !more {
                return;
            }
            self.give_way();
            list = self.lock();
        }
    }

    fn give_way(&self) {
        for _ in 0..MOST_YIELDS {
            if self.waiting.load(Relaxed) == 0 {
                return;
            }
            thread::yield_now();
        }
    }

    /// How many there are, and those that [`remove_departed`](Self::remove_departed) has taken out, or is going to.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// How many are in the list, those among them that are over.
    pub(crate) fn listed(&self) -> usize {
        self.lock().len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl List {
    #[inline]
    fn unlink(&mut self, task: NonNull<Header>) {
        let links = set_links(task, Links::default());
        if self.cursor == Some(task) {
            self.cursor = links.next;
        }
        match links.previous {
            Some(previous) => change_links(previous, |other| other.next = links.next),
            None => self.first = links.next,
        }
        if let Some(next) = links.next {
            change_links(next, |other| other.previous = links.previous);
        }
        self.len -= 1;
    }

    fn copy_portion(&mut self, to: &mut Vec<TaskRef>) {
        for _ in 0..PORTION {
            let Some(task) = self.cursor else { return };
            // SAFETY: the list's own reference keeps the task alive while we hold the lock.
            let listed = unsafe { TaskRef::borrow(task) };
            if !listed.header().is_over() {
                to.push(TaskRef::clone(&listed));
            }
            self.cursor = change_links(task, |links| links.next);
        }
    }
}

/// Runs `f` on the links of a task.
#[inline]
fn change_links<R>(task: NonNull<Header>, f: impl FnOnce(&mut Links) -> R) -> R {
    // SAFETY: the task is in the list, or about to be, and so alive; all callers hold the list's lock.
    let header = unsafe { task.as_ref() };
    header.links.with_mut(|links| {
        // SAFETY: the links are the lock holder's (module head).
        f(unsafe { &mut *links })
    })
}

#[inline]
fn set_links(task: NonNull<Header>, links: Links) -> Links {
    change_links(task, |old| std::mem::replace(old, links))
}

impl Default for LiveTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LiveTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveTasks")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
