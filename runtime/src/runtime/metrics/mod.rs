//! What a runtime counts: a snapshot, always available.
//!
//! Counting costs a worker a few plain stores a turn; reading costs the reader a walk over the seats, and a lock of each
//! timer wheel for a moment. How the time of a worker is told apart: `scheduler/metrics.rs`.

mod display;
mod histogram;
#[cfg(feature = "metrics")]
pub(super) mod prometheus;
mod tokio_names;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::scheduler::Shared;
use crate::scheduler::metrics::Buckets;

pub(crate) use self::display::Short;
pub use self::histogram::Histogram;
pub use self::worker::{TimeShares, WorkerMetrics};

/// A snapshot of a runtime's counters. Reading it disturbs nobody; numbers of different threads are not from the same
/// instant.
///
/// [`Display`](std::fmt::Display) prints a table for people. The methods with names of tokio's `RuntimeMetrics` give what
/// tokio's give. With the feature `metrics` there is also the text format of Prometheus.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// rt::spawn(async {}).await.expect("no panic");
/// let metrics = rt::runtime::Handle::current().metrics();
/// println!("{metrics}");
/// let polls: u64 = metrics.workers.iter().map(|worker| worker.polls).sum();
/// assert!(polls >= 1);
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuntimeMetrics {
    /// The name of the runtime.
    pub name: Arc<str>,
    /// How old the runtime is.
    pub uptime: Duration,
    /// One entry a seat: the workers first, then the guest seats of threads that were in `block_on`.
    pub workers: Vec<WorkerMetrics>,
    /// How many of `workers` are workers.
    pub num_workers: usize,
    /// Tasks that are not over.
    pub live_tasks: usize,
    /// Sockets and other sources that are registered.
    pub registrations: usize,
    /// Timers that are set.
    pub pending_timers: usize,
    /// Tasks in the injector, the queue for tasks from outside.
    pub injector_depth: usize,
    /// Tasks that went through the injector.
    pub remote_schedules: u64,
    /// System calls made to wake a thread.
    pub unparks: u64,
    /// Times that a thread turned the selector or the timers of another seat, whose own thread was held up.
    pub helps: u64,
    /// Times that a spare worker was called, since every worker was stuck in a poll.
    pub hand_offs: u64,
    /// Tasks that a thread of a pool polled after the closure that they had awaited: see
    /// [`spawn_blocking`](crate::spawn_blocking). Not among the polls of the workers.
    pub follow_ups: u64,
    /// Spare workers at work now.
    pub spare_threads: usize,
    /// The longest time that a selector with sockets was seen unattended, to a tick of the monitor (1 to 8 ms). How late a
    /// blocked worker made the sockets that are registered with it.
    pub selector_age_max: Duration,
    /// The longest time that tasks were seen to wait in the queue of a worker that made no turn, to a tick of the monitor.
    pub ready_age_max: Duration,
    /// How late timers fired. A timer never fires early, and as a rule within the tick of about a millisecond after its
    /// deadline.
    pub timer_lateness: Histogram,
    /// How long polls take: of one poll in every 128th turn of each worker.
    pub poll_times: Histogram,
    /// The pool of `spawn_blocking`.
    pub blocking: PoolMetrics,
    /// The pool of `spawn_compute`.
    pub compute: PoolMetrics,
}

/// One pool of threads for closures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// Threads.
    pub threads: usize,
    /// Threads with nothing to do.
    pub idle_threads: usize,
    /// The most threads there have been.
    pub peak_threads: usize,
    /// Closures that wait for a thread.
    pub queue_depth: usize,
    /// How long the oldest of them has waited.
    pub oldest_queued: Option<Duration>,
}

impl PoolMetrics {
    fn of(pool: &crate::blocking::Pool) -> Self {
        let metrics = pool.metrics();
        Self {
            threads: metrics.threads,
            idle_threads: metrics.idle_threads,
            peak_threads: metrics.peak_threads,
            queue_depth: metrics.queue_depth,
            oldest_queued: metrics.oldest_queued,
        }
    }
}

impl RuntimeMetrics {
    pub(crate) fn of(shared: &Shared) -> Self {
        let seats = shared.seats.snapshot();
        let now = Instant::now();
        let (mut lateness, mut polls) = (Buckets::default(), Buckets::default());
        let workers: Vec<_> = seats
            .iter()
            .map(|seat| {
                lateness.merge(&seat.timers.lateness());
                polls.merge(&seat.counters.sampled.polls.get());
                WorkerMetrics::of(seat, now)
            })
            .collect();
        Self {
            name: shared.name.clone(),
            uptime: now.saturating_duration_since(shared.built),
            num_workers: shared.workers,
            live_tasks: workers.iter().map(|worker| worker.live_tasks).sum(),
            registrations: workers.iter().map(|worker| worker.registrations).sum(),
            pending_timers: workers.iter().map(|worker| worker.pending_timers).sum(),
            injector_depth: shared.injector.len(),
            remote_schedules: shared.remote_schedules.get(),
            unparks: shared.unparks.get(),
            helps: shared.helps.get(),
            hand_offs: shared.hand_offs.get(),
            follow_ups: shared.follow_ups.count.get(),
            spare_threads: shared.monitor.spares(),
            selector_age_max: shared.monitor.selector_age_max(),
            ready_age_max: shared.monitor.ready_age_max(),
            timer_lateness: Histogram::new(lateness),
            poll_times: Histogram::new(polls),
            blocking: PoolMetrics::of(&shared.blocking),
            compute: PoolMetrics::of(&shared.compute),
            workers,
        }
    }
}
