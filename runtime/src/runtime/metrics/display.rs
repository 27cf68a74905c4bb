//! The table for people.

use std::fmt;
use std::time::Duration;

use super::{Histogram, PoolMetrics, RuntimeMetrics, WorkerMetrics};

/// A time in three figures or so.
pub(crate) struct Short(pub(crate) Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let text = match ns {
            0 => "0".to_owned(),
            1..1_000 => format!("{ns} ns"),
            1_000..1_000_000 => figure(ns as f64 / 1e3, "µs"),
            1_000_000..1_000_000_000 => figure(ns as f64 / 1e6, "ms"),
            _ => match self.0.as_secs() {
                0..120 => figure(self.0.as_secs_f64(), "s"),
                seconds @ 120..7200 => format!("{} min", seconds / 60),
                seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
                seconds => format!("{} d", seconds / 86_400),
            },
        };
        f.pad(&text)
    }
}

fn figure(value: f64, unit: &str) -> String {
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$} {unit}")
}

/// A column: its head, its width, and what stands in it.
type Column = (&'static str, usize, fn(&WorkerMetrics) -> String);

const COUNTS: &[Column] = &[
    ("turns", 10, |worker| worker.turns.to_string()),
    ("polls", 11, |worker| worker.polls.to_string()),
    ("next slot", 10, |worker| worker.next_slot_hits.to_string()),
    ("steals", 8, |worker| worker.steals.to_string()),
    ("parks", 9, |worker| worker.parks.to_string()),
    ("unparks", 9, |worker| worker.unparks.to_string()),
    ("selects", 9, |worker| worker.selects.to_string()),
    ("events", 9, |worker| worker.events.to_string()),
    ("fired", 8, |worker| worker.timers.to_string()),
];

const STATES: &[Column] = &[
    ("select", 8, |worker| percent(worker, worker.time.select)),
    ("dispatch", 9, |worker| {
        percent(worker, worker.time.dispatch)
    }),
    ("tasks", 8, |worker| percent(worker, worker.time.tasks)),
    ("stealing", 9, |worker| {
        percent(worker, worker.time.stealing)
    }),
    ("parked", 8, |worker| percent(worker, worker.time.parked)),
    ("queue", 7, |worker| worker.queue_depth.to_string()),
    ("ready for", 10, |worker| {
        Short(worker.oldest_ready_age).to_string()
    }),
    ("unselected", 11, |worker| {
        Short(worker.selector_age).to_string()
    }),
    ("poll", 8, |worker| Short(worker.mean_poll).to_string()),
    ("tasks", 7, |worker| worker.live_tasks.to_string()),
    ("sockets", 8, |worker| worker.registrations.to_string()),
    ("timers", 7, |worker| worker.pending_timers.to_string()),
];

fn percent(worker: &WorkerMetrics, part: Duration) -> String {
    format!("{:.1} %", worker.time.percent(part))
}

impl fmt::Display for RuntimeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "runtime '{}': {} workers, up {}, {} tasks, {} sockets, {} timers",
            self.name,
            self.num_workers,
            Short(self.uptime),
            self.live_tasks,
            self.registrations,
            self.pending_timers
        )?;
        self.table(f, COUNTS)?;
        self.table(f, STATES)?;
        writeln!(
            f,
            "injector: {} tasks now, {} in all; {} threads woken",
            self.injector_depth, self.remote_schedules, self.unparks
        )?;
        writeln!(
            f,
            "stuck workers: {} helps, {} hand-offs, {} spare threads now; selector unattended for at most {}, ready tasks for {}",
            self.helps,
            self.hand_offs,
            self.spare_threads,
            Short(self.selector_age_max),
            Short(self.ready_age_max)
        )?;
        line(f, "timers late by", &self.timer_lateness)?;
        line(f, "polls take (sampled)", &self.poll_times)?;
        pool(f, "blocking pool", &self.blocking)?;
        pool(f, "compute pool", &self.compute)?;
        writeln!(
            f,
            "pool threads: {} polls of the tasks that had awaited their closures",
            self.follow_ups
        )
    }
}

impl RuntimeMetrics {
    fn table(&self, f: &mut fmt::Formatter<'_>, columns: &[Column]) -> fmt::Result {
        write!(f, "{:<9}", "")?;
        for (head, width, _) in columns {
            write!(f, "{head:>width$}")?;
        }
        writeln!(f)?;
        for (index, worker) in self.workers.iter().enumerate() {
            let name = match index.checked_sub(self.num_workers) {
                None => format!("worker {index}"),
                Some(guest) => format!("guest {guest}"),
            };
            write!(f, "{name:<9}")?;
            for (_, width, cell) in columns {
                write!(f, "{:>width$}", cell(worker))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, histogram: &Histogram) -> fmt::Result {
    let count = histogram.count();
    if count == 0 {
        return writeln!(f, "{name}: none yet");
    }
    write!(f, "{name}:")?;
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("most", 1.0)] {
        match histogram.quantile(share) {
            Some(time) => write!(f, " {name} {},", Short(time))?,
            None => write!(f, " {name} more than 8 s,")?,
        }
    }
    writeln!(f, " {count} in all")
}

fn pool(f: &mut fmt::Formatter<'_>, name: &str, pool: &PoolMetrics) -> fmt::Result {
    write!(
        f,
        "{name}: {} threads ({} idle, {} at most), {} closures wait",
        pool.threads, pool.idle_threads, pool.peak_threads, pool.queue_depth
    )?;
    if let Some(oldest) = pool.oldest_queued {
        write!(f, ", the oldest for {}", Short(oldest))?;
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (ns, text) in [
            (0, "0"),
            (999, "999 ns"),
            (1234, "1.23 µs"),
            (45_678_000, "45.7 ms"),
            (456_780_000, "457 ms"),
            (3_210_000_000, "3.21 s"),
            (600_000_000_000, "10 min"),
        ] {
            assert_eq!(Short(Duration::from_nanos(ns)).to_string(), text);
        }
    }
}
