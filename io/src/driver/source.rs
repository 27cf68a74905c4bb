//! One registered descriptor: its readiness, its driver and its slot.

use std::fmt;
use std::os::fd::RawFd;
use std::panic::Location;
use std::sync::Arc;

use super::handle::Handle;
use super::readiness::Readiness;
use super::slots::Token;

/// The one allocation of a registered descriptor. Shared by its owner and by the slot table of the driver.
pub(crate) struct Source {
    pub(crate) readiness: Readiness,
    pub(crate) handle: Arc<Handle>,
    pub(crate) token: Token,
    pub(crate) fd: RawFd,
    /// Where it had to wait for the first time.
    pub(crate) made: &'static Location<'static>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("readiness", &self.readiness)
            .field("runtime", &self.handle.name())
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}
