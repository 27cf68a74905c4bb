//! Steps 4 and 5 of a turn: the loop at its selector.
//!
//! Why no wake-up is lost on the way: `park.rs`, `driver_lock.rs`. How long it sleeps there: `rest.rs`.

use std::time::Instant;

use super::help::Attended;
use super::moment::Moment;
use super::worker::Loop;
use crate::context::Phase;

impl Loop<'_> {
    /// A select that does not wait, between two full turns. Deferred tasks come back behind what it brings.
    pub(super) fn select_now(&mut self) {
        if self.seat.registrations() > 0 {
            let _ = self.select(None, Select::Now);
        }
        self.with_core(|core| {
            core.since_select.set(0);
            for task in core.deferred.borrow_mut().drain(..) {
                core.queue.push(task);
            }
        });
    }

    /// One turn of the driver. Asleep it waits until `deadline`, and the seat's sleep is over when it is back; the seat to
    /// which it attends, if any, is given free before anybody is woken.
    ///
    /// An error has been reported.
    pub(super) fn select(
        &self,
        deadline: Option<Instant>,
        how: Select,
    ) -> Result<(), SelectFailed> {
        let mut woken = self.woken.take();
        let (sleeps, attended) = match how {
            Select::Now => (false, None),
            Select::Asleep(attended) => (true, attended),
        };
        let slept = if sleeps {
            let awake = || {
                self.seat.wakeup.park.after_select();
                self.awake();
            };
            self.seat.driver.sleep(&self.seat.wakeup.park, |driver| {
                self.seat.end_attendance();
                driver.select_until(deadline, awake, &mut woken)
            })
        } else {
            None
        };
        let turned = slept.or_else(|| {
            if sleeps {
                self.awake();
            }
            // A helper that has the lock does what this one would.
            self.seat
                .driver
                .turn(|driver| driver.select_now(&mut woken))
        });
        self.laps.lap(&self.seat.counters.sampled.select);
        // The selector is unlocked: a waker may be foreign, and then it may do anything, also block.
        drop(attended);
        if !woken.is_empty() {
            self.pass_search_on();
        }
        self.cx.phase.set(Phase::Dispatching);
        woken.wake_contained();
        self.cx.phase.set(Phase::Polling);
        self.laps.lap(&self.seat.counters.sampled.dispatch);
        self.woken.set(woken);
        self.seat.counters.selects.add(1);
        match turned {
            Some(Ok(turn)) => self.seat.counters.events.add(turn.events as u64),
            Some(Err(error)) => {
                self.seat.shared.debug.selector_failed(&error);
                return Err(SelectFailed);
            }
            None => {}
        }
        Ok(())
    }

    /// Before it wakes anybody: who was claimed to search has other things to do first, and another one searches. Whoever
    /// queues a task relies on those who search, so nobody's code runs on their threads (pains A5).
    pub(super) fn pass_search_on(&self) {
        if self.claimed.get() != Some(true) {
            return;
        }
        self.claimed.set(Some(false));
        if let Some(index) = self.seat.idle_index {
            self.let_another_search(index);
        }
    }

    /// Whoever claimed this worker wanted something searched for. It does something else: another has to do that.
    pub(super) fn let_another_search(&self, index: usize) {
        let shared = &self.seat.shared;
        if shared.idle.stop_searching(index) && self.look() {
            shared.notify_injected();
        }
    }

    /// The thread is awake again, and has not looked at anything yet.
    pub(super) fn awake(&self) {
        let shared = &self.seat.shared;
        let now = Moment::now(shared);
        self.awake_at.set(Some(now));
        self.laps.skip(now.at);
        self.note_time(now);
        self.seat.counters.spent.wake(now.stamp);
        self.seat.timers.after_park();
        self.end_relief();
        self.claimed.set(Some(
            self.seat
                .idle_index
                .is_some_and(|index| shared.idle.wake(index)),
        ));
        shared.monitor.bed.wake();
    }
}

/// The selector of the seat could not be asked.
pub(super) struct SelectFailed;

/// How [`Loop::select`] is at the selector.
pub(super) enum Select {
    /// It looks, and does not wait.
    Now,
    /// It sleeps there, and attends to this seat meanwhile.
    Asleep(Option<Attended>),
}
