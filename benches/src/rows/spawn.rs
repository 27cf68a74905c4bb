//! What does it cost to spawn a task: awaited, in a mass from inside or from outside, in a chain?
//!
//! # What would mislead
//! The task itself does nothing, so this is the price of the runtime and of the allocator alone. With two workers a
//! mass of empty tasks is faster on one: a peer that wakes a thief for them pays 30 µs and gains nothing, which is
//! what these rows are meant to show, but work of any size would gain. A mass spawn from a foreign thread runs beside
//! the workers on the same two cores; what is timed is from the first spawn to the last task's end.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

use super::{Micro, Workload, run_on_worker, time_on_worker};
use crate::goal::Goal;
use crate::peer::{Peer, PeerId};
use crate::report::Metric;
use crate::with_peer;

const HALF_OF_TOKIO: &[Goal] = &[Goal::OfTokio(0.5), Goal::OfSmol(1.0)];

/// The rows of this file.
pub const ROWS: &[Micro] = &[
    Micro {
        name: "spawn+join",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: HALF_OF_TOKIO,
        }],
        quick: 50_000,
        full: 500_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, spawn_join::<P>)]),
    },
    Micro {
        name: "spawn many local",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: HALF_OF_TOKIO,
        }],
        quick: 100_000,
        full: 500_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, spawn_many_local::<P>)]),
    },
    Micro {
        name: "spawn many remote",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::OfTokio(0.6), Goal::OfSmol(1.0)],
        }],
        quick: 100_000,
        full: 500_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![spawn_many_remote::<P>(workers, n)]),
    },
    Micro {
        name: "chained spawn",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: HALF_OF_TOKIO,
        }],
        quick: 50_000,
        full: 500_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, chained_spawn::<P>)]),
    },
];

/// The hot paths of this file.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "spawn+join",
        run: |peer, n| with_peer!(peer, P => run_on_worker::<P, _>(n, spawn_join::<P>)),
    },
    Workload {
        name: "chained spawn",
        run: |peer, n| with_peer!(peer, P => run_on_worker::<P, _>(n, chained_spawn::<P>)),
    },
];

/// One task after the other, each awaited by the task that spawned it.
pub(crate) async fn spawn_join<P: Peer>(operations: u64) {
    for _ in 0..operations {
        P::spawn(async {}).await;
    }
}

/// Tasks of one mass; all of them are alive at once.
const MASS: u64 = 10_000;

/// Who ends a mass: each task holds one, and the last to be dropped answers.
struct Mass {
    done: Mutex<Option<oneshot::Sender<()>>>,
}

impl Drop for Mass {
    fn drop(&mut self) {
        let done = self.done.get_mut().map(Option::take);
        if let Ok(Some(done)) = done {
            let _ = done.send(());
        }
    }
}

/// Masses of tasks, spawned by a task.
async fn spawn_many_local<P: Peer>(operations: u64) {
    let mut left = operations;
    while left > 0 {
        let size = left.min(MASS);
        left -= size;
        let (done, wait) = oneshot::channel();
        let mass = Arc::new(Mass {
            done: Mutex::new(Some(done)),
        });
        for _ in 0..size {
            let mass = Arc::clone(&mass);
            P::detach(async move { drop(mass) });
        }
        drop(mass);
        let _ = wait.await;
    }
}

/// The same, spawned by a thread that is no worker.
fn spawn_many_remote<P: Peer>(workers: usize, operations: u64) -> f64 {
    let peer = P::start(workers);
    let mut elapsed = Duration::ZERO;
    let masses = operations / MASS;
    for index in 0..=masses {
        let (done, wait) = oneshot::channel();
        let start = Instant::now();
        let mass = Arc::new(Mass {
            done: Mutex::new(Some(done)),
        });
        for _ in 0..MASS {
            let mass = Arc::clone(&mass);
            peer.spawn_remote(async move { drop(mass) });
        }
        drop(mass);
        let _ = futures_lite::future::block_on(wait);
        // The first mass warms up.
        if index > 0 {
            elapsed += start.elapsed();
        }
    }
    std::mem::forget(peer);
    elapsed.as_nanos() as f64 / (masses * MASS) as f64
}

/// Each task spawns the next and ends.
async fn chained_spawn<P: Peer>(operations: u64) {
    let (done, wait) = oneshot::channel();
    link::<P>(operations, done);
    let _ = wait.await;
}

fn link<P: Peer>(left: u64, done: oneshot::Sender<()>) {
    P::detach(async move {
        if left > 1 {
            link::<P>(left - 1, done);
        } else {
            let _ = done.send(());
        }
    });
}
