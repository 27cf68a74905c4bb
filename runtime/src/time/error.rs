//! Errors of this module.

use std::error::Error;
use std::fmt;
use std::io;

/// The deadline of a [`Timeout`](super::Timeout) passed before the future inside had a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Elapsed {}

impl Elapsed {
    pub(crate) const fn new() -> Self {
        Elapsed {}
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the future was ready")
    }
}

impl Error for Elapsed {}

/// The deadline of a timeout could not be moved, since it had ended already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RescheduleError {
    expired: bool,
}

impl RescheduleError {
    pub(super) const fn new(expired: bool) -> Self {
        Self { expired }
    }

    /// Whether the deadline had passed. Otherwise the future inside had ended, or was dropped.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.expired
    }
}

impl fmt::Display for RescheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.expired {
            "the timeout has expired already: its deadline cannot be moved any more"
        } else {
            "what the timeout limits has ended already: there is no deadline to move"
        })
    }
}

impl Error for RescheduleError {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}
