//! Models of a timer between its waiting side and the thread that fires: `Timer` and `Timers`, without a scheduler.
//! The firing side is told what time it is, so nothing here depends on a clock.
//!
//! Seen to fail: with `Relaxed` for `Release` in the last store of `Entry::finish`, with `Relaxed` for `Acquire` in
//! `Entry::in_wheel`, and with `FIRING` among the words that it lets go without the lock (`fire_against_drop` and
//! `fire_against_ready_and_drop` each time); with the waker taken before `FIRING` is stored (`poll_against_fire`); with
//! a plain store in `Entry::extend` (`reset_to_later_against_fire`); with `parked_until` published after the lock was
//! given back (the three `_against_park`).
#![cfg(rt_loom)]

use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::time::Duration;

use loom::thread;

use rt::internals::time::{Clock, Outcome, Timer, Timers};
use rt::time::Instant;
use rt_loom_tests::model::Probe;
use rt_sync::primitive::Arc;

/// Who runs on the first thread, and so before the other one unless loom preempts it.
///
/// Every model is checked both ways round. loom remembers one last access of each atomic, so that a thread which reads
/// a word before it changes it hides that another thread has read it before, and some interleavings are found from one
/// side only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Waiting,
    Firing,
}

fn model(preemptions: usize, body: impl Fn(First) + Send + Sync + 'static) {
    let body = StdArc::new(body);
    for first in [First::Waiting, First::Firing] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        let body = body.clone();
        model.check(move || body(first));
    }
}

impl First {
    /// Runs both sides at the same time.
    fn race<W: 'static, F: 'static>(
        self,
        waiting: impl FnOnce() -> W + 'static,
        firing: impl FnOnce() -> F + 'static,
    ) -> (W, F) {
        match self {
            First::Waiting => {
                let firing = thread::spawn(firing);
                let waited = waiting();
                (waited, firing.join().unwrap())
            }
            First::Firing => {
                let waiting = thread::spawn(waiting);
                let fired = firing();
                (waiting.join().unwrap(), fired)
            }
        }
    }
}

/// A timer and the task that waits for it.
struct Waiting {
    timer: Pin<Box<Timer>>,
    probe: StdArc<Probe>,
    waker: Waker,
}

impl Waiting {
    fn new() -> Waiting {
        let probe = StdArc::new(Probe::default());
        let waker = Waker::from(probe.clone());
        Waiting {
            timer: Box::pin(Timer::new()),
            probe,
            waker,
        }
    }

    fn poll(&mut self, timers: &Arc<Timers>, deadline: Instant) -> Outcome {
        let mut cx = Context::from_waker(&self.waker);
        self.timer.as_mut().poll_on(timers, &mut cx, deadline)
    }

    /// Polls, for a thread of its own.
    fn polling(mut self, bed: &Bed, ms: u64) -> impl FnOnce() -> (Waiting, Outcome) + 'static {
        let (timers, deadline) = (bed.timers.clone(), bed.at(ms));
        move || {
            let outcome = self.poll(&timers, deadline);
            (self, outcome)
        }
    }

    /// Gives the timer another deadline, for a thread of its own.
    fn resetting(mut self, bed: &Bed, ms: u64) -> impl FnOnce() -> Waiting + 'static {
        let deadline = bed.at(ms);
        move || {
            self.timer.as_mut().reset(deadline);
            self
        }
    }

    /// The next poll comes with another waker.
    fn change_waker(&mut self) -> StdArc<Probe> {
        let new = Waiting::new();
        self.waker = new.waker.clone();
        std::mem::replace(&mut self.probe, new.probe.clone())
    }
}

struct Bed {
    timers: Arc<Timers>,
    base: std::time::Instant,
    unparked: StdArc<AtomicUsize>,
}

impl Bed {
    fn new() -> Bed {
        let clock = Clock::new();
        let base = clock.base();
        let unparked = StdArc::new(AtomicUsize::new(0));
        let count = unparked.clone();
        let timers = Timers::new(
            clock,
            Box::new(move || {
                count.fetch_add(1, SeqCst);
            }),
        );
        Bed {
            timers,
            base,
            unparked,
        }
    }

    fn at(&self, ms: u64) -> Instant {
        Instant::from_std(self.base + Duration::from_millis(ms))
    }

    /// A timer in the wheel.
    fn waiting(&self, ms: u64) -> Waiting {
        let mut waiting = Waiting::new();
        let outcome = waiting.poll(&self.timers, self.at(ms));
        assert_eq!(outcome, Outcome::Pending);
        waiting
    }

    /// Fires what is due at `ms`, for a thread of its own.
    fn firing(&self, ms: u64) -> impl FnOnce() -> usize + 'static {
        let timers = self.timers.clone();
        let now = self.at(ms).into_std();
        move || timers.expire(now)
    }

    /// As `firing`, as who helps the owner.
    fn helping(&self, ms: u64) -> impl FnOnce() -> usize + 'static {
        let timers = self.timers.clone();
        let now = self.at(ms).into_std();
        move || timers.expire_some(now)
    }

    fn expire(&self, ms: u64) -> usize {
        self.timers.expire(self.at(ms).into_std())
    }

    /// Goes to sleep twice, so that the other side also meets a sleep that is over. Gives until when, and how often the
    /// owner had been unparked before.
    fn parking(&self) -> impl FnOnce() -> (std::time::Instant, usize) + 'static {
        let (timers, unparked) = (self.timers.clone(), self.unparked.clone());
        move || {
            timers.before_park();
            timers.after_park();
            let before = unparked.load(SeqCst);
            (timers.before_park().unwrap(), before)
        }
    }

    /// An owner that has gone to sleep like this does not sleep past `ms`.
    fn assert_wakes_by(&self, ms: u64, (until, before): (std::time::Instant, usize)) {
        let tick = Duration::from_nanos(1 << 18);
        assert!(
            until <= self.at(ms).into_std() + tick || self.unparked.load(SeqCst) > before,
            "sleeps past the deadline"
        );
    }
}

/// The first poll puts the timer in while the owner fires: it is ready, or is woken on this turn or the next. It may be
/// both, if it fires before the poll looks what has become of it.
#[test]
fn insert_against_fire() {
    model(3, |first| {
        let bed = Bed::new();
        let insert = Waiting::new().polling(&bed, 5);
        let ((mut waiting, outcome), fired) = first.race(insert, bed.firing(10));
        let fired = fired + bed.expire(10);
        match outcome {
            Outcome::Pending => assert_eq!(fired, 1),
            _ => assert!(outcome == Outcome::Ready && fired <= 1),
        }
        assert_eq!(waiting.probe.wakes(), fired);
        assert_eq!(waiting.poll(&bed.timers, bed.at(5)), Outcome::Ready);
        assert!(bed.timers.is_empty());
    });
}

/// The waiting side polls again with another waker while the timer fires: it sees that, or the new waker is woken.
#[test]
fn poll_against_fire() {
    model(3, |first| {
        let bed = Bed::new();
        let mut waiting = bed.waiting(5);
        let old = waiting.change_waker();
        let poll = waiting.polling(&bed, 5);
        let ((waiting, outcome), fired) = first.race(poll, bed.firing(10));
        assert_eq!(fired, 1);
        match outcome {
            Outcome::Pending => assert_eq!(waiting.probe.wakes(), 1, "the wake is lost"),
            // The firing side may have come when the old waker was out and the new one not yet in.
            _ => assert_eq!(outcome, Outcome::Ready),
        }
        assert!(old.wakes() + waiting.probe.wakes() <= 1);
    });
}

/// The future is dropped while its timer fires: the wheel does not touch it afterwards, and no waker is left.
#[test]
fn fire_against_drop() {
    model(3, |first| {
        let bed = Bed::new();
        let waiting = bed.waiting(5);
        let probe = waiting.probe.clone();
        let ((), fired) = first.race(move || drop(waiting), bed.firing(10));
        assert_eq!(probe.wakes(), fired);
        assert_eq!(StdArc::strong_count(&probe), 1);
        assert!(bed.timers.is_empty());
    });
}

/// The future is ready by what it sees, and dropped at once, while the firing side is not through with it yet.
#[test]
fn fire_against_ready_and_drop() {
    model(3, |first| {
        let bed = Bed::new();
        let waiting = bed.waiting(5);
        let probe = waiting.probe.clone();
        let poll = waiting.polling(&bed, 5);
        let poll = move || match poll() {
            (waiting, Outcome::Pending) => Some(waiting),
            _ => None,
        };
        let (left, fired) = first.race(poll, bed.firing(10));
        // Woken by the waker that was there, unless the poll has found it out first.
        assert_eq!((fired, probe.wakes()), (1, 1));
        drop(left);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// Two threads fire (an owner and whoever helps it) while one of two timers in the same slot is dropped.
#[test]
fn two_fire_against_drop() {
    model(2, |first| {
        let bed = Bed::new();
        let (one, two) = (bed.waiting(5), bed.waiting(5));
        let probe = one.probe.clone();
        let helping = thread::spawn(bed.helping(20));
        let ((), fired) = first.race(move || drop(one), bed.firing(10));
        let fired = fired + helping.join().unwrap();
        assert_eq!(fired, probe.wakes() + two.probe.wakes());
        assert_eq!(two.probe.wakes(), 1);
        assert!(bed.timers.is_empty());
    });
}

/// The deadline is moved back while the old one fires: it fires before the move, or not before the new deadline.
#[test]
fn reset_to_later_against_fire() {
    model(3, |first| {
        let bed = Bed::new();
        let reset = bed.waiting(5).resetting(&bed, 100);
        let (mut waiting, before) = first.race(reset, bed.firing(10));
        assert_eq!(waiting.probe.wakes(), before);
        bed.expire(50);
        assert_eq!(waiting.probe.wakes(), before, "early");
        assert_eq!(waiting.poll(&bed.timers, bed.at(100)), Outcome::Pending);
        assert_eq!(bed.expire(101), 1);
        assert_eq!(waiting.probe.wakes(), before + 1);
    });
}

/// The deadline is brought forward while the owner fires at the new one: woken once, on this turn or the next.
#[test]
fn reset_to_earlier_against_fire() {
    model(3, |first| {
        let bed = Bed::new();
        let reset = bed.waiting(100).resetting(&bed, 5);
        let (mut waiting, _) = first.race(reset, bed.firing(10));
        bed.expire(10);
        assert_eq!(waiting.probe.wakes(), 1);
        assert_eq!(waiting.poll(&bed.timers, bed.at(5)), Outcome::Ready);
        assert!(bed.timers.is_empty());
    });
}

/// The deadline is brought forward while the old one fires: woken once, and a timer that ended before is as new.
#[test]
fn reset_to_earlier_against_fire_at_the_old_deadline() {
    model(3, |first| {
        let bed = Bed::new();
        let reset = bed.waiting(100).resetting(&bed, 5);
        let (mut waiting, fired) = first.race(reset, bed.firing(101));
        assert!(fired + bed.expire(101) <= 1);
        assert_eq!(waiting.probe.wakes(), 1);
        assert!(bed.timers.is_empty());
        assert_eq!(waiting.poll(&bed.timers, bed.at(5)), Outcome::Ready);
    });
}

/// A timer is put in from elsewhere while the owner goes to sleep: the owner knows the deadline, or is unparked.
#[test]
fn insert_earlier_against_park() {
    model(3, |first| {
        let bed = Bed::new();
        let _far = bed.waiting(1000);
        let insert = Waiting::new().polling(&bed, 5);
        let ((near, _), parked) = first.race(insert, bed.parking());
        bed.assert_wakes_by(5, parked);
        bed.timers.after_park();
        assert_eq!(bed.expire(10), 1);
        assert_eq!(near.probe.wakes(), 1);
    });
}

/// The same while somebody else, who fires these timers in the owner's stead, says in its name how long it may sleep.
#[test]
fn insert_earlier_against_park_in_the_owners_name() {
    model(2, |first| {
        let bed = Bed::new();
        let _far = bed.waiting(1000);
        let timers = bed.timers.clone();
        let other = thread::spawn(move || timers.before_park());
        let insert = Waiting::new().polling(&bed, 5);
        let ((near, _), parked) = first.race(insert, bed.parking());
        other.join().unwrap();
        bed.assert_wakes_by(5, parked);
        bed.timers.after_park();
        assert_eq!(bed.expire(10), 1);
        assert_eq!(near.probe.wakes(), 1);
    });
}

/// The same with a deadline that is brought forward from elsewhere.
#[test]
fn reset_to_earlier_against_park() {
    model(3, |first| {
        let bed = Bed::new();
        let reset = bed.waiting(1000).resetting(&bed, 5);
        let (waiting, parked) = first.race(reset, bed.parking());
        bed.assert_wakes_by(5, parked);
        bed.timers.after_park();
        assert_eq!(bed.expire(10), 1);
        assert_eq!(waiting.probe.wakes(), 1);
    });
}

/// A timer is put in while the runtime shuts down: it is closed, by what it sees or by a wake.
#[test]
fn insert_against_close() {
    model(3, |first| {
        let bed = Bed::new();
        let insert = Waiting::new().polling(&bed, 5);
        let timers = bed.timers.clone();
        let ((mut waiting, outcome), ()) = first.race(insert, move || timers.close());
        let woken = usize::from(outcome == Outcome::Pending);
        assert_eq!(waiting.probe.wakes(), woken);
        assert_eq!(waiting.poll(&bed.timers, bed.at(5)), Outcome::Closed);
        assert!(bed.timers.is_empty());
    });
}

/// A deadline is brought forward while the runtime shuts down: the waiting side is woken.
#[test]
fn reset_against_close() {
    model(3, |first| {
        let bed = Bed::new();
        let reset = bed.waiting(100).resetting(&bed, 5);
        let timers = bed.timers.clone();
        let (mut waiting, ()) = first.race(reset, move || timers.close());
        assert_eq!(waiting.probe.wakes(), 1);
        assert_eq!(waiting.poll(&bed.timers, bed.at(5)), Outcome::Closed);
    });
}
