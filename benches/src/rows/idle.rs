//! What does a process use that only waits: 10,000 sleeping timers and 5,000 idle connections?
//!
//! # What would mislead
//! The thread that answers the question about CPU time is left out: see `usage.rs`. All servers wait in the same seconds.
//! Each connection has echoed one message when it was opened, so it is registered.

use std::time::{Duration, Instant};

use crate::goal::Goal;
use crate::options::Options;
use crate::peer::PeerId;
use crate::report::{Metric, Report};
use crate::server::Server;

const METRIC: Metric = Metric {
    name: "CPU",
    unit: "us/s",
    goals: &[Goal::AtMost(100.0)],
};
const ROW: &str = "idle, 10k timers 5k sockets";

/// The row.
pub fn row(options: &Options, report: &mut Report) {
    if !report.takes(options, ROW) {
        return;
    }
    let workers = options.workers.iter().copied().max().unwrap_or(1);
    let span = Duration::from_secs(if options.quick { 2 } else { 10 });
    let mut servers = Vec::new();
    for peer in PeerId::RUNTIMES
        .into_iter()
        .filter(|peer| options.peers.contains(peer))
    {
        let up = Server::echo(peer, workers, 64, 10_000).and_then(|server| {
            let client = server.client(5_000, 64)?;
            Ok((server, client))
        });
        match up {
            Ok((server, client)) => servers.push((peer, server, client)),
            Err(error) => report.fail(ROW, format!("{peer}: {error}")),
        }
    }
    // What the load has set in motion comes to rest.
    std::thread::sleep(Duration::from_millis(300));
    let mut used = Vec::new();
    for (peer, server, _) in &mut servers {
        used.push((*peer, Instant::now(), server.cpu()));
    }
    std::thread::sleep(span);
    let up: Vec<PeerId> = servers.iter().map(|(peer, ..)| *peer).collect();
    report.measure(ROW, workers, &up, 1, &[METRIC], |peer| {
        let (place, (_, server, _)) = servers
            .iter_mut()
            .enumerate()
            .find(|(_, (of, ..))| *of == peer)
            .expect("only peers that are up are asked");
        let (_, start, before) = &used[place];
        let before = before.as_ref().map_or(f64::NAN, |cpu| *cpu);
        let used = server.cpu()? - before;
        Ok(vec![used / 1e3 / start.elapsed().as_secs_f64()])
    });
}
