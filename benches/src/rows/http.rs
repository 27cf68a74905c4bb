//! What does an HTTP request through hyper cost the server, how many go through, and how long does one in 100 take?
//!
//! # What would mislead
//! hyper and its parsing are the same on both sides and most of the user time, so ratios stay near 1. `wrk` shares the
//! cores with the server; it is a closed loop, so its p99 is under saturation. smol is left out: it has no adaptor of
//! its own for hyper. Without `wrk` the rows are left out and a note says so.

use std::process::Command;

use crate::child::ChildError;
use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::Server;

const CPU: Metric = Metric {
    name: "CPU",
    unit: "us",
    goals: &[Goal::OfTokio(0.95)],
};
const RATE: Metric = Metric {
    name: "rate",
    unit: "1/s",
    goals: &[Goal::AtLeastOfTokio(1.0)],
};
const P99: Metric = Metric {
    name: "p99",
    unit: "ms",
    goals: &[],
};
const P99_OF_MANY: Metric = Metric {
    name: "p99",
    unit: "ms",
    goals: &[Goal::OfTokio(0.2)],
};

/// All cells.
pub fn rows(options: &Options, report: &mut Report) {
    if !options.wants("http x 50") && !options.wants("http x 500") {
        return;
    }
    if Command::new("wrk").arg("--version").output().is_err() {
        report.fail("http", "left out, `wrk` is not installed");
        return;
    }
    for connections in [50, 500] {
        let row = format!("http x {connections}");
        for workers in &options.workers {
            if report.takes(options, &row) {
                cell(options, report, &row, *workers, connections);
            }
        }
    }
}

fn cell(options: &Options, report: &mut Report, row: &str, workers: usize, connections: usize) {
    let seconds = if options.quick { 1 } else { 5 };
    let p99 = if connections >= 500 { P99_OF_MANY } else { P99 };
    let mut servers: Vec<(PeerId, Server)> = Vec::new();
    for peer in [PeerId::Rt, PeerId::Tokio]
        .into_iter()
        .filter(|peer| options.peers.contains(peer))
    {
        let role = ["http".to_owned(), peer.to_string(), workers.to_string()];
        match Server::start(&[], &role) {
            Ok(server) => servers.push((peer, server)),
            Err(error) => report.fail(row, format!("{peer}: {error}")),
        }
    }
    let up: Vec<PeerId> = servers.iter().map(|(peer, _)| *peer).collect();
    let rounds = options.rounds(2, 5);
    report.measure(row, workers, &up, rounds, &[CPU, RATE, p99], |peer| {
        let (_, server) = servers
            .iter_mut()
            .find(|(of, _)| *of == peer)
            .expect("only peers that are up are asked");
        let before = server.cpu()?;
        let load = wrk(server.port(), connections, seconds)?;
        let cpu = server.cpu()? - before;
        Ok(vec![cpu / 1e3 / load.requests, load.rate, load.p99])
    });
}

struct Wrk {
    requests: f64,
    rate: f64,
    /// In milliseconds.
    p99: f64,
}

fn wrk(port: u16, connections: usize, seconds: u64) -> Result<Wrk, ChildError> {
    let output = Command::new("wrk")
        .args([
            "-t1",
            "--latency",
            &format!("-c{connections}"),
            &format!("-d{seconds}s"),
        ])
        .arg(format!("http://127.0.0.1:{port}/"))
        .output()
        .map_err(|error| ChildError::new(format!("wrk: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        ChildError::new(format!(
            "wrk reported errors or said what we do not understand: {text}"
        ))
    })
}

fn parse(text: &str) -> Option<Wrk> {
    if text.contains("Socket errors") || text.contains("Non-2xx") {
        return None;
    }
    let after = |head: &str| text.lines().find_map(|line| line.trim().strip_prefix(head));
    let requests = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in"))?
        .0;
    Some(Wrk {
        requests: requests.parse().ok()?,
        rate: after("Requests/sec:")?.trim().parse().ok()?,
        p99: milliseconds(after("99%")?.trim())?,
    })
}

fn milliseconds(word: &str) -> Option<f64> {
    let unit = word.find(|letter: char| letter.is_ascii_alphabetic())?;
    let number: f64 = word[..unit].parse().ok()?;
    match &word[unit..] {
        "us" => Some(number / 1e3),
        "ms" => Some(number),
        "s" => Some(number * 1e3),
        "m" => Some(number * 60e3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_wrk_prints() {
        let text = "  Latency Distribution\n     50%  411.00us\n     99%    1.06ms\n  120034 requests in 1.00s, 9.8MB read\nRequests/sec: 119871.33\n";
        let load = parse(text).expect("parses");
        assert!((load.requests - 120_034.0).abs() < 0.5 && (load.p99 - 1.06).abs() < 1e-9);
        assert!((load.rate - 119_871.33).abs() < 1e-6);
        assert!(
            parse(&format!(
                "{text}  Socket errors: connect 0, read 1, write 0, timeout 0"
            ))
            .is_none()
        );
    }
}
