//! Errors of this module.

use std::error::Error;
use std::fmt;
use std::io;

/// The deadline of a [`Timeout`](super::Timeout) passed before the future inside had a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Elapsed {}

impl Elapsed {
    pub(super) const fn new() -> Self {
        Elapsed {}
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the future was ready")
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}
