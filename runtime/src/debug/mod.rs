//! Debug mode: what a runtime notices about the program that it runs, and how it tells.
//!
//! # When
//! | check | always | with debug assertions | `RT_DEBUG=1`, `Builder::debug(true)` |
//! |---|---|---|---|
//! | panics that nobody retrieves, panics of destructors, failures of selectors and fences, what shutdown leaves behind | x | x | x |
//! | slow polls of the multi-thread flavour, while they last, with the stack (`polls.rs`) | | x | x |
//! | slow polls of the current-thread flavour | | at their end | while they last, with the stack |
//! | errors that nobody retrieves (`forgotten.rs`) | | x | x |
//! | objects of one runtime that wait in another (`other.rs`) | | x | x |
//! | deadlocks (`deadlock.rs`), grants that nobody takes (`grants.rs`), a blocking pool that waits for itself (`stuck_pool.rs`) | | | x |
//!
//! `Builder::debug(false)` and `RT_DEBUG=0` turn everything off that is not always on. What the builder says goes before
//! the variable.
//!
//! # How
//! All reports are [`Report`]s and go through the runtime's `Sink` (`sink.rs`): to the hook of
//! [`Builder::on_report`](crate::runtime::Builder::on_report), to `tracing`, or to standard error, a few for each kind and
//! place. Those with a stack are made by a thread of their own (`reporter.rs`).
//!
//! # What it costs
//! Off: one predictable branch a poll. On: a lock, two references to the task, two clock reads and some stores a
//! poll, and for each task that waits the box of its rare parts, which keeps how long its polls took. The full mode has a
//! thread for each runtime, which looks around some times a second (`watcher.rs`).

pub(crate) mod deadlock;
pub(crate) mod forgotten;
mod grants;
pub(crate) mod other;
pub(crate) mod polls;
mod report;
pub(crate) mod reporter;
mod sink;
mod stack;
pub(crate) mod stuck_pool;
mod watcher;

use std::env;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::runtime::config::Config;
use crate::scheduler::Shared;
use crate::task::PanicReport;

pub use self::report::{Report, ReportKind, ReportedTask};
pub(crate) use self::sink::{ReportHook, Sink, tell_without_runtime};

/// How long a poll may take without being reported; ten times what is good for others on the same worker, so that only
/// what is really wrong is told.
pub(crate) const SLOW_POLL: Duration = Duration::from_millis(100);

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Off,
    /// What costs little and needs no thread.
    Cheap,
    Full,
}

/// The part of a runtime that reports.
pub(crate) struct Debug {
    pub(crate) sink: Arc<Sink>,
    pub(crate) threshold: Duration,
    level: Level,
    /// Whether somebody looks at the notes of the polls.
    watched: bool,
    watcher: watcher::Bed,
    inside: stuck_pool::Inside,
    in_place: stuck_pool::InPlace,
    outsiders: deadlock::Outsiders,
}

impl Debug {
    pub(crate) fn new(config: &Config, name: &Arc<str>, workers: usize) -> Self {
        let level = level(config.debug, env::var_os("RT_DEBUG").as_deref());
        Self {
            sink: Arc::new(Sink::new(Arc::clone(name), config.on_report.clone())),
            threshold: config.slow_poll_threshold,
            level,
            watched: workers > 0 && config.monitor || level == Level::Full,
            watcher: watcher::Bed::default(),
            inside: stuck_pool::Inside::default(),
            in_place: stuck_pool::InPlace::default(),
            outsiders: deadlock::Outsiders::default(),
        }
    }

    /// Whether the loops note what they poll.
    #[inline]
    pub(crate) fn notes_polls(&self) -> bool {
        self.level >= Level::Cheap
    }

    /// How often somebody has to look at the notes, so that a poll is found slow soon after the threshold: it is at the
    /// second look after that at the latest.
    pub(crate) fn look_each(&self) -> Duration {
        if self.notes_polls() {
            (self.threshold / 8).max(Duration::from_millis(1))
        } else {
            Duration::MAX
        }
    }

    /// The count that a thread of the blocking pool takes part in.
    pub(crate) fn pool_thread(&self) -> Option<stuck_pool::Inside> {
        (self.level == Level::Full).then(|| self.inside.clone())
    }

    /// A closure runs in place on this thread, until the guard is dropped.
    pub(crate) fn in_place(&self) -> Option<stuck_pool::InPlaceGuard> {
        (self.level == Level::Full).then(|| self.in_place.begin())
    }

    /// This thread is in `block_on`, until the guard is dropped.
    #[inline]
    pub(crate) fn in_block_on(&self) -> Option<deadlock::Outsider> {
        if self.level == Level::Full {
            self.outsiders.enter()
        } else {
            None
        }
    }

    /// Whether somebody looks at these notes.
    fn is_watched(&self) -> bool {
        self.watched
    }
}

/// Reports of other parts of the runtime.
impl Debug {
    pub(crate) fn panicked(&self, kind: ReportKind, panic: &PanicReport, why: &str) {
        let message = match &panic.message {
            Some(message) => format!("panicked: {message} ({why})"),
            None => format!("panicked ({why})"),
        };
        self.sink.report(Report {
            site: Some(panic.site),
            task: Some(ReportedTask::of_panic(panic)),
            ..Report::new(kind, &self.sink.runtime, message)
        });
    }

    #[cold]
    pub(crate) fn selector_failed(&self, error: &std::io::Error) {
        let text = format!("a selector failed: {error}");
        self.sink.report(Report::new(
            ReportKind::SelectorFailed,
            &self.sink.runtime,
            text,
        ));
    }

    #[cold]
    pub(crate) fn fence_refused(&self, error: &std::io::Error) {
        let text = format!(
            "the kernel refuses `membarrier`, which it did at the start: {error}. From now on each switch between two tasks \
             pays for a fence, in all runtimes of this process; and a task that was woken last by one which blocks its worker \
             just now may have to wait until that is over. If a filter of system calls does it, let it pass `membarrier`, or install \
             it before the first runtime is built"
        );
        self.sink.report(Report::new(
            ReportKind::FenceRefused,
            &self.sink.runtime,
            text,
        ));
    }

    pub(crate) fn left_behind(&self, site: Option<&'static Location<'static>>, text: String) {
        self.sink.report(Report {
            site,
            ..Report::new(ReportKind::LeftBehind, &self.sink.runtime, text)
        });
    }
}

/// What the builder says goes before the environment, and that before how the crate was compiled.
fn level(builder: Option<bool>, environment: Option<&std::ffi::OsStr>) -> Level {
    let environment = environment.and_then(|value| match value.to_str()?.trim() {
        "" => None,
        "0" | "off" | "false" | "no" => Some(false),
        _ => Some(true),
    });
    match builder.or(environment) {
        Some(true) => Level::Full,
        Some(false) => Level::Off,
        None if cfg!(debug_assertions) => Level::Cheap,
        None => Level::Off,
    }
}

/// Starts what debug mode needs besides the runtime's own threads.
pub(crate) fn start(shared: &Arc<Shared>) {
    if shared.debug.notes_polls() {
        other::start(shared);
    }
    if shared.debug.level == Level::Full {
        watcher::start(shared);
    }
}

/// The runtime closes: the watcher goes, and what was noticed is told.
pub(crate) fn close(shared: &Shared, deadline: std::time::Instant) {
    shared.debug.watcher.close();
    if shared.debug.notes_polls() {
        reporter::flush(&shared.debug.sink, deadline);
    }
    shared.debug.sink.tell_omitted(None);
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_builder_goes_before_the_environment() {
        let with = |builder, value: Option<&str>| level(builder, value.map(OsStr::new));
        assert_eq!(with(Some(true), Some("0")), Level::Full);
        assert_eq!(with(Some(false), Some("1")), Level::Off);
        assert_eq!(with(None, Some("1")), Level::Full);
        assert_eq!(with(None, Some("0")), Level::Off);
        let compiled = if cfg!(debug_assertions) {
            Level::Cheap
        } else {
            Level::Off
        };
        assert_eq!(with(None, None), compiled);
        assert_eq!(with(None, Some("")), compiled);
    }
}
