//! `rt`: looks into a running program that uses the crate `rt` with its feature `inspect`.

mod client;
mod ps;
mod text;
mod top;
mod tree;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt;
use rt::inspect::wire::Question;

const HELP: &str = "\
Looks into a running program that uses the crate `rt` with its feature `inspect`.

Usage: rt <command> <pid>

Commands:
  ps       every task: state, what it waits for and for how long, polls, where it was spawned
  tree     who spawned whom, who awaits whom, and groups
  top      what the workers do, live (q: Ctrl-C); -d <seconds> between two pictures, -n <pictures>
  metrics  the metrics of each runtime

Options:
  -h, --help     this text
  -V, --version  the version
";

enum Command {
    Ps,
    Tree,
    Top { pause: Duration, pictures: u64 },
    Metrics,
}

fn main() -> ExitCode {
    let done = arguments().and_then(|todo| match todo {
        None => Ok(()),
        Some((command, pid)) => run(command, pid),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("rt: {message}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Option<(Command, u32)>, String> {
    let mut parser = lexopt::Parser::from_env();
    let (mut words, mut pause, mut pictures) = (Vec::new(), 1.0, u64::MAX);
    while let Some(arg) = parser.next().map_err(text)? {
        match arg {
            Short('h') | Long("help") => {
                print(HELP)?;
                return Ok(None);
            }
            Short('V') | Long("version") => {
                print(&format!("rt {}\n", env!("CARGO_PKG_VERSION")))?;
                return Ok(None);
            }
            Short('d') | Long("delay") => pause = parse(&mut parser)?,
            Short('n') | Long("pictures") => pictures = parse(&mut parser)?,
            Value(word) => words.push(word.string().map_err(text)?),
            other => return Err(text(other.unexpected())),
        }
    }
    let [command, pid] = words.as_slice() else {
        return Err("expected a command and the number of a process; see `rt --help`".to_owned());
    };
    let pause = Duration::try_from_secs_f64(pause).map_err(text)?;
    let command = match command.as_str() {
        "ps" => Command::Ps,
        "tree" => Command::Tree,
        "top" => Command::Top { pause, pictures },
        "metrics" => Command::Metrics,
        other => return Err(format!("unknown command '{other}'; see `rt --help`")),
    };
    let pid = pid
        .parse()
        .map_err(|_| format!("'{pid}' is not the number of a process"))?;
    Ok(Some((command, pid)))
}

fn parse<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    parser: &mut lexopt::Parser,
) -> Result<T, String> {
    parser.value().and_then(|value| value.parse()).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run(command: Command, pid: u32) -> Result<(), String> {
    match command {
        Command::Ps => print(&ps::table(&client::ask(pid, Question::Dump)?)),
        Command::Tree => print(&tree::draw(&client::ask(pid, Question::Dump)?)),
        Command::Metrics => {
            let answer = client::ask(pid, Question::Metrics)?;
            let texts: Vec<_> = answer.runtimes.iter().map(|r| &*r.metrics).collect();
            print(&texts.join("\n"))
        }
        Command::Top { pause, pictures } => top::run(pid, pause, pictures),
    }
}

/// To standard output. A reader that has gone, as `head`, is no failure.
fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write: {error}"))
        }
        _ => Ok(()),
    }
}
