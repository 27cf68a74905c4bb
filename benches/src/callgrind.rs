//! Instructions per operation, counted by valgrind's callgrind.
//!
//! Times differ from run to run and machine to machine; instructions of the same binary hardly do, so a gate can stand
//! on them. A workload runs in a child process under callgrind with n and with 2n operations, and the difference over n
//! is the figure: start-up, warm-up and shutdown cancel out.
//!
//! # What would mislead
//! Instructions are not time: a locked one counts as one, and a miss of the cache as nothing. Only user space counts.
//! valgrind runs one thread at a time, so these are the paths of one worker without contention. An echo server is some
//! fifty times slower under it, so a wait brings more events than it would otherwise, which flatters every peer alike.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::child::{Child, ChildError};
use crate::peer::PeerId;
use crate::server::{Server, echo_role};

/// Far more than a run takes, as a hang is to end some day.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether valgrind can be started.
///
/// # Errors
///
/// Says how to install it.
pub fn available() -> Result<(), String> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(
            "valgrind is missing, and instructions are counted with it: apt-get install valgrind"
                .to_owned(),
        ),
    }
}

/// Instructions per operation of one of [`rows::workloads`](crate::rows::workloads).
///
/// # Errors
///
/// If a child fails, or callgrind reports no count.
pub fn per_operation(workload: &str, peer: PeerId, operations: u64) -> Result<f64, ChildError> {
    difference(operations, |operations| {
        let log = Log::new();
        let role = ["work", workload, peer.name(), &operations.to_string()].map(str::to_owned);
        let child = Child::start(&log.wrapper(), &role)?.patient(PATIENCE);
        child.line()?;
        child.finish()?;
        log.count()
    })
}

/// User instructions per message of an echo server with one worker and 50 connections of 64 bytes.
///
/// # Errors
///
/// If a child fails, or callgrind reports no count.
pub fn per_message(peer: PeerId, messages: u64) -> Result<f64, ChildError> {
    difference(messages, |messages| {
        let log = Log::new();
        let server = Server::start(&log.wrapper(), &echo_role(peer, 1, 4096, 0))?;
        let mut client = server.client(50, 64)?;
        client.ask(&format!("count {messages}"))?;
        server.finish()?;
        log.count()
    })
}

fn difference(
    operations: u64,
    mut count: impl FnMut(u64) -> Result<f64, ChildError>,
) -> Result<f64, ChildError> {
    let once = count(operations)?;
    let twice = count(2 * operations)?;
    Ok((twice - once) / operations as f64)
}

/// Where one run of valgrind writes what it has to say. Dropping it removes the file.
#[derive(Debug)]
struct Log {
    file: PathBuf,
}

impl Log {
    fn new() -> Self {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let name = format!("rt-benches-{}-{run}.callgrind", std::process::id());
        Self {
            file: std::env::temp_dir().join(name),
        }
    }

    fn wrapper(&self) -> [String; 4] {
        [
            "valgrind".to_owned(),
            "--tool=callgrind".to_owned(),
            "--callgrind-out-file=/dev/null".to_owned(),
            format!("--log-file={}", self.file.display()),
        ]
    }

    fn count(&self) -> Result<f64, ChildError> {
        let text = read(&self.file);
        collected(&text)
            .ok_or_else(|| ChildError::new(format!("callgrind reported no count: {text:?}")))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn collected(text: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, number)| number.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_count_in_what_callgrind_says() {
        assert_eq!(
            collected("==7== Events    : Ir\n==7== Collected : 171826\n"),
            Some(171_826.0)
        );
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }
}
