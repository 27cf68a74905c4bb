//! Where reports go: a hook, `tracing`, or standard error. And how many: a few for each kind and place.
//!
//! # Bounds
//! [`BURST`] reports of one kind and place in each [`WINDOW`]; what comes beyond that is counted, and the next report
//! tells how many they were. If there is none, a report of its own does, when the window is over and the watcher is there, or
//! else at the end of the runtime ([`Sink::tell_omitted`]). Counts are kept for [`SITES`] places; the oldest make room, those
//! first that have nothing to tell.
//!
//! # User code
//! The hook runs with no lock held, on the thread on which the thing was noticed or on one that is there for reports.
//! A panic in it goes to the panic hook and no further.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rt_io::tell::to_stderr;
use rt_sync::wake_batch::discard;

use super::report::{Report, ReportKind};

use crate::unpoisoned::lock;

/// Reports of one kind and place in a [`WINDOW`]: enough to see that it is no single case.
const BURST: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// Kinds and places that are counted at the same time.
const SITES: usize = 256;

/// A hook for reports.
pub(crate) type ReportHook = Arc<dyn Fn(&Report) + Send + Sync>;

/// See the module head.
pub(crate) struct Sink {
    pub(super) runtime: Arc<str>,
    hook: Option<ReportHook>,
    sites: Mutex<HashMap<(ReportKind, usize), Site>>,
}

struct Site {
    place: Option<&'static Location<'static>>,
    since: Instant,
    reported: u32,
    missed: u64,
}

/// The right to report once.
#[derive(Debug)]
pub(crate) struct Admitted {
    missed: u64,
}

impl Sink {
    pub(super) fn new(runtime: Arc<str>, hook: Option<ReportHook>) -> Self {
        Self {
            runtime,
            hook,
            sites: Mutex::default(),
        }
    }

    /// Asks for the right to report; `None` if there were too many of this kind and place.
    pub(crate) fn admit(
        &self,
        kind: ReportKind,
        site: Option<&'static Location<'static>>,
    ) -> Option<Admitted> {
        let now = Instant::now();
        let key = (kind, site.map_or(0, |site| ptr::from_ref(site).addr()));
        let mut sites = lock(&self.sites);
        if sites.len() >= SITES && !sites.contains_key(&key) {
            let oldest = sites
                .iter()
                .min_by_key(|(_, site)| (site.missed > 0, site.since));
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                sites.remove(&oldest);
            }
        }
        let site = sites.entry(key).or_insert(Site {
            place: site,
            since: now,
            reported: 0,
            missed: 0,
        });
        let (most, window) = limit(kind);
        if now.duration_since(site.since) >= window {
            site.since = now;
            site.reported = 0;
        }
        if site.reported >= most {
            site.missed += 1;
            return None;
        }
        site.reported += 1;
        Some(Admitted {
            missed: mem::take(&mut site.missed),
        })
    }

    /// Reports, unless there were too many of this kind and place.
    pub(crate) fn report(&self, report: Report) {
        if let Some(admitted) = self.admit(report.kind, report.site) {
            self.deliver(admitted, report);
        }
    }

    /// Tells how many reports were left out in windows that are over at `now`, or in all, where no further report has told it.
    /// What is said once for good is not counted.
    pub(super) fn tell_omitted(&self, now: Option<Instant>) {
        let omitted: Vec<_> = lock(&self.sites)
            .iter_mut()
            .filter(|((kind, _), site)| {
                let (_, window) = limit(*kind);
                let over = now.is_none_or(|now| now.duration_since(site.since) >= window);
                site.missed > 0 && window != Duration::MAX && over
            })
            .map(|((kind, _), site)| (*kind, site.place, mem::take(&mut site.missed)))
            .collect();
        for (kind, site, missed) in omitted {
            let place = site.map_or_else(String::new, |site| format!(" about {site}"));
            let text = format!("{missed} more reports of {kind:?}{place} came and were left out");
            let report = Report {
                site,
                ..Report::new(ReportKind::Omitted, &self.runtime, text)
            };
            self.deliver(Admitted { missed }, report);
        }
    }

    /// Reports what was [admitted](Self::admit).
    pub(crate) fn deliver(&self, admitted: Admitted, mut report: Report) {
        report.missed = admitted.missed;
        let tell = || match &self.hook {
            Some(hook) => hook(&report),
            None => tell(&report),
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(tell)) {
            discard(payload);
        }
    }
}

/// How many reports of one place in which time.
fn limit(kind: ReportKind) -> (u32, Duration) {
    match kind {
        // Nothing changes from one time to the next.
        ReportKind::OtherRuntime => (1, Duration::MAX),
        _ => (BURST, WINDOW),
    }
}

/// Tells what no runtime can be asked about: it concerns the process, or happened where there is no runtime. So there is no
/// hook, and there are no limits: for what happens once.
#[cfg(feature = "tracing")]
pub(crate) fn tell_without_runtime(text: &dyn fmt::Display) {
    if nobody_listens() {
        to_stderr(text);
    }
    // Also if nobody does: with its own feature `log`, `tracing` hands the event to that crate then.
    tracing::warn!(target: "rt", "{text}");
}

/// Whether this thread has no subscriber, so that an event would be lost. One that takes no interest is one that was asked.
#[cfg(feature = "tracing")]
fn nobody_listens() -> bool {
    use tracing::subscriber::NoSubscriber;
    tracing::dispatcher::get_default(|dispatch| dispatch.is::<NoSubscriber>())
}

/// As above.
#[cfg(not(feature = "tracing"))]
pub(crate) fn tell_without_runtime(text: &dyn fmt::Display) {
    to_stderr(text);
}

#[cfg(feature = "tracing")]
fn tell(report: &Report) {
    if nobody_listens() {
        to_stderr(report);
    }
    tracing::warn!(
        target: "rt",
        kind = ?report.kind,
        runtime = %report.runtime,
        "{report}"
    );
}

#[cfg(not(feature = "tracing"))]
fn tell(report: &Report) {
    to_stderr(report);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_place_is_reported_a_few_times_and_the_rest_counted() {
        let told = Arc::new(AtomicU64::new(0));
        let hook = told.clone();
        let sink = Sink::new(
            "test".into(),
            Some(Arc::new(move |_: &Report| {
                hook.fetch_add(1, Relaxed);
            })),
        );
        let report = || Report::new(ReportKind::SlowPoll, &"test".into(), "text");
        for _ in 0..1000 {
            sink.report(report());
        }
        assert_eq!(told.load(Relaxed), u64::from(BURST));
        let counted = sink.sites.lock().unwrap()[&(ReportKind::SlowPoll, 0)].missed;
        assert_eq!(counted, 1000 - u64::from(BURST));
        // Another place is another matter.
        sink.report(Report {
            site: Some(Location::caller()),
            ..report()
        });
        assert_eq!(told.load(Relaxed), u64::from(BURST) + 1);
    }

    #[test]
    fn what_was_left_out_is_told_when_the_window_is_over_or_at_the_end() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hook = told.clone();
        let sink = Sink::new(
            "test".into(),
            Some(Arc::new(move |report: &Report| {
                lock(&hook).push(report.clone());
            })),
        );
        let place = Location::caller();
        let flood = |kind| {
            for _ in 0..1000 {
                sink.report(Report {
                    site: Some(place),
                    ..Report::new(kind, &"test".into(), "text")
                });
            }
            mem::take(&mut *lock(&told)).len()
        };
        assert_eq!(flood(ReportKind::SlowPoll), BURST as usize);
        let now = Instant::now();
        sink.tell_omitted(Some(now));
        assert!(lock(&told).is_empty(), "the window is not over");
        sink.tell_omitted(Some(now + WINDOW));
        // Once.
        sink.tell_omitted(Some(now + WINDOW));
        sink.tell_omitted(None);
        let [report] = &*mem::take(&mut *lock(&told)) else {
            panic!("one report");
        };
        assert_eq!(report.kind(), ReportKind::Omitted);
        assert_eq!((report.missed(), report.site()), (990, Some(place)));
        let expected = format!(
            "runtime 'test': 990 more reports of SlowPoll about {place} came and were left out"
        );
        assert_eq!(report.to_string(), expected);

        assert_eq!(flood(ReportKind::SlowPoll), 0, "the same window");
        // Said once for good: nobody is told how often it was not.
        assert_eq!(flood(ReportKind::OtherRuntime), 1);
        sink.tell_omitted(None);
        let [report] = &*mem::take(&mut *lock(&told)) else {
            panic!("one report");
        };
        assert_eq!(report.missed(), 1000);
    }

    #[test]
    fn the_places_that_are_counted_are_few() {
        let sink = Sink::new("test".into(), Some(Arc::new(|_: &Report| {})));
        let places: Vec<Location<'static>> = vec![*Location::caller(); 10_000];
        for place in places.leak() {
            assert!(sink.admit(ReportKind::OtherRuntime, Some(place)).is_some());
        }
        assert_eq!(sink.sites.lock().unwrap().len(), SITES);
    }

    #[test]
    fn a_hook_that_panics_hurts_nobody() {
        let sink = Sink::new(
            "test".into(),
            Some(Arc::new(|_: &Report| panic!("in the hook"))),
        );
        sink.report(Report::new(ReportKind::Deadlock, &"test".into(), "text"));
    }
}
