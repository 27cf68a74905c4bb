//! What the server examples share: the command line and the runtime that it asks for.

use std::io;
use std::net::SocketAddr;
use std::process;

use rt::runtime::{Builder, Runtime};

/// The command line: `--addr IP:PORT --workers N`.
#[derive(Debug)]
pub(crate) struct Args {
    /// Where to listen; port 0 lets the system choose.
    pub(crate) addr: SocketAddr,
    /// How many worker threads; `Some(0)` runs everything on the main thread, `None` takes one per core.
    pub(crate) workers: Option<usize>,
}

/// Why there are no [`Args`].
enum Stop {
    Help,
    Wrong(String),
}

impl Args {
    /// Reads the command line. Nonsense ends the process with status 2, `--help` with status 0.
    pub(crate) fn from_command_line(default_addr: &str) -> Args {
        let mut words = std::env::args();
        let program = words.next().unwrap_or_else(|| "example".to_owned());
        match Args::parse(words, default_addr) {
            Ok(args) => args,
            Err(Stop::Help) => {
                println!("{}", usage(&program, default_addr));
                process::exit(0)
            }
            Err(Stop::Wrong(message)) => {
                eprintln!("{message}\n{}", usage(&program, default_addr));
                process::exit(2)
            }
        }
    }

    fn parse(mut words: impl Iterator<Item = String>, default_addr: &str) -> Result<Args, Stop> {
        let mut addr = default_addr.to_owned();
        let mut workers = None;
        while let Some(word) = words.next() {
            // Both `--name value` and `--name=value`.
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value = || {
                attached
                    .clone()
                    .or_else(|| words.next())
                    .ok_or_else(|| Stop::Wrong(format!("{name} needs a value")))
            };
            match name.as_str() {
                "--addr" => addr = value()?,
                "--workers" => {
                    let value = value()?;
                    workers = Some(value.parse::<usize>().map_err(|error| {
                        Stop::Wrong(format!("--workers {value} is not a count: {error}"))
                    })?);
                }
                "--help" | "-h" => return Err(Stop::Help),
                _ => return Err(Stop::Wrong(format!("there is no option {name}"))),
            }
        }
        let addr = addr.parse().map_err(|_| {
            Stop::Wrong(format!(
                "--addr {addr} is not of the form IP:PORT, such as 127.0.0.1:8080"
            ))
        })?;
        Ok(Args { addr, workers })
    }

    /// Builds the runtime that `--workers` asks for.
    pub(crate) fn runtime(&self) -> io::Result<Runtime> {
        let mut builder = match self.workers {
            Some(0) => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        if let Some(workers @ 1..) = self.workers {
            builder.worker_threads(workers);
        }
        builder.enable_all().build()
    }
}

fn usage(program: &str, default_addr: &str) -> String {
    format!(
        "usage: {program} [--addr IP:PORT] [--workers N]\n\
         \x20 --addr     where to listen, port 0 takes a free one (default: {default_addr})\n\
         \x20 --workers  number of worker threads, 0 runs everything on the main thread (default: one per core)"
    )
}
