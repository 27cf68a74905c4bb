//! What does an echoed TCP message cost the server, how many go through, and how long do they take?
//!
//! # What would mislead
//! Server and load generator are processes of their own, yet share the machine's cores: with two workers on two cores
//! throughput is also what the generator leaves over, so the server's CPU per message is the figure to compare. The
//! load is a closed loop (see [`load`](crate::load)). The kernel's share is 80-95 % of the CPU in every cell, for all
//! peers; ratios near 1 are what a perfect runtime can reach. The buffer is larger than the message, as in real
//! servers: a short read then says that the socket is empty. The hand-written loop has the same buffers.
//!
//! All servers of a cell stay up while it is measured, and stretches of load on each alternate.

use std::time::Duration;

use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::Server;

/// Message sizes and the buffers that servers read them into.
const SIZES: [(&str, usize, usize); 2] = [("64 B", 64, 4 * 1024), ("16 KiB", 16 * 1024, 32 * 1024)];

const CPU: Metric = Metric {
    name: "CPU",
    unit: "us",
    goals: &[Goal::OfTokio(1.0)],
};
const RATE: Metric = Metric {
    name: "rate",
    unit: "1/s",
    goals: &[],
};
const P50: Metric = Metric {
    name: "p50",
    unit: "us",
    goals: &[],
};
const P99: Metric = Metric {
    name: "p99",
    unit: "us",
    goals: &[],
};
/// The bound is about fairness among many, so it is asked for where there are many.
const P99_OF_MANY: Metric = Metric {
    name: "p99",
    unit: "us",
    goals: &[Goal::OfLoop(1.3)],
};

/// All cells.
pub fn rows(options: &Options, report: &mut Report) {
    for (size, bytes, buffer) in SIZES {
        for connections in [1, 50, 1000] {
            let row = format!("echo {size} x {connections}");
            for workers in &options.workers {
                if report.takes(options, &row) {
                    cell(options, report, &row, *workers, connections, bytes, buffer);
                }
            }
        }
    }
}

fn cell(
    options: &Options,
    report: &mut Report,
    row: &str,
    workers: usize,
    connections: usize,
    bytes: usize,
    buffer: usize,
) {
    let (stretch, warm_up) = if options.quick {
        (200, 60)
    } else {
        (2_000, 500)
    };
    let mut pairs = Vec::new();
    let echoes = |peer: &&PeerId| PeerId::ECHO.contains(peer);
    for peer in options.peers.iter().filter(echoes) {
        let pair = Server::echo(*peer, workers, buffer, 0).and_then(|server| {
            let mut client = server.client(connections, bytes)?;
            client.ask(&format!("time {warm_up}"))?;
            Ok((server, client))
        });
        match pair {
            Ok((server, client)) => pairs.push((*peer, server, client)),
            Err(error) => report.fail(row, format!("{peer}: {error}")),
        }
    }
    let up: Vec<PeerId> = pairs.iter().map(|(peer, ..)| *peer).collect();
    let p99 = if connections >= 1000 {
        P99_OF_MANY
    } else {
        P99
    };
    report.measure(
        row,
        workers,
        &up,
        options.rounds(3, 7),
        &[CPU, RATE, P50, p99],
        |peer| {
            let (_, server, client) = pairs
                .iter_mut()
                .find(|(of, ..)| *of == peer)
                .expect("only peers that are up are asked");
            let before = server.cpu()?;
            let answer = client.ask(&format!("time {stretch}"))?;
            let cpu = server.cpu()? - before;
            let [messages, elapsed, p50, p99, _] = answer[..] else {
                return Ok(answer);
            };
            let seconds = Duration::from_nanos(elapsed as u64).as_secs_f64();
            Ok(vec![
                cpu / 1e3 / messages,
                messages / seconds,
                p50 / 1e3,
                p99 / 1e3,
            ])
        },
    );
}
