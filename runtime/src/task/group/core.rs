//! What a task group and its children share: the count, the list of the living, and the failures.
//!
//! # What it guarantees
//! A child that has joined is counted until nothing of it runs any more; [`try_end`](Core::try_end) succeeds once, when
//! nobody is counted, and from then on nobody joins. From the first failure on nobody joins either, and every child that
//! has joined is aborted: those in the list by whoever failed, those that were on their way into it by themselves.
//!
//! # Who may touch what
//! `word` holds the count and three bits:
//!
//! | bit       | set by                                    | meaning                                        |
//! |-----------|-------------------------------------------|------------------------------------------------|
//! | `CLOSED`  | the first failure, the end, or the drop   | nobody joins any more                          |
//! | `ENDED`   | `try_end`, with `CLOSED`                  | the group has ended in good order              |
//! | `WATCHED` | the owner                                 | it waits for the count to become zero          |
//!
//! `inner` lies behind its lock. The list holds bare pointers: a child takes itself out before its end is seen, so that
//! one found under the lock is alive, and a reference can be made from it. That rests on every child being in the live
//! list of its scheduler, or over: a task in no list that lost its last waker would be freed without its end.
//!
//! # The races
//! *A child joins while the group fails.* The child is counted, then it enters the list under the lock. The failure sets
//! `aborting` and copies the list under the lock. So either the copy has the child, or the child sees `aborting`.
//!
//! *The last child leaves while the owner begins to wait.* The owner sets `WATCHED`, registers its waker and looks at the
//! count. The child lowers the count: if it does not see `WATCHED`, the owner sees the count; if it does, it wakes, and
//! the waker slot says that either the waker or the count is seen.
//!
//! # User code
//! Children are aborted (which may wake a foreign executor) and failures dropped without the lock. Under it a failure is
//! only moved.
#![expect(
    unsafe_code,
    reason = "the list of children holds bare pointers to tasks"
)]

use std::fmt;
use std::mem;
use std::ptr::NonNull;
use std::time::Duration;

use rt_sync::AtomicWaker;
use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use slab::Slab;

use super::error::Failure;
use crate::context;
use crate::runtime::panics;
use crate::task::error::Refusal;
use crate::task::{Header, TaskRef};

const CLOSED: usize = 1;
const ENDED: usize = 1 << 1;
const WATCHED: usize = 1 << 2;
const ONE: usize = 1 << 3;

/// Places that the list keeps when it becomes empty.
const KEEP: usize = 1024;

/// Numbers of groups: never zero, which is for tasks without one.
fn next_number() -> u32 {
    // Not modelled: a number that wraps after 2^32 groups, for people to read.
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed).max(1)
}

/// See the module head.
pub(crate) struct Core<E> {
    word: AtomicUsize,
    /// Tells the groups of a process apart, in dumps.
    number: u32,
    /// Whoever awaits the scope.
    owner: AtomicWaker,
    inner: Mutex<Inner<E>>,
}

struct Inner<E> {
    children: Slab<Listed>,
    failures: Vec<Failure<E>>,
    /// Who comes into the list is aborted.
    aborting: bool,
    /// Who comes into the list is asked to end.
    asked: bool,
    /// Nobody reads failures any more.
    abandoned: bool,
}

#[derive(Clone, Copy)]
struct Listed(NonNull<Header>);

// SAFETY: it stands for a reference to a task, which may go to any thread (`TaskRef`).
unsafe impl Send for Listed {}

impl<E> Core<E> {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicUsize::new(0),
            number: next_number(),
            owner: AtomicWaker::new(),
            inner: Mutex::new(Inner {
                children: Slab::new(),
                failures: Vec::new(),
                aborting: false,
                asked: false,
                abandoned: false,
            }),
        }
    }

    /// Counts a child that is about to be made.
    #[inline]
    pub(super) fn join(&self) -> Result<(), Refusal> {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(if word & ENDED != 0 {
                    Refusal::Ended
                } else {
                    Refusal::Cancelled
                });
            }
            // Relaxed: it publishes nothing; that it comes before the end of the group is in the word itself.
            match self
                .word
                .compare_exchange_weak(word, word + ONE, Relaxed, Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// A child that has joined is gone.
    #[inline]
    pub(super) fn leave(&self) {
        // AcqRel: release lets the owner see all that the child did, acquire passes on what other children did.
        let before = self.word.fetch_sub(ONE, AcqRel);
        debug_assert!(before >= ONE);
        if before & WATCHED != 0 && before < 2 * ONE {
            self.owner.wake();
        }
    }

    /// How many children are counted.
    pub(super) fn len(&self) -> usize {
        self.word.load(Relaxed) / ONE
    }

    /// Whether nobody joins any more.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: who sees the failure sees what led to it.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// Puts a child that has joined into the list; its key there.
    #[inline]
    pub(super) fn insert(&self, task: &TaskRef) -> u32 {
        task.header().group.store(self.number, Relaxed);
        let mut inner = self.inner.lock();
        let key = inner.children.insert(Listed(task.as_ptr()));
        let (aborting, asked) = (inner.aborting, inner.asked);
        drop(inner);
        if asked {
            task.ask();
        }
        if aborting {
            task.abort();
        }
        u32::try_from(key).expect("a task group holds fewer than 2^32 children")
    }

    /// Takes a child out of the list that is over.
    #[inline]
    pub(super) fn remove(&self, key: u32) {
        let mut inner = self.inner.lock();
        inner.children.remove(key as usize);
        if inner.children.is_empty() && inner.children.capacity() > KEEP {
            inner.children = Slab::new();
        }
    }

    /// Somebody failed: keeps the failure and, if it is the first, cancels everybody else.
    ///
    /// # Errors
    /// The failure, if nobody would ever see it.
    pub(super) fn fail(&self, failure: Failure<E>) -> Result<(), Failure<E>> {
        let mut inner = self.inner.lock();
        if inner.abandoned {
            drop(inner);
            return Err(failure);
        }
        inner.failures.push(failure);
        drop(inner);
        self.cancel();
        Ok(())
    }

    /// Closes the group, aborts the children, and wakes the owner, who drops the body.
    pub(super) fn cancel(&self) {
        // AcqRel: who sees the bit sees the failure.
        if self.word.fetch_or(CLOSED, AcqRel) & CLOSED == 0 {
            let children = self.children_for(|inner| inner.aborting = true);
            for child in children {
                child.abort();
            }
            self.owner.wake();
        }
    }

    /// Nobody waits for the group any more.
    pub(super) fn abandon(&self) {
        // AcqRel: as in `cancel`.
        self.word.fetch_or(CLOSED, AcqRel);
        let mut failures = Vec::new();
        let children = self.children_for(|inner| {
            inner.aborting = true;
            inner.abandoned = true;
            failures = mem::take(&mut inner.failures);
        });
        for child in children {
            child.abort();
        }
        forget(failures);
    }

    /// Aborts the children, and nothing else.
    pub(super) fn abort_children(&self) {
        for child in self.children_for(|_| ()) {
            child.abort();
        }
    }

    /// Cancels the children that are there, each with this grace, and nothing else.
    pub(super) fn cancel_children(&self, grace: Duration) {
        for child in self.children_for(|_| ()) {
            child.cancel(grace);
        }
    }

    /// Asks all children to end, also those to come.
    pub(super) fn ask(&self) {
        for child in self.children_for(|inner| inner.asked = true) {
            child.ask();
        }
    }

    /// The children, copied under the lock, after `change`.
    fn children_for(&self, change: impl FnOnce(&mut Inner<E>)) -> Vec<TaskRef> {
        let mut inner = self.inner.lock();
        change(&mut inner);
        inner
            .children
            .iter()
            .map(|(_, child)| {
                // SAFETY: what is in the list is alive while we hold the lock (module head).
                let child = unsafe { TaskRef::borrow(child.0) };
                TaskRef::clone(&child)
            })
            .collect()
    }

    /// Makes `waker` the one that a failure, or the end of the last child, wakes. Look afterwards, not before.
    #[inline]
    pub(super) fn register(&self, waker: &std::task::Waker) {
        self.owner.register(waker);
    }

    /// The owner waits no more: what still has the group must not keep the owner's task.
    pub(super) fn unregister(&self) {
        self.owner.clear();
    }

    /// The owner waits for the children.
    pub(super) fn watch(&self) {
        // AcqRel: a child that left before is seen by the look at the count that follows.
        self.word.fetch_or(WATCHED, AcqRel);
    }

    /// Ends the group if no child is left.
    pub(super) fn try_end(&self) -> bool {
        // Acquire, also below: with `leave`, so that all that the children did is seen.
        let mut word = self.word.load(Acquire);
        while word < ONE {
            match self
                .word
                .compare_exchange_weak(word, word | CLOSED | ENDED, AcqRel, Acquire)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// The failures of a group that has ended. Later ones are nobody's.
    pub(super) fn take_failures(&self) -> Vec<Failure<E>> {
        let mut inner = self.inner.lock();
        inner.abandoned = true;
        mem::take(&mut inner.failures)
    }
}

/// Drops failures that nobody will see. Panics among them are reported, as those of tasks without a handle.
pub(super) fn forget<E>(failures: Vec<Failure<E>>) {
    if failures.is_empty() {
        return;
    }
    if let Some(shared) = context::current() {
        for report in failures.iter().filter_map(Failure::report) {
            panics::unhandled(&shared, report);
        }
    }
    drop(failures);
}

impl<E> fmt::Debug for Core<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup")
            .field("children", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
