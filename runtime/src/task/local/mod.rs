//! `LocalSet`: tasks that need not be `Send`, polled by whoever polls the set, on its thread.
//!
//! # What it guarantees
//! The futures are polled and dropped on the thread that made the set, and nowhere else; handles, wakers and aborts work
//! from any thread. A poll of the set polls its root future and at most 61 tasks, then gives way. Dropping the set drops
//! every future.
//!
//! # Where to read on
//! `shared.rs`: the queues and the end of a set. `owner.rs`: the cell that keeps other threads out. `current.rs`: which set
//! `spawn_local` means.

mod current;
mod owner;
mod shared;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use self::current::{How, enter};
use self::shared::{Scheduler, Shared};
use super::group::{Entry, Member};
use super::raw::TaskRef;
use super::{JoinHandle, Meta};
use crate::runtime::Runtime;
use crate::scheduler::pinned::Pinned;

pub(crate) use self::current::HeldUp;
pub use self::current::LocalEnterGuard;

/// One count for all that happens on the owner's thread, so that entering a set costs no atomic.
#[derive(Debug)]
struct Set {
    shared: Arc<Shared>,
}

/// A set of tasks whose futures need not be [`Send`].
///
/// The tasks run while the set is polled: inside [`run_until`](Self::run_until), [`block_on`](Self::block_on), or when
/// the set itself is awaited, which ends when all of its tasks are over. One poll of the set polls at most 61 tasks, so
/// a set inside a task leaves the others their turn.
///
/// Dropping the set drops all futures in it, on this thread; their handles then give an error for which
/// [`JoinError::is_cancelled`](super::JoinError::is_cancelled) holds. A set that is leaked ([`std::mem::forget`]) leaks
/// its tasks.
///
/// # Examples
/// ```
/// use std::cell::Cell;
/// use std::rc::Rc;
/// use rt::task::{LocalSet, spawn_local};
///
/// # #[rt::main]
/// # async fn main() {
/// let set = LocalSet::new();
/// let count = Rc::new(Cell::new(0));
/// let to = count.clone();
/// set.run_until(async move {
///     spawn_local(async move { to.set(1) }).await.expect("no panic");
/// })
/// .await;
/// assert_eq!(count.get(), 1);
/// # }
/// ```
pub struct LocalSet {
    set: Rc<Set>,
    /// Whether the set, as a future, counts as one of its own drivers.
    drives: bool,
}

impl LocalSet {
    /// An empty set. Needs no runtime: any executor may poll it.
    #[must_use]
    pub fn new() -> Self {
        Self {
            set: Rc::new(Set {
                shared: Shared::new(),
            }),
            drives: false,
        }
    }

    /// Spawns a task on the set. It runs when the set is polled.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_meta(future, Meta::here())
    }

    pub(super) fn spawn_meta<F>(&self, future: F, meta: Meta) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.set.shared.spawn(future, meta)
    }

    /// Runs the tasks of the set until `future` is ready, which may call [`spawn_local`].
    ///
    /// Tasks that are left then wait until the set is polled again.
    ///
    /// # Cancel safety
    /// When it is dropped, `future` is dropped; the tasks stay in the set.
    pub fn run_until<F: Future>(&self, future: F) -> RunUntil<'_, F> {
        RunUntil {
            driver: Driver {
                set: self,
                counted: false,
            },
            future,
        }
    }

    /// Runs the tasks of the set on this thread until `future` is ready: `run_until` as the root future of `runtime`.
    ///
    /// # Panics
    /// Where [`Runtime::block_on`] does.
    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }

    /// Makes [`spawn_local`] on this thread spawn on this set, until the guard is dropped.
    ///
    /// The tasks do not run before the set is polled.
    pub fn enter(&self) -> LocalEnterGuard {
        enter(&self.set, How::Entered)
    }
}

impl Default for LocalSet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet")
            .field("tasks", &self.set.shared.live())
            .finish_non_exhaustive()
    }
}

/// Runs all tasks of the set to their ends.
impl Future for LocalSet {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.drives {
            self.drives = true;
            self.set.shared.enter_driver();
        }
        let _entered = enter(&self.set, How::Polled);
        let shared = &self.set.shared;
        shared.begin_poll(cx.waker());
        let more = shared.turn();
        if shared.live() == 0 {
            self.drives = false;
            self.set.shared.leave_driver();
            return Poll::Ready(());
        }
        shared.end_poll(cx.waker(), more);
        Poll::Pending
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        // Destructors that call `spawn_local` find the set, closed, and get a handle that says so.
        let _entered = enter(&self.set, How::Entered);
        self.set.shared.close();
    }
}

/// Counts a future among those that drive a set, from its first poll to its end.
#[derive(Debug)]
struct Driver<'a> {
    set: &'a LocalSet,
    counted: bool,
}

impl Driver<'_> {
    fn start(&mut self) {
        if !self.counted {
            self.counted = true;
            self.set.set.shared.enter_driver();
        }
    }

    fn stop(&mut self) {
        if self.counted {
            self.counted = false;
            self.set.set.shared.leave_driver();
        }
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

pin_project! {
    /// Future of [`LocalSet::run_until`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct RunUntil<'a, F> {
        driver: Driver<'a>,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.driver.start();
        let set = &this.driver.set.set;
        let _entered = enter(set, How::Polled);
        set.shared.begin_poll(cx.waker());
        if let Poll::Ready(output) = this.future.poll(cx) {
            this.driver.stop();
            return Poll::Ready(output);
        }
        let more = set.shared.turn();
        set.shared.end_poll(cx.waker(), more);
        Poll::Pending
    }
}

/// Spawns a task whose future need not be [`Send`] on the [`LocalSet`] that runs on this thread, or was
/// [entered](LocalSet::enter); inside a task of [`spawn_pinned`](crate::spawn_pinned), and there is no such set, on the
/// worker of that task.
///
/// A task of a worker does not end with the one that spawned it, and like that one never leaves the worker. It is
/// dropped at the end of the runtime, on the worker's thread.
///
/// # Panics
/// Anywhere else, also in a `block_on` below such a task, which keeps the thread that the new one would need: see the
/// message for what to do instead.
///
/// # Examples
/// On a worker of a runtime, without a set:
/// ```
/// # #[rt::main(worker_threads = 2)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::cell::Cell;
/// use std::rc::Rc;
///
/// let sum = rt::spawn_pinned(0, || async {
///     let sum = Rc::new(Cell::new(0));
///     let tasks: Vec<_> = (1..=3)
///         .map(|n| {
///             let sum = sum.clone();
///             rt::task::spawn_local(async move { sum.set(sum.get() + n) })
///         })
///         .collect();
///     for task in tasks {
///         task.await.expect("no panic");
///     }
///     sum.get()
/// })?;
/// assert_eq!(sum.await?, 6);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    spawn_local_meta(future, Meta::here())
}

/// Where [`spawn_local`] puts its task.
enum Place {
    Set(Rc<Set>),
    Worker(Pinned),
}

impl Place {
    #[track_caller]
    fn here() -> Self {
        if current::is_held_up() {
            held_up();
        }
        match (current::set(), Pinned::here()) {
            (Some(set), _) => Self::Set(set),
            (None, Some(worker)) => Self::Worker(worker),
            (None, None) => outside(),
        }
    }
}

#[track_caller]
pub(super) fn spawn_local_meta<F>(future: F, meta: Meta) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match Place::here() {
        Place::Set(set) => set.shared.spawn(future, meta),
        Place::Worker(worker) => {
            let scheduler = worker.clone();
            worker.spawn_local(future, scheduler, meta, |_, _| ())
        }
    }
}

/// As [`spawn_local`], into a group.
#[track_caller]
pub(super) fn spawn_local_member<F, E>(
    future: F,
    meta: Meta,
    entry: Entry<E>,
) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
    E: Send + 'static,
{
    match Place::here() {
        Place::Set(set) => {
            let member = entry.member(Scheduler(set.shared.clone()));
            set.shared.spawn_as(future, member, meta, Member::insert)
        }
        Place::Worker(worker) => {
            let member = entry.member(worker.clone());
            worker.spawn_local(future, member, meta, Member::insert)
        }
    }
}

/// The live tasks of the set that runs on this thread, if one does.
pub(super) fn live_here() -> Vec<TaskRef> {
    current::set().map_or_else(Vec::new, |set| set.shared.snapshot())
}

#[cold]
#[track_caller]
fn held_up() -> ! {
    panic!(
        "spawn_local called in a block_on below a task of a LocalSet: the set needs this thread, which block_on keeps, so that \
         whoever waits here for the new task would wait for ever. Run the set here as well, by `set.run_until(..)`, use a \
         set of its own, or spawn outside the block_on"
    )
}

#[cold]
#[track_caller]
fn outside() -> ! {
    panic!(
        "spawn_local called outside a LocalSet and outside a pinned task: a future that is not Send must stay on one \
         thread, and nothing keeps this one. Call it inside `LocalSet::run_until`, inside a task of the set, while \
         `LocalSet::enter` holds or inside a task of `rt::spawn_pinned`, or use `set.spawn_local(..)`; a future that is \
         Send goes to `rt::spawn`"
    )
}
