//! What does a timeout cost that does not strike?
//!
//! # What would mislead
//! A timeout around a future that is ready at once never registers: that row measures how lazy the timer is. In the
//! others the future gives way once, so the sleep is inserted, and cancelled when the task runs again; one `yield` is
//! part of the figure. *Alone* one task does so on an otherwise empty wheel: a peer may take each new timer for the
//! earliest and wake its driver, and may look at its selector each time round. *Of 100* means among 100 tasks.
//! With two workers some of the 100 are stolen, and what one then pays is the sharing of wheel and queues.

use std::future::ready;
use std::time::Duration;

use super::{Micro, Workload, run_on_worker, time_on_worker};
use crate::goal::Goal;
use crate::peer::{Peer, PeerId};
use crate::report::Metric;
use crate::with_peer;

/// The rows of this file.
pub const ROWS: &[Micro] = &[
    Micro {
        name: "timeout(ready)",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::AtMost(10.0)],
        }],
        quick: 300_000,
        full: 3_000_000,
        quick_rounds: 5,
        each_workers: false,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, timeout_ready::<P>)]),
    },
    Micro {
        name: "timer insert+cancel",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::OfBest(0.8)],
        }],
        quick: 50_000,
        full: 500_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, insert_cancel::<P>)]),
    },
    Micro {
        name: "timer insert+cancel of 100",
        metrics: &[Metric {
            name: "time",
            unit: "ns",
            goals: &[Goal::OfBest(0.8)],
        }],
        quick: 50_000,
        full: 500_000,
        quick_rounds: 5,
        each_workers: true,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![time_on_worker::<P, _>(workers, n, among_100::<P>)]),
    },
];

/// The hot paths of this file.
pub const WORKLOADS: &[Workload] = &[Workload {
    name: "timer insert+cancel of 100",
    run: |peer, n| with_peer!(peer, P => run_on_worker::<P, _>(n, among_100::<P>)),
}];

/// What a server would give a request: far enough away never to strike here.
const LIMIT: Duration = Duration::from_secs(30);

async fn timeout_ready<P: Peer>(operations: u64) {
    for index in 0..operations {
        let answer = P::timeout(LIMIT, ready(index)).await;
        assert_eq!(std::hint::black_box(answer), Some(index));
    }
}

async fn insert_cancel<P: Peer>(operations: u64) {
    for _ in 0..operations {
        let answer = P::timeout(LIMIT, P::yield_now()).await;
        assert!(answer.is_some());
    }
}

async fn among_100<P: Peer>(operations: u64) {
    const TASKS: u64 = 100;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            P::spawn(async move {
                for _ in 0..operations.div_ceil(TASKS) {
                    let answer = P::timeout(LIMIT, P::yield_now()).await;
                    assert!(answer.is_some());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
}
