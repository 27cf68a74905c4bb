//! How many bytes does a parked task take, one with a timer, and an idle connection with its buffer?
//!
//! # What would mislead
//! This is resident memory over the number of items: allocator overhead and the growth of tables count, memory of the
//! kernel (socket buffers) does not. The parked task captures nothing and waits for ever, so it is the runtime's own
//! price. The connection has echoed one message, so that its socket is registered and its buffer touched.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Micro;
use crate::goal::Goal;
use crate::options::Options;
use crate::peer::{Peer, PeerId, on_worker};
use crate::report::{Metric, Report};
use crate::serve::FOREVER;
use crate::server::Server;
use crate::{usage, with_peer};

/// The rows of this file that need no client.
pub const ROWS: &[Micro] = &[
    Micro {
        name: "memory task",
        metrics: &[Metric {
            name: "RSS",
            unit: "B",
            goals: &[Goal::AtMost(150.0)],
        }],
        quick: 100_000,
        full: 300_000,
        quick_rounds: 1,
        each_workers: false,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![parked::<P>(workers, n, false)]),
    },
    Micro {
        name: "memory task with timer",
        metrics: &[Metric {
            name: "RSS",
            unit: "B",
            goals: &[Goal::AtMost(300.0)],
        }],
        quick: 100_000,
        full: 300_000,
        quick_rounds: 1,
        each_workers: false,
        peers: &PeerId::RUNTIMES,
        sample: |peer, workers, n| with_peer!(peer, P => vec![parked::<P>(workers, n, true)]),
    },
];

/// A static and not a captured counter: the task has nothing of its own.
static PARKED: AtomicU64 = AtomicU64::new(0);

fn parked<P: Peer>(workers: usize, count: u64, timer: bool) -> f64 {
    let peer = P::start(workers);
    // A few beforehand, so that what a runtime builds on first use is not spread over the items.
    park::<P>(&peer, 1_000, timer);
    let before = usage::resident();
    park::<P>(&peer, count, timer);
    let after = usage::resident();
    std::mem::forget(peer);
    after.saturating_sub(before) as f64 / count as f64
}

fn park<P: Peer>(peer: &P, count: u64, timer: bool) {
    let wanted = PARKED.load(Ordering::Relaxed) + count;
    on_worker(peer, async move {
        for index in 0..count {
            if timer {
                P::detach(async {
                    PARKED.fetch_add(1, Ordering::Relaxed);
                    P::sleep(FOREVER).await;
                });
            } else {
                P::detach(async {
                    PARKED.fetch_add(1, Ordering::Relaxed);
                    pending::<()>().await;
                });
            }
            // Not a queue of a hundred thousand: its own memory would count as the tasks'.
            if index % 64 == 0 {
                P::yield_now().await;
            }
        }
        while PARKED.load(Ordering::Relaxed) < wanted {
            P::sleep(Duration::from_millis(1)).await;
        }
    });
}

/// The row of idle connections.
pub fn connections(options: &Options, report: &mut Report) {
    const COUNT: usize = 5_000;
    const METRIC: Metric = Metric {
        name: "RSS",
        unit: "B",
        goals: &[Goal::AtMost(550.0)],
    };
    const ROW: &str = "memory connection";
    if !report.takes(options, ROW) {
        return;
    }
    let workers = options.workers.iter().copied().max().unwrap_or(1);
    report.measure(ROW, workers, &PeerId::RUNTIMES, 1, &[METRIC], |peer| {
        let mut server = Server::echo(peer, workers, 64, 0)?;
        // As above: the first hundred build what is built once.
        let _first = server.client(100, 64)?;
        let before = server.resident()?;
        let _idle = server.client(COUNT, 64)?;
        let after = server.resident()?;
        Ok(vec![(after - before) / COUNT as f64])
    });
}
