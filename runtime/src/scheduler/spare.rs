//! Spare workers: when every worker is stuck in a poll, a stand-in with a seat of its own works in their place.
//!
//! The monitor decides (`monitor.rs`), once a tick. A spare worker is a stand-in (`lend.rs`) on a guest seat whose
//! [`Seat::works`] is set: as long as it is, its sitter takes whatever task there is, from the injector and from the
//! queues of the stuck, and turns their selectors each [`LOOK`]. When a worker is back the flag goes, and with it the
//! sitter, unless sockets or timers have been registered with its seat; then it serves these, as any stand-in does, and is
//! the first to become a spare worker again.
//!
//! # How many, and when
//! One more whenever nobody who takes any task has turned for a tick and there is a task to take; at most
//! [`max_spare_threads`](crate::runtime::Builder::max_spare_threads). The next comes after twice as long as the last, and
//! not before that one has turned.
//!
//! On a machine that is busy elsewhere, or has more workers than cores, a worker that the kernel keeps waiting looks like
//! a stuck one, and one more thread would make it worse. So before one is called the system is asked what the threads do:
//! stuck is who is blocked, or has computed for 2 ms in this turn. Where the system does not tell, who has not turned for 10 ms
//! ([`Watched::ask`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::lend::Job;
use super::monitor::{Found, Watched};
use super::seats::Snapshot;
use super::{Seat, Shared};
use crate::trace;

/// How often a spare worker with nothing to do looks at the selectors of the stuck.
pub(super) const LOOK: Duration = Duration::from_millis(1);

/// Between the first spare worker and the second; it doubles with each.
const NEXT: Duration = Duration::from_millis(4);

/// How long a worker must have been back before the spare workers go: they are not sent away between two long polls.
const BACK: Duration = Duration::from_millis(10);

/// After the system has said that some worker only waits for a core, it is not asked again for this long: asking takes
/// some 20 µs.
const ASK_AGAIN: Duration = Duration::from_millis(4);

/// What the monitor remembers of the spare workers.
#[derive(Default)]
pub(super) struct SpareWorkers {
    /// Those at work, the last one last.
    seats: Vec<At>,
    /// When the last was called.
    called_at: Option<Instant>,
    /// Since when a worker has been back.
    back_since: Option<Instant>,
    /// When to ask the system again.
    ask_at: Option<Instant>,
}

struct At {
    seat: Arc<Seat>,
    /// Its turn when it was called: it has begun once it is past that.
    turn: u64,
}

impl SpareWorkers {
    /// Once a tick. `workers_turn`: some worker has turned, or sleeps.
    pub(super) fn look(&mut self, shared: &Arc<Shared>, now: Instant, workers_turn: bool) {
        // Those whose seats were asked back for a `block_on` are gone.
        self.seats.retain(|at| at.seat.works.load(Relaxed));
        if workers_turn {
            let since = *self.back_since.get_or_insert(now);
            if !self.seats.is_empty() && now.duration_since(since) >= BACK {
                self.send_away(shared);
            }
            return;
        }
        self.back_since = None;
    }

    /// Nobody who takes any task has turned: calls a spare worker, if that helps.
    pub(super) fn consider(
        &mut self,
        shared: &Arc<Shared>,
        now: Instant,
        seats: &Snapshot,
        watched: &mut [Watched],
    ) {
        if self.ask_at.is_some_and(|at| now < at)
            || !self.is_time(shared, now)
            || !is_work(shared, seats)
        {
            return;
        }
        let all_stuck = seats
            .iter()
            .filter(|seat| !seat.is_guest() || seat.works.load(Relaxed))
            .all(|seat| {
                watched
                    .get_mut(seat.index)
                    .is_some_and(|watched| watched.ask(seat, now) == Found::Stuck)
            });
        self.ask_at = (!all_stuck).then(|| now + ASK_AGAIN);
        if all_stuck {
            self.call(shared, now);
        }
    }

    /// Whether the last one has begun, and long enough ago.
    fn is_time(&self, shared: &Shared, now: Instant) -> bool {
        let called = self.seats.len();
        if called >= shared.config.most_spares(shared.workers) {
            return false;
        }
        let (Some(last), Some(called_at)) = (self.seats.last(), self.called_at) else {
            return true;
        };
        let wait = NEXT.saturating_mul(1 << called.saturating_sub(1).min(10));
        last.seat.turn.load(Relaxed) != last.turn && now.duration_since(called_at) >= wait
    }

    fn call(&mut self, shared: &Arc<Shared>, now: Instant) {
        // One that is there already, for the sake of its own sockets; else a free seat, else a new one.
        let seat = match shared.seats.served(|seat| !seat.works.load(Relaxed)) {
            Some(seat) => {
                let turn = seat.turn.load(Relaxed);
                seat.works.store(true, Relaxed);
                seat.wakeup.unpark();
                At { seat, turn }
            }
            None => match sit_on_new(shared) {
                Some(at) => at,
                // No seat or no thread to be had: asked again at the next tick.
                None => return,
            },
        };
        shared.hand_offs.add(1);
        trace::handed_off();
        self.seats.push(seat);
        shared.monitor.set_spares(self.seats.len());
        self.called_at = Some(now);
    }

    fn send_away(&mut self, shared: &Shared) {
        for At { seat, .. } in self.seats.drain(..) {
            seat.works.store(false, Relaxed);
            seat.wakeup.unpark();
        }
        shared.monitor.set_spares(0);
        self.called_at = None;
    }
}

/// Gives a free seat, or a new one, to a stand-in that works.
fn sit_on_new(shared: &Arc<Shared>) -> Option<At> {
    let seat = match shared.seats.take_to_serve(|_| true) {
        Some(seat) => seat,
        None => {
            let seat = shared.add_guest_seat().ok()?;
            shared.seats.note_served(&seat);
            seat
        }
    };
    let Some(core) = seat.sit() else {
        unreachable!("a free seat has its core");
    };
    let turn = seat.turn.load(Relaxed);
    seat.works.store(true, Relaxed);
    match shared.spares.run(Job {
        seat: seat.clone(),
        core,
    }) {
        Ok(()) => Some(At { seat, turn }),
        Err(Job { seat, core }) => {
            seat.works.store(false, Relaxed);
            seat.rise(core);
            shared.seats.put_free(seat);
            None
        }
    }
}

/// Whether a task waits that a spare worker could take.
fn is_work(shared: &Shared, seats: &Snapshot) -> bool {
    !shared.injector.is_empty()
        || seats
            .iter()
            .any(|seat| !seat.stealer.is_empty() || !seat.next.is_empty())
}
