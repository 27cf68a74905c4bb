//! Feature `metrics`: the counters of a runtime for Prometheus, by way of the crate `prometheus-client`.
//!
//! Each metric has the label `runtime`, and those of one worker the label `worker` ("0", "1", ..., and "guest" for all guest
//! seats together, whose number is not bounded by anything that is known beforehand).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use prometheus_client::collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::{Histogram, PoolMetrics, RuntimeMetrics, WorkerMetrics};
use crate::runtime::Handle;
use crate::scheduler::Shared;

/// Adds the counters of a runtime to a registry of `prometheus-client`.
///
/// It does not keep the runtime: when that is over, nothing more is told of it.
///
/// # Examples
/// ```
/// use prometheus_client::{encoding::text, registry::Registry};
/// use rt::runtime::{Handle, prometheus::Collector};
///
/// # #[rt::main]
/// # async fn main() -> Result<(), std::fmt::Error> {
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(Collector::new(&Handle::current())));
///
/// let mut page = String::new();
/// text::encode(&mut page, &registry)?;
/// assert!(page.contains("rt_live_tasks"));
/// # Ok(())
/// # }
/// ```
pub struct Collector(Weak<Shared>);

impl Collector {
    /// For the runtime of this handle.
    #[must_use]
    pub fn new(handle: &Handle) -> Self {
        Self(Arc::downgrade(&handle.shared))
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl collector::Collector for Collector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match self.0.upgrade() {
            Some(shared) => encode(&RuntimeMetrics::of(&shared), encoder),
            None => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Snapshot(RuntimeMetrics);

impl collector::Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode(&self.0, encoder)
    }
}

impl RuntimeMetrics {
    /// The text format of Prometheus, or rather of OpenMetrics, which Prometheus reads: a page to be scraped, for programs
    /// without a registry. Others use [`Collector`](super::super::prometheus::Collector).
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Snapshot(self.clone())));
        let mut page = String::new();
        // A string takes everything.
        let _ = prometheus_client::encoding::text::encode(&mut page, &registry);
        page
    }
}

/// A counter of a worker, or a gauge.
type Count = (&'static str, &'static str, fn(&WorkerMetrics) -> u64);

/// A part of a worker's time.
type Part = (&'static str, fn(&WorkerMetrics) -> Duration);

/// A gauge of a pool.
type PoolCount = (&'static str, &'static str, fn(&PoolMetrics) -> u64);

/// Of which there are none.
type Exemplars = HashMap<usize, Exemplar<[(&'static str, &'static str); 0], f64>>;

const COUNTERS: &[Count] = &[
    ("rt_worker_turns", "Turns of the loop", |worker| {
        worker.turns
    }),
    ("rt_worker_polls", "Tasks polled", |worker| worker.polls),
    (
        "rt_worker_next_slot_hits",
        "Polls that came from the next slot",
        |worker| worker.next_slot_hits,
    ),
    ("rt_worker_steals", "Searches that found a task", |worker| {
        worker.steals
    }),
    ("rt_worker_parks", "Sleeps", |worker| worker.parks),
    (
        "rt_worker_unparks",
        "Times woken out of a sleep",
        |worker| worker.unparks,
    ),
    ("rt_worker_selects", "Looks at the selector", |worker| {
        worker.selects
    }),
    ("rt_worker_events", "Events of sockets", |worker| {
        worker.events
    }),
    ("rt_worker_timers_fired", "Timers fired", |worker| {
        worker.timers
    }),
];

const GAUGES: &[Count] = &[
    ("rt_worker_queue_depth", "Tasks in the queue", |worker| {
        worker.queue_depth as u64
    }),
    ("rt_worker_registrations", "Sockets registered", |worker| {
        worker.registrations as u64
    }),
    ("rt_worker_timers", "Timers set", |worker| {
        worker.pending_timers as u64
    }),
];

fn encode(metrics: &RuntimeMetrics, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let runtime = [("runtime", &*metrics.name)];
    for (name, help, count) in COUNTERS {
        let counter = ConstCounter::new(0_u64);
        let mut family = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
        for (worker, value) in each_worker(metrics, count) {
            let labels = [("runtime", &*metrics.name), ("worker", &*worker)];
            ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
        }
    }
    for (name, help, count) in GAUGES {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (worker, value) in each_worker(metrics, count) {
            let labels = [("runtime", &*metrics.name), ("worker", &*worker)];
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
    }
    time(metrics, &mut encoder)?;
    let counters = [
        (
            "rt_remote_schedules",
            "Tasks that went through the injector",
            metrics.remote_schedules,
        ),
        (
            "rt_unparks",
            "System calls made to wake a thread",
            metrics.unparks,
        ),
        (
            "rt_helps",
            "Times that somebody looked after a seat that was stuck",
            metrics.helps,
        ),
        ("rt_hand_offs", "Spare workers called", metrics.hand_offs),
        (
            "rt_follow_ups",
            "Tasks polled by the thread that ran the closure which they had awaited",
            metrics.follow_ups,
        ),
    ];
    for (name, help, value) in counters {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(family.encode_family(&runtime)?)?;
    }
    let seconds = |time: Duration| time.as_secs_f64();
    let gauges = [
        (
            "rt_live_tasks",
            "Tasks that are not over",
            metrics.live_tasks as f64,
        ),
        (
            "rt_injector_depth",
            "Tasks in the injector",
            metrics.injector_depth as f64,
        ),
        (
            "rt_spare_threads",
            "Spare workers at work",
            metrics.spare_threads as f64,
        ),
        (
            "rt_uptime_seconds",
            "How old the runtime is",
            seconds(metrics.uptime),
        ),
        (
            "rt_selector_age_max_seconds",
            "The longest time that a selector was unattended",
            seconds(metrics.selector_age_max),
        ),
        (
            "rt_ready_age_max_seconds",
            "The longest time that ready tasks waited for a stuck worker",
            seconds(metrics.ready_age_max),
        ),
    ];
    for (name, help, value) in gauges {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(family.encode_family(&runtime)?)?;
    }
    pools(metrics, &mut encoder)?;
    for (name, help, histogram) in [
        (
            "rt_timer_lateness_seconds",
            "How late timers fired",
            &metrics.timer_lateness,
        ),
        (
            "rt_poll_time_seconds",
            "How long polls take, sampled",
            &metrics.poll_times,
        ),
    ] {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let mut encoder = family.encode_family(&runtime)?;
        let none: Option<&Exemplars> = None;
        encoder.encode_histogram(
            histogram.total().as_secs_f64(),
            histogram.count(),
            &buckets(histogram),
            none,
        )?;
    }
    Ok(())
}

/// A number for each worker, and one for all guests.
fn each_worker<T: std::iter::Sum>(
    metrics: &RuntimeMetrics,
    count: impl Fn(&WorkerMetrics) -> T,
) -> Vec<(String, T)> {
    let (workers, guests) = metrics
        .workers
        .split_at(metrics.num_workers.min(metrics.workers.len()));
    let mut all: Vec<_> = workers
        .iter()
        .enumerate()
        .map(|(index, worker)| (index.to_string(), count(worker)))
        .collect();
    all.push(("guest".to_owned(), guests.iter().map(count).sum()));
    all
}

fn time(metrics: &RuntimeMetrics, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "rt_worker_time_seconds",
        "Where the time of a worker went",
        None,
        MetricType::Counter,
    )?;
    let parts: [Part; 5] = [
        ("select", |worker| worker.time.select),
        ("dispatch", |worker| worker.time.dispatch),
        ("tasks", |worker| worker.time.tasks),
        ("stealing", |worker| worker.time.stealing),
        ("parked", |worker| worker.time.parked),
    ];
    for (part, of) in parts {
        for (worker, value) in each_worker(metrics, of) {
            let labels = [
                ("runtime", &*metrics.name),
                ("worker", &*worker),
                ("in", part),
            ];
            ConstCounter::new(value.as_secs_f64()).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn pools(metrics: &RuntimeMetrics, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let gauges: [PoolCount; 3] = [
        ("rt_pool_threads", "Threads for closures", |pool| {
            pool.threads as u64
        }),
        (
            "rt_pool_idle_threads",
            "Threads for closures with nothing to do",
            |pool| pool.idle_threads as u64,
        ),
        (
            "rt_pool_queue_depth",
            "Closures that wait for a thread",
            |pool| pool.queue_depth as u64,
        ),
    ];
    for (name, help, count) in gauges {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (kind, pool) in [
            ("blocking", &metrics.blocking),
            ("compute", &metrics.compute),
        ] {
            let labels = [("runtime", &*metrics.name), ("pool", kind)];
            ConstGauge::new(count(pool)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// By their ends in seconds; the last has none. The encoder adds them up.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    histogram
        .buckets()
        .map(|(bound, count)| {
            (
                bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64()),
                count,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::runtime::Builder;

    #[test]
    fn a_page_names_every_worker_and_adds_the_buckets_up() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .name("scraped")
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            for _ in 0..3 {
                crate::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let page = runtime.metrics().to_prometheus();
        for line in [
            "# TYPE rt_worker_polls counter",
            "rt_live_tasks{runtime=\"scraped\"} 0.0",
            "rt_timer_lateness_seconds_count{runtime=\"scraped\"} 3",
            "rt_timer_lateness_seconds_bucket{le=\"+Inf\",runtime=\"scraped\"} 3",
            "rt_pool_threads{runtime=\"scraped\",pool=\"blocking\"} 0",
            "# EOF",
        ] {
            assert!(
                page.lines().any(|found| found == line),
                "no '{line}' in\n{page}"
            );
        }
        for worker in ["0", "1", "guest"] {
            for metric in ["rt_worker_polls_total", "rt_worker_queue_depth"] {
                let start = format!("{metric}{{runtime=\"scraped\",worker=\"{worker}\"}} ");
                assert!(page.contains(&start), "no '{start}' in\n{page}");
            }
            let start = format!("worker=\"{worker}\",in=\"parked\"}} ");
            assert!(page.contains(&start), "no '{start}' in\n{page}");
        }
        drop(runtime);
    }
}
