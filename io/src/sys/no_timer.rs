//! The end of a timed select where there is no timerfd: the timeout of the selector, in its own precision.

use std::time::{Duration, Instant};

use mio::{Registry, Token};

/// Longer waits are cut into pieces.
const MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Timer;

impl Timer {
    pub(crate) const fn new(_token: Token) -> Self {
        Self
    }

    /// The timeout to give to a select that shall end at `deadline`.
    pub(crate) fn prepare(&mut self, _registry: &Registry, deadline: Instant) -> Option<Duration> {
        Some(deadline.saturating_duration_since(Instant::now()).min(MAX))
    }

    pub(crate) fn fired(&mut self) {}
}
