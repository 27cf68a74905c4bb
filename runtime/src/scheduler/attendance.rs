//! Whether somebody who sleeps wakes up for the selector of a seat as well: one sleeper at most. Why, says `help.rs`.
//!
//! # What it guarantees
//! At no time is the selector of a seat registered with those of two others, so one event wakes one sleeper. Nobody begins
//! while the selector is being turned, or while its sitter sleeps.
//!
//! # The races
//! Two sleepers want to attend to one seat: an exchange decides, and the flag goes down only after the selector has been
//! deregistered.
//!
//! The sitter is at its selector while a sleeper begins. What is pending there is reported at once to who begins, and only
//! who gets the driver's lock can take it away by helping. A thread that loses its core with that lock in hand would keep a
//! sleeper busy for all that time: it cannot help, registers, wakes up at once, and cannot help. So who begins holds that
//! lock. It only tries it: whoever has it is at the selector, which is all that attending is for.
//!
//! Two sleepers that attend to each other would be a loop. One of them at least is awake as yet and not in its selector;
//! the kernel refuses the registration that would close the loop (`ELOOP`), and that sleeper does without.
//!
//! An event is not taken away by attending, and an unpark of the sleeper is written to its own selector, which nobody
//! attends to while it sleeps there, other than those who began before: they look, and leave it alone.
//!
//! Model: `loom-tests/tests/attendance.rs`, and its stress twin for the thread that loses its core.

use rt_sync::primitive::atomic::AtomicBool;
use rt_sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};

use super::driver_lock::DriverLock;
use super::park::Park;

/// See the module head.
#[derive(Debug)]
pub struct Attendance {
    attended: AtomicBool,
}

impl Attendance {
    /// Of a seat to which nobody attends.
    #[must_use]
    pub fn new() -> Self {
        Self {
            attended: AtomicBool::new(false),
        }
    }

    /// Whether somebody does.
    #[inline]
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.attended.load(Relaxed)
    }

    /// A sleeper attends from now on, if `register` says that it can. `false`: it does not, since there is no need now.
    ///
    /// `park` and `driver` are those of the seat to which it would attend.
    pub fn begin<D>(
        &self,
        park: &Park,
        driver: &DriverLock<D>,
        register: impl FnOnce() -> bool,
    ) -> bool {
        if self.is_attended() {
            return false;
        }
        let began = driver.help(|_| {
            if park.is_parked() || !self.claim() {
                return false;
            }
            let registered = register();
            if !registered {
                self.attended.store(false, Release);
            }
            registered
        });
        began.unwrap_or(false)
    }

    fn claim(&self) -> bool {
        // Acquire: pairs with the stores of `false`; the sleeper before has deregistered.
        self.attended
            .compare_exchange(false, true, Acquire, Relaxed)
            .is_ok()
    }

    /// The sleeper that began is awake.
    pub fn end(&self, deregister: impl FnOnce()) {
        deregister();
        // Release: pairs with the exchange of `claim`.
        self.attended.store(false, Release);
    }
}

impl Default for Attendance {
    fn default() -> Self {
        Self::new()
    }
}
