//! What a child process does: the other side of [`child`](crate::child).
//!
//! | role | answers |
//! |---|---|
//! | `sample <row> <peer> <workers> <operations>` | the row's metrics, then ends |
//! | `work <workload> <peer> <operations>` | `0` when done, then ends (for callgrind) |
//! | `echo <peer> <workers> <buffer> <sleepers>` | its port, then one line a command |
//! | `http <peer> <workers>` | its port, then one line a command |
//! | `stall <peer> <workers> <trouble>` | its port, then one line a command |
//! | `busy <peer> <workers> <tasks>` | its port, then one line a command |
//! | `monitor <on or off> <workers>` | its port, then one line a command |
//! | `load <port> <connections> <bytes>` | `0` when connected, then one line a command |
//!
//! Commands of servers: `usage` (CPU in ns, resident bytes); of `stall` also `late` (p50 ns and p99 ns by which its tickers
//! were late since the last question); of `busy` `work` and `rest`; of `monitor` `usage` (CPU in ns, that of the
//! monitor) and `spawn <tasks>` (CPU ns, ns).
//! Commands of the load generator: `time <ms>`, `paced <ms> <pause in us>` and
//! `count <messages>` (messages, elapsed ns, p50 ns, p99 ns, p99.9 ns).

use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::child::CHILD_FLAG;
use crate::load::{Load, Until};
use crate::peer::{HttpPeer, Peer, PeerId, Rt, Tokio, by_hand, on_worker, without_monitor};
use crate::rows::spawn::spawn_join;
use crate::{busy, rows, serve, stalls, usage, with_peer};

/// Plays the role that the command line names and ends the process; returns if it names none.
///
/// # Panics
///
/// If the role is unknown or fails: the parent sees that the child ended without an answer.
pub fn play_if_child() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((CHILD_FLAG, role)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    else {
        return;
    };
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["sample", row, peer, workers, operations] => {
            answer(&rows::sample(
                row,
                parse(peer),
                parse(workers),
                parse(operations),
            ));
        }
        ["work", workload, peer, operations] => {
            rows::work(workload, parse(peer), parse(operations));
            answer(&[0.0]);
        }
        ["echo", peer, workers, buffer, sleepers] => {
            echo(parse(peer), parse(workers), parse(buffer), parse(sleepers))
        }
        ["stall", peer, workers, trouble] => {
            with_peer!(parse(peer), P => stalls::serve::<P>(parse(workers), parse(trouble), answer));
        }
        ["busy", peer, workers, tasks] => {
            with_peer!(parse(peer), P => busy::serve::<P>(parse(workers), parse(tasks), answer));
        }
        ["monitor", "on", workers] => watched::<Rt>(parse(workers)),
        ["monitor", "off", workers] => {
            without_monitor();
            watched::<Rt>(parse(workers));
        }
        ["http", peer, workers] => match parse(peer) {
            PeerId::Rt => http::<Rt>(parse(workers)),
            PeerId::Tokio => http::<Tokio>(parse(workers)),
            other => panic!("{other} serves no HTTP here"),
        },
        ["load", port, connections, bytes] => load(parse(port), parse(connections), parse(bytes)),
        _ => panic!("no role {words:?}"),
    }
    // Not through the destructors of a runtime: how long those take is no row's question.
    std::process::exit(0);
}

fn parse<T: FromStr>(word: &str) -> T {
    word.parse()
        .unwrap_or_else(|_| panic!("{word:?} is not what this place of the role takes"))
}

fn answer(numbers: &[f64]) {
    let words: Vec<String> = numbers.iter().map(f64::to_string).collect();
    println!("{}", words.join(" "));
}

/// An echo server that also spawns.
fn watched<P: Peer>(workers: usize) {
    let (peer, address) = serve::echo::<P>(workers, 4096);
    answer(&[f64::from(address.port())]);
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("the parent writes text");
        match *line.split(' ').collect::<Vec<_>>() {
            ["usage"] => answer(&[
                usage::cpu_of_others().as_nanos() as f64,
                usage::cpu_of_thread("rt-monitor").as_nanos() as f64,
            ]),
            ["spawn", tasks] => {
                let tasks: u64 = parse(tasks);
                let (cpu, start) = (usage::process_cpu(), Instant::now());
                on_worker(&peer, spawn_join::<P>(tasks));
                let used = [usage::process_cpu() - cpu, start.elapsed()];
                answer(&used.map(|used| used.as_nanos() as f64));
            }
            _ => panic!("a server of the monitor rows does not understand {line:?}"),
        }
    }
    std::mem::forget(peer);
}

/// Answers `usage` until the parent closes the pipe.
fn answer_usage() {
    for line in std::io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("usage") => answer(&[
                usage::cpu_of_others().as_nanos() as f64,
                usage::resident() as f64,
            ]),
            other => panic!("a server understands only `usage`, not {other:?}"),
        }
    }
}

fn echo(peer: PeerId, workers: usize, buffer: usize, sleepers: u64) {
    usage::raise_descriptor_limit();
    if peer == PeerId::ByHand {
        let address = by_hand::serve(workers, buffer).expect("the hand-written loop listens");
        answer(&[f64::from(address.port())]);
        answer_usage();
        return;
    }
    with_peer!(peer, P => echo_of::<P>(workers, buffer, sleepers));
}

fn echo_of<P: Peer>(workers: usize, buffer: usize, sleepers: u64) {
    let (peer, address) = serve::echo::<P>(workers, buffer);
    serve::sleepers(&peer, sleepers);
    answer(&[f64::from(address.port())]);
    answer_usage();
    std::mem::forget(peer);
}

fn http<P: HttpPeer>(workers: usize) {
    usage::raise_descriptor_limit();
    let (peer, address) = serve::http::<P>(workers);
    answer(&[f64::from(address.port())]);
    answer_usage();
    std::mem::forget(peer);
}

fn load(port: u16, connections: usize, bytes: usize) {
    usage::raise_descriptor_limit();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut load =
        Load::connect(address, connections, bytes).expect("the server takes all connections");
    answer(&[0.0]);
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("the parent writes text");
        let words: Vec<&str> = line.split(' ').collect();
        let elapsed = |ms| Until::Elapsed(Duration::from_millis(parse(ms)));
        let (until, pause) = match words[..] {
            ["time", ms] => (elapsed(ms), 0),
            ["paced", ms, pause] => (elapsed(ms), parse(pause)),
            ["count", messages] => (Until::Sent(parse(messages)), 0),
            _ => panic!("the load generator does not understand {line:?}"),
        };
        let outcome = load
            .run(until, Duration::from_micros(pause))
            .expect("the server echoes");
        answer(&[
            outcome.messages as f64,
            outcome.elapsed.as_nanos() as f64,
            outcome.p50.as_nanos() as f64,
            outcome.p99.as_nanos() as f64,
            outcome.p999.as_nanos() as f64,
        ]);
    }
}
