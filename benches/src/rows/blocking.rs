//! What does a trip to the blocking pool and back cost?
//!
//! # What would mislead
//! The closure is empty and the pool's thread is asleep, so this is two wake-ups across threads. CPU is the figure to
//! compare: the time also holds the kernel's delay in waking a core, which varies with what else runs.
//!
//! In the first row a task awaits the closure. `rt` polls such a task on the thread that has run the closure, if every
//! worker sleeps, and so does without the wake-ups. In the second row the future of `block_on` awaits it, which stays on its
//! thread in every runtime: that row is about the wake-ups.

use std::time::{Duration, Instant};

use super::Micro;
use crate::goal::Goal;
use crate::peer::{Peer, PeerId, on_worker};
use crate::report::Metric;
use crate::{usage, with_peer};

const fn time_and_cpu(goals: &'static [Goal]) -> [Metric; 2] {
    [
        Metric {
            name: "time",
            unit: "us",
            goals,
        },
        Metric {
            name: "CPU",
            unit: "us",
            goals,
        },
    ]
}

/// The rows of this file.
pub const ROWS: &[Micro] = &[
    Micro {
        name: "spawn_blocking",
        metrics: &time_and_cpu(&[Goal::OfTokio(0.9)]),
        quick: 2_000,
        full: 20_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => round_trips::<P>(workers, n)),
    },
    Micro {
        name: "spawn_blocking of block_on",
        metrics: &time_and_cpu(&[]),
        quick: 2_000,
        full: 20_000,
        quick_rounds: 3,
        each_workers: false,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => root_trips::<P>(workers, n)),
    },
];

fn round_trips<P: Peer>(workers: usize, operations: u64) -> Vec<f64> {
    let peer = P::start(workers);
    let spent = on_worker(&peer, trips::<P>(operations));
    std::mem::forget(peer);
    each(spent, operations)
}

fn root_trips<P: Peer>(workers: usize, operations: u64) -> Vec<f64> {
    let peer = P::start(workers);
    let spent = peer.block_on(trips::<P>(operations));
    std::mem::forget(peer);
    each(spent, operations)
}

/// The time that so many trips take, and the CPU time.
async fn trips<P: Peer>(operations: u64) -> [Duration; 2] {
    for _ in 0..operations / 10 + 1 {
        P::spawn_blocking(|| {}).await;
    }
    let (start, before) = (Instant::now(), usage::process_cpu());
    for _ in 0..operations {
        P::spawn_blocking(|| {}).await;
    }
    [start.elapsed(), usage::process_cpu() - before]
}

/// In microseconds.
fn each(spent: [Duration; 2], operations: u64) -> Vec<f64> {
    spent
        .map(|span| span.as_nanos() as f64 / 1e3 / operations as f64)
        .to_vec()
}
