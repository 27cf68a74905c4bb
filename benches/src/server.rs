//! A server in a child process, as the parent sees it: its port, its clients, what it has used.

use crate::child::{Child, ChildError};
use crate::peer::PeerId;

/// A server in a child process.
#[derive(Debug)]
pub struct Server {
    child: Child,
    port: u16,
}

/// The role of an echo server.
#[must_use]
pub fn echo_role(peer: PeerId, workers: usize, buffer: usize, sleepers: u64) -> [String; 5] {
    [
        "echo".to_owned(),
        peer.to_string(),
        workers.to_string(),
        buffer.to_string(),
        sleepers.to_string(),
    ]
}

impl Server {
    /// Starts an echo server, with `sleepers` tasks that sleep beside it.
    ///
    /// # Errors
    ///
    /// If the child does not come up.
    pub fn echo(
        peer: PeerId,
        workers: usize,
        buffer: usize,
        sleepers: u64,
    ) -> Result<Self, ChildError> {
        Self::start(&[], &echo_role(peer, workers, buffer, sleepers))
    }

    /// Starts a server role, under a wrapper if one is given.
    ///
    /// # Errors
    ///
    /// If the child does not come up.
    pub fn start(wrapper: &[String], role: &[String]) -> Result<Self, ChildError> {
        let child = Child::start(wrapper, role)?;
        let port = child.numbers()?.first().copied().unwrap_or(0.0) as u16;
        Ok(Self { child, port })
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a load generator with open connections to it.
    ///
    /// # Errors
    ///
    /// If the connections cannot be opened.
    pub fn client(&self, connections: usize, bytes: usize) -> Result<Child, ChildError> {
        let role = [
            "load".to_owned(),
            self.port.to_string(),
            connections.to_string(),
            bytes.to_string(),
        ];
        let client = Child::start(&[], &role)?;
        client.line()?;
        Ok(client)
    }

    /// CPU that the server has used, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the child does not answer.
    pub fn cpu(&mut self) -> Result<f64, ChildError> {
        Ok(self.usage()?[0])
    }

    /// Resident memory of the server, in bytes.
    ///
    /// # Errors
    ///
    /// If the child does not answer.
    pub fn resident(&mut self) -> Result<f64, ChildError> {
        Ok(self.usage()?[1])
    }

    /// By how much the tickers of a `stall` server were late since the last question: p50 and p99, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the child does not answer.
    pub fn late(&mut self) -> Result<[f64; 2], ChildError> {
        let numbers = self.child.ask("late")?;
        Ok([numbers[0], numbers[1]])
    }

    /// CPU that a `monitor` server has used, and what its monitor has of it, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the child does not answer.
    pub fn cpu_with_monitor(&mut self) -> Result<[f64; 2], ChildError> {
        let numbers = self.child.ask("usage")?;
        Ok([numbers[0], numbers[1]])
    }

    /// Lets a `monitor` server spawn and await so many tasks. CPU of the process, and time, in nanoseconds.
    ///
    /// # Errors
    ///
    /// If the child does not answer.
    pub fn spawns(&mut self, number: u64) -> Result<[f64; 2], ChildError> {
        let numbers = self.child.ask(&format!("spawn {number}"))?;
        Ok([numbers[0], numbers[1]])
    }

    /// Sets the tasks of a `busy` server to work, or lets them rest.
    ///
    /// # Errors
    ///
    /// If the child does not answer.
    pub fn set_busy(&mut self, busy: bool) -> Result<(), ChildError> {
        self.child.ask(if busy { "work" } else { "rest" }).map(drop)
    }

    fn usage(&mut self) -> Result<[f64; 2], ChildError> {
        let numbers = self.child.ask("usage")?;
        Ok([numbers[0], numbers[1]])
    }

    /// Ends the server and waits for it.
    ///
    /// # Errors
    ///
    /// If it does not end by itself.
    pub fn finish(self) -> Result<(), ChildError> {
        self.child.finish()
    }
}
