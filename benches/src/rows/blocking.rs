//! What does a trip to the blocking pool and back cost?
//!
//! # What would mislead
//! The closure is empty and the pool's thread is asleep, so this is two wake-ups across threads. CPU is the figure to
//! compare: the time also holds the kernel's delay in waking a core, which varies with what else runs.

use std::time::Instant;

use super::Micro;
use crate::goal::Goal;
use crate::peer::{Peer, PeerId, on_worker};
use crate::report::Metric;
use crate::{usage, with_peer};

/// The rows of this file.
pub const ROWS: &[Micro] = &[Micro {
    name: "spawn_blocking",
    metrics: &[
        Metric {
            name: "time",
            unit: "us",
            goals: &[Goal::OfTokio(0.9)],
        },
        Metric {
            name: "CPU",
            unit: "us",
            goals: &[Goal::OfTokio(0.9)],
        },
    ],
    quick: 2_000,
    full: 20_000,
    quick_rounds: 5,
    each_workers: true,
    peers: &PeerId::RUNTIMES,
    sample: |peer, workers, n| with_peer!(peer, P => round_trips::<P>(workers, n)),
}];

fn round_trips<P: Peer>(workers: usize, operations: u64) -> Vec<f64> {
    let peer = P::start(workers);
    let (elapsed, cpu) = on_worker(&peer, async move {
        for _ in 0..operations / 10 + 1 {
            P::spawn_blocking(|| {}).await;
        }
        let (start, before) = (Instant::now(), usage::process_cpu());
        for _ in 0..operations {
            P::spawn_blocking(|| {}).await;
        }
        (start.elapsed(), usage::process_cpu() - before)
    });
    std::mem::forget(peer);
    [elapsed, cpu]
        .map(|span| span.as_nanos() as f64 / 1e3 / operations as f64)
        .to_vec()
}
