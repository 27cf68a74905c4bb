//! The state word of a task: every transition is a method that returns a named outcome.
//!
//! Nobody outside this file reads bits. The word holds ten flags and, above them, the reference count.
//!
//! # Truth table
//!
//! | `RUNNING` | `SCHEDULED` | `COMPLETE` | meaning | a wake | an abort |
//! |---|---|---|---|---|---|
//! | 0 | 0 | 0 | idle: waits for a wake | sets `SCHEDULED`, hands out a `Runnable` | as a wake, with `CANCELLED` |
//! | 0 | 1 | 0 | in a queue, one `Runnable` exists | nothing, but still a write | sets `CANCELLED` |
//! | 1 | 0 | 0 | being polled, or its future being dropped | sets `SCHEDULED` | sets `CANCELLED` |
//! | 1 | 1 | 0 | being polled and woken meanwhile, or claimed by shutdown while queued | nothing, but still a write | sets `CANCELLED` |
//! | 0 | any | 1 | over: the output or the error is in the cell | nothing | nothing |
//!
//! `CANCELLED` is sticky. `JOIN_INTEREST`: a `JoinHandle` exists. `JOIN_WAKER`: the handle has stored a waker, which
//! from then on belongs to whoever completes the task. `HOOKS`: callbacks wait for the end (`cold.rs`). `GIVEN_UP`: the
//! task ended itself as cancelled, since its error went elsewhere. `PANICKED` and `STOPPED` come with `COMPLETE` and say
//! how the task ended, also when its output has been taken: none of them, it returned; both, it gave its error away.
//!
//! # The races
//! 1. Wake against the end of a poll that returned `Pending`: both aim at this word. Either the wake comes first and
//!    the end of the poll sees `SCHEDULED`, or it comes second and finds the task idle.
//! 2. Wake of a task that is scheduled already: a plain load that sees `SCHEDULED` and returns would lose what the
//!    waking thread wrote before, since nothing orders it before the poll that follows. So it is a read-modify-write
//!    all the same: the start of the poll reads from it and acquires.
//! 3. The handle stores a waker while the task completes: storing is published by setting `JOIN_WAKER`, which fails if
//!    `COMPLETE` is set, and then the waker is the handle's again.
//! 4. A callback is registered while the task completes: it is queued first, then `HOOKS` is set by an exchange. Either
//!    that comes before `COMPLETE` and the completer sees the bit and the callback, or it finds `COMPLETE` and who
//!    registered sees to the callback itself.
//!
//! # Where it comes from
//! The shape is that of tokio's and async-task's state words; `JOIN_WAKER` is handed over for good instead of back and
//! forth, which saves one transition.

use std::fmt;

use rt_sync::primitive::atomic::AtomicUsize;
use rt_sync::primitive::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::done::Outcome;
use super::info::Activity;
use super::transition::{Completed, DropHandle, EndPoll, StartPoll, StoreWaker, Wake};

const RUNNING: usize = 1;
const SCHEDULED: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const CANCELLED: usize = 1 << 3;
const JOIN_INTEREST: usize = 1 << 4;
const JOIN_WAKER: usize = 1 << 5;
const HOOKS: usize = 1 << 6;
const GIVEN_UP: usize = 1 << 7;
const PANICKED: usize = 1 << 8;
const STOPPED: usize = 1 << 9;
const REF_ONE: usize = 1 << 10;

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

    /// The holder of a `Runnable` starts a poll: takes `RUNNING`, clears `SCHEDULED`.
    #[inline]
    pub(super) fn start_poll(&self) -> StartPoll {
        let usual = self.update_usual(RUNNING | COMPLETE | CANCELLED, |word| {
            debug_assert!(
                word & SCHEDULED != 0,
                "a Runnable of a task that is not scheduled"
            );
            (word & !SCHEDULED) | RUNNING
        });
        match usual {
            Some(_) => StartPoll::Poll,
            None => self.start_unusual_poll(),
        }
    }

    #[cold]
    fn start_unusual_poll(&self) -> StartPoll {
        self.update(|word| {
            if word & (RUNNING | COMPLETE) != 0 {
                return (word, StartPoll::Gone);
            }
            debug_assert!(
                word & SCHEDULED != 0,
                "a Runnable of a task that is not scheduled"
            );
            let outcome = if word & CANCELLED == 0 {
                StartPoll::Poll
            } else {
                StartPoll::Cancel
            };
            ((word & !SCHEDULED) | RUNNING, outcome)
        })
    }

    /// The poll returned `Pending`: gives `RUNNING` back unless the task was cancelled. `refs`: how many references the
    /// caller still has, one, or none if a waker has taken it over (`waker.rs`).
    #[inline]
    pub(super) fn end_poll(&self, refs: usize) -> EndPoll {
        debug_assert!(refs <= 1);
        let usual = self.update_usual(CANCELLED | SCHEDULED, |word| {
            debug_assert!(word & RUNNING != 0 && word & COMPLETE == 0);
            (word & !RUNNING) - refs * REF_ONE
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
            debug_assert!(word & RUNNING != 0 && word & COMPLETE == 0);
            if word & CANCELLED != 0 {
                (word, EndPoll::Cancel)
            } else if word & SCHEDULED != 0 {
                // The `Runnable` has one.
                let next = (word & !RUNNING) + (1 - refs) * REF_ONE;
                (next, EndPoll::Reschedule)
            } else {
                let next = (word & !RUNNING) - refs * REF_ONE;
                (
                    next,
                    if next < REF_ONE {
                        EndPoll::Dealloc
                    } else {
                        EndPoll::Idle
                    },
                )
            }
        })
    }

    /// The output is stored: turns `RUNNING` into `COMPLETE`. The second value says whether callbacks wait.
    #[inline]
    pub(super) fn complete(&self, outcome: Outcome) -> (Completed, bool) {
        let how = match outcome {
            Outcome::Returned => 0,
            Outcome::Cancelled => STOPPED,
            Outcome::Panicked => PANICKED,
            Outcome::Failed => PANICKED | STOPPED,
        };
        // AcqRel: release publishes the output, acquire sees the waker that the handle stored and queued callbacks.
        let before = self.0.fetch_xor(RUNNING | COMPLETE | how, AcqRel);
        debug_assert!(before & RUNNING != 0 && before & (COMPLETE | PANICKED | STOPPED) == 0);
        let completed = if before & JOIN_INTEREST == 0 {
            Completed::Detached
        } else if before & JOIN_WAKER != 0 {
            Completed::JoinerWaits
        } else {
            Completed::Joinable
        };
        (completed, before & HOOKS != 0)
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
        debug_assert!(before & RUNNING != 0 && before & COMPLETE == 0);
    }

    /// Whether the task has given its error away. For the holder of `RUNNING`.
    pub(super) fn has_given_up(&self) -> bool {
        self.0.load(Relaxed) & GIVEN_UP != 0
    }

    /// Whether the task was aborted.
    pub(super) fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed) & CANCELLED != 0
    }

    /// What the task does at this moment.
    pub(super) fn activity(&self) -> Activity {
        let word = self.0.load(Relaxed);
        if word & COMPLETE != 0 {
            Activity::Over
        } else if word & RUNNING != 0 {
            Activity::Running
        } else if word & SCHEDULED != 0 {
            Activity::Ready
        } else {
            Activity::Waiting
        }
    }

    /// A waker is used without being given up.
    #[inline]
    pub(super) fn wake_by_ref(&self) -> Wake {
        self.update(|word| {
            if word & COMPLETE != 0 {
                (word, Wake::Nothing)
            } else if word & (RUNNING | SCHEDULED) != 0 {
                (word | SCHEDULED, Wake::Nothing)
            } else {
                ((word | SCHEDULED) + REF_ONE, Wake::Submit)
            }
        })
    }

    /// A waker is used and given up: its reference becomes the `Runnable`'s, or is dropped.
    #[inline]
    pub(super) fn wake_by_value(&self) -> Wake {
        match self.update_usual(COMPLETE | RUNNING | SCHEDULED, |word| word | SCHEDULED) {
            Some(_) => Wake::Submit,
            None => self.wake_unusual(),
        }
    }

    #[inline(never)]
    fn wake_unusual(&self) -> Wake {
        self.update(|word| {
            if word & (COMPLETE | RUNNING | SCHEDULED) == 0 {
                return (word | SCHEDULED, Wake::Submit);
            }
            let woken = if word & COMPLETE == 0 {
                word | SCHEDULED
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
    pub(super) fn abort(&self) -> Wake {
        self.update(|word| {
            if word & (COMPLETE | CANCELLED) != 0 {
                (word, Wake::Nothing)
            } else if word & (RUNNING | SCHEDULED) != 0 {
                (word | CANCELLED, Wake::Nothing)
            } else {
                ((word | CANCELLED | SCHEDULED) + REF_ONE, Wake::Submit)
            }
        })
    }

    /// Cancels the task for shutdown; `true` if the caller got `RUNNING` and has to drop the future itself.
    ///
    /// A `Runnable` that lies in a queue meanwhile finds `RUNNING` or `COMPLETE` and only drops its reference.
    pub(super) fn claim(&self) -> bool {
        self.update(|word| {
            if word & COMPLETE != 0 {
                (word, false)
            } else if word & RUNNING != 0 {
                (word | CANCELLED, false)
            } else {
                (word | CANCELLED | RUNNING, true)
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
            (RUNNING, "RUNNING"),
            (SCHEDULED, "SCHEDULED"),
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
