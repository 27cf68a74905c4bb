//! The wheel, behind `Timers` and `Timer` as it is used, against a list that is searched from end to end.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use super::*;
use crate::time::clock::{Clock, NEVER};
use crate::time::instant::Instant;
use crate::time::timer::{Outcome, Timer};
use crate::time::timers::Timers;

const TICK: u64 = 1 << TICK_BITS;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// xorshift; the seed is in the message of each assertion.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Lengths of all orders of magnitude, and often near the borders of levels.
    fn span(&mut self) -> u64 {
        let digits = self.below(63);
        let around = 1u64 << digits;
        match self.below(4) {
            0 => around.saturating_sub(self.below(3)),
            1 => around.saturating_add(self.below(2 * TICK)),
            2 => self.below(around) / TICK * TICK,
            _ => self.below(around),
        }
    }
}

struct Bed {
    clock: Clock,
    timers: Arc<Timers>,
}

impl Bed {
    fn new(clock: Clock) -> Bed {
        let timers = Timers::new(clock.clone(), Box::new(|| {}));
        Bed { clock, timers }
    }

    fn at(&self, ns: u64) -> Instant {
        self.clock.instant(ns).unwrap()
    }

    fn expire(&self, ns: u64) -> usize {
        self.timers.expire(self.at(ns).into_std())
    }

    fn timer(&self, ns: u64) -> Waiting {
        let mut waiting = Waiting {
            timer: Box::pin(Timer::new()),
            count: Arc::default(),
            deadline: self.at(ns),
        };
        waiting.poll(&self.timers);
        waiting
    }
}

struct Waiting {
    timer: Pin<Box<Timer>>,
    count: Arc<Count>,
    deadline: Instant,
}

impl Waiting {
    fn poll(&mut self, timers: &Arc<Timers>) -> Outcome {
        let waker = Waker::from(self.count.clone());
        let mut cx = Context::from_waker(&waker);
        self.timer.as_mut().poll_on(timers, &mut cx, self.deadline)
    }

    fn reset(&mut self, deadline: Instant) {
        self.deadline = deadline;
        self.timer.as_mut().reset(deadline);
    }
}

#[test]
fn a_timer_fires_no_earlier_than_its_deadline_and_need_not_wait_for_its_tick() {
    let bed = Bed::new(Clock::new());
    let one = bed.timer(1);
    let tick = bed.timer(TICK);
    let more = bed.timer(TICK + 1);
    assert_eq!(bed.expire(0), 0);
    assert_eq!(bed.expire(1), 1);
    assert_eq!(one.count.get(), 1);
    assert_eq!(bed.expire(TICK - 1), 0);
    assert_eq!(bed.expire(TICK), 1);
    assert_eq!((tick.count.get(), more.count.get()), (1, 0));
    assert_eq!(bed.expire(TICK + 1), 1);
    assert_eq!(more.count.get(), 1);
}

#[test]
fn a_crowd_in_one_tick_is_fired_together_when_that_is_over() {
    let bed = Bed::new(Clock::new());
    let start = 100 * TICK;
    let crowd: Vec<_> = (1..=10).map(|n| bed.timer(start + n)).collect();
    let wakeups = |bed: &Bed| {
        let mut wakeups = Vec::new();
        while let Some(until) = bed.timers.before_park() {
            wakeups.push(bed.clock.ns(Instant::from_std(until)));
            bed.timers.expire(until);
        }
        wakeups
    };
    // Nobody knew yet that there would be more than the first.
    assert_eq!(wakeups(&bed), [start + 1, start + TICK]);
    assert!(crowd.iter().all(|waiting| waiting.count.get() == 1));

    // Few are worth a wake-up each, wherever in the wheel they lie.
    for start in [200 * TICK, 1023 * TICK, 10_000 * TICK] {
        let _few = [bed.timer(start + 7), bed.timer(start + 9)];
        assert_eq!(wakeups(&bed), [start + 7, start + 9]);
    }
}

#[test]
fn a_wheel_that_is_empty_again_keeps_no_memory_of_a_crowd() {
    let bed = Bed::new(Clock::new());
    let crowd: Vec<_> = (1..=5000).map(|n| bed.timer(n * TICK)).collect();
    assert!(bed.timers.nodes() >= 5000);
    drop(crowd);
    assert_eq!(bed.timers.nodes(), 0);
    let again = bed.timer(6000 * TICK);
    assert_eq!(bed.timers.nodes(), 1);
    assert_eq!(bed.expire(6000 * TICK), 1);
    drop(again);
    // The nodes of a few are kept.
    let few: Vec<_> = (1..=5).map(|n| bed.timer((7000 + n) * TICK)).collect();
    drop(few);
    assert_eq!(bed.timers.nodes(), 5);
}

#[test]
fn timers_on_both_sides_of_every_level_border_fire_on_their_tick() {
    for start in [
        0,
        1,
        62,
        63,
        64,
        65,
        4095,
        4096,
        262_143,
        16_777_215,
        1 << 36,
    ] {
        for level in 1..LEVELS as u32 {
            let border = 1u64 << (SLOT_BITS * level);
            let bed = Bed::new(Clock::new());
            bed.expire(start * TICK);
            let ticks = [border - 1, border, border + 1, border * 2, border * 63]
                .map(|tick| (start + tick).min(LAST_TICK));
            let waiting = ticks.map(|tick| (tick, bed.timer(tick * TICK)));
            for (tick, waiting) in &waiting {
                if waiting.count.get() == 0 {
                    bed.expire(tick * TICK - 1);
                    assert_eq!(waiting.count.get(), 0, "early: {tick} after {start}");
                    bed.expire(tick * TICK);
                }
                assert_eq!(waiting.count.get(), 1, "late: {tick} after {start}");
            }
            assert!(bed.timers.is_empty());
        }
    }
}

/// The last tick whose moment is still a deadline.
const LAST_TICK: u64 = (u64::MAX - (1 << 24)) >> TICK_BITS;

#[test]
fn what_is_due_at_one_time_fires_in_the_order_of_registration() {
    let bed = Bed::new(Clock::new());
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    struct Note(usize, Arc<std::sync::Mutex<Vec<usize>>>);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let mut timers = Vec::new();
    for n in 0..100 {
        let waker = Waker::from(Arc::new(Note(n, order.clone())));
        let mut timer = Box::pin(Timer::new());
        let mut cx = Context::from_waker(&waker);
        let _ = timer
            .as_mut()
            .poll_on(&bed.timers, &mut cx, bed.at(5000 * TICK));
        timers.push(timer);
    }
    assert_eq!(bed.expire(5000 * TICK), 100);
    assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_far_timer_alone_does_not_wake_its_worker_at_every_level() {
    let bed = Bed::new(Clock::new());
    let month = 30 * 24 * 3600 * 1_000_000_000;
    let waiting = bed.timer(month);
    let mut wakeups = 0;
    while waiting.count.get() == 0 {
        let until = bed.timers.before_park().unwrap();
        wakeups += 1;
        assert!(wakeups < 10, "no progress");
        bed.timers.expire(until);
    }
    assert_eq!(wakeups, 1);
    assert_eq!(bed.timers.before_park(), None);
}

#[test]
fn a_timer_that_was_cancelled_does_not_wake_its_worker() {
    let bed = Bed::new(Clock::new());
    let near = bed.timer(100 * TICK);
    let _far = bed.timer(10_000 * TICK);
    drop(near);
    let until = bed.timers.before_park().unwrap();
    assert_eq!(Instant::from_std(until), bed.at(10_000 * TICK));
}

#[test]
fn unreachable_deadlines_take_no_slot() {
    let bed = Bed::new(Clock::new());
    let mut never = Waiting {
        timer: Box::pin(Timer::new()),
        count: Arc::default(),
        deadline: Instant::far_future(),
    };
    assert_eq!(bed.clock.ns(never.deadline), NEVER);
    assert_eq!(never.poll(&bed.timers), Outcome::Pending);
    assert!(bed.timers.is_empty());
    // From near to never and back.
    never.reset(bed.at(TICK));
    assert_eq!(never.poll(&bed.timers), Outcome::Pending);
    assert!(!bed.timers.is_empty());
    never.reset(Instant::far_future());
    assert!(bed.timers.is_empty());
    bed.expire(TICK);
    assert_eq!(never.count.get(), 0);
    // A deadline that is brought near needs no other poll to wake the task, in the wheel or at once.
    never.reset(bed.at(2 * TICK));
    assert_eq!(bed.expire(2 * TICK), 1);
    assert_eq!(never.count.get(), 1);
    never.reset(Instant::far_future());
    assert_eq!(never.poll(&bed.timers), Outcome::Pending);
    never.reset(bed.at(TICK));
    assert_eq!(never.count.get(), 2);
    assert_eq!(never.poll(&bed.timers), Outcome::Ready);
    never.reset(Instant::far_future());
    assert_eq!(never.poll(&bed.timers), Outcome::Pending);
    bed.expire(LAST_TICK * TICK);
    assert_eq!(never.poll(&bed.timers), Outcome::Pending);
    assert_eq!(never.count.get(), 2);
}

#[test]
fn a_deadline_that_is_moved_back_fires_at_the_new_place_only() {
    let bed = Bed::new(Clock::new());
    let mut moved = bed.timer(10 * TICK);
    moved.reset(bed.at(1000 * TICK));
    // It may wake the worker at the old place, once.
    assert_eq!(bed.expire(10 * TICK), 0);
    assert!(bed.timers.before_park().unwrap() >= bed.at(1000 * TICK).into_std());
    bed.timers.after_park();
    moved.reset(bed.at(20 * TICK));
    assert!(bed.timers.before_park().unwrap() <= bed.at(20 * TICK).into_std());
    assert_eq!(bed.expire(19 * TICK), 0);
    assert_eq!(bed.expire(20 * TICK), 1);
    assert_eq!(moved.count.get(), 1);
    // After it has fired it starts anew, with the next poll.
    moved.reset(bed.at(30 * TICK));
    assert_eq!(bed.expire(30 * TICK), 0);
    assert_eq!(moved.poll(&bed.timers), Outcome::Ready);
}

#[test]
fn a_deadline_that_is_moved_into_the_past_wakes_at_once() {
    let bed = Bed::new(Clock::new());
    bed.expire(50 * TICK);
    let mut moved = bed.timer(100 * TICK);
    moved.reset(bed.at(10 * TICK));
    assert_eq!(moved.count.get(), 1);
    assert_eq!(moved.poll(&bed.timers), Outcome::Ready);
    assert!(bed.timers.is_empty());
}

/// One random life of a wheel.
fn against_the_model(seed: u64, exact: bool) {
    let clock = if exact {
        Clock::pausable(true)
    } else {
        Clock::new()
    };
    let bed = Bed::new(clock);
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut now = 0u64;
    let mut waiting = BTreeMap::<usize, Waiting>::new();
    let last = LAST_TICK * TICK;

    for step in 0..400 {
        let context = format!("seed {seed}, exact {exact}, step {step}, now {now}");
        let may = |waiting: &Waiting| bed.clock.ns(waiting.deadline) <= now;
        let key = waiting
            .keys()
            .nth(random.below(waiting.len().max(1) as u64) as usize)
            .copied();
        let place = now.saturating_add(random.span()).min(last);
        match (random.below(10), key) {
            (0..=3, _) | (_, None) => {
                waiting.insert(step, bed.timer(place));
            }
            (4, Some(key)) => {
                waiting.remove(&key);
            }
            (5, Some(key)) => {
                let waiting = waiting.get_mut(&key).unwrap();
                waiting.count = Arc::default();
                // Not polled again yet: the waker that is there belongs to the old count.
                match waiting.poll(&bed.timers) {
                    Outcome::Ready => assert!(may(waiting), "early: {context}"),
                    Outcome::Pending => {}
                    other => panic!("{other:?}: {context}"),
                }
            }
            (6, Some(key)) => {
                let timer = waiting.get_mut(&key).unwrap();
                timer.reset(bed.at(place));
                timer.poll(&bed.timers);
            }
            (7, Some(_)) if exact => {
                let earliest = waiting
                    .values()
                    .filter(|waiting| !waiting.timer.has_fired())
                    .map(|waiting| bed.clock.ns(waiting.deadline))
                    .min();
                assert_eq!(bed.timers.earliest_exact(), earliest, "{context}");
            }
            (7, Some(_)) => {
                let earliest = waiting
                    .values()
                    .filter(|waiting| !waiting.timer.has_fired())
                    .map(|waiting| bed.at(tick_after(bed.clock.ns(waiting.deadline)) * TICK))
                    .min();
                let until = bed.timers.before_park().map(Instant::from_std);
                assert_eq!(until.is_some(), earliest.is_some(), "{context}");
                assert!(until <= earliest, "sleeps too long: {context}");
                bed.timers.after_park();
            }
            _ => {
                let jump = if random.below(4) == 0 {
                    random.span()
                } else {
                    random.below(100 * TICK)
                };
                let to = now.saturating_add(jump).min(last);
                if exact {
                    bed.clock.advance(Duration::from_nanos(to - now)).unwrap();
                }
                now = to;
                let left = |waiting: &BTreeMap<usize, Waiting>| {
                    let left = waiting.values();
                    left.filter(|waiting| !waiting.timer.has_fired()).count()
                };
                let before = left(&waiting);
                let fired = bed.expire(now);
                assert_eq!(fired, before - left(&waiting), "{context}");
                for waiting in waiting.values() {
                    let ns = bed.clock.ns(waiting.deadline);
                    if waiting.timer.has_fired() {
                        assert!(ns <= now, "early: {context}");
                    } else {
                        // A crowd may wait for the end of its tick.
                        let by = if exact { now } else { tick_before(now) * TICK };
                        assert!(ns > by, "late: {context}");
                    }
                }
                if let Some(until) = bed.timers.before_park() {
                    assert!(until > bed.at(now).into_std(), "busy loop: {context}");
                }
                bed.timers.after_park();
            }
        }
    }
    drop(waiting);
    assert!(bed.timers.is_empty(), "left over: seed {seed}");
}

#[test]
fn random_operations_agree_with_the_model() {
    let seeds = if cfg!(miri) { 0..3 } else { 0..300 };
    for seed in seeds {
        against_the_model(seed, false);
        against_the_model(seed, true);
    }
}

#[test]
fn a_slot_with_more_entries_than_one_batch_is_sorted_and_fired_in_pieces() {
    let bed = Bed::new(Clock::new());
    let all: Vec<_> = (0..3 * MOVES as u64)
        .map(|n| bed.timer((5000 + n % 7) * TICK))
        .collect();
    assert_eq!(bed.expire(4999 * TICK), 0);
    let first = all.iter().enumerate().filter(|(n, _)| n % 7 == 0).count();
    assert_eq!(bed.expire(5000 * TICK), first);
    assert_eq!(bed.expire(6000 * TICK), all.len() - first);
    assert!(all.iter().all(|waiting| waiting.count.get() == 1));
    assert!(bed.timers.is_empty());
}

#[test]
fn a_wheel_that_is_closed_ends_what_it_holds_and_what_comes_later() {
    let bed = Bed::new(Clock::new());
    let mut all: Vec<_> = (0..100)
        .map(|n| bed.timer((1 + n * n * n) * TICK))
        .collect();
    bed.timers.close();
    for waiting in &mut all {
        assert_eq!(waiting.count.get(), 1);
        assert_eq!(waiting.poll(&bed.timers), Outcome::Closed);
    }
    assert!(bed.timers.is_empty());
    let mut later = bed.timer(TICK);
    assert_eq!(later.poll(&bed.timers), Outcome::Closed);
    all[0].reset(bed.at(2 * TICK));
    assert_eq!(all[0].poll(&bed.timers), Outcome::Closed);
}
