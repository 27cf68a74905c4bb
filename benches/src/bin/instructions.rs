//! Instructions per operation of the hot paths, by callgrind: `instructions [--peer NAME]... [--gate] [word...]`.
//!
//! `--gate` measures `rt` alone and fails if a hot path exceeds its limit by more than a tenth, or if valgrind is
//! missing. What is counted and what would mislead: the head of `rt_benches::callgrind`.

use std::process::ExitCode;

use rt_benches::peer::PeerId;
use rt_benches::report::figure;
use rt_benches::{callgrind, roles, usage};

/// What is counted.
#[derive(Clone, Copy)]
enum Subject {
    /// A workload of the table, by its name.
    Workload,
    /// A message of the echo server.
    Echo,
}

struct Line {
    name: &'static str,
    subject: Subject,
    /// Operations of the shorter of the two runs.
    operations: u64,
    /// What `rt` is meant to need at most.
    limit: Option<f64>,
    /// Whether exceeding the limit fails the gate.
    gate: bool,
}

/// The limits, each with its reason. tokio's figures are those of 1.54 with one worker.
const LINES: &[Line] = &[
    // tokio 2221. One allocation and free (some 250), queue, two state changes, the join waker; the prototype had 698.
    Line {
        name: "spawn+join",
        subject: Subject::Workload,
        operations: 10_000,
        limit: Some(1000.0),
        gate: true,
    },
    // tokio 513. Off the queue, one exchange, poll, back on the queue, and a 61st of a look at the selector; prototype 242.
    Line {
        name: "yield",
        subject: Subject::Workload,
        operations: 40_000,
        limit: Some(330.0),
        gate: true,
    },
    // tokio 4376. Two spawns, one join, two messages of a channel that is not ours; prototype 2187.
    Line {
        name: "ping-pong",
        subject: Subject::Workload,
        operations: 4_000,
        limit: Some(2700.0),
        gate: true,
    },
    // tokio 1779. A spawn without a join that lands in the next slot: no other worker is looked at; prototype 427.
    Line {
        name: "chained spawn",
        subject: Subject::Workload,
        operations: 10_000,
        limit: Some(650.0),
        gate: true,
    },
    // No gate: judged by time in the table, since the clock that a new sleep reads is not an instruction count.
    Line {
        name: "timer insert+cancel of 100",
        subject: Subject::Workload,
        operations: 10_000,
        limit: None,
        gate: false,
    },
    // tokio 1154, by hand 157. No gate: it depends on how many events a wait brings, thus on the load generator.
    Line {
        name: "echo, 50 connections",
        subject: Subject::Echo,
        operations: 10_000,
        limit: Some(850.0),
        gate: false,
    },
];

/// How far above its limit a gated line may be: compilers differ.
const ROOM: f64 = 1.1;

struct Options {
    gate: bool,
    peers: Vec<PeerId>,
    filters: Vec<String>,
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        gate: false,
        peers: Vec::new(),
        filters: Vec::new(),
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--gate" => options.gate = true,
            "--peer" => {
                let name = arguments
                    .next()
                    .ok_or("--peer needs a name after it: rt, tokio, smol or by-hand")?;
                options.peers.push(name.parse()?);
            }
            flag if flag.starts_with('-') => {
                return Err(format!(
                    "unknown option {flag}; there are --peer NAME, --gate, and words that names contain"
                ));
            }
            _ => options.filters.push(argument),
        }
    }
    if options.gate {
        options.peers = vec![PeerId::Rt];
    } else if options.peers.is_empty() {
        options.peers = PeerId::ALL.to_vec();
    }
    Ok(options)
}

fn main() -> ExitCode {
    roles::play_if_child();
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => return refuse(&message),
    };
    if let Err(message) = callgrind::available() {
        return refuse(&message);
    }
    usage::raise_descriptor_limit();
    print!("{:<27}", "instructions each");
    for peer in &options.peers {
        print!(" {peer:>9}");
    }
    println!("  {:>7}", "limit");
    let (mut passed, mut failed) = (0, 0);
    for line in LINES {
        let wanted = options.filters.is_empty()
            || options
                .filters
                .iter()
                .any(|filter| line.name.contains(filter.as_str()));
        if !wanted || (options.gate && !line.gate) {
            continue;
        }
        if measure(line, &options) {
            passed += 1;
        } else {
            failed += 1;
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints one line of the table; false if a count is missing or a gated limit is exceeded.
fn measure(line: &Line, options: &Options) -> bool {
    print!("{:<27}", line.name);
    let mut whole = true;
    let mut own = None;
    let mut troubles = Vec::new();
    for peer in &options.peers {
        let count = match (line.subject, peer) {
            (Subject::Echo, _) => callgrind::per_message(*peer, line.operations),
            (Subject::Workload, PeerId::ByHand) => {
                print!(" {:>9}", "-");
                continue;
            }
            (Subject::Workload, _) => callgrind::per_operation(line.name, *peer, line.operations),
        };
        match count {
            Ok(count) => {
                print!(" {:>9}", figure(count));
                if *peer == PeerId::Rt {
                    own = Some(count);
                }
            }
            Err(error) => {
                print!(" {:>9}", "failed");
                troubles.push(format!("{peer}: {error}"));
                whole = false;
            }
        }
    }
    print!(
        "  {:>7}",
        line.limit.map_or("-".to_owned(), |limit| limit.to_string())
    );
    if let (Some(own), Some(limit)) = (own, line.limit) {
        let above = (own / limit - 1.0) * 100.0;
        let failed = line.gate && options.gate && own > limit * ROOM;
        if failed {
            print!("  FAILED, {above:.0} % above");
        } else if above > 0.0 {
            print!("  {above:.0} % above");
        } else {
            print!("  ok");
        }
        whole &= !failed;
    }
    println!();
    for trouble in troubles {
        println!("  {trouble}");
    }
    whole
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{message}");
    println!("0 passed, 1 failed");
    ExitCode::FAILURE
}
