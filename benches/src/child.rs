//! Child processes: this program started again in another role, asked and answered over its standard streams.
//!
//! Every sample runs in a process of its own, so that no peer inherits the heap, the threads or the globals of
//! another, and so that a peer that crashes or hangs costs its cell and not the table.
//!
//! # How they talk
//! The parent writes one word and its arguments a line, the child answers with one line of numbers. The end of the
//! parent's pipe ends the child, so none outlives a killed parent. [`roles`](crate::roles) has the child's side.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The first argument that makes a program of this crate a child.
pub const CHILD_FLAG: &str = "--child";

/// Why a child gave no answer.
#[derive(Debug)]
pub struct ChildError(String);

impl ChildError {
    /// Any other reason why a sample is missing.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChildError {}

/// A running child. Dropping it ends and reaps it.
#[derive(Debug)]
pub struct Child {
    process: Process,
    ask: Option<ChildStdin>,
    answers: Receiver<String>,
    role: String,
    patience: Duration,
}

impl Child {
    /// Starts this program in a role, under a wrapper such as `valgrind` if one is given.
    ///
    /// # Errors
    ///
    /// If the program, or the wrapper, cannot be started.
    pub fn start(wrapper: &[String], role: &[String]) -> Result<Self, ChildError> {
        let own = std::env::current_exe()
            .map_err(|error| ChildError(format!("own program not found: {error}")))?;
        let mut command = match wrapper.split_first() {
            None => Command::new(&own),
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&own);
                command
            }
        };
        command.arg(CHILD_FLAG).args(role);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if std::env::var_os("RT_BENCH_STDERR").is_some() {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .spawn()
            .map_err(|error| {
                ChildError(format!("{:?} not started: {error}", command.get_program()))
            })?;
        let ask = process.stdin.take();
        let stdout = process.stdout.take().expect("stdout is piped");
        let (sender, answers) = channel();
        // A reader of its own, so that waiting for an answer can have a time limit.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            process,
            ask,
            answers,
            role: role.join(" "),
            patience: Duration::from_secs(30),
        })
    }

    /// Waits up to `patience` for each answer from now on, instead of 30 s.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The next line of the child.
    ///
    /// # Errors
    ///
    /// If the child ended, or said nothing for as long as we are patient.
    pub fn line(&self) -> Result<String, ChildError> {
        self.answers.recv_timeout(self.patience).map_err(|error| {
            let why = match error {
                RecvTimeoutError::Timeout => format!("said nothing for {:?}", self.patience),
                RecvTimeoutError::Disconnected => {
                    "ended (RT_BENCH_STDERR=1 shows what it said)".to_owned()
                }
            };
            ChildError(format!("child `{}` {why}", self.role))
        })
    }

    /// The next line of the child, as numbers.
    ///
    /// # Errors
    ///
    /// As [`line`](Self::line), and if the line is not numbers.
    pub fn numbers(&self) -> Result<Vec<f64>, ChildError> {
        let line = self.line()?;
        line.split_whitespace()
            .map(|word| {
                word.parse().map_err(|_| {
                    ChildError(format!(
                        "child `{}` said {line:?} instead of numbers",
                        self.role
                    ))
                })
            })
            .collect()
    }

    /// Sends a command and returns the numbers of the answer.
    ///
    /// # Errors
    ///
    /// If the child has ended or does not answer in time.
    pub fn ask(&mut self, command: &str) -> Result<Vec<f64>, ChildError> {
        let pipe = self.ask.as_mut().expect("the pipe is open until drop");
        writeln!(pipe, "{command}")
            .map_err(|error| ChildError(format!("child `{}`: {error}", self.role)))?;
        self.numbers()
    }

    /// Ends the child as [`Drop`] does, and waits for it: then what a wrapper wrote about it is complete.
    ///
    /// # Errors
    ///
    /// If the child does not end within its patience, or ends with a failure.
    pub fn finish(mut self) -> Result<(), ChildError> {
        self.ask = None;
        while self.line().is_ok() {}
        match self.process.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(ChildError(format!(
                "child `{}` ended with {status}",
                self.role
            ))),
            Err(error) => Err(ChildError(format!("child `{}`: {error}", self.role))),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // 1. Closing the pipe tells it to end; 2. a child that is stuck does not listen, so kill it as well.
        self.ask = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a role to its end and returns the numbers of its one line.
///
/// # Errors
///
/// As [`Child::numbers`].
pub fn sample(role: &[String]) -> Result<Vec<f64>, ChildError> {
    Child::start(&[], role)?.numbers()
}
