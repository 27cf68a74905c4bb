//! Has a signal handled on the thread's alternate stack, if the thread has one (`SA_ONSTACK`).
//!
//! # Why
//! A handler runs on the stack of whatever it interrupts, and that may be a small one: that of a coroutine, or of a
//! goroutine when a Go library is in the process, which Go does not allow (its package `os/signal` says so). Threads of
//! Go and of Rust have an alternate stack. signal-hook-registry does not ask for it.
//!
//! # What is changed
//! The flag is added to a handler that was put there a moment ago for us, and all other signals wait while it runs, so
//! that several do not pile up on a stack of some kilobytes. Where signal-hook-registry had its handler before us, for
//! other users of it, that handler stays as they have it.
//!
//! # The race
//! Somebody else may install a handler between our look and our change. The change tells what it replaced: if that is
//! not what we saw, it is put back, as if it had come after ours.
#![expect(unsafe_code, reason = "reads and changes the actions of signals")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

/// What is done on a signal.
pub(super) struct Action(libc::sigaction);

impl Action {
    /// What is done on this signal now.
    pub(super) fn of(number: c_int) -> Option<Self> {
        exchange(number, None)
    }

    fn handler(&self) -> usize {
        self.0.sa_sigaction
    }

    /// Replaces what is done, and tells what that was.
    fn install(&self, number: c_int) -> Option<Self> {
        exchange(number, Some(self))
    }
}

/// To be called when a handler has been registered; `before` is what was done until then.
pub(super) fn prefer(number: c_int, before: &Action) {
    let Some(installed) = Action::of(number) else {
        return;
    };
    if installed.handler() == before.handler() {
        return;
    }
    let mut wanted = installed.0;
    wanted.sa_flags |= libc::SA_ONSTACK;
    // SAFETY: the set is ours to fill.
    unsafe { libc::sigfillset(&mut wanted.sa_mask) };
    if let Some(replaced) = Action(wanted).install(number)
        && replaced.handler() != installed.handler()
    {
        replaced.install(number);
    }
}

fn exchange(number: c_int, new: Option<&Action>) -> Option<Action> {
    let new = new.map_or(ptr::null(), |action| ptr::from_ref(&action.0));
    let mut old = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a handler that is given here was installed before, but for its flags and its mask; the places are ours.
    if unsafe { libc::sigaction(number, new, old.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled in by the call above, which did not fail.
    Some(Action(unsafe { old.assume_init() }))
}
