//! What the tests of debug mode share: a watchdog, and a place where reports arrive.

use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Report, ReportKind};

#[path = "../watchdog/mod.rs"]
mod watchdog;

pub(crate) use self::watchdog::within_limit;

/// Reports of one runtime, as they come.
pub(crate) struct Reports(Receiver<Report>);

impl Reports {
    /// Those of what `builder` builds.
    pub(crate) fn of(builder: &mut Builder) -> Self {
        let (sender, receiver) = mpsc::channel();
        builder.on_report(move |report| {
            let _ = sender.send(report.clone());
        });
        Self(receiver)
    }

    /// The next of this kind; others are passed over.
    #[track_caller]
    pub(crate) fn next(&self, kind: ReportKind) -> Report {
        let until = Instant::now() + Duration::from_secs(40);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.0.recv_timeout(left) {
                Ok(report) if report.kind() == kind => return report,
                Ok(_) => {}
                Err(error) => panic!("no report of {kind:?}: {error}"),
            }
        }
    }

    /// All that have come and still come within `time`.
    pub(crate) fn rest(&self, time: Duration) -> Vec<Report> {
        let until = Instant::now() + time;
        let mut reports = Vec::new();
        while let Ok(report) = self
            .0
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            reports.push(report);
        }
        reports
    }
}
