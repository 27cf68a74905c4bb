//! The state word of a task: every transition is a method that returns a named outcome.
//!
//! Nobody outside this file reads bits. The word holds eleven flags and, above them, the reference count.
//!
//! # Truth table
//!
//! | `SCHEDULED` | `NOTIFIED` | `CLAIMED` | `COMPLETE` | meaning | a wake | an abort |
//! |---|---|---|---|---|---|---|
//! | 0 | 0 | 0 | 0 | idle: waits for a wake | sets `SCHEDULED`, hands out a `Runnable` | as a wake, with `CANCELLED` |
//! | 1 | 0 | 0 | 0 | one `Runnable` exists: in a queue, or being polled | sets `NOTIFIED` | sets `CANCELLED` |
//! | 1 | 1 | 0 | 0 | the same, and woken meanwhile | nothing, but still a write | sets `CANCELLED` |
//! | any | any | 1 | 0 | its future is being dropped; a `Runnable` is a shell | nothing | nothing |
//! | any | any | any | 1 | over: the output or the error is in the cell | nothing | nothing |
//!
//! Whether the `Runnable` lies in a queue or is being polled is not in the word but in `steps.rs`, so that the start of a
//! poll needs no exchange.
//!
//! `CANCELLED` is sticky. `JOIN_INTEREST`: a `JoinHandle` exists. `JOIN_WAKER`: the handle has stored a waker, which
//! from then on belongs to whoever completes the task. `HOOKS`: callbacks wait for the end (`cold.rs`). `GIVEN_UP`: the
//! task ended itself as cancelled, since its error went elsewhere. `PANICKED` and `STOPPED` come with `COMPLETE` and say
//! how the task ended, also when its output has been taken: none of them, it returned; both, it gave its error away.
//!
//! # The races
//! 1. Wake against the end of a poll that returned `Pending`: both aim at this word. Either the wake comes first and
//!    the end of the poll sees `NOTIFIED`, or it comes second and finds the task idle.
//! 2. Wake of a task that is scheduled already: it cannot know whether the poll has begun, and has passed the point to
//!    which its news belongs. So it sets `NOTIFIED`. The start of the poll looks for that with a plain load, and takes
//!    it away by an exchange, which acquires what came before the wake; a wake that the load misses is seen by the end
//!    of the poll, and the task is polled once more.
//! 3. The handle stores a waker while the task completes: storing is published by setting `JOIN_WAKER`, which fails if
//!    `COMPLETE` is set, and then the waker is the handle's again.
//! 4. A callback is registered while the task completes: it is queued first, then `HOOKS` is set by an exchange. Either
//!    that comes before `COMPLETE` and the completer sees the bit and the callback, or it finds `COMPLETE` and who
//!    registered sees to the callback itself.
//! 5. Shutdown against the start of a poll: see `steps.rs`.
//!
//! # Where it comes from
//! The shape is that of tokio's and async-task's state words; `JOIN_WAKER` is handed over for good instead of back and
//! forth, which saves one transition.

use std::fmt;

use rt_io::fence;
use rt_sync::primitive::atomic::AtomicUsize;
use rt_sync::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::done::Outcome;
use super::info::Activity;
use super::steps::Steps;
use super::transition::{
    Claim, Completed, DropHandle, EndPoll, Joiner, StartPoll, StoreWaker, Wake,
};

const SCHEDULED: usize = 1;
const NOTIFIED: usize = 1 << 1;
const CLAIMED: usize = 1 << 2;
const COMPLETE: usize = 1 << 3;
const CANCELLED: usize = 1 << 4;
const JOIN_INTEREST: usize = 1 << 5;
const JOIN_WAKER: usize = 1 << 6;
const HOOKS: usize = 1 << 7;
const GIVEN_UP: usize = 1 << 8;
const PANICKED: usize = 1 << 9;
const STOPPED: usize = 1 << 10;
const REF_ONE: usize = 1 << 11;

/// The state word. See the module head.
pub(crate) struct State(AtomicUsize);

impl State {
    /// A task that was just made: one `Runnable`, one handle, and one reference of the live list if `listed`.
    pub(super) fn new(listed: bool) -> Self {
        let refs = if listed { 3 } else { 2 };
        Self(AtomicUsize::new(
            SCHEDULED | JOIN_INTEREST | (refs * REF_ONE),
        ))
    }

    /// Retries `step` until its exchange succeeds. `step` gives the next word and the outcome.
    #[inline(always)]
    fn update<T>(&self, mut step: impl FnMut(usize) -> (usize, T)) -> T {
        let mut current = self.0.load(Relaxed);
        loop {
            let (next, outcome) = step(current);
            // AcqRel: one word orders everything. Release publishes what this thread did to the task, acquire sees
            // what the previous holder of each right did.
            match self.0.compare_exchange_weak(current, next, AcqRel, Acquire) {
                Ok(_) => return outcome,
                Err(actual) => current = actual,
            }
        }
    }

    /// The usual case of a transition, by itself: while none of `unusual` is set, `next` gives the next word. The word
    /// after the exchange; `None`: something unusual is set, and nothing was changed. A third of the instructions of
    /// [`update`](Self::update), which computes the outcome of every case before the exchange and decodes it after.
    #[inline(always)]
    fn update_usual(&self, unusual: usize, next: impl Fn(usize) -> usize) -> Option<usize> {
        let mut current = self.0.load(Relaxed);
        while current & unusual == 0 {
            let next = next(current);
            // AcqRel, Acquire: as in `update`.
            match self.0.compare_exchange_weak(current, next, AcqRel, Acquire) {
                Ok(_) => return Some(next),
                Err(actual) => current = actual,
            }
        }
        None
    }

    /// The holder of a `Runnable` starts a poll: takes the stage, unless the task was cancelled.
    #[inline]
    pub(super) fn start_poll(&self, steps: &Steps) -> StartPoll {
        steps.begin();
        // With the other one in `TaskRef::shut_down_all`.
        fence::light();
        // Relaxed: the queue that handed the `Runnable` over orders this after whatever belongs to it.
        let word = self.0.load(Relaxed);
        debug_assert!(
            word & (SCHEDULED | COMPLETE | CLAIMED) != 0,
            "a Runnable of a task that is not scheduled"
        );
        if word & (NOTIFIED | CANCELLED | CLAIMED | COMPLETE) == 0 {
            StartPoll::Poll
        } else {
            self.start_unusual_poll()
        }
    }

    #[cold]
    fn start_unusual_poll(&self) -> StartPoll {
        self.update(|word| {
            if word & (CLAIMED | COMPLETE) != 0 {
                (word, StartPoll::Gone)
            } else if word & CANCELLED != 0 {
                (word | CLAIMED, StartPoll::Cancel)
            } else {
                (word & !NOTIFIED, StartPoll::Poll)
            }
        })
    }

    /// The poll returned `Pending`: gives the stage back unless the task was cancelled. `refs`: how many references the
    /// caller still has, one, or none if a waker has taken it over (`waker.rs`).
    #[inline]
    pub(super) fn end_poll(&self, refs: usize) -> EndPoll {
        debug_assert!(refs <= 1);
        let usual = self.update_usual(CANCELLED | NOTIFIED, |word| {
            debug_assert!(word & SCHEDULED != 0 && word & (CLAIMED | COMPLETE) == 0);
            (word & !SCHEDULED) - refs * REF_ONE
        });
        match usual {
            Some(word) if word < REF_ONE => EndPoll::Dealloc,
            Some(_) => EndPoll::Idle,
            None => self.end_unusual_poll(refs),
        }
    }

    #[inline(never)]
    fn end_unusual_poll(&self, refs: usize) -> EndPoll {
        self.update(|word| {
            // Nobody else claims a task whose poll has begun.
            debug_assert!(word & SCHEDULED != 0 && word & (CLAIMED | COMPLETE) == 0);
            if word & CANCELLED != 0 {
                return (word | CLAIMED, EndPoll::Cancel);
            }
            // Neither bit is ever taken away by another.
            debug_assert!(word & NOTIFIED != 0);
            // The `Runnable` has one.
            let next = (word & !NOTIFIED) + (1 - refs) * REF_ONE;
            (next, EndPoll::Reschedule)
        })
    }

    /// The output is stored: sets `COMPLETE`. `refs`: how many references the caller has.
    #[inline]
    pub(super) fn complete(&self, outcome: Outcome, refs: usize) -> Completed {
        let how = match outcome {
            Outcome::Returned => 0,
            Outcome::Cancelled => STOPPED,
            Outcome::Panicked => PANICKED,
            Outcome::Failed => PANICKED | STOPPED,
        };
        // The bits are clear, so adding sets them. AcqRel: release publishes the output, acquire sees the waker that the
        // handle stored, queued callbacks, and what was done through references that are gone.
        let before = self.0.fetch_add(COMPLETE | how, AcqRel);
        debug_assert!(before & (SCHEDULED | CLAIMED) != 0);
        debug_assert!(before & (COMPLETE | PANICKED | STOPPED) == 0 && before >= refs * REF_ONE);
        let joiner = if before & JOIN_INTEREST == 0 {
            Joiner::None
        } else if before & JOIN_WAKER != 0 {
            Joiner::Waits
        } else {
            Joiner::Exists
        };
        Completed {
            joiner,
            hooks: before & HOOKS != 0,
            alone: before < (refs + 1) * REF_ONE,
        }
    }

    /// A callback was queued. `true`: the task is complete, and the caller sees to it that the callback runs.
    pub(super) fn add_hook(&self) -> bool {
        self.update(|word| (word | HOOKS, word & COMPLETE != 0))
    }

    /// How the task ended. `None` before its end.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        // Acquire: as in `is_complete`.
        let word = self.0.load(Acquire);
        (word & COMPLETE != 0).then_some(match (word & PANICKED != 0, word & STOPPED != 0) {
            (false, false) => Outcome::Returned,
            (false, true) => Outcome::Cancelled,
            (true, false) => Outcome::Panicked,
            (true, true) => Outcome::Failed,
        })
    }

    /// The task, from inside its poll, has given its error away: it ends as soon as this poll is over.
    pub(super) fn give_up(&self) {
        // Relaxed: only this thread looks, at the end of the poll.
        let before = self.0.fetch_or(CANCELLED | GIVEN_UP, Relaxed);
        debug_assert!(before & SCHEDULED != 0 && before & COMPLETE == 0);
    }

    /// Whether the task has given its error away. For the holder of the stage.
    pub(super) fn has_given_up(&self) -> bool {
        self.0.load(Relaxed) & GIVEN_UP != 0
    }

    /// Whether the task was aborted.
    pub(super) fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed) & CANCELLED != 0
    }

    /// What the task does at this moment.
    pub(super) fn activity(&self, steps: &Steps) -> Activity {
        let word = self.0.load(Relaxed);
        if word & COMPLETE != 0 {
            Activity::Over
        } else if word & CLAIMED != 0 {
            Activity::Running
        } else if word & SCHEDULED == 0 {
            Activity::Waiting
        } else if steps.has_begun() {
            Activity::Running
        } else {
            Activity::Ready
        }
    }

    /// An update that may schedule the task: then no poll has begun since.
    #[inline(always)]
    fn update_to_wake(&self, steps: &Steps, step: impl FnMut(usize) -> (usize, Wake)) -> Wake {
        let wake = self.update(step);
        if wake == Wake::Submit {
            steps.renew();
        }
        wake
    }

    /// A waker is used without being given up.
    #[inline]
    pub(super) fn wake_by_ref(&self, steps: &Steps) -> Wake {
        self.update_to_wake(steps, |word| {
            if word & (CLAIMED | COMPLETE) != 0 {
                (word, Wake::Nothing)
            } else if word & SCHEDULED != 0 {
                (word | NOTIFIED, Wake::Nothing)
            } else {
                ((word | SCHEDULED) + REF_ONE, Wake::Submit)
            }
        })
    }

    /// A waker is used and given up: its reference becomes the `Runnable`'s, or is dropped.
    #[inline]
    pub(super) fn wake_by_value(&self, steps: &Steps) -> Wake {
        match self.update_usual(COMPLETE | CLAIMED | SCHEDULED, |word| word | SCHEDULED) {
            Some(_) => {
                steps.renew();
                Wake::Submit
            }
            None => self.wake_unusual(steps),
        }
    }

    #[inline(never)]
    fn wake_unusual(&self, steps: &Steps) -> Wake {
        self.update_to_wake(steps, |word| {
            if word & (COMPLETE | CLAIMED | SCHEDULED) == 0 {
                return (word | SCHEDULED, Wake::Submit);
            }
            let woken = if word & (COMPLETE | CLAIMED) == 0 {
                word | NOTIFIED
            } else {
                word
            };
            let next = woken - REF_ONE;
            (
                next,
                if next < REF_ONE {
                    Wake::Dealloc
                } else {
                    Wake::Nothing
                },
            )
        })
    }

    /// Cancels the task. `Submit`: it was idle, and the caller owns the `Runnable` whose poll will drop the future.
    pub(super) fn abort(&self, steps: &Steps) -> Wake {
        self.update_to_wake(steps, |word| {
            if word & (COMPLETE | CLAIMED | CANCELLED) != 0 {
                (word, Wake::Nothing)
            } else if word & SCHEDULED != 0 {
                (word | CANCELLED, Wake::Nothing)
            } else {
                ((word | CANCELLED | SCHEDULED) + REF_ONE, Wake::Submit)
            }
        })
    }

    /// Cancels the task for shutdown. If it is scheduled, [`claim_queued`](Self::claim_queued) comes next.
    pub(super) fn claim(&self) -> Claim {
        self.update(|word| {
            if word & (COMPLETE | CLAIMED) != 0 {
                (word, Claim::Nothing)
            } else if word & SCHEDULED != 0 {
                (word | CANCELLED, Claim::Scheduled)
            } else {
                (word | CANCELLED | CLAIMED, Claim::Claimed)
            }
        })
    }

    /// Claims a task that lies in a queue, where its `Runnable` is a shell then. `false`: it is being polled, and who polls
    /// it ends it; or somebody else has.
    ///
    /// Between [`claim`](Self::claim) and this one lies a `fence::heavy`, if other threads may poll the task.
    pub(super) fn claim_queued(&self, steps: &Steps) -> bool {
        !steps.has_begun() && self.abandon()
    }

    /// The holder of the `Runnable` will not poll. `true`: it has the stage, to drop the future.
    pub(super) fn abandon(&self) -> bool {
        self.update(|word| {
            if word & (COMPLETE | CLAIMED) != 0 {
                (word, false)
            } else {
                (word | CANCELLED | CLAIMED, true)
            }
        })
    }

    /// The handle has written a waker into its slot.
    pub(super) fn store_join_waker(&self) -> StoreWaker {
        self.update(|word| {
            debug_assert!(word & JOIN_INTEREST != 0 && word & JOIN_WAKER == 0);
            if word & COMPLETE != 0 {
                (word, StoreWaker::Complete)
            } else {
                (word | JOIN_WAKER, StoreWaker::Stored)
            }
        })
    }

    /// The handle wants its waker slot back, to replace the waker. `false`: the task is complete.
    pub(super) fn take_join_waker(&self) -> bool {
        self.update(|word| {
            if word & COMPLETE != 0 {
                (word, false)
            } else {
                (word & !JOIN_WAKER, true)
            }
        })
    }

    /// Whether the handle has a waker stored. Only the handle may ask: nobody else sets it.
    pub(super) fn has_join_waker(&self) -> bool {
        self.0.load(Relaxed) & JOIN_WAKER != 0
    }

    /// The handle goes away.
    #[inline]
    pub(super) fn drop_handle(&self) -> DropHandle {
        self.update(|word| {
            if word & COMPLETE != 0 {
                (word, DropHandle::DropOutput)
            } else if word & JOIN_WAKER != 0 {
                (word & !(JOIN_INTEREST | JOIN_WAKER), DropHandle::DropWaker)
            } else {
                let next = (word & !JOIN_INTEREST) - REF_ONE;
                (
                    next,
                    if next < REF_ONE {
                        DropHandle::Dealloc
                    } else {
                        DropHandle::Done
                    },
                )
            }
        })
    }

    /// Whether the output or the error is there to be read.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Acquire: pairs with `complete`, which publishes the output.
        self.0.load(Acquire) & COMPLETE != 0
    }

    /// One more reference.
    #[inline]
    pub(super) fn ref_inc(&self) {
        // Relaxed: the new reference is made from one that the caller holds.
        let before = self.0.fetch_add(REF_ONE, Relaxed);
        // A count that reaches the sign bit means that wakers are leaked in a loop: stop before it wraps to a free.
        if before > isize::MAX as usize {
            std::process::abort();
        }
    }

    /// Drops `count` references; `true` if they were the last and the task has to be freed.
    #[inline]
    #[must_use]
    pub(super) fn ref_dec(&self, count: usize) -> bool {
        // AcqRel: everything done through the other references happens before the free.
        let before = self.0.fetch_sub(count * REF_ONE, AcqRel);
        debug_assert!(before >= count * REF_ONE);
        before - count * REF_ONE < REF_ONE
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.0.load(Relaxed);
        let names = [
            (SCHEDULED, "SCHEDULED"),
            (NOTIFIED, "NOTIFIED"),
            (CLAIMED, "CLAIMED"),
            (COMPLETE, "COMPLETE"),
            (CANCELLED, "CANCELLED"),
            (JOIN_INTEREST, "JOIN_INTEREST"),
            (JOIN_WAKER, "JOIN_WAKER"),
            (HOOKS, "HOOKS"),
            (GIVEN_UP, "GIVEN_UP"),
            (PANICKED, "PANICKED"),
            (STOPPED, "STOPPED"),
        ];
        let mut list = f.debug_set();
        for (bit, name) in names {
            if word & bit != 0 {
                list.entry(&format_args!("{name}"));
            }
        }
        list.entry(&format_args!("refs {}", word / REF_ONE))
            .finish()
    }
}
