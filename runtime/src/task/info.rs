//! `all_tasks`: a look at the tasks that are alive, for people and for tools.
//!
//! # What it costs
//! The live lists are copied one after the other, each in portions, so that nobody waits long for its lock; nothing is
//! polled and no task is held up. What a task does is read with relaxed loads: a picture for diagnosis, in which tasks may be
//! a moment apart.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use rt_sync::primitive::atomic::Ordering::Relaxed;
use rt_sync::wait::WaitKind;

use super::id::current_task;
use super::raw::TaskRef;
use super::{AbortHandle, Id, local};
use crate::runtime::Handle;

/// What a task does at the moment at which it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activity {
    /// It is being polled.
    Running,
    /// It was woken, or has just been spawned, and waits for its turn.
    Ready,
    /// It waits for something: see [`TaskInfo::waits_for`].
    Waiting,
    /// It is over.
    Over,
}

/// What is known of a task: see [`all_tasks`] and [`current`].
///
/// Keeping it keeps the memory of the task, though not its future once that has ended.
#[derive(Clone)]
pub struct TaskInfo {
    task: TaskRef,
    /// Coarse: see `Shared::waited`.
    since: u32,
    activity: Activity,
    kind: WaitKind,
    wait_site: Option<&'static Location<'static>>,
}

impl TaskInfo {
    pub(crate) fn new(task: TaskRef) -> Self {
        let header = task.header();
        let (activity, wait) = (header.activity(), header.wait.load());
        Self {
            activity,
            since: header.wait.since(),
            kind: wait.kind,
            wait_site: wait.site,
            task,
        }
    }

    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.task.header().id
    }

    /// The task's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.task.header().name().map(|name| &**name)
    }

    /// Where the task was spawned.
    #[must_use]
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.task.header().site
    }

    /// What the task did when this was made.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// What the task waited for when this was made, and where the future that waits was made in its code.
    ///
    /// Known of futures of this crate. A task that is not [`Waiting`](Activity::Waiting) gives what it waited for last.
    #[must_use]
    pub fn waits_for(&self) -> Option<(WaitKind, &'static Location<'static>)> {
        self.wait_site.map(|site| (self.kind, site))
    }

    /// How often the task has been polled, as of now. Wraps.
    #[must_use]
    pub fn polls(&self) -> u32 {
        self.task.header().steps.polls()
    }

    /// The task that spawned this one; `None` if it was spawned from outside of tasks.
    #[must_use]
    pub fn spawned_by(&self) -> Option<Id> {
        self.task.header().parent
    }

    /// The number of its [`TaskGroup`](super::TaskGroup), unique among the groups of the process.
    #[must_use]
    pub fn group(&self) -> Option<u32> {
        Some(self.task.header().group.load(Relaxed)).filter(|group| *group != 0)
    }

    /// How long the polls of this task took together, and the longest of them. Known in
    /// [debug mode](crate::runtime::Builder::debug) only.
    #[must_use]
    pub fn poll_time(&self) -> Option<(Duration, Duration)> {
        self.task.header().poll_time()
    }

    /// Since when it waits, in coarse time.
    pub(crate) fn since(&self) -> u32 {
        self.since
    }

    /// The lower half of the number of the task that awaited its handle last.
    pub(crate) fn joiner(&self) -> u32 {
        self.task.header().joiner.load(Relaxed)
    }

    pub(crate) fn name_arc(&self) -> Option<Arc<str>> {
        self.task.header().name().cloned()
    }

    /// A handle that can cancel the task.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::new(self.task.clone())
    }
}

impl fmt::Display for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id())?;
        if let Some(name) = self.name() {
            write!(f, " '{name}'")?;
        }
        write!(f, " spawned at {}", self.spawned_at())?;
        match (self.activity, self.waits_for()) {
            (Activity::Waiting, Some((kind, site))) => write!(f, " waits in {kind:?} at {site}"),
            (Activity::Waiting, None) => f.write_str(" waits"),
            (Activity::Running, _) => f.write_str(" runs"),
            (Activity::Ready, _) => f.write_str(" is ready to run"),
            (Activity::Over, _) => f.write_str(" is over"),
        }
    }
}

impl fmt::Debug for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskInfo")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("spawned_at", &format_args!("{}", self.spawned_at()))
            .field("activity", &self.activity)
            .field("waits_for", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Every task of the current runtime that is alive, in no particular order: asyncio's `all_tasks`.
///
/// Tasks of the [`LocalSet`](super::LocalSet) that runs on this thread are among them, those of other sets are not; nor
/// are the closures of the blocking pool, or the root future of `block_on`, which is no task. A task that ends
/// meanwhile may be there or not.
///
/// # Panics
/// Outside a runtime.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> std::io::Result<()> {
/// let task = rt::task::Builder::new().name("patient").spawn(std::future::pending::<()>())?;
/// let tasks = rt::task::all_tasks();
/// assert_eq!(tasks.len(), 1);
/// assert_eq!(tasks[0].name(), Some("patient"));
/// println!("{}", tasks[0]);
/// # task.abort();
/// # Ok(())
/// # }
/// ```
#[must_use]
#[track_caller]
pub fn all_tasks() -> Vec<TaskInfo> {
    let handle = Handle::current();
    let tasks = handle.shared.live_tasks().into_iter().map(|(_, task)| task);
    tasks
        .chain(local::live_here())
        .map(TaskInfo::new)
        .filter(|task| task.activity != Activity::Over)
        .collect()
}

/// The task that runs on this thread: asyncio's `current_task`.
///
/// # Panics
/// Outside a task; [`try_current`] gives `None` there.
#[must_use]
#[track_caller]
pub fn current() -> TaskInfo {
    match try_current() {
        Some(task) => task,
        None => panic!(
            "rt::task::current() called outside a task (the root future of `block_on` is none); use \
             rt::task::try_current() where that may happen"
        ),
    }
}

/// The task that runs on this thread, if there is one.
#[must_use]
pub fn try_current() -> Option<TaskInfo> {
    current_task().map(TaskInfo::new)
}
