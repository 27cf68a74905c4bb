//! Whether somebody who sleeps wakes up for the selector of a seat as well: one sleeper at most. Why, says `help.rs`.
//!
//! # What it guarantees
//! At no time is the selector of a seat registered with those of two others, so one event wakes one sleeper. Nobody begins
//! while the selector is being turned, or while its sitter sleeps; and a sitter that falls asleep there ends what has begun,
//! so that what comes for a sleeping sitter wakes nobody else.
//!
//! # Who may touch what
//! `by` goes from [`NOBODY`] to the sleeper's place by who begins, and back by who is first to end it: the sleeper when it is
//! awake, or the sitter before it sleeps. In between it is [`CHANGING`], and the registration is that thread's alone.
//!
//! # The races
//! Two sleepers want to attend to one seat, or a sleeper and the sitter want to end it: an exchange decides, and the next may
//! begin only after the selector has been deregistered. A sleeper that comes too late to end finds another's place, or none.
//!
//! The sitter is at its selector while a sleeper begins. What is pending there is reported at once to who begins, and only
//! who gets the driver's lock can take it away by helping. A thread that loses its core with that lock in hand would keep a
//! sleeper busy for all that time: it cannot help, registers, wakes up at once, and cannot help. So who begins holds that
//! lock. It only tries it: whoever has it is at the selector, which is all that attending is for.
//!
//! The sitter ends it with that lock in hand, which it keeps until it is awake again: nobody begins in between.
//!
//! Two sleepers that attend to each other would be a loop. One of them at least is awake as yet and not in its selector;
//! the kernel refuses the registration that would close the loop (`ELOOP`), and that sleeper does without.
//!
//! An event is not taken away by attending, and an unpark of the sleeper is written to its own selector, which nobody
//! attends to while it sleeps there, other than those who began before: they look, and leave it alone.
//!
//! Model: `loom-tests/tests/attendance.rs`, and its stress twin for the thread that loses its core.

use rt_sync::primitive::atomic::AtomicUsize;
use rt_sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};

use super::driver_lock::DriverLock;
use super::park::Park;

const NOBODY: usize = 0;
/// Somebody registers or deregisters.
const CHANGING: usize = 1;
/// The sleeper in place 0; the others follow.
const FIRST: usize = 2;

/// See the module head.
#[derive(Debug)]
pub struct Attendance {
    by: AtomicUsize,
}

impl Attendance {
    /// Of a seat to which nobody attends.
    #[must_use]
    pub fn new() -> Self {
        Self {
            by: AtomicUsize::new(NOBODY),
        }
    }

    /// Whether somebody does.
    #[inline]
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.by.load(Relaxed) != NOBODY
    }

    /// The sleeper in this place attends from now on, if `register` says that it can. `false`: it does not, since there is
    /// no need now.
    ///
    /// `park` and `driver` are those of the seat to which it would attend.
    pub fn begin<D>(
        &self,
        sleeper: usize,
        park: &Park,
        driver: &DriverLock<D>,
        register: impl FnOnce() -> bool,
    ) -> bool {
        if self.is_attended() {
            return false;
        }
        let began = driver.turn(|_| {
            if park.is_parked() || !self.take(NOBODY) {
                return false;
            }
            let registered = register();
            self.give(if registered { FIRST + sleeper } else { NOBODY });
            registered
        });
        began.unwrap_or(false)
    }

    /// The sleeper that began is awake. It deregisters, unless the sitter has done so.
    pub fn end(&self, sleeper: usize, deregister: impl FnOnce()) {
        if self.take(FIRST + sleeper) {
            deregister();
            self.give(NOBODY);
        }
    }

    /// The sitter is about to sleep in its selector, and holds the driver's lock. Deregisters from the sleeper in the place
    /// that `deregister` is told, if there is one.
    #[inline]
    pub fn end_by_sitter(&self, deregister: impl FnOnce(usize)) {
        let by = self.by.load(Relaxed);
        if by >= FIRST && self.take(by) {
            deregister(by - FIRST);
            self.give(NOBODY);
        }
    }

    fn take(&self, by: usize) -> bool {
        // Acquire: pairs with `give`; what was registered or deregistered before is so.
        self.by
            .compare_exchange(by, CHANGING, Acquire, Relaxed)
            .is_ok()
    }

    fn give(&self, by: usize) {
        // Release: pairs with the exchange of `take`.
        self.by.store(by, Release);
    }
}

impl Default for Attendance {
    fn default() -> Self {
        Self::new()
    }
}
