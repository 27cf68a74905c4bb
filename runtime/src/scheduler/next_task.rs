//! Which task a seat polls next.
//!
//! A task that a search found; the next slot, for at most [`MOST_FROM_SLOT`] tasks in a row while others wait; the own queue; and
//! when that is empty, or every `global_queue_interval` polls, what others have put into the inbox or the injector.

use std::sync::atomic::Ordering::Relaxed;

use crossbeam_deque::Steal;

use super::MOST_FROM_SLOT;
use super::seat::Core;
use super::worker::Loop;
use crate::task::Runnable;

/// How often a contended steal is tried before the thief goes on to the next victim: no unbounded retry (pains A5).
const STEAL_TRIES: usize = 4;

impl Loop<'_> {
    /// What comes before the own queue: a task that a search found, and, when it is time, one from the injector or the
    /// inbox.
    pub(super) fn first_task(&self, core: &Core) -> Option<Runnable> {
        if let Some(task) = core.found.take() {
            return Some(task);
        }
        if core.since_injector.get() < self.seat.shared.config.global_queue_interval {
            return None;
        }
        core.since_injector.set(0);
        if let Some(task) = self.pinned_task() {
            // Either kind may be ready without end: both have their turn. The others go where thieves find them, should
            // this one not give way.
            if self.takes_any() {
                let injector = &self.seat.shared.injector;
                retry(|| injector.steal_batch(&core.queue));
            }
            return Some(task);
        }
        self.injected_task(core)
    }

    fn pinned_task(&self) -> Option<Runnable> {
        if self.own {
            self.seat.inbox.pop()
        } else {
            None
        }
    }

    fn injected_task(&self, core: &Core) -> Option<Runnable> {
        if self.takes_any() {
            self.steal_injected(core)
        } else {
            None
        }
    }

    /// What others have put where only this seat, or any, takes it.
    fn foreign_task(&self, core: &Core) -> Option<Runnable> {
        self.pinned_task().or_else(|| self.injected_task(core))
    }

    /// Own work, in order: the slot, the queue; and then what others have put. Always inline: the turn that is timed has a
    /// copy of its own, and a call for each poll costs 3 % of a yield.
    #[inline(always)]
    pub(super) fn next_task(&self, core: &Core) -> Option<Runnable> {
        if let Some(task) = self.seat.next.take() {
            let streak = core.streak.get();
            if streak < MOST_FROM_SLOT || core.queue.is_empty() {
                core.streak.set(streak + 1);
                self.seat.counters.next_slot_hits.add(1);
                return Some(task);
            }
            core.queue.push(task);
        }
        core.streak.set(0);
        match core.queue.pop() {
            Some(task) => Some(task),
            None => self.foreign_task(core),
        }
    }

    /// Whether this seat takes whatever task there is: guests of the multi-thread flavour do not.
    #[inline]
    pub(super) fn takes_any(&self) -> bool {
        self.seat.idle_index.is_some() || self.seat.works.load(Relaxed)
    }

    pub(super) fn steal_injected(&self, core: &Core) -> Option<Runnable> {
        core.since_injector.set(0);
        let injector = &self.seat.shared.injector;
        retry(|| injector.steal_batch_and_pop(&core.queue))
    }
}

/// Retries a contended steal a few times.
pub(super) fn retry<T>(mut steal: impl FnMut() -> Steal<T>) -> Option<T> {
    for _ in 0..STEAL_TRIES {
        match steal() {
            Steal::Success(stolen) => return Some(stolen),
            Steal::Empty => return None,
            Steal::Retry => {}
        }
    }
    None
}
