//! Objects of one runtime that are waited for in another: it works, but each wake goes through the other one, and when that
//! ends they fail.
//!
//! Sockets and timers say so when they are about to wait, if any runtime of the process is in debug mode: one load and a
//! branch before each wait. Handles of tasks may be awaited anywhere; so may channels and locks, which belong to nobody.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use rt_io::context::Notice;
use rt_sync::wait::WaitSlot;

use super::report::{Report, ReportKind, ReportedTask};
use crate::context;
use crate::scheduler::Shared;
use crate::time::Timers;
use crate::unpoisoned::lock;

/// Whether any runtime of the process was in debug mode.
static CHECKED: AtomicBool = AtomicBool::new(false);

/// The runtimes in debug mode.
static RUNTIMES: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// A runtime in debug mode begins.
pub(super) fn start(shared: &Arc<Shared>) {
    let mut runtimes = lock(&RUNTIMES);
    runtimes.retain(|runtime| runtime.strong_count() > 0);
    runtimes.push(Arc::downgrade(shared));
    drop(runtimes);
    CHECKED.store(true, Relaxed);
    rt_io::context::check_runtimes();
}

/// Whether it is worth looking.
#[inline]
pub(crate) fn is_checked() -> bool {
    CHECKED.load(Relaxed)
}

/// What the I/O crate has to tell.
pub(crate) fn notice(notice: Notice<'_>) -> bool {
    let Some(shared) = context::current() else {
        return false;
    };
    match notice {
        Notice::AcceptBackOff(text) => {
            let sink = &shared.debug.sink;
            sink.report(Report::new(ReportKind::AcceptBackOff, &sink.runtime, text));
            true
        }
        Notice::OtherRuntime { owner, made, site } => {
            let at = if made == site {
                String::new()
            } else {
                format!(" at {site}")
            };
            let task = waiting();
            // Sites of sockets are often those of a trait between them and the user: the task says more.
            let place = task.as_ref().map_or(made, |task| task.site);
            let what = format!(
                "waits{at} for a socket of runtime '{owner}', which had to wait first at {made}"
            );
            tell(&shared, &what, owner, place, task);
            true
        }
        _ => false,
    }
}

/// A timer of `owner` waits on this thread.
#[cold]
pub(crate) fn check_timer(owner: &Timers, site: &'static Location<'static>) {
    let Some(shared) = context::current() else {
        return;
    };
    if shared.clock.same(owner.clock()) {
        return;
    }
    let runtimes: Vec<_> = {
        let runtimes = lock(&RUNTIMES);
        runtimes.iter().filter_map(Weak::upgrade).collect()
    };
    // The lock is free by now: one of these may be the last reference to its runtime.
    let name = runtimes
        .iter()
        .find(|runtime| runtime.clock.same(owner.clock()))
        .map_or_else(|| "another runtime".into(), |runtime| runtime.name.clone());
    drop(runtimes);
    let what = format!("waits for a timer of runtime '{name}', which was made at {site}");
    tell(&shared, &what, &name, site, waiting());
}

/// Who is polled on this thread: a task, or the future of a `block_on`.
fn waiting() -> Option<ReportedTask> {
    if let Some(task) = crate::task::current_report() {
        return Some(task);
    }
    let seat = context::with(|cx| Some(cx?.sitting.borrow().as_ref()?.seat.clone()))?;
    let root = seat.note.root()?;
    Some(ReportedTask::root(root, WaitSlot::new().load()))
}

fn tell(
    shared: &Shared,
    what: &str,
    owner: &str,
    place: &'static Location<'static>,
    task: Option<ReportedTask>,
) {
    if !shared.debug.notes_polls() {
        return;
    }
    let sink = &shared.debug.sink;
    let somebody = if task.is_none() { "somebody " } else { "" };
    let text = format!(
        "{somebody}{what}: each wake goes through '{owner}', and when that closes, the wait fails; make it where it is used"
    );
    sink.report(Report {
        site: Some(place),
        task,
        ..Report::new(ReportKind::OtherRuntime, &sink.runtime, text)
    });
}
