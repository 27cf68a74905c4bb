//! The version of the value, and whether there are senders, in one word.

use crate::primitive::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};

const CLOSED: usize = 1;
const STEP: usize = 2;

/// Which value a receiver has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(usize);

impl Version {
    pub(super) const FIRST: Self = Self(0);

    /// One that has been seen by nobody now, and is not that of a later value for as long as versions do not wrap.
    #[inline]
    pub(super) fn before(self) -> Self {
        Self(self.0.wrapping_sub(STEP))
    }
}

/// What [`State::load`] saw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Snapshot(usize);

impl Snapshot {
    #[inline]
    pub(super) fn version(self) -> Version {
        Version(self.0 & !CLOSED)
    }

    /// Whether every sender has gone.
    #[inline]
    pub(super) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }
}

#[derive(Debug)]
pub(super) struct State(AtomicUsize);

impl State {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(Version::FIRST.0))
    }

    #[inline]
    pub(super) fn load(&self) -> Snapshot {
        // Acquire: with `bump` and `close`; what the sender did before is seen.
        Snapshot(self.0.load(Acquire))
    }

    /// The value is another one now. The caller holds the write lock.
    #[inline]
    pub(super) fn bump(&self) {
        // Release: with `load`.
        self.0.fetch_add(STEP, Release);
    }

    /// The last sender goes.
    pub(super) fn close(&self) {
        // Release: with `load`.
        self.0.fetch_or(CLOSED, Release);
    }
}
