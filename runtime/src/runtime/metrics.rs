//! What a runtime counts: a snapshot, always available.

use std::time::Duration;

use crate::scheduler::Shared;

/// A snapshot of a runtime's counters. Reading it disturbs nobody; numbers of different threads are not from the same
/// instant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuntimeMetrics {
    /// One entry a seat: the workers first, then the guest seats of threads that were in `block_on`.
    pub workers: Vec<WorkerMetrics>,
    /// How many of `workers` are workers.
    pub num_workers: usize,
    /// Tasks that are not over.
    pub live_tasks: usize,
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
    /// Spare workers at work now.
    pub spare_threads: usize,
    /// The longest time that a selector with sockets was seen unattended, to a tick of the monitor (1 to 2 ms). How late a
    /// blocked worker made the sockets that are registered with it.
    pub selector_age_max: Duration,
    /// The longest time that tasks were seen to wait in the queue of a worker that made no turn, to a tick of the monitor.
    pub ready_age_max: Duration,
    /// The pool of `spawn_blocking`.
    pub blocking: PoolMetrics,
    /// The pool of `spawn_compute`.
    pub compute: PoolMetrics,
}

/// The counters of one seat.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Turns of the loop.
    pub turns: u64,
    /// Tasks polled.
    pub polls: u64,
    /// Polls that came from the next slot.
    pub next_slot_hits: u64,
    /// Searches that found work at others or in the injector.
    pub steals: u64,
    /// Sleeps.
    pub parks: u64,
    /// Looks at the selector.
    pub selects: u64,
    /// Events of sockets.
    pub events: u64,
    /// Timers fired.
    pub timers: u64,
    /// Tasks in its queue.
    pub queue_depth: usize,
    /// Sockets and other sources registered with its selector.
    pub registrations: usize,
}

/// One pool of threads for closures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// Threads.
    pub threads: usize,
    /// Threads with nothing to do.
    pub idle_threads: usize,
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
            queue_depth: metrics.queue_depth,
            oldest_queued: metrics.oldest_queued,
        }
    }
}

impl RuntimeMetrics {
    pub(super) fn of(shared: &Shared) -> Self {
        let seats = shared.seats.snapshot();
        Self {
            workers: seats
                .iter()
                .map(|seat| WorkerMetrics {
                    turns: seat.counters.turns.get(),
                    polls: seat.counters.polls.get(),
                    next_slot_hits: seat.counters.next_slot_hits.get(),
                    steals: seat.counters.steals.get(),
                    parks: seat.counters.parks.get(),
                    selects: seat.counters.selects.get(),
                    events: seat.counters.events.get(),
                    timers: seat.counters.timers.get(),
                    queue_depth: seat.stealer.len(),
                    registrations: seat.registrations(),
                })
                .collect(),
            num_workers: shared.workers,
            live_tasks: seats
                .iter()
                .map(|seat| seat.live.len() + seat.inbox.live.len())
                .sum(),
            injector_depth: shared.injector.len(),
            remote_schedules: shared.remote_schedules.get(),
            unparks: shared.unparks.get(),
            helps: shared.helps.get(),
            hand_offs: shared.hand_offs.get(),
            spare_threads: shared.monitor.spares(),
            selector_age_max: shared.monitor.selector_age_max(),
            ready_age_max: shared.monitor.ready_age_max(),
            blocking: PoolMetrics::of(&shared.blocking),
            compute: PoolMetrics::of(&shared.compute),
        }
    }
}
