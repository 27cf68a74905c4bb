//! The timers of the seat that this thread sits on: where a first poll registers.
//!
//! The scheduler [enters](enter) a seat's timers when a thread takes the seat, and whoever enters a runtime without a
//! seat enters the timers of one of its seats. Entering nests: the guard puts back what was there before.

use std::cell::RefCell;
use std::fmt;

use rt_sync::primitive::Arc;

use super::timers::Timers;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Timers>>> = const { RefCell::new(None) };
}

/// Ends what [`enter`] began.
#[must_use = "the timers are current until the guard is dropped"]
pub struct Guard {
    before: Option<Arc<Timers>>,
}

/// Makes these the timers of this thread, until the guard is dropped. Guards must be dropped in reverse order.
pub fn enter(timers: Arc<Timers>) -> Guard {
    Guard {
        before: CURRENT.replace(Some(timers)),
    }
}

/// Lends the timers of this thread to `f`, which must not run user code. `None` also while the thread ends.
#[inline]
pub fn with_current<R>(mut f: impl FnMut(Option<&Arc<Timers>>) -> R) -> R {
    CURRENT
        .try_with(|current| f(current.borrow().as_ref()))
        .unwrap_or_else(|_| f(None))
}

impl Drop for Guard {
    fn drop(&mut self) {
        let before = self.before.take();
        // The old value is dropped after the cell is free again: it may be the last reference. A thread that ends has
        // nothing to put back.
        let ended = CURRENT.try_with(|current| current.replace(before));
        drop(ended);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
