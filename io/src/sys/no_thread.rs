//! Where the system does not tell what a thread does.

use std::time::Duration;

/// A thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(());

/// What a thread does at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It waits for something that is not a core.
    Blocked,
    /// It computes, or would if it had a core; how long it has had one.
    Runnable(Duration),
}

/// What a thread has done until some moment.
#[derive(Debug, Clone, Copy)]
pub struct Account(());

impl Account {
    /// Not known.
    #[must_use]
    pub fn delayed_since(&self, _before: &Self) -> Duration {
        Duration::ZERO
    }
}

impl ThreadId {
    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        Self(())
    }

    /// The number by itself.
    #[must_use]
    pub fn as_raw(self) -> u32 {
        0
    }

    /// Of what [`as_raw`](Self::as_raw) gave.
    #[must_use]
    pub fn from_raw(_id: u32) -> Self {
        Self(())
    }

    /// Not known.
    #[must_use]
    pub fn activity(self) -> Option<Activity> {
        None
    }
    /// Not known.
    #[must_use]
    pub fn account(self) -> Option<Account> {
        None
    }
}
