//! How many system calls does the server make per echoed message?
//!
//! # What would mislead
//! The count depends on how many messages one wait for events brings: with 50 connections a busy server waits
//! rarely. It is taken with `perf stat` on the tracepoint of system calls, which slows the server by a little, as the
//! difference of a run of n and one of 2n messages, so that start-up cancels out. Needs `perf` and the right to use it;
//! without them the row is left out and a note says so.

use std::path::PathBuf;

use crate::child::ChildError;
use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::{Server, echo_role};

const METRIC: Metric = Metric {
    name: "calls",
    unit: "",
    goals: &[Goal::AtMost(2.2)],
};
const ROW: &str = "syscalls, echo 64 B x 50";
const EVENT: &str = "raw_syscalls:sys_enter";

/// The row.
pub fn row(options: &Options, report: &mut Report) {
    if !report.takes(options, ROW) {
        return;
    }
    if let Err(why) = usable() {
        report.fail(ROW, why);
        return;
    }
    let messages = if options.quick { 10_000 } else { 50_000 };
    for workers in &options.workers {
        report.measure(ROW, *workers, &PeerId::ECHO, 1, &[METRIC], |peer| {
            let once = calls(peer, *workers, messages)?;
            let twice = calls(peer, *workers, 2 * messages)?;
            Ok(vec![(twice - once) / messages as f64])
        });
    }
}

fn usable() -> Result<(), String> {
    let output = std::process::Command::new("perf")
        .args(["stat", "-e", EVENT, "true"])
        .output()
        .map_err(|error| format!("left out, perf cannot be started: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("left out, perf may not count {EVENT} here"))
    }
}

fn calls(peer: PeerId, workers: usize, messages: u64) -> Result<f64, ChildError> {
    let file = std::env::temp_dir().join(format!("rt-benches-{}.perf", std::process::id()));
    let wrapper = ["perf", "stat", "-x,", "-e", EVENT, "-o"].map(str::to_owned);
    let mut wrapper = wrapper.to_vec();
    wrapper.push(file.display().to_string());
    let server = Server::start(&wrapper, &echo_role(peer, workers, 4096, 0))?;
    let mut client = server.client(50, 64)?;
    client.ask(&format!("count {messages}"))?;
    server.finish()?;
    let count = read_count(&file);
    let _ = std::fs::remove_file(&file);
    count
}

fn read_count(file: &PathBuf) -> Result<f64, ChildError> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter(|line| line.contains(EVENT))
        .find_map(|line| line.split(',').next()?.parse().ok())
        .ok_or_else(|| ChildError::new(format!("perf wrote no count of {EVENT}: {text:?}")))
}
