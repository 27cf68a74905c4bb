//! The stack of a blocked thread, for reports: see `sys/stack`. Linux on x86-64 and aarch64; elsewhere there is none.

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use crate::sys::stack::{Thread, capture, symbolise};

/// Reads the debug information of the program, on a thread that gives way to others, so that the first
/// [`symbolise`] does not have to.
pub fn warm_up() {
    be_nice();
    let here: fn() = warm_up;
    drop(symbolise(&[here as usize + 1]));
}

/// Makes this thread give way to others.
pub fn be_nice() {
    #[cfg(target_os = "linux")]
    // Fails where a sandbox forbids it.
    let _ = rustix::process::setpriority_process(None, 5);
}

/// A function on a stack.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Where it is, or will go on.
    pub address: usize,
    /// Its name with its path.
    pub name: Option<String>,
    /// The file, if the program has line tables.
    pub file: Option<PathBuf>,
    /// The line in it.
    pub line: Option<u32>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{:#x}", self.address)?,
        }
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " at {}:{line}", file.display()),
            _ => Ok(()),
        }
    }
}

/// Why there is no stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStack {
    /// The poll ended first.
    Over,
    /// The thread is gone.
    Gone,
    /// The thread did not run the handler: it waits for a device, has no processor, or blocks the signal.
    NoAnswer,
    /// Every real-time signal of the process has a handler.
    NoSignal,
    /// The system does not let the signal be sent; its error number says why.
    Refused(i32),
    /// Not on this system.
    Unsupported,
}

impl fmt::Display for NoStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoStack::Refused(number) => {
                let error = io::Error::from_raw_os_error(*number);
                return write!(f, "the thread could not be sent a signal: {error}");
            }
            NoStack::Over => "the poll was over before its stack could be taken",
            NoStack::Gone => "the thread is gone",
            NoStack::NoAnswer => {
                "the thread does not take signals: it waits for a device, gets no processor, or blocks them"
            }
            NoStack::NoSignal => "every real-time signal of the process is in use",
            NoStack::Unsupported => "stacks of other threads are to be had on Linux, x86-64 and aarch64",
        })
    }
}
