//! What does the monitor cost a server on which nothing is stuck?
//!
//! # What would mislead
//! A percent is less than what the kernel's scheduler, the caches and other guests of the machine make of two runs of the
//! same program; and two processes differ by more for as long as they live, by which worker has which sockets. So each
//! round has two new servers, one with the monitor and one without, which work by turns in short stretches; the round gives the
//! ratio of their sums, and the median of the rounds is the figure. CPU is that of the whole process. "own" is what the
//! monitor's thread has of it: that is exact, but does not count what it disturbs. The column is `rt`'s, with the monitor.

use crate::child::{Child, ChildError};
use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::Server;

const WITHIN_A_PERCENT: &[Goal] = &[Goal::AtMost(1.01)];

const fn metric(name: &'static str, unit: &'static str, goals: &'static [Goal]) -> Metric {
    Metric { name, unit, goals }
}

const METRICS: [Metric; 4] = [
    metric("CPU", "us", &[]),
    metric("CPU", "on/off", WITHIN_A_PERCENT),
    metric("time", "on/off", WITHIN_A_PERCENT),
    metric("own", "%", &[Goal::AtMost(1.0)]),
];

/// Milliseconds before anything is measured, and of each stretch.
const WARM_UP: u64 = 100;
const STRETCH: u64 = 100;

/// Stretches of each server in a round.
const STRETCHES: u64 = 3;

/// A server, and who loads it.
struct Side {
    server: Server,
    client: Child,
}

/// What a stretch took: operations, and ns of CPU, of time, and of CPU of the monitor.
type Cost = [f64; 4];

impl Side {
    fn start(monitor: &str, workers: usize, connections: usize) -> Result<Self, ChildError> {
        let role = ["monitor", monitor, &workers.to_string()].map(str::to_owned);
        let server = Server::start(&[], &role)?;
        let client = server.client(connections, 64)?;
        Ok(Self { server, client })
    }

    fn echo(&mut self, stretch: u64) -> Result<Cost, ChildError> {
        let [before, own_before] = self.server.cpu_with_monitor()?;
        let answer = self.client.ask(&format!("time {stretch}"))?;
        let [after, own] = self.server.cpu_with_monitor()?;
        Ok([answer[0], after - before, answer[1], own - own_before])
    }

    fn spawn(&mut self, stretch: u64) -> Result<Cost, ChildError> {
        // With a join it takes a tenth of a microsecond.
        let tasks = stretch * 8_000;
        let [_, own_before] = self.server.cpu_with_monitor()?;
        let [cpu, time] = self.server.spawns(tasks)?;
        let [_, own] = self.server.cpu_with_monitor()?;
        Ok([tasks as f64, cpu, time, own - own_before])
    }
}

/// All cells.
pub fn rows(options: &Options, report: &mut Report) {
    for workers in &options.workers {
        for connections in [1, 50] {
            let row = format!("monitor echo x {connections}");
            cell(options, report, &row, *workers, connections, Side::echo);
        }
        cell(options, report, "monitor spawn", *workers, 1, Side::spawn);
    }
}

fn cell(
    options: &Options,
    report: &mut Report,
    row: &str,
    workers: usize,
    connections: usize,
    run: fn(&mut Side, u64) -> Result<Cost, ChildError>,
) {
    if !report.takes(options, row) {
        return;
    }
    let mut round = 0;
    report.measure(
        row,
        workers,
        &[PeerId::Rt],
        options.rounds(5, 25),
        &METRICS,
        |_| {
            round += 1;
            let mut sides = ["on", "off"];
            if round % 2 == 0 {
                sides.reverse();
            }
            let mut up = Vec::new();
            for monitor in sides {
                let mut side = Side::start(monitor, workers, connections)?;
                run(&mut side, WARM_UP)?;
                up.push((monitor, side, [0.0; 4]));
            }
            for _ in 0..STRETCHES {
                for (_, side, sums) in &mut up {
                    for (sum, cost) in sums.iter_mut().zip(run(side, STRETCH)?) {
                        *sum += cost;
                    }
                }
                up.reverse();
            }
            up.sort_by_key(|(monitor, ..)| *monitor != "on");
            let [[n, cpu, time, own], [n_off, cpu_off, time_off, _]] = [up[0].2, up[1].2];
            Ok(vec![
                cpu / 1e3 / n,
                (cpu / n) / (cpu_off / n_off),
                (time / n) / (time_off / n_off),
                100.0 * own / cpu,
            ])
        },
    );
}
