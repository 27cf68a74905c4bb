//! Which closure comes first, and since when they wait.
//!
//! High before normal, but not for ever: a program that always has a closure of high priority would never run another one. A
//! share by number was preferred to a limit on the wait: it needs no clock, it holds whatever the closures take, and under an
//! overload by normal ones, where all of them are old, high priority still means something.

use std::collections::VecDeque;
use std::time::Instant;

/// After so many of high priority in a row one that is normal has its turn: high priority has nearly all threads, and no
/// normal closure waits for ever.
pub(super) const MOST_HIGH: u32 = 15;

/// Which of the closures that wait for a thread is started first.
///
/// Those of high priority go first, but while both wait each sixteenth is a normal one, so that it does not wait for ever.
/// Among themselves they start in the order in which they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockingPriority {
    /// Before the others: for what somebody waits for.
    High,
    /// What closures have that say nothing.
    #[default]
    Normal,
}

/// One for each priority.
#[derive(Debug, Default)]
pub(super) struct ByPriority<T> {
    pub(super) high: T,
    pub(super) normal: T,
}

impl<T> ByPriority<T> {
    pub(super) fn of(&self, priority: BlockingPriority) -> &T {
        match priority {
            BlockingPriority::High => &self.high,
            BlockingPriority::Normal => &self.normal,
        }
    }

    fn of_mut(&mut self, priority: BlockingPriority) -> &mut T {
        match priority {
            BlockingPriority::High => &mut self.high,
            BlockingPriority::Normal => &mut self.normal,
        }
    }
}

/// When each of the tickets that nobody has yet was drawn.
///
/// A ticket is not bound to one job: who takes it takes the job that is first then, and of these tickets that of the same
/// priority. So the ages are those of the jobs that wait, give or take a thread that is about to take one.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    drawn: ByPriority<VecDeque<Instant>>,
    /// High ones in a row.
    high: u32,
}

impl Waiting {
    pub(super) fn push(&mut self, drawn: Instant, priority: BlockingPriority) {
        self.drawn.of_mut(priority).push_back(drawn);
    }

    /// Puts one back.
    pub(super) fn push_front(&mut self, drawn: Instant) {
        self.drawn.normal.push_front(drawn);
    }

    pub(super) fn pop(&mut self) -> Option<Instant> {
        let Self { drawn, high } = self;
        if *high < MOST_HIGH
            && let Some(first) = drawn.high.pop_front()
        {
            *high += 1;
            return Some(first);
        }
        *high = 0;
        let normal = drawn.normal.pop_front();
        normal.or_else(|| drawn.high.pop_front())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.drawn.high.len() + self.drawn.normal.len()
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        let first = |tickets: &VecDeque<Instant>| tickets.front().copied();
        match (first(&self.drawn.high), first(&self.drawn.normal)) {
            (Some(high), Some(normal)) => Some(high.min(normal)),
            (high, normal) => high.or(normal),
        }
    }
}
