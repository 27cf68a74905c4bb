//! A value that only the thread which made it can reach.
//!
//! # What it guarantees
//! The cell itself may lie anywhere and be dropped anywhere; the value is given out on its own thread only. Dropped on
//! another thread, the cell leaks the value, since its destructor may not run there.
#![expect(
    unsafe_code,
    reason = "a value that is not Send lies in an object that is shared"
)]

use std::fmt;
use std::mem::ManuallyDrop;

use self::number::{Number, this_thread};

#[cfg(not(rt_loom))]
mod number {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    pub(super) type Number = u64;

    thread_local! {
        /// This thread's number; zero until it is asked for. No destructor, so it can be read until the very end.
        static NUMBER: Cell<Number> = const { Cell::new(0) };
    }

    /// A number that no other thread of the process ever has, also after this thread's end (addresses come back).
    #[inline]
    pub(super) fn this_thread() -> Number {
        match NUMBER.get() {
            0 => number_this_thread(),
            number => number,
        }
    }

    #[cold]
    fn number_this_thread() -> Number {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        NUMBER.set(number);
        number
    }
}

/// The threads of a model share the thread-local storage of the thread that explores it.
#[cfg(rt_loom)]
mod number {
    use rt_sync::primitive::thread;

    pub(super) type Number = thread::ThreadId;

    pub(super) fn this_thread() -> Number {
        thread::current().id()
    }
}

/// See the module head.
pub(super) struct OwnerCell<T> {
    thread: Number,
    value: ManuallyDrop<T>,
}

// SAFETY: the value is reached and dropped only on the thread that made it.
unsafe impl<T> Send for OwnerCell<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OwnerCell<T> {}

impl<T> OwnerCell<T> {
    /// Wraps a value, for this thread.
    pub(super) fn new(value: T) -> Self {
        Self {
            thread: this_thread(),
            value: ManuallyDrop::new(value),
        }
    }

    /// The value, if this is its thread.
    #[inline]
    pub(super) fn get(&self) -> Option<&T> {
        (self.thread == this_thread()).then(|| &*self.value)
    }
}

impl<T> Drop for OwnerCell<T> {
    fn drop(&mut self) {
        if self.thread == this_thread() {
            // SAFETY: dropped once, in the destructor.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OwnerCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => value.fmt(f),
            None => f.write_str("<of another thread>"),
        }
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests {
    use super::*;
    use std::rc::Rc;
    use std::thread;

    #[test]
    fn another_thread_neither_reaches_nor_drops_the_value() {
        let value = Rc::new(());
        let cell = OwnerCell::new(value.clone());
        assert!(cell.get().is_some());
        thread::spawn(move || {
            assert!(cell.get().is_none());
            drop(cell);
        })
        .join()
        .expect("no panic");
        assert_eq!(Rc::strong_count(&value), 2);
        drop(OwnerCell::new(value.clone()));
        assert_eq!(Rc::strong_count(&value), 2);
    }
}
