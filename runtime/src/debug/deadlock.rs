//! Deadlocks of `block_on`: its future waits, and nothing is left that could wake it.
//!
//! # When it is certain
//! All of this holds, and has held for [`AFTER`], with no turn of any seat in between:
//! 1. Every seat is asleep or free, and nothing is queued anywhere.
//! 2. No timer runs and no socket is registered.
//! 3. No closure runs or waits in the blocking and compute pools, and those of `block_in_place` and `bridge` are themselves
//!    inside `block_on`.
//! 4. The process has no thread that is not one of these. So nobody is left who could call a waker, spawn a task or drop the
//!    other end of a channel.
//!
//! Who holds a waker does not tell: it may lie in a channel whose other end is anywhere. The threads do, though a program
//! with any thread of its own is never told of a deadlock; neither is one on a system without `/proc`.
//!
//! A root future that waits for something that this crate does not know of, as `std::future::pending`, may mean to wait for
//! ever, and is left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::report::{Report, ReportKind, ReportedTask};
use super::reporter;
use crate::context::{self, Phase};
use crate::scheduler::Shared;
use crate::task::Activity;

/// How long nothing must have happened.
const AFTER: Duration = Duration::from_secs(1);

/// Tasks that are listed.
const MOST: usize = 30;

/// What the watcher remembers.
#[derive(Default)]
pub(super) struct Look {
    /// The turns of all seats, and since when they are the same.
    still: Option<(Vec<u64>, Instant)>,
    told: bool,
}

impl Look {
    pub(super) fn look(&mut self, shared: &Shared, now: Instant) {
        let seats = shared.seats.snapshot();
        let turns = || seats.iter().map(|seat| seat.turns()).collect::<Vec<_>>();
        let quiet = is_quiet(shared).then(turns);
        match (&self.still, quiet) {
            (_, None) => *self = Self::default(),
            (Some((before, since)), Some(turns)) if *before == turns => {
                if !self.told && now.duration_since(*since) >= AFTER && is_alone(shared) {
                    self.told = true;
                    report(shared);
                }
            }
            (_, Some(turns)) => {
                self.told = false;
                self.still = Some((turns, now));
            }
        }
    }
}

/// How many threads that are none of the runtime's are in `block_on`.
#[derive(Clone, Default)]
pub(crate) struct Outsiders(Arc<AtomicUsize>);

/// See [`Outsiders::enter`].
pub(crate) struct Outsider(Outsiders);

impl Outsiders {
    /// This thread enters `block_on`. `None` if it is counted already: as one of the runtime's, or as it is in another
    /// `block_on`, below which it blocks in place.
    #[cold]
    pub(super) fn enter(&self) -> Option<Outsider> {
        let counted = context::with(|cx| cx.is_some_and(|cx| cx.phase.get() != Phase::Entered));
        if counted {
            return None;
        }
        self.0.fetch_add(1, Relaxed);
        Some(Outsider(self.clone()))
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Points 1 to 3.
fn is_quiet(shared: &Shared) -> bool {
    let pools = [shared.blocking.metrics(), shared.compute.metrics()];
    shared.injector.is_empty()
        && shared.debug.in_place.all_inside()
        && pools
            .iter()
            .all(|pool| pool.queue_depth == 0 && pool.threads == pool.idle_threads)
        && shared.seats.snapshot().iter().all(|seat| {
            (seat.wakeup.park.is_parked() || seat.is_free())
                && !seat.has_sources()
                && seat.next.is_empty()
                && seat.stealer.is_empty()
                && seat.inbox.is_empty()
                && !seat.root.is_set()
        })
}

/// Point 4.
fn is_alone(shared: &Shared) -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return false;
    };
    // The watcher is this one.
    let known = 1
        + shared.threads.count()
        + shared.blocking.metrics().threads
        + shared.compute.metrics().threads
        + shared.debug.outsiders.0.load(Relaxed);
    #[cfg(all(unix, feature = "inspect"))]
    let known = known + crate::inspect::threads();
    threads.count() <= known && !reporter::is_running()
}

fn report(shared: &Shared) {
    let mut tasks: Vec<_> = shared
        .live_tasks()
        .iter()
        .map(|(_, task)| task.header())
        .filter(|task| task.activity() == Activity::Waiting)
        .map(ReportedTask::of)
        .collect();
    let others = match tasks.len() {
        0 => String::new(),
        1 => "; one task waits".to_owned(),
        number => format!("; {number} tasks wait"),
    };
    tasks.truncate(MOST);
    let sink = &shared.debug.sink;
    for seat in shared.seats.snapshot().iter() {
        let Some(site) = seat.note.root() else {
            continue;
        };
        let root = ReportedTask::root(site, seat.note.root_wait.load());
        let Some((kind, at)) = root.wait else {
            continue;
        };
        let text = format!(
            "waits in {kind:?} at {at}, and nothing can wake it: no timer runs, no socket is registered, no closure runs, and \
             the process has no other thread{others}"
        );
        sink.report(Report {
            site: Some(site),
            task: Some(ReportedTask { wait: None, ..root }),
            tasks: tasks.clone(),
            ..Report::new(ReportKind::Deadlock, &sink.runtime, text)
        });
    }
}
