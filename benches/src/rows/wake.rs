//! How long does it take from a wake on a foreign thread to the poll on a parked worker?
//!
//! # What would mislead
//! On another core it is mostly the kernel's price for waking a sleeping CPU (20-30 µs on a virtual machine); all peers
//! pay that once. A peer that spins before it parks looks better here and worse in the idle row. The waking thread
//! pauses before each wake, so that the worker is parked: the pause is no part of the figure.

use std::time::{Duration, Instant};

use futures_channel::mpsc::unbounded;
use futures_lite::StreamExt;

use super::Micro;
use crate::peer::{Peer, PeerId, on_worker};
use crate::report::Metric;
use crate::{usage, with_peer};

/// The rows of this file.
pub const ROWS: &[Micro] = &[Micro {
    name: "wake across threads",
    metrics: &[
        Metric {
            name: "p50",
            unit: "us",
            goals: &[],
        },
        Metric {
            name: "p99",
            unit: "us",
            goals: &[],
        },
        Metric {
            name: "CPU",
            unit: "us",
            goals: &[],
        },
    ],
    quick: 300,
    full: 3_000,
    quick_rounds: 3,
    each_workers: true,
    peers: &PeerId::RUNTIMES,
    sample: |peer, workers, n| with_peer!(peer, P => wake::<P>(workers, n)),
}];

fn wake<P: Peer>(workers: usize, operations: u64) -> Vec<f64> {
    let peer = P::start(workers);
    let (sender, mut receiver) = unbounded::<Instant>();
    std::thread::spawn(move || {
        for _ in 0..operations {
            std::thread::sleep(Duration::from_micros(300));
            if sender.unbounded_send(Instant::now()).is_err() {
                return;
            }
        }
    });
    let before = usage::process_cpu();
    let mut delays = on_worker(&peer, async move {
        let mut delays = Vec::new();
        while let Some(sent) = receiver.next().await {
            delays.push(sent.elapsed());
        }
        delays
    });
    let cpu = usage::process_cpu() - before;
    std::mem::forget(peer);
    delays.sort_unstable();
    let at = |share: usize| delays[(delays.len() - 1) * share / 100].as_nanos() as f64 / 1e3;
    vec![
        at(50),
        at(99),
        cpu.as_nanos() as f64 / 1e3 / operations as f64,
    ]
}
