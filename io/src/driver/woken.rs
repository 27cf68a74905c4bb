//! The wakers that one select found, between the select and their wake.

use std::fmt;
use std::panic;
use std::task::Waker;

use rt_sync::wake_batch::{discard, wake_each};

/// Wakers of one turn, in the order of its events, to be [woken](Self::wake) under no lock.
///
/// It grows with the turn, other than a [`WakeBatch`](rt_sync::WakeBatch): the events of one select are all dispatched
/// before any waker is woken. Nothing is lost: what is still in it when it is dropped is woken then.
#[derive(Default)]
#[must_use = "whoever waits for these events has to be woken"]
pub struct Woken(Vec<Waker>);

impl Woken {
    /// Empty.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Where the dispatch puts what it finds.
    pub(super) fn list(&mut self) -> &mut Vec<Waker> {
        &mut self.0
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes all, in order.
    ///
    /// # Panics
    /// With the first panic of a waker, after all the others were woken.
    pub fn wake(&mut self) {
        if let Some(payload) = wake_each(self.0.drain(..)) {
            panic::resume_unwind(payload);
        }
    }

    /// The same for a caller that has nothing to do with who owns the wakers: a panic, of which the panic hook has told,
    /// goes no further.
    pub fn wake_contained(&mut self) {
        if let Some(payload) = wake_each(self.0.drain(..)) {
            discard(payload);
        }
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        self.wake_contained();
    }
}

impl fmt::Debug for Woken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Woken({})", self.len())
    }
}
