//! What goes over the socket. Fields may be added within a version; readers ignore those that they do not know.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::dump::{Dump, TaskDump};
use crate::runtime::{RuntimeMetrics, WorkerMetrics};
use crate::scheduler::Shared;
use crate::task::Activity;

/// The number of the protocol.
pub const VERSION: u32 = 1;

/// What may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Everything.
    Dump,
    /// All but the tasks.
    Metrics,
}

impl Question {
    /// Reads the line of a client.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        if words.next() != Some("rt") {
            return Err("a question begins with 'rt'".to_owned());
        }
        match words.next().map(str::parse) {
            Some(Ok(VERSION)) => {}
            _ => {
                return Err(format!(
                    "this program speaks version {VERSION} of the protocol"
                ));
            }
        }
        match words.next() {
            Some("dump") => Ok(Self::Dump),
            Some("metrics") => Ok(Self::Metrics),
            other => Err(format!(
                "unknown question '{}': there are 'dump' and 'metrics'",
                other.unwrap_or_default()
            )),
        }
    }

    /// The line of a client.
    #[must_use]
    pub fn line(self) -> String {
        let word = match self {
            Self::Dump => "dump",
            Self::Metrics => "metrics",
        };
        format!("rt {VERSION} {word}\n")
    }
}

/// A process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// Its number.
    pub pid: u32,
    /// Its runtimes.
    pub runtimes: Vec<Runtime>,
}

/// A runtime. Times are in ns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Runtime {
    /// Unique in the process.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// How old it is.
    pub uptime: u64,
    /// How many of `workers` are workers; the others are guests.
    pub num_workers: usize,
    /// The seats.
    pub workers: Vec<Worker>,
    /// How many tasks live.
    pub live_tasks: usize,
    /// Tasks in the injector.
    pub injector_depth: usize,
    /// Spare workers called so far.
    pub hand_offs: u64,
    /// Spare workers at work.
    pub spare_threads: usize,
    /// Threads of the blocking pool: all, idle ones, and closures that wait.
    pub blocking: (usize, usize, usize),
    /// The same of the compute pool.
    pub compute: (usize, usize, usize),
    /// The metrics as the process itself prints them.
    pub metrics: String,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// A seat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Worker {
    /// Polls so far.
    pub polls: u64,
    /// Steals so far.
    pub steals: u64,
    /// Sleeps so far.
    pub parks: u64,
    /// Tasks in its queue.
    pub queue: usize,
    /// Sockets registered.
    pub registrations: usize,
    /// Timers set.
    pub timers: usize,
    /// Whether a thread sits there.
    pub occupied: bool,
    /// For how long it has been asleep.
    pub parked: Option<u64>,
    /// Time in select, dispatch, tasks, stealing, and asleep.
    pub time: [u64; 5],
}

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// Unique in the process.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// "running", "ready" or "waiting".
    pub state: String,
    /// What it waits for, or did last.
    pub waits_for: Option<String>,
    /// Where in the code.
    pub waits_at: Option<String>,
    /// For how long, or for how long it has been running.
    pub since: Option<u64>,
    /// Where it was spawned.
    pub spawned_at: String,
    /// By which task.
    pub spawned_by: Option<u64>,
    /// Which task awaits it.
    pub awaited_by: Option<u64>,
    /// Its group.
    pub group: Option<u32>,
    /// How often it was polled.
    pub polls: u32,
    /// How long all of its polls took, and the longest.
    pub poll_time: Option<(u64, u64)>,
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Answer {
    pub(super) fn new(question: Question, runtimes: &[Arc<Shared>]) -> Self {
        Self {
            pid: std::process::id(),
            runtimes: runtimes
                .iter()
                .filter(|shared| !shared.is_closed())
                .map(|shared| Runtime::new(question, shared))
                .collect(),
        }
    }
}

impl Runtime {
    fn new(question: Question, shared: &Shared) -> Self {
        let metrics = RuntimeMetrics::of(shared);
        let tasks = match question {
            Question::Dump => Dump::of(shared).tasks.iter().map(Task::new).collect(),
            Question::Metrics => Vec::new(),
        };
        let pool = |pool: &crate::runtime::PoolMetrics| {
            (pool.threads, pool.idle_threads, pool.queue_depth)
        };
        Self {
            id: shared.id,
            name: shared.name.to_string(),
            uptime: ns(Instant::now().saturating_duration_since(shared.built)),
            num_workers: metrics.num_workers,
            workers: metrics.workers.iter().map(Worker::new).collect(),
            live_tasks: metrics.live_tasks,
            injector_depth: metrics.injector_depth,
            hand_offs: metrics.hand_offs,
            spare_threads: metrics.spare_threads,
            blocking: pool(&metrics.blocking),
            compute: pool(&metrics.compute),
            metrics: metrics.to_string(),
            tasks,
        }
    }
}

impl Worker {
    fn new(worker: &WorkerMetrics) -> Self {
        let time = worker.time;
        Self {
            polls: worker.polls,
            steals: worker.steals,
            parks: worker.parks,
            queue: worker.queue_depth,
            registrations: worker.registrations,
            timers: worker.pending_timers,
            occupied: worker.occupied,
            parked: worker.parked.map(ns),
            time: [
                ns(time.select),
                ns(time.dispatch),
                ns(time.tasks),
                ns(time.stealing),
                ns(time.parked),
            ],
        }
    }
}

impl Task {
    fn new(task: &TaskDump) -> Self {
        Self {
            id: task.id.get(),
            name: task.name.as_deref().map(str::to_owned),
            state: match task.activity {
                Activity::Running => "running",
                Activity::Ready => "ready",
                Activity::Waiting => "waiting",
                Activity::Over => "over",
            }
            .to_owned(),
            waits_for: task.waits_for.map(|(kind, _)| format!("{kind:?}")),
            waits_at: task.waits_for.map(|(_, site)| site.to_string()),
            since: task.waits_since.or(task.runs_since).map(ns),
            spawned_at: task.spawned_at.to_string(),
            spawned_by: task.spawned_by.map(crate::task::Id::get),
            awaited_by: task.awaited_by.map(crate::task::Id::get),
            group: task.group,
            polls: task.polls,
            poll_time: task
                .poll_time
                .map(|(total, longest)| (ns(total), ns(longest))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_written_and_others_are_told_why() {
        for question in [Question::Dump, Question::Metrics] {
            assert_eq!(Question::parse(&question.line()), Ok(question));
        }
        for (line, why) in [
            ("", "a question begins with 'rt'"),
            ("GET / HTTP/1.1", "a question begins with 'rt'"),
            ("rt 2 dump", "this program speaks version 1 of the protocol"),
            (
                "rt 1 all",
                "unknown question 'all': there are 'dump' and 'metrics'",
            ),
        ] {
            assert_eq!(Question::parse(line), Err(why.to_owned()));
        }
    }
}
