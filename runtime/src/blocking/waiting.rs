//! Which closure comes first, and since when they wait.

use std::collections::VecDeque;
use std::time::Instant;

/// Which of the closures that wait for a thread is started first.
///
/// As long as one of high priority waits, none of normal priority starts. Among themselves they start in the order in which
/// they came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockingPriority {
    /// Before all others: for what somebody waits for.
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
pub(super) struct Waiting(ByPriority<VecDeque<Instant>>);

impl Waiting {
    pub(super) fn push(&mut self, drawn: Instant, priority: BlockingPriority) {
        self.0.of_mut(priority).push_back(drawn);
    }

    /// Puts one back.
    pub(super) fn push_front(&mut self, drawn: Instant) {
        self.0.normal.push_front(drawn);
    }

    pub(super) fn pop(&mut self) -> Option<Instant> {
        self.0
            .high
            .pop_front()
            .or_else(|| self.0.normal.pop_front())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.0.high.len() + self.0.normal.len()
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        let first = |tickets: &VecDeque<Instant>| tickets.front().copied();
        match (first(&self.0.high), first(&self.0.normal)) {
            (Some(high), Some(normal)) => Some(high.min(normal)),
            (high, normal) => high.or(normal),
        }
    }
}
