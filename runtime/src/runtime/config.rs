//! What a builder has collected, in the form that the scheduler reads.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rt_sync::wake_batch::discard;

use super::UnhandledPanic;
use crate::debug::{self, ReportHook};

/// A hook on a thread's life.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;
/// Calls a hook, if there is one. A panic in it goes to the panic hook and no further: it costs the runtime no thread, and
/// no caller of `block_on` hears of it.
#[inline]
pub(crate) fn call(hook: Option<&Hook>) {
    if let Some(hook) = hook
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| hook()))
    {
        discard(payload);
    }
}

/// Names threads.
pub(crate) type ThreadName = Arc<dyn Fn() -> String + Send + Sync>;

/// Most polls between two looks at the selector; tokio's number.
pub(crate) const EVENT_INTERVAL: u32 = 61;
/// Polls between two looks at the injector; tokio's and Go's number, a prime so that it falls in step with nothing.
pub(crate) const GLOBAL_QUEUE_INTERVAL: u32 = 61;
/// How long shutdown waits for what does not end at once.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// See the setters of [`Builder`](super::Builder).
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) event_interval: u32,
    pub(crate) global_queue_interval: u32,
    pub(crate) thread_name: Option<ThreadName>,
    pub(crate) thread_stack_size: Option<usize>,
    pub(crate) on_thread_start: Option<Hook>,
    pub(crate) on_thread_stop: Option<Hook>,
    pub(crate) on_thread_park: Option<Hook>,
    pub(crate) on_thread_unpark: Option<Hook>,
    pub(crate) shutdown_grace: Duration,
    /// Whether workers are watched.
    pub(crate) monitor: bool,
    /// `None`: as many as workers.
    pub(crate) max_spare_threads: Option<usize>,
    pub(crate) unhandled_panic: UnhandledPanic,
    pub(crate) on_report: Option<ReportHook>,
    /// `None`: the environment decides, and how the crate was compiled.
    pub(crate) debug: Option<bool>,
    pub(crate) slow_poll_threshold: Duration,
}

impl Config {
    pub(crate) fn new() -> Self {
        Self {
            event_interval: EVENT_INTERVAL,
            global_queue_interval: GLOBAL_QUEUE_INTERVAL,
            thread_name: None,
            thread_stack_size: None,
            on_thread_start: None,
            on_thread_stop: None,
            on_thread_park: None,
            on_thread_unpark: None,
            shutdown_grace: SHUTDOWN_GRACE,
            monitor: true,
            max_spare_threads: None,
            unhandled_panic: UnhandledPanic::Report,
            on_report: None,
            debug: None,
            slow_poll_threshold: debug::SLOW_POLL,
        }
    }

    /// The most spare workers of a runtime with so many workers.
    pub(crate) fn most_spares(&self, workers: usize) -> usize {
        self.max_spare_threads.unwrap_or(workers)
    }

    /// The name of the next thread: the user's, or one that tells what the thread does.
    pub(crate) fn thread_name(&self, kind: &str) -> String {
        match &self.thread_name {
            Some(name) => name(),
            None => format!("rt-{kind}"),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("event_interval", &self.event_interval)
            .field("global_queue_interval", &self.global_queue_interval)
            .field("thread_stack_size", &self.thread_stack_size)
            .field("shutdown_grace", &self.shutdown_grace)
            .field("unhandled_panic", &self.unhandled_panic)
            .finish_non_exhaustive()
    }
}
