//! Counters of a seat and of the runtime: always on, written with a plain load and store where one thread owns them.
//!
//! # Where the time goes
//! A seat's time is cut in two, exactly: `awake`, and `rested`, which is from the moment when it has run out of work until
//! it wakes up ([`Spent`]). Both ends are clock reads that the loop makes anyway. What a seat does while it is awake is not
//! timed, since a clock read costs as much as a small poll; one turn in [`EVERY`] is, step by step (`laps.rs`). Select,
//! dispatch and search take about as long each time, so a few samples tell their mean; tasks and sleeps do not, so they
//! get what is left. The parts add up to the whole by construction.
//!
//! # The race
//! A reader wants `since` and the sums of one moment, while the sitter moves time from one to the other. The sitter marks
//! `since` as [`MOVING`] meanwhile, and the reader tries again: a sequence lock, whose number is the time itself.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;

/// One turn in so many is timed step by step; the first turns of a seat more often.
pub(crate) const EVERY: u64 = 128;

/// A number that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that one thread adds to and all may read.
#[derive(Debug, Default)]
pub(crate) struct OwnCount(AtomicU64);

impl OwnCount {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// As [`add`](Self::add), for a number that says something about others.
    #[inline]
    pub(crate) fn publish(&self, n: u64) {
        // Release: pairs with `acquire`.
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Release);
    }

    /// As [`get`](Self::get): what came before it was [published](Self::publish) is seen.
    pub(crate) fn acquire(&self) -> u64 {
        self.0.load(Acquire)
    }
}

/// What one seat counts. Written by its sitter.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) polls: OwnCount,
    /// Searches that brought a task.
    pub(crate) steals: OwnCount,
    /// Times that the seat had run out of work.
    pub(crate) rests: OwnCount,
    pub(crate) parks: OwnCount,
    pub(crate) selects: OwnCount,
    pub(crate) events: OwnCount,
    pub(crate) timers: OwnCount,
    pub(crate) next_slot_hits: OwnCount,
    /// Tasks of the first seat that have ended here, and of which its live list is told later: see `departed.rs`.
    pub(crate) departed: OwnCount,
    pub(crate) spent: Spent,
    pub(crate) sampled: Sampled,
}

/// Sums over the turns that are timed step by step, in ns.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) turns: OwnCount,
    pub(crate) tasks: OwnCount,
    pub(crate) select: OwnCount,
    pub(crate) dispatch: OwnCount,
    /// Such turns that ended in a search for work.
    pub(crate) searches: OwnCount,
    pub(crate) search: OwnCount,
    /// Of one poll in each such turn.
    pub(crate) polls: OwnBuckets,
}

/// How long a seat was awake, and how long it rested: see the module head.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    /// Since when the present state lasts, in ns as `Shared::stamp`, times four, and the state; zero while nobody sits.
    since: AtomicU64,
    awake: OwnCount,
    rested: OwnCount,
}

const AWAKE: u64 = 1;
const RESTS: u64 = 2;
/// See the module head.
const MOVING: u64 = 3;

/// What [`Spent`] says at one moment, in ns.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpentUntil {
    pub(crate) awake: u64,
    pub(crate) rested: u64,
    pub(crate) state: SpendsAs,
}

/// What a seat does at one moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpendsAs {
    #[default]
    Nobody,
    Awake,
    /// Since so many ns.
    Rests(u64),
}

impl Spent {
    /// Somebody sits down, or takes the place of somebody who was awake.
    pub(crate) fn sit(&self, now: u64) {
        self.change(now, AWAKE);
    }

    /// The sitter has run out of work.
    #[inline]
    pub(crate) fn rest(&self, now: u64) {
        self.change(now, RESTS);
    }

    /// It is awake again.
    #[inline]
    pub(crate) fn wake(&self, now: u64) {
        self.change(now, AWAKE);
    }

    /// Nobody sits any more.
    pub(crate) fn leave(&self, now: u64) {
        self.change(now, 0);
    }

    /// Another number after each change.
    pub(crate) fn mark(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// Whether the sitter has not yet said that it is awake.
    pub(super) fn rests(&self) -> bool {
        self.mark() % 4 == RESTS
    }

    #[inline]
    fn change(&self, now: u64, to: u64) {
        let since = self.since.load(Relaxed);
        self.since.store(MOVING, Relaxed);
        // Release: who sees a sum that is written below sees `MOVING`, or what comes after it.
        fence(Release);
        let took = now.saturating_sub(since / 4);
        match since % 4 {
            AWAKE => self.awake.add(took),
            RESTS => self.rested.add(took),
            _ => {}
        }
        let next = if to == 0 { 0 } else { now * 4 + to };
        // Release: who sees it sees the sums.
        self.since.store(next, Release);
    }

    /// The sums up to `now`.
    pub(crate) fn until(&self, now: u64) -> SpentUntil {
        let mut until = SpentUntil::default();
        // The sitter is at it for some ns. If it lost its core just then and does not get it back for a tenth of a second,
        // the time since its last change is missing.
        for round in 0..1000 {
            let since = self.since.load(Acquire);
            until.awake = self.awake.get();
            until.rested = self.rested.get();
            let lasts = now.saturating_sub(since / 4);
            until.state = match since % 4 {
                AWAKE => {
                    until.awake += lasts;
                    SpendsAs::Awake
                }
                RESTS => {
                    until.rested += lasts;
                    SpendsAs::Rests(lasts)
                }
                _ => SpendsAs::Nobody,
            };
            // Acquire: with the fence of `change`.
            fence(Acquire);
            if since % 4 != MOVING && self.since.load(Relaxed) == since {
                break;
            }
            match round {
                0..20 => std::hint::spin_loop(),
                20..100 => std::thread::yield_now(),
                // With nobody else on this core that gives nothing away; the sitter waits for its own.
                _ => std::thread::sleep(Duration::from_micros(100)),
            }
        }
        until
    }
}

/// Bounds of the buckets: up to 1 µs, 2 µs, 4 µs and so on up to 8.4 s, and above.
pub(crate) const BUCKETS: usize = 25;

#[inline]
fn bucket(ns: u64) -> usize {
    let us = ns.saturating_sub(1) / 1000;
    (u64::BITS - us.leading_zeros()).min(BUCKETS as u32 - 1) as usize
}

/// The most ns that fall into a bucket; `None` for the last.
pub(crate) fn bound(bucket: usize) -> Option<u64> {
    (bucket + 1 < BUCKETS).then(|| 1000 << bucket)
}

/// How often a time fell into which bucket.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub(crate) counts: [u64; BUCKETS],
    pub(crate) sum: u64,
}

impl Buckets {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.sum = self.sum.wrapping_add(ns);
    }

    pub(crate) fn merge(&mut self, other: &Buckets) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The same, written by one thread and read by all.
#[derive(Debug, Default)]
pub(crate) struct OwnBuckets {
    counts: [OwnCount; BUCKETS],
    sum: OwnCount,
}

impl OwnBuckets {
    pub(crate) fn add(&self, ns: u64) {
        self.counts[bucket(ns)].add(1);
        self.sum.add(ns);
    }

    pub(crate) fn get(&self) -> Buckets {
        Buckets {
            counts: std::array::from_fn(|bucket| self.counts[bucket].get()),
            sum: self.sum.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_first_bucket_that_holds_it() {
        let of = |ns| bound(bucket(ns));
        assert_eq!(of(0), Some(1000));
        assert_eq!(of(1000), Some(1000));
        assert_eq!(of(1001), Some(2000));
        assert_eq!(of(2000), Some(2000));
        assert_eq!(of(2001), Some(4000));
        assert_eq!(of(3_000_000), Some(4_096_000));
        assert_eq!(of(u64::MAX), None);
        let mut all = Buckets::default();
        for ns in [1, 999, 5000, u64::MAX / 2] {
            all.add(ns);
        }
        assert_eq!(all.counts.iter().sum::<u64>(), 4);
        assert_eq!(all.counts[0], 2);
    }

    #[test]
    fn time_goes_where_the_sitter_was() {
        let spent = Spent::default();
        assert_eq!(spent.until(50), SpentUntil::default());
        spent.sit(100);
        assert_eq!(spent.until(150).awake, 50);
        spent.rest(200);
        assert_eq!(spent.until(250).rested, 50);
        assert_eq!(spent.until(250).state, SpendsAs::Rests(50));
        spent.wake(1000);
        // A stand-in goes on where the owner was.
        spent.sit(1100);
        spent.leave(1200);
        let until = spent.until(5000);
        assert_eq!((until.awake, until.rested), (300, 800));
        assert_eq!(until.state, SpendsAs::Nobody);
    }

    #[test]
    fn a_reader_never_sees_time_twice_or_not_at_all() {
        let spent = Spent::default();
        spent.sit(1);
        let done = std::sync::atomic::AtomicBool::new(false);
        let (spent, done) = (&spent, &done);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for now in 1..200_000 {
                    if now % 2 == 0 {
                        spent.wake(now * 1000);
                    } else {
                        spent.rest(now * 1000);
                    }
                }
                done.store(true, Relaxed);
            });
            while !done.load(Relaxed) {
                // Far ahead of the sitter, so that each moment counts exactly once.
                let until = spent.until(1 << 40);
                assert_eq!(until.awake + until.rested, (1 << 40) - 1);
            }
        });
    }
}
