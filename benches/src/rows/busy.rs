//! How long do sockets wait that are registered with a worker which is merely busy, while other workers idle?
//!
//! A task opens connections to an echo server of tasks, all registered with the worker that it runs on: each is polled once there. Then
//! it computes for 100 µs and yields, again and again.
//!
//! # What would mislead
//! The echoing tasks, and the busy one, may be stolen by an idle worker; that is what workers are for, and what is measured
//! is what a client notices. tokio has one selector for all workers, so nothing is registered with a worker there.
//! Connections pause for 2 ms after each answer, for the same reason as in [`stall`](super::stall).

use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::Server;

/// Connections that echo.
pub const CONNECTIONS: usize = 10;

/// Between an answer and the next message, in microseconds.
const PAUSE: u64 = 2_000;

const NO_WORSE: &[Goal] = &[Goal::OfTokio(1.0)];

const METRICS: [Metric; 2] = [
    Metric {
        name: "p50",
        unit: "us",
        goals: NO_WORSE,
    },
    Metric {
        name: "p99",
        unit: "us",
        goals: NO_WORSE,
    },
];

/// All cells.
pub fn rows(options: &Options, report: &mut Report) {
    let workers = options.workers.iter().copied().max().unwrap_or(1);
    let stretch = if options.quick { 300 } else { 1_500 };
    for busy in [1, 2] {
        let row = format!("busy x {busy}");
        if !report.takes(options, &row) {
            continue;
        }
        let mut pairs = Vec::new();
        for peer in [PeerId::Rt, PeerId::Tokio] {
            let role = [
                "busy",
                &peer.to_string(),
                &workers.to_string(),
                &busy.to_string(),
            ]
            .map(str::to_owned);
            let pair = Server::start(&[], &role).and_then(|server| {
                let mut client = server.client(CONNECTIONS, 64)?;
                client.ask(&format!("paced 200 {PAUSE}"))?;
                Ok((peer, server, client))
            });
            match pair {
                Ok(pair) => pairs.push(pair),
                Err(error) => report.fail(&row, format!("{peer}: {error}")),
            }
        }
        let up: Vec<PeerId> = pairs.iter().map(|(peer, ..)| *peer).collect();
        report.measure(&row, workers, &up, options.rounds(5, 9), &METRICS, |peer| {
            let (_, server, client) = pairs
                .iter_mut()
                .find(|(of, ..)| *of == peer)
                .expect("only peers that are up are asked");
            server.set_busy(true)?;
            let answer = client.ask(&format!("paced {stretch} {PAUSE}"));
            server.set_busy(false)?;
            let answer = answer?;
            Ok(vec![answer[2] / 1e3, answer[3] / 1e3])
        });
    }
}
