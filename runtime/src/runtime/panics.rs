//! What happens to panics that nobody retrieves: asyncio's "exception was never retrieved".
//!
//! A task that panicked is reported once: when it ends, if it has no handle any more; when its handle is dropped without
//! having been awaited; after [`GRACE`], if the handle is kept but not awaited; or at shutdown. Whoever gets the error
//! from the handle within that time has it to himself. Reports name the task, where it was spawned and the message of
//! the panic; never a payload.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::debug::ReportKind;
use crate::scheduler::Shared;
use crate::scheduler::shutdown;
use crate::task::{Meta, PanicReport};
use crate::unpoisoned::lock;

/// How long a handle may be kept before the panic of its task is reported all the same.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// What a runtime does about a task that panicked and whose handle nobody awaits.
///
/// See [`Builder::unhandled_panic`](super::Builder::unhandled_panic).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UnhandledPanic {
    /// Nothing.
    Ignore,
    /// [Reports](super::Builder::on_report) it: task, spawn site, message.
    #[default]
    Report,
    /// Reports it and shuts the runtime down: `block_on` ends with an error.
    ShutdownRuntime,
}

/// A task of this runtime ended in a panic; or its handle went away with the error inside.
#[cold]
pub(crate) fn task_panicked(shared: &Arc<Shared>, report: &Arc<PanicReport>, handle_alive: bool) {
    if !handle_alive {
        unhandled(shared, report);
        return;
    }
    if shared.config.unhandled_panic == UnhandledPanic::Ignore {
        return;
    }
    // Somebody may still await the handle.
    shared.unretrieved.add(report);
    if shared.is_closed() {
        return;
    }
    let (waiting, runtime) = (Arc::downgrade(report), Arc::downgrade(shared));
    drop(shared.spawn(
        async move {
            crate::time::sleep(GRACE).await;
            grace_is_over(&waiting, &runtime);
        },
        Meta::here(),
    ));
}

fn grace_is_over(report: &Weak<PanicReport>, shared: &Weak<Shared>) {
    if let (Some(report), Some(shared)) = (report.upgrade(), shared.upgrade()) {
        unhandled(&shared, &report);
    }
}

/// Nobody retrieved the error of a task, and nobody is going to.
pub(crate) fn unhandled(shared: &Arc<Shared>, report: &Arc<PanicReport>) {
    if !report.settle() {
        return;
    }
    match shared.config.unhandled_panic {
        UnhandledPanic::Ignore => {}
        UnhandledPanic::Report => write(
            shared,
            ReportKind::UnretrievedPanic,
            report,
            "nobody retrieved the error",
        ),
        UnhandledPanic::ShutdownRuntime => {
            write(
                shared,
                ReportKind::UnretrievedPanic,
                report,
                "nobody retrieved the error; the runtime shuts down",
            );
            shutdown::shut_down_elsewhere(shared, shared.config.shutdown_grace);
        }
    }
}

/// A destructor, a waker or a callback of `on_done` panicked where its owner cannot hear of it.
#[cold]
pub(crate) fn destructor_panicked(shared: &Arc<Shared>, report: &Arc<PanicReport>) {
    if shared.config.unhandled_panic != UnhandledPanic::Ignore {
        write(
            shared,
            ReportKind::DestructorPanic,
            report,
            "in a destructor, a waker or a callback, which cannot fail",
        );
    }
}

fn write(shared: &Shared, kind: ReportKind, report: &PanicReport, why: &str) {
    shared.debug.panicked(kind, report, why);
}

/// Panics whose handles are kept: looked through at shutdown.
#[derive(Default)]
pub(crate) struct Unretrieved(std::sync::Mutex<Vec<Weak<PanicReport>>>);

impl Unretrieved {
    fn add(&self, report: &Arc<PanicReport>) {
        let mut list = lock(&self.0);
        // The error holds the report; once it is gone somebody has dealt with it.
        list.retain(|report| report.strong_count() > 0);
        list.push(Arc::downgrade(report));
    }

    /// At shutdown.
    pub(crate) fn report_all(&self, shared: &Arc<Shared>) {
        let list = std::mem::take(&mut *lock(&self.0));
        for report in list.iter().filter_map(Weak::upgrade) {
            unhandled(shared, &report);
        }
    }
}
