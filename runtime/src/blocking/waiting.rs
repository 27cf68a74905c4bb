//! Which closure comes first, and since when they wait.
//!
//! High before normal, but not for ever: a program that always has a closure of high priority would never run another one. A
//! share by number was preferred to a limit on the wait: it needs no clock, it holds whatever the closures take, and under an
//! overload by normal ones, where all of them are old, high priority still means something.

use std::collections::VecDeque;
use std::time::Instant;

/// After so many of high priority in a row one that is normal has its turn: high priority has nearly all threads, and no
/// normal closure waits for ever.
const MOST_HIGH: u32 = 15;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByPriority<T> {
    #[expect(missing_docs, reason = "see `BlockingPriority`")]
    pub high: T,
    #[expect(missing_docs, reason = "see `BlockingPriority`")]
    pub normal: T,
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

/// What stands for one job of this priority: see `tickets.rs`.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub(super) drawn: Instant,
    pub(super) priority: BlockingPriority,
}

/// The tickets that nobody has yet.
///
/// A ticket is not bound to one job: who has it takes the job of its priority that is first then. So the ages are those of
/// the jobs that wait, give or take a thread that is about to take one.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    drawn: ByPriority<VecDeque<Instant>>,
    /// High ones in a row.
    high: u32,
}

impl Waiting {
    pub(super) fn push(&mut self, ticket: Ticket) {
        self.drawn.of_mut(ticket.priority).push_back(ticket.drawn);
    }

    /// Puts one back.
    pub(super) fn push_front(&mut self, ticket: Ticket) {
        self.drawn.of_mut(ticket.priority).push_front(ticket.drawn);
    }

    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let has = self.counts();
        let (priority, high) = match (has.high > 0, has.normal > 0) {
            (false, false) => return None,
            (true, true) if self.high < MOST_HIGH => (BlockingPriority::High, self.high + 1),
            (_, true) => (BlockingPriority::Normal, 0),
            (true, false) => (BlockingPriority::High, self.high),
        };
        self.high = high;
        let drawn = self.drawn.of_mut(priority).pop_front()?;
        Some(Ticket { drawn, priority })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        let counts = self.counts();
        counts.high + counts.normal
    }

    pub(super) fn counts(&self) -> ByPriority<usize> {
        ByPriority {
            high: self.drawn.high.len(),
            normal: self.drawn.normal.len(),
        }
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        let first = |tickets: &VecDeque<Instant>| tickets.front().copied();
        match (first(&self.drawn.high), first(&self.drawn.normal)) {
            (Some(high), Some(normal)) => Some(high.min(normal)),
            (high, normal) => high.or(normal),
        }
    }
}
