//! What do neighbours notice of a task that blocks its thread? 50 connections echo and 50 tasks tick each 10 ms meanwhile.
//!
//! # What would mislead
//! Each connection pauses for 2 ms after an answer: without a pause the load generator and the server would fill both
//! cores, and the row would measure the kernel's scheduler. p99.9 needs thousands of messages, so a quick sample says little
//! about it. With "all" both workers block at once for one second of two. smol is left out for brevity: it is stalled as
//! tokio is.

use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::Server;
use crate::stalls::Trouble;

/// Connections that echo.
pub const CONNECTIONS: usize = 50;

/// Between an answer and the next message, in microseconds.
const PAUSE: u64 = 2_000;

const METRICS: [Metric; 4] = [
    Metric {
        name: "p50",
        unit: "ms",
        goals: &[],
    },
    Metric {
        name: "p99",
        unit: "ms",
        goals: &[Goal::AtMost(5.0)],
    },
    Metric {
        name: "p99.9",
        unit: "ms",
        goals: &[Goal::AtMost(10.0)],
    },
    Metric {
        name: "tick p99",
        unit: "ms",
        goals: &[Goal::AtMost(10.0)],
    },
];

/// All cells.
pub fn rows(options: &Options, report: &mut Report) {
    let workers = options.workers.iter().copied().max().unwrap_or(1);
    let stretch = if options.quick { 2_000 } else { 10_000 };
    for (name, _) in Trouble::ALL {
        let row = format!("stall {name}");
        if !report.takes(options, &row) {
            continue;
        }
        report.measure(
            &row,
            workers,
            &[PeerId::Rt, PeerId::Tokio],
            options.rounds(1, 3),
            &METRICS,
            |peer| {
                let role =
                    ["stall", &peer.to_string(), &workers.to_string(), name].map(str::to_owned);
                let mut server = Server::start(&[], &role)?;
                let mut client = server.client(CONNECTIONS, 64)?;
                client.ask(&format!("paced 300 {PAUSE}"))?;
                server.late()?;
                let answer = client.ask(&format!("paced {stretch} {PAUSE}"))?;
                let [_, late] = server.late()?;
                Ok([answer[2], answer[3], answer[4], late]
                    .map(|ns| ns / 1e6)
                    .to_vec())
            },
        );
    }
}
