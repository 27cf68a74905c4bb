//! What a runtime tells about the program that it runs: one type for all kinds of reports.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use rt_sync::wait::{Wait, WaitKind};

use crate::task::{Header, Id, PanicReport};

/// Something that a runtime noticed and that somebody should know of.
///
/// Reports go to standard error, the [`Display`](fmt::Display) form behind `rt: `; or to the hook of
/// [`Builder::on_report`](crate::runtime::Builder::on_report), if there is one; or, with the crate's feature `tracing`, to the
/// `tracing` subscriber of the thread that reports, if it has one, whatever that does with them. They hold names, numbers,
/// times and places in the code, and the messages of panics; never a payload, an output or what a future has captured.
///
/// The text is for people and may change; [`kind`](Self::kind) and the other methods are for programs.
///
/// # Examples
/// ```
/// use rt::runtime::{Builder, ReportKind};
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Builder::new_multi_thread()
///     .debug(true)
///     .on_report(|report| {
///         if report.kind() == ReportKind::SlowPoll {
///             eprintln!("somebody blocks: {report}");
///         }
///     })
///     .build()?;
/// # drop(runtime);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Report {
    pub(crate) kind: ReportKind,
    pub(crate) runtime: Arc<str>,
    pub(crate) task: Option<ReportedTask>,
    pub(crate) site: Option<&'static Location<'static>>,
    pub(crate) duration: Option<Duration>,
    pub(crate) text: String,
    pub(crate) stack: Vec<String>,
    pub(crate) tasks: Vec<ReportedTask>,
    pub(crate) missed: u64,
}

/// What a [`Report`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReportKind {
    /// A poll has taken longer than [`slow_poll_threshold`](crate::runtime::Builder::slow_poll_threshold), and still does: a task
    /// blocks its thread, or computes without giving way.
    SlowPoll,
    /// A poll that was reported as slow is over.
    SlowPollEnded,
    /// A task panicked and nobody retrieves the error.
    UnretrievedPanic,
    /// A destructor, a waker or a callback panicked where nobody can hear of it.
    DestructorPanic,
    /// A task of [`spawn_result`](crate::task::spawn_result) failed and nobody retrieves the error.
    UnretrievedError,
    /// A socket or a timer of one runtime is waited for by a task of another.
    OtherRuntime,
    /// Nothing can wake the future of `block_on`.
    Deadlock,
    /// A lock, or permits, were granted to a future that is not polled.
    UnpolledGrant,
    /// Every thread of the blocking pool waits inside `block_on`, and closures wait for a thread.
    BlockingPoolStuck,
    /// A selector failed.
    SelectorFailed,
    /// The kernel no longer does what switches between tasks rely on (`membarrier`); they cost more from now on. Told once
    /// in a process, by the runtime that noticed.
    FenceRefused,
    /// `accept` waits for descriptors or memory.
    AcceptBackOff,
    /// The runtime closed and left a thread behind.
    LeftBehind,
    /// So many reports of one kind and place came that some were left out, and then no more came:
    /// [`missed`](Report::missed) says how many they were. In debug mode this is told some seconds later, and otherwise at the
    /// end of the runtime.
    Omitted,
}

/// A task, or the future of a `block_on`, in a [`Report`].
#[derive(Debug, Clone)]
pub struct ReportedTask {
    pub(crate) id: Option<Id>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) site: &'static Location<'static>,
    pub(crate) wait: Option<(WaitKind, &'static Location<'static>)>,
}

impl Report {
    pub(crate) fn new(kind: ReportKind, runtime: &Arc<str>, text: impl Into<String>) -> Self {
        Self {
            kind,
            runtime: Arc::clone(runtime),
            task: None,
            site: None,
            duration: None,
            text: text.into(),
            stack: Vec::new(),
            tasks: Vec::new(),
            missed: 0,
        }
    }

    /// What the report is about.
    #[must_use]
    pub fn kind(&self) -> ReportKind {
        self.kind
    }

    /// The name of the runtime.
    #[must_use]
    pub fn runtime(&self) -> &str {
        &self.runtime
    }

    /// The task that the report is about, if it is about one.
    #[must_use]
    pub fn task(&self) -> Option<&ReportedTask> {
        self.task.as_ref()
    }

    /// The place in the code to look at first, if there is one: where the task was spawned, or the object made.
    #[must_use]
    pub fn site(&self) -> Option<&'static Location<'static>> {
        self.site
    }

    /// How long it has taken so far.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// The stack of the blocked thread, the innermost function first, without those of the runtime.
    #[must_use]
    pub fn stack(&self) -> &[String] {
        &self.stack
    }

    /// The tasks that wait, in a report of a deadlock.
    #[must_use]
    pub fn waiting(&self) -> &[ReportedTask] {
        &self.tasks
    }

    /// How many reports of the same kind and place were left out before this one, since there were too many of them. Those
    /// that are told by [`ReportKind::Omitted`] are told by no other report.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "runtime '{}': ", self.runtime)?;
        if let Some(task) = &self.task {
            write!(f, "{task} ")?;
        }
        f.write_str(&self.text)?;
        if self.missed > 0 && self.kind != ReportKind::Omitted {
            write!(f, " (and {} more like this before)", self.missed)?;
        }
        if let Some((kind, site)) = self.task.as_ref().and_then(|task| task.wait) {
            write!(f, "\n  it waited last in {kind:?} at {site}")?;
        }
        for (number, frame) in self.stack.iter().enumerate() {
            write!(f, "\n  {number:>3}: {frame}")?;
        }
        for task in &self.tasks {
            write!(f, "\n  {task}")?;
            if let Some((kind, site)) = task.wait {
                write!(f, " waits in {kind:?} at {site}")?;
            }
        }
        Ok(())
    }
}

impl ReportedTask {
    pub(crate) fn of(task: &Header) -> Self {
        Self {
            id: Some(task.id),
            name: task.name().cloned(),
            site: task.site,
            wait: known(task.wait.load()),
        }
    }

    pub(crate) fn of_panic(report: &PanicReport) -> Self {
        Self {
            id: Some(report.id),
            name: report.name.clone(),
            site: report.site,
            wait: None,
        }
    }

    /// The future of a `block_on` at `site`.
    pub(crate) fn root(site: &'static Location<'static>, wait: Wait) -> Self {
        Self {
            id: None,
            name: None,
            site,
            wait: known(wait),
        }
    }

    /// The number of the task; `None` for the future of a `block_on`.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        self.id
    }

    /// The task's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where the task was spawned, or `block_on` called.
    #[must_use]
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.site
    }

    /// What it waits for, or waited for last: known of futures of this crate.
    #[must_use]
    pub fn waits_for(&self) -> Option<(WaitKind, &'static Location<'static>)> {
        self.wait
    }
}

fn known(wait: Wait) -> Option<(WaitKind, &'static Location<'static>)> {
    wait.site.map(|site| (wait.kind, site))
}

impl fmt::Display for ReportedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "task {id}")?,
            None => return write!(f, "the future of block_on at {}", self.site),
        }
        if let Some(name) = &self.name {
            write!(f, " '{name}'")?;
        }
        write!(f, " spawned at {}", self.site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a report may have, in the order in which it is told.
    #[test]
    fn a_report_is_told_line_by_line() {
        let site = Location::caller();
        let task = |name: Option<&str>, wait| ReportedTask {
            id: Some(Id::next()),
            name: name.map(Arc::from),
            site,
            wait,
        };
        let (first, second) = (
            task(Some("bee"), Some((WaitKind::Lock, site))),
            task(None, None),
        );
        let (third, ids) = (
            task(Some("wasp"), Some((WaitKind::Join, site))),
            [first.id, second.id].map(|id| id.expect("given above")),
        );
        let wasp = third.id.expect("given above");
        let mut report = Report {
            task: Some(first),
            stack: vec!["honey::make".to_owned(), "main".to_owned()],
            tasks: vec![second, third],
            missed: 7,
            ..Report::new(ReportKind::SlowPoll, &"hive".into(), "is busy")
        };
        let expected = format!(
            "runtime 'hive': task {} 'bee' spawned at {site} is busy (and 7 more like this before)\n  it waited last in Lock at \
             {site}\n    0: honey::make\n    1: main\n  task {} spawned at {site}\n  task {wasp} 'wasp' spawned at {site} waits in \
             Join at {site}",
            ids[0], ids[1]
        );
        assert_eq!(report.to_string(), expected);
        report.task = Some(ReportedTask {
            id: None,
            name: None,
            site,
            wait: None,
        });
        (report.stack, report.tasks, report.missed) = (Vec::new(), Vec::new(), 0);
        let expected = format!("runtime 'hive': the future of block_on at {site} is busy");
        assert_eq!(report.to_string(), expected);
        report.task = None;
        assert_eq!(report.to_string(), "runtime 'hive': is busy");
    }
}
