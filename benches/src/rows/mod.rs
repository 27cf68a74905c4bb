//! The rows of the table: one file a group, its head says the question and what would mislead.

use std::future::Future;
use std::time::Instant;

use crate::child;
use crate::options::Options;
use crate::peer::{Peer, PeerId, on_worker};
use crate::report::{Metric, Report};
use crate::usage;

pub mod blocking;
pub mod busy;
pub mod channel;
pub mod echo;
pub mod group;
pub mod http;
pub mod idle;
pub mod lock;
pub mod memory;
pub mod monitor;
pub mod spawn;
pub mod stall;
pub mod switch;
pub mod syscalls;
pub mod timer;
pub mod timer_fire;
pub mod wake;

/// A row measured inside one child process, without a client.
#[derive(Debug)]
pub struct Micro {
    /// Its name.
    pub name: &'static str,
    /// What a sample gives, in this order.
    pub metrics: &'static [Metric],
    /// Operations of a quick sample.
    pub quick: u64,
    /// Operations of a full sample.
    pub full: u64,
    /// Samples a cell, where the default is too many for a slow row.
    pub quick_rounds: usize,
    /// Whether the number of workers matters; if not, the row is measured with the largest number only.
    pub each_workers: bool,
    /// Who takes part.
    pub peers: &'static [PeerId],
    /// Takes one sample: peer, workers, operations.
    pub sample: fn(PeerId, usize, u64) -> Vec<f64>,
}

/// A hot path by itself, for the instruction counts: one worker, no clock.
#[derive(Debug)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// Does so many operations on a started peer.
    pub run: fn(PeerId, u64),
}

fn micro_rows() -> impl Iterator<Item = &'static Micro> {
    [
        spawn::ROWS,
        switch::ROWS,
        wake::ROWS,
        timer::ROWS,
        timer_fire::ROWS,
        blocking::ROWS,
        memory::ROWS,
        channel::ROWS,
        lock::ROWS,
        group::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The workloads that `instructions` counts.
pub fn workloads() -> impl Iterator<Item = &'static Workload> {
    [spawn::WORKLOADS, switch::WORKLOADS, timer::WORKLOADS]
        .into_iter()
        .flatten()
}

/// Measures the cells of a row that the options want.
type Measure = fn(&Options, &mut Report);

/// The rows that need more than one process, under their names or what those begin with.
const LARGE_ROWS: &[(&str, Measure)] = &[
    ("memory connection", memory::connections),
    ("echo", echo::rows),
    ("syscalls", syscalls::row),
    ("http", http::rows),
    ("idle", idle::row),
    ("stall", stall::rows),
    ("busy", busy::rows),
    ("monitor", monitor::rows),
];

/// Measures every row that the options want.
pub fn measure(options: &Options, report: &mut Report) {
    for row in micro_rows() {
        let most = options.workers.iter().copied().max().unwrap_or(1);
        let counts = if row.each_workers {
            options.workers.clone()
        } else {
            vec![most]
        };
        let operations = if options.quick { row.quick } else { row.full };
        for workers in counts {
            if !report.takes(options, row.name) {
                continue;
            }
            let rounds = options.rounds(row.quick_rounds, 7);
            report.measure(row.name, workers, row.peers, rounds, row.metrics, |peer| {
                child::sample(&[
                    "sample".to_owned(),
                    row.name.to_owned(),
                    peer.to_string(),
                    workers.to_string(),
                    operations.to_string(),
                ])
            });
        }
    }
    for (_, run) in LARGE_ROWS {
        run(options, report);
    }
}

/// The names of the rows, or what they begin with.
pub fn names() -> impl Iterator<Item = &'static str> {
    micro_rows()
        .map(|row| row.name)
        .chain(LARGE_ROWS.iter().map(|(name, _)| *name))
}

/// Takes one sample in this process. For children.
///
/// # Panics
///
/// If there is no such row.
#[must_use]
pub fn sample(row: &str, peer: PeerId, workers: usize, operations: u64) -> Vec<f64> {
    let row = micro_rows()
        .find(|candidate| candidate.name == row)
        .expect("the parent names a row");
    (row.sample)(peer, workers, operations)
}

/// Runs one workload in this process. For children.
///
/// # Panics
///
/// If there is no such workload.
pub fn work(workload: &str, peer: PeerId, operations: u64) {
    let workload = workloads()
        .find(|candidate| candidate.name == workload)
        .expect("the parent names a workload");
    (workload.run)(peer, operations);
}

/// Nanoseconds per operation of a workload that runs on a worker, after a tenth as much to warm up.
fn time_on_worker<P, F>(workers: usize, operations: u64, workload: fn(u64) -> F) -> f64
where
    P: Peer,
    F: Future<Output = ()> + Send + 'static,
{
    let peer = P::start(workers);
    let elapsed = on_worker(&peer, async move {
        workload(operations / 10 + 1).await;
        let start = Instant::now();
        workload(operations).await;
        start.elapsed()
    });
    // The child ends by `exit`: no row asks how long a runtime takes to shut down.
    std::mem::forget(peer);
    elapsed.as_nanos() as f64 / operations as f64
}

/// CPU nanoseconds of the process per operation of a workload that runs on a worker, after a tenth as much to warm up.
fn cpu_on_worker<P, F>(workers: usize, operations: u64, workload: fn(u64) -> F) -> f64
where
    P: Peer,
    F: Future<Output = ()> + Send + 'static,
{
    let peer = P::start(workers);
    let used = on_worker(&peer, async move {
        workload(operations / 10 + 1).await;
        let before = usage::process_cpu();
        workload(operations).await;
        usage::process_cpu() - before
    });
    std::mem::forget(peer);
    used.as_nanos() as f64 / operations as f64
}

/// Runs a workload on the only worker of a peer, untimed.
fn run_on_worker<P, F>(operations: u64, workload: fn(u64) -> F)
where
    P: Peer,
    F: Future<Output = ()> + Send + 'static,
{
    let peer = P::start(1);
    on_worker(&peer, workload(operations));
    std::mem::forget(peer);
}
