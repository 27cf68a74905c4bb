//! Who sleeps and who searches: the accounting that decides whether a new task wakes somebody.
//!
//! # What it guarantees
//! A task that is queued where any worker may take it, followed by [`Idle::claim`], is not left lying while a worker
//! sleeps: a worker is woken for it, or one is searching and will find it, or a worker that was about to sleep sees it.
//!
//! # Who may touch what
//! One word for each [`GROUP`] workers: a bit for each that sleeps, and above them how many search. A worker sets its
//! own bit; it is cleared by the worker itself or by the one who claims it, which counts it as searching in the same
//! exchange. So a claimed worker is accounted for before it is even awake.
//!
//! # The race
//! A worker finds every queue empty and goes to sleep, while an outside thread queues a task and looks for a sleeper.
//!
//! 1. The worker sets its bit.
//! 2. It passes a `fence(SeqCst)`.
//! 3. It looks at every queue once more.
//!
//! The outsider, at the same time:
//!
//! 1. queues its task,
//! 2. passes a `fence(SeqCst)`,
//! 3. looks at the word.
//!
//! One fence comes first: either the worker's look sees the task, or the outsider's look sees the bit.
//!
//! The same pair with the count of the searching: a searcher that found nothing gives its count up (and sets its bit in
//! the same exchange) before its last look, so whoever trusted the count has queued its task before that look. A searcher
//! that found something and was the last to search does the same: count down, fence, look, and a claim if there is more.
//!
//! # Who searches does nothing else
//! As long as one counts as searching, nobody is woken to search. So a worker runs no code of others while it counts: not
//! tasks, and not wakers, which may be those of a foreign executor and block. One that was claimed while events or timers
//! came in as well gives its count up before it wakes anybody.
//!
//! # Where it comes from
//! Go's scheduler (the last searcher looks again) and its followers. Setting the bit first and looking afterwards, so
//! that a worker counts as searching only while it has seen work, was measured to beat searching first. One word
//! instead of a lock and a list: claiming is one exchange.

use std::fmt;

use rt_sync::primitive::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use rt_sync::primitive::atomic::{AtomicU64, fence};

/// Workers that share a word. With more workers than this, each group keeps its own word, and a claim looks at all.
pub const GROUP: usize = 48;

const SEARCHING: u64 = 1 << GROUP;

/// The accounting of one runtime. See the module head.
pub struct Idle {
    words: Box<[AtomicU64]>,
}

/// What a worker finds that tries to sleep or to stop searching: see [`Idle::rest`].
#[derive(Debug, PartialEq, Eq)]
pub enum Rest<T> {
    /// Nothing anywhere; the worker's bit is set and it may sleep.
    Sleep,
    /// Something was found; the worker does not count as searching any more. `last`: nobody searches now, so the
    /// caller wakes another if there is more.
    Found {
        /// What was found.
        work: T,
        /// Whether the worker was the last to search.
        last: bool,
    },
}

impl Idle {
    /// For workers `0..workers`, all awake.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let groups = workers.div_ceil(GROUP).max(1);
        Self {
            words: (0..groups).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// How many workers there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.words.len() * GROUP
    }

    /// Claims a sleeper, who then counts as searching; the caller unparks it. `None` if someone is searching already,
    /// or nobody sleeps. The caller has queued something before.
    #[must_use]
    pub fn claim(&self) -> Option<usize> {
        // The outsider's step 2: pairs with the fence in `rest`.
        fence(SeqCst);
        self.claim_unfenced()
    }

    /// As [`claim`](Self::claim), without the fence: may miss a worker that is just falling asleep.
    ///
    /// For a worker that queues a task on itself: the task is not lost, since the worker runs it; and the
    /// worker asks again once a turn.
    #[must_use]
    #[inline]
    pub fn claim_unfenced(&self) -> Option<usize> {
        if self
            .words
            .iter()
            .any(|word| word.load(Relaxed) >= SEARCHING)
        {
            return None;
        }
        self.words
            .iter()
            .enumerate()
            .find_map(|(group, word)| claim_in(word).map(|bit| group * GROUP + bit))
    }

    /// Whether a claim would find somebody: a look at the words and no more.
    #[must_use]
    #[inline]
    pub fn has_sleeper(&self) -> bool {
        let mut sleepers = false;
        for word in &self.words {
            let word = word.load(Relaxed);
            if word >= SEARCHING {
                return false;
            }
            sleepers |= word != 0;
        }
        sleepers
    }

    /// Goes to rest: the protocol of the module head.
    ///
    /// `look` says whether there is work anywhere; `search` tries to get some, which may fail as others are faster.
    /// With `searching` the worker counts as searching already, since it was claimed.
    pub fn rest<T>(
        &self,
        worker: usize,
        mut searching: bool,
        mut look: impl FnMut() -> bool,
        mut search: impl FnMut() -> Option<T>,
    ) -> Rest<T> {
        loop {
            if searching {
                if let Some(work) = search() {
                    return Rest::Found {
                        work,
                        last: self.stop_searching(worker),
                    };
                }
                // Steps 1 and 2, for a searcher.
                self.update(worker, |word, bit| (word - SEARCHING) | bit);
            } else {
                // Steps 1 and 2.
                self.update(worker, |word, bit| word | bit);
            }
            fence(SeqCst);
            // Step 3.
            if !look() {
                return Rest::Sleep;
            }
            self.wake_to_search(worker);
            searching = true;
        }
    }

    /// The worker has seen work: its bit becomes a count. If it was claimed meanwhile that has happened already.
    pub fn wake_to_search(&self, worker: usize) {
        self.update(worker, |word, bit| {
            if word & bit == 0 {
                word
            } else {
                (word & !bit) + SEARCHING
            }
        });
    }

    /// The worker is awake for a reason of its own: clears its bit. `true`: it had been claimed, and counts as
    /// searching.
    #[must_use]
    pub fn wake(&self, worker: usize) -> bool {
        let before = self.update(worker, |word, bit| word & !bit);
        before & bit(worker) == 0
    }

    /// The worker does not search any more. `true`: it was the last, and looks at the queues once more: a task may have
    /// come in whose owner relied on this search.
    pub fn stop_searching(&self, worker: usize) -> bool {
        let before = self.update(worker, |word, _| word - SEARCHING);
        debug_assert!(
            before >= SEARCHING,
            "more workers stopped searching than had begun"
        );
        let last = before < 2 * SEARCHING;
        if last {
            // Pairs with the fence in `claim`: who trusted the count has queued its task before the caller's next look.
            fence(SeqCst);
        }
        last
    }

    /// Workers that sleep now. For metrics and the monitor.
    #[must_use]
    pub fn sleeping(&self) -> usize {
        self.words
            .iter()
            .map(|word| (word.load(Relaxed) & (SEARCHING - 1)).count_ones() as usize)
            .sum()
    }

    /// Workers that search now.
    #[must_use]
    pub fn searching(&self) -> usize {
        self.words
            .iter()
            .map(|word| (word.load(Relaxed) / SEARCHING) as usize)
            .sum()
    }

    /// The word before the change.
    fn update(&self, worker: usize, change: impl Fn(u64, u64) -> u64) -> u64 {
        let word = &self.words[worker / GROUP];
        let bit = bit(worker);
        let mut current = word.load(Relaxed);
        loop {
            // AcqRel: a claim orders what the claimer did before what the claimed does after; the store-then-load
            // pairs are ordered by the fences.
            match word.compare_exchange_weak(current, change(current, bit), AcqRel, Relaxed) {
                Ok(before) => return before,
                Err(actual) => current = actual,
            }
        }
    }
}

fn bit(worker: usize) -> u64 {
    1 << (worker % GROUP)
}

/// Clears the lowest bit and counts its worker as searching.
fn claim_in(word: &AtomicU64) -> Option<usize> {
    let mut current = word.load(Relaxed);
    loop {
        let sleepers = current & (SEARCHING - 1);
        if sleepers == 0 || current >= SEARCHING {
            return None;
        }
        // The lowest: few workers stay warm instead of all being woken in turn.
        let bit = sleepers.trailing_zeros();
        let next = (current & !(1 << bit)) + SEARCHING;
        // AcqRel: as in `update`.
        match word.compare_exchange_weak(current, next, AcqRel, Relaxed) {
            Ok(_) => return Some(bit as usize),
            Err(actual) => current = actual,
        }
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle")
            .field("sleeping", &self.sleeping())
            .field("searching", &self.searching())
            .finish()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_sleeper_counts_as_searching_until_it_stops() {
        let idle = Idle::new(3);
        assert_eq!(idle.claim(), None);
        assert_eq!(idle.rest::<()>(2, false, || false, || None), Rest::Sleep);
        assert_eq!(idle.rest::<()>(1, false, || false, || None), Rest::Sleep);
        assert_eq!((idle.sleeping(), idle.searching()), (2, 0));
        assert_eq!(idle.claim(), Some(1));
        assert_eq!(idle.claim(), None, "one is searching");
        assert!(idle.wake(1), "it was claimed");
        assert!(idle.stop_searching(1));
        assert!(!idle.wake(2), "nobody claimed it");
        assert_eq!((idle.sleeping(), idle.searching()), (0, 0));
    }

    #[test]
    fn work_seen_at_the_last_look_is_searched_for() {
        let idle = Idle::new(1);
        let mut looks = 0;
        let rest = idle.rest(
            0,
            false,
            || {
                looks += 1;
                true
            },
            || Some("work"),
        );
        assert_eq!(
            rest,
            Rest::Found {
                work: "work",
                last: true
            }
        );
        assert_eq!((looks, idle.searching()), (1, 0));
    }

    #[test]
    fn more_workers_than_a_word_holds_are_claimed_too() {
        let idle = Idle::new(GROUP + 2);
        assert_eq!(
            idle.rest::<()>(GROUP + 1, false, || false, || None),
            Rest::Sleep
        );
        assert!(idle.has_sleeper());
        assert_eq!(idle.claim(), Some(GROUP + 1));
        assert!(!idle.has_sleeper());
        assert!(idle.stop_searching(GROUP + 1));
    }
}
