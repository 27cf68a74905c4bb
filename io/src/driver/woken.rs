//! The wakers that one select found, between the select and their wake.

use std::fmt;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::task::Waker;

/// Wakers of one turn, in the order of its events, to be [woken](Self::wake) under no lock.
///
/// Nothing is lost: what is still in it when it is dropped is woken then.
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
        let mut wakers = self.0.drain(..);
        let mut first = None;
        while let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| {
            for waker in wakers.by_ref() {
                waker.wake();
            }
        })) {
            if first.is_none() {
                first = Some(payload);
            } else {
                // Its destructor is user code once more, and nobody is left to hear of a panic in it.
                mem::forget(payload);
            }
        }
        drop(wakers);
        if let Some(payload) = first {
            panic::resume_unwind(payload);
        }
    }
}

impl Drop for Woken {
    fn drop(&mut self) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| self.wake())) {
            mem::forget(payload);
        }
    }
}

impl fmt::Debug for Woken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Woken({})", self.len())
    }
}
