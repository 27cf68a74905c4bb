//! What does it cost to switch between tasks: by giving way, by waking one another, by entering from outside?
//!
//! # What would mislead
//! Ping-pong is two fresh tasks that exchange one message each way, spawns included, so half of it is `spawn+join`
//! twice. With two workers the partner may be stolen, and then a message crosses the cores for ten times the price of
//! a local one. `block_on(spawn)` is entered anew for each operation; a peer whose `block_on` runs no tasks has to
//! wake a worker and be woken by it each time.

use std::future::ready;
use std::time::Instant;

use futures_channel::oneshot;

use super::{Micro, Workload, run_on_worker, time_on_worker};
use crate::goal::Goal;
use crate::peer::{Peer, PeerId};
use crate::report::Metric;
use crate::with_peer;

/// The rows of this file.
pub const ROWS: &[Micro] = &[
    Micro {
        name: "yield, 200 tasks",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::OfTokio(0.7)],
        }],
        quick: 200_000,
        full: 2_000_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, yield_200::<P>)]),
    },
    Micro {
        name: "ping-pong",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::OfTokio(0.5), Goal::OfSmol(1.0)],
        }],
        quick: 20_000,
        full: 200_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, ping_pong::<P>)]),
    },
    Micro {
        name: "block_on(spawn)",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::OfTokio(0.2)],
        }],
        quick: 2_000,
        full: 20_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![block_on_spawn::<P>(workers, n)]),
    },
];

/// The hot paths of this file.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "yield",
        run: |peer, n| with_peer!(peer, P => run_on_worker::<P, _>(n, yield_200::<P>)),
    },
    Workload {
        name: "ping-pong",
        run: |peer, n| with_peer!(peer, P => run_on_worker::<P, _>(n, ping_pong::<P>)),
    },
];

/// 200 tasks that do nothing but give way, so many times in all.
async fn yield_200<P: Peer>(operations: u64) {
    const TASKS: u64 = 200;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            P::spawn(async move {
                for _ in 0..operations.div_ceil(TASKS) {
                    P::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
}

/// Two tasks that exchange one message each way, per operation.
async fn ping_pong<P: Peer>(operations: u64) {
    for _ in 0..operations {
        P::spawn(async {
            let (ping, pinged) = oneshot::channel::<()>();
            let (pong, ponged) = oneshot::channel::<()>();
            P::detach(async move {
                if pinged.await.is_ok() {
                    let _ = pong.send(());
                }
            });
            let _ = ping.send(());
            let _ = ponged.await;
        })
        .await;
    }
}

/// A task spawned inside `block_on` and awaited there.
fn block_on_spawn<P: Peer>(workers: usize, operations: u64) -> f64 {
    let peer = P::start(workers);
    let run = |count| {
        for _ in 0..count {
            peer.block_on(async { P::spawn(ready(())).await });
        }
    };
    run(operations / 10);
    let start = Instant::now();
    run(operations);
    let elapsed = start.elapsed();
    std::mem::forget(peer);
    elapsed.as_nanos() as f64 / operations as f64
}
