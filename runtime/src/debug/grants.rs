//! Locks and permits that were granted to futures which nobody polls: see `rt_sync::grants`.
//!
//! A grant wakes the task that polled the future last. If that task has not been polled since, it only waits for its turn,
//! and is left alone; if it was polled, and waits again, and the future was not polled, then it waits for something else, and
//! who wants the lock waits for nothing.

use std::time::Duration;

use rt_sync::grants::{Overdue, overdue};
use rt_sync::wait::WaitKind;

use super::report::{Report, ReportKind, ReportedTask};
use crate::scheduler::Shared;
use crate::task::Activity;

/// How long a future may leave what it was granted.
const AFTER: Duration = Duration::from_secs(1);

/// After this long a grant to a future of nobody we know is told as well: it may belong to a foreign executor.
const STRANGER: Duration = Duration::from_secs(2);

pub(super) fn look(shared: &Shared) {
    for grant in overdue(AFTER) {
        let owner = owner(shared, grant.task);
        let tell = match &owner {
            Owner::Waits(_) => true,
            Owner::Busy => false,
            Owner::Unknown => grant.age >= STRANGER,
        };
        if tell && grant.tell() {
            report(shared, &grant, owner);
        }
    }
}

enum Owner {
    /// A task, or root future, of this runtime, which was polled and waits for something else.
    Waits(ReportedTask),
    /// One that is going to be polled, or is at it.
    Busy,
    Unknown,
}

/// Whose waker has this data pointer.
fn owner(shared: &Shared, waker: usize) -> Owner {
    let mut found = Owner::Unknown;
    for (_, task) in shared.live_tasks() {
        if std::ptr::from_ref(task.header()).addr() == waker {
            found = match task.header().activity() {
                Activity::Waiting => Owner::Waits(ReportedTask::of(task.header())),
                _ => Owner::Busy,
            };
        }
    }
    for seat in shared.seats.snapshot().iter() {
        if std::sync::Arc::as_ptr(&seat.root).addr() == waker {
            found = match seat.note.root() {
                Some(site) if seat.wakeup.park.is_parked() && !seat.root.is_set() => {
                    Owner::Waits(ReportedTask::root(site, seat.note.root_wait.load()))
                }
                _ => Owner::Busy,
            };
        }
    }
    found
}

fn report(shared: &Shared, grant: &Overdue, owner: Owner) {
    let what = match grant.kind {
        WaitKind::Semaphore => "permits were",
        _ => "a lock was",
    };
    let (site, age) = (grant.site, grant.age);
    let (text, task) = match owner {
        Owner::Waits(task) => {
            let place = match task.wait {
                Some((kind, at)) => format!("waits in {kind:?} at {at} instead"),
                None => "waits for something else".to_owned(),
            };
            (
                format!(
                    "{place}: {what} granted {age:.1?} ago to its future made at {site}, which it has kept and does not poll; \
                     whoever wants the same waits meanwhile: poll that future, or drop it"
                ),
                Some(task),
            )
        }
        _ => (
            format!(
                "{what} granted {age:.1?} ago to a future made at {site} that nobody polls; whoever wants the same waits \
                 meanwhile: poll that future, or drop it"
            ),
            None,
        ),
    };
    let sink = &shared.debug.sink;
    sink.report(Report {
        site: Some(site),
        task,
        duration: Some(age),
        ..Report::new(ReportKind::UnpolledGrant, &sink.runtime, text)
    });
}
