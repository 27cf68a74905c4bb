//! The set that `spawn_local` means on this thread: one that is polled, or was entered.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::rc::Rc;

use super::Set;

thread_local! {
    static CURRENT: RefCell<Current> = const { RefCell::new(Current::NONE) };
}

/// The set whose tasks run on this thread, or that was entered.
struct Current {
    set: Option<Rc<Set>>,
    how: How,
}

impl Current {
    const NONE: Self = Self {
        set: None,
        how: How::Entered,
    };
}

/// How a set came to be current.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Somebody said so (`LocalSet::enter`).
    Entered,
    /// It is polled.
    Polled,
    /// It is polled, and a `block_on` below keeps its thread ([`HeldUp`]).
    HeldUp,
}

/// The current set.
pub(super) fn set() -> Option<Rc<Set>> {
    CURRENT
        .try_with(|current| current.borrow().set.clone())
        .ok()
        .flatten()
}

/// Whether the current set is polled, and a `block_on` below keeps its thread.
pub(super) fn is_held_up() -> bool {
    CURRENT.try_with(|current| current.borrow().how) == Ok(How::HeldUp)
}

/// Makes the set that was current before current again, when dropped. Made by [`LocalSet::enter`](super::LocalSet::enter).
#[must_use = "the set is current only while the guard lives"]
pub struct LocalEnterGuard {
    before: Current,
    /// What is set on one thread is put back on it.
    not_send: PhantomData<*const ()>,
}

pub(super) fn enter(set: &Rc<Set>, how: How) -> LocalEnterGuard {
    let set = Some(set.clone());
    // A set may be dropped, or polled, while this thread's storage is destroyed: then there is no current set.
    let before = CURRENT
        .try_with(|current| current.replace(Current { set, how }))
        .unwrap_or(Current::NONE);
    LocalEnterGuard {
        before,
        not_send: PhantomData,
    }
}

impl Drop for LocalEnterGuard {
    fn drop(&mut self) {
        let before = mem::replace(&mut self.before, Current::NONE);
        // What comes out runs no user code: a `Set` that nobody else holds has no tasks.
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalEnterGuard")
    }
}

/// While it lives, a set that is polled on this thread takes no tasks from `spawn_local`: a `block_on` below one of its
/// tasks keeps the thread, and who waits there for a task of the set would wait for themselves. Its tasks run if the set
/// is polled there as well.
pub(crate) struct HeldUp {
    hides: bool,
}

impl HeldUp {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            hides: change_how(How::Polled, How::HeldUp),
        }
    }
}

impl Drop for HeldUp {
    #[inline]
    fn drop(&mut self) {
        if self.hides {
            change_how(How::HeldUp, How::Polled);
        }
    }
}

/// Whether it was `from`.
#[inline]
fn change_how(from: How, to: How) -> bool {
    let change = |current: &RefCell<Current>| {
        let current = &mut *current.borrow_mut();
        let is = current.how == from;
        if is {
            current.how = to;
        }
        is
    };
    CURRENT.try_with(change).unwrap_or(false)
}
