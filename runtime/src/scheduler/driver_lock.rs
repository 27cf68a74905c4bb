//! The lock round the turning half of a selector: its sitter sleeps with it in hand; for a look, sitter and helpers try it.
//!
//! # What it guarantees
//! While the sitter sleeps in its selector nobody else turns it, and an unpark that finds the sitter asleep there
//! ends that sleep.
//!
//! # The race
//! An unpark is an event of the selector, which whoever turns it takes away.
//!
//! 1. The sitter says that it sleeps in its selector ([`Park::before_select`]).
//! 2. Somebody unparks it: writes to the selector, as the park word says.
//! 3. A helper turns the selector and takes that event, finding no socket ready.
//! 4. The sitter takes the lock and sleeps, with nobody left to wake it.
//!
//! So step 1 comes with the lock in hand, and step 3 cannot lie between it and the sleep. What was written to the
//! selector before step 1 was for an earlier sleep; a helper may take it, and no harm is done.
//!
//! Model: `loom-tests/tests/driver_lock.rs`. (It was step 1 without the lock once: `block_on` hung in 9 of 150 loaded runs.)

use std::fmt;

use rt_sync::primitive::Mutex;

use super::park::Park;

/// See the module head.
pub struct DriverLock<D> {
    driver: Mutex<D>,
}

impl<D> DriverLock<D> {
    /// Unlocked.
    #[must_use]
    pub fn new(driver: D) -> Self {
        Self {
            driver: Mutex::new(driver),
        }
    }

    /// The sitter or a helper turns the selector, without waiting in it, if nobody else does. Who has the lock is at the
    /// selector, which is all that the sitter wants; and perhaps that thread has lost its core.
    #[inline]
    pub fn turn<R>(&self, turn: impl FnOnce(&mut D) -> R) -> Option<R> {
        self.driver.try_lock().map(|mut driver| turn(&mut driver))
    }

    /// The sitter sleeps in its selector. `None`: it was unparked and must not.
    ///
    /// `sleep` calls [`Park::after_select`] as soon as it is awake, before it dispatches anything.
    #[inline]
    pub fn sleep<R>(&self, park: &Park, sleep: impl FnOnce(&mut D) -> R) -> Option<R> {
        let mut driver = self.driver.lock();
        park.before_select().then(|| sleep(&mut driver))
    }
}

impl<D> fmt::Debug for DriverLock<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverLock").finish_non_exhaustive()
    }
}
