//! What do 100,000 sleeps that end within one second cost, and how late are they?
//!
//! # What would mislead
//! CPU and lateness belong together: a coarse tick saves wake-ups and is late, an exact timer wakes for each. The CPU is
//! that of the whole process from the first spawn to the last end, so it includes spawning and inserting. Deadlines are
//! spread evenly and inserted in a scattered order; in a burst at one instant lateness would only measure the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Micro;
use crate::goal::Goal;
use crate::peer::{Peer, PeerId, on_worker};
use crate::report::Metric;
use crate::{usage, with_peer};

/// The rows of this file.
pub const ROWS: &[Micro] = &[Micro {
    name: "timer fire",
    metrics: &[
        Metric {
            name: "CPU",
            unit: "us",
            goals: &[Goal::AtMost(2.5)],
        },
        Metric {
            name: "late p50",
            unit: "ms",
            goals: &[Goal::AtMost(0.2)],
        },
        Metric {
            name: "late p99",
            unit: "ms",
            goals: &[Goal::AtMost(1.0)],
        },
    ],
    quick: 100_000,
    full: 100_000,
    quick_rounds: 1,
    each_workers: true,
    peers: &PeerId::RUNTIMES,
    sample: |peer, workers, n| with_peer!(peer, P => fire::<P>(workers, n)),
}];

/// Time to insert all of them before the first one is due.
const LEAD: Duration = Duration::from_millis(400);

struct Ends {
    /// How late each sleep ended, in microseconds.
    late: Box<[AtomicU32]>,
    unfinished: AtomicU64,
}

fn fire<P: Peer>(workers: usize, count: u64) -> Vec<f64> {
    let peer = P::start(workers);
    let before = usage::process_cpu();
    let mut late = on_worker(&peer, all::<P>(count));
    let cpu = usage::process_cpu() - before;
    std::mem::forget(peer);
    late.sort_unstable();
    let at = |share: usize| f64::from(late[(late.len() - 1) * share / 100]) / 1e3;
    vec![cpu.as_nanos() as f64 / 1e3 / count as f64, at(50), at(99)]
}

async fn all<P: Peer>(count: u64) -> Vec<u32> {
    let ends = Arc::new(Ends {
        late: (0..count).map(|_| AtomicU32::new(0)).collect(),
        unfinished: AtomicU64::new(count),
    });
    let start = Instant::now() + LEAD;
    for index in 0..count {
        // A step that shares no factor with the count visits every place once, far from the one before.
        let place = index * 61_803 % count;
        let due = start + Duration::from_nanos(place * 1_000_000_000 / count);
        let ends = Arc::clone(&ends);
        P::detach(async move {
            P::sleep(due.saturating_duration_since(Instant::now())).await;
            let late = Instant::now().saturating_duration_since(due).as_micros();
            ends.late[index as usize]
                .store(u32::try_from(late).unwrap_or(u32::MAX), Ordering::Relaxed);
            // Release: pairs with the acquiring load below.
            ends.unfinished.fetch_sub(1, Ordering::Release);
        });
    }
    P::sleep(start + Duration::from_secs(1) - Instant::now()).await;
    // Some may be late; a few more sleeps do not change the figure.
    while ends.unfinished.load(Ordering::Acquire) > 0 {
        P::sleep(Duration::from_millis(5)).await;
    }
    ends.late
        .iter()
        .map(|late| late.load(Ordering::Relaxed))
        .collect()
}
