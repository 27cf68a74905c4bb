//! The timers of the seat that this thread sits on: where a first poll registers.
//!
//! The scheduler [enters](enter) a seat's timers when a thread takes the seat, and whoever enters a runtime without a
//! seat enters the timers of one of its seats. Entering nests.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;

use rt_sync::primitive::Arc;

use super::timers::Timers;

thread_local! {
    /// What was entered and by which guard, the innermost last.
    static ENTERED: RefCell<Vec<(u64, Arc<Timers>)>> = const { RefCell::new(Vec::new()) };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
}

/// Ends what [`enter`] began.
#[must_use = "the timers are current until the guard is dropped"]
pub struct Guard {
    number: u64,
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

/// Makes these the timers of this thread, until the guard is dropped. In whatever order guards are dropped, the innermost
/// timers that are left are current.
pub fn enter(timers: Arc<Timers>) -> Guard {
    let number = GUARDS.get();
    GUARDS.set(number + 1);
    // A thread that ends can enter nothing any more.
    let _ = ENTERED.try_with(|entered| entered.borrow_mut().push((number, timers)));
    Guard {
        number,
        _not_send: PhantomData,
    }
}

/// Lends the timers of this thread to `f`, which must not run user code. `None` also while the thread ends.
#[inline]
pub fn with_current<R>(mut f: impl FnMut(Option<&Arc<Timers>>) -> R) -> R {
    ENTERED
        .try_with(|entered| f(entered.borrow().last().map(|(_, timers)| timers)))
        .unwrap_or_else(|_| f(None))
}

impl Drop for Guard {
    fn drop(&mut self) {
        let left = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let place = entered
                .iter()
                .rposition(|(number, _)| *number == self.number)?;
            Some(entered.remove(place))
        });
        // Dropped when the cell is free again: it may be the last reference.
        drop(left);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
