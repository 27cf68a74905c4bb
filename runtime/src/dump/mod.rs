//! [`dump()`]: every task of a runtime, what it waits for, and what the workers do.
//!
//! # What it costs
//! The lists of live tasks are copied, in portions, so that no spawn waits long for their locks; nothing is polled, no task is
//! held up, and no worker is asked: a dump is made on the calling thread, also while every worker is blocked. A task pays for it with a few plain stores
//! when it is spawned and when it begins to wait. It is a picture for diagnosis, in which tasks may be a moment apart.

mod display;

use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::runtime::{Handle, WorkerMetrics, metrics};
use crate::scheduler::Shared;
use crate::task::{Activity, Id, TaskInfo, WaitKind};

/// A runtime at one moment: see [`dump()`]. [`Display`](std::fmt::Display) prints it for people, a line or two a task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dump {
    /// The name of the runtime.
    pub runtime: Arc<str>,
    /// The number of the runtime.
    pub runtime_id: u64,
    /// How many of `workers` are workers; the others are guests, threads in `block_on`.
    pub num_workers: usize,
    /// The seats.
    pub workers: Vec<WorkerMetrics>,
    /// Every task that is alive, the oldest numbers first. Tasks of a [`LocalSet`](crate::task::LocalSet), the closures of
    /// the blocking pool and the root futures of `block_on` are not among them.
    pub tasks: Vec<TaskDump>,
}

/// A task in a [`Dump`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskDump {
    /// Its number.
    pub id: Id,
    /// Its name.
    pub name: Option<Arc<str>>,
    /// What it does.
    pub activity: Activity,
    /// Where it was spawned.
    pub spawned_at: &'static Location<'static>,
    /// Which task spawned it, if a task did; it may be over.
    pub spawned_by: Option<Id>,
    /// What it waits for, and where the future that waits was made in its code. For a task that runs or is ready, what it
    /// waited for last.
    pub waits_for: Option<(WaitKind, &'static Location<'static>)>,
    /// For how long it has been waiting, to some 20 ms; only if it does.
    pub waits_since: Option<Duration>,
    /// For how long the present poll has lasted, to some ms; only if it runs, and in debug mode.
    pub runs_since: Option<Duration>,
    /// Which task awaits its handle.
    pub awaited_by: Option<Id>,
    /// The number of its task group.
    pub group: Option<u32>,
    /// How often it was polled.
    pub polls: u32,
    /// How long its polls took together, and the longest of them: in debug mode, or while a trace is taken.
    pub poll_time: Option<(Duration, Duration)>,
    /// On which seat it was spawned.
    pub seat: usize,
}

/// What the runtime of this thread does: every task with its state and what it waits for, and every worker.
///
/// It polls nothing and answers also while every worker is blocked. From a thread that is in no runtime, use
/// [`Handle::dump`].
///
/// # Panics
/// Outside a runtime.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> std::io::Result<()> {
/// let task = rt::task::Builder::new().name("patient").spawn(std::future::pending::<()>())?;
/// let dump = rt::dump();
/// assert_eq!(dump.tasks[0].name.as_deref(), Some("patient"));
/// println!("{dump}");
/// # task.abort();
/// # Ok(())
/// # }
/// ```
#[must_use]
#[track_caller]
pub fn dump() -> Dump {
    Handle::current().dump()
}

impl Dump {
    pub(crate) fn of(shared: &Shared) -> Self {
        let seats = shared.seats.snapshot();
        let tasks = shared.live_tasks().into_iter();
        let infos: Vec<_> = tasks
            .map(|(seat, task)| (seat, TaskInfo::new(task)))
            .filter(|(_, task)| task.activity() != Activity::Over)
            .collect();
        let now = Instant::now();
        let mut tasks: Vec<_> = infos
            .iter()
            .map(|(seat, info)| TaskDump::of(shared, info, *seat, now))
            .collect();
        let halves: HashMap<u32, (Id, Activity)> = infos
            .iter()
            .map(|(_, info)| (info.id().get() as u32, (info.id(), info.activity())))
            .collect();
        let running: HashMap<Id, Duration> = seats
            .iter()
            .filter_map(|seat| seat.note.running(shared, now))
            .collect();
        for (task, (_, info)) in tasks.iter_mut().zip(&infos) {
            if task.activity == Activity::Running {
                task.runs_since = running.get(&task.id).copied();
            }
            // One that has given the wait up, or been polled since, is not shown to wait.
            task.awaited_by = halves
                .get(&info.joiner())
                .filter(|(_, activity)| *activity == Activity::Waiting)
                .map(|(id, _)| *id);
        }
        tasks.sort_by_key(|task| task.id);
        Self {
            runtime: shared.name.clone(),
            runtime_id: shared.id,
            num_workers: shared.workers,
            workers: metrics::RuntimeMetrics::of(shared).workers,
            tasks,
        }
    }
}

impl TaskDump {
    fn of(shared: &Shared, info: &TaskInfo, seat: usize, now: Instant) -> Self {
        let activity = info.activity();
        Self {
            id: info.id(),
            name: info.name_arc(),
            activity,
            spawned_at: info.spawned_at(),
            spawned_by: info.spawned_by(),
            waits_for: info.waits_for(),
            waits_since: (activity == Activity::Waiting).then(|| shared.waited(info.since(), now)),
            runs_since: None,
            awaited_by: None,
            group: info.group(),
            polls: info.polls(),
            poll_time: info.poll_time(),
            seat,
        }
    }
}
