//! The stress twin of `attendance.rs`, with real selectors: a seat whose sitter computes, and two sleepers for its events.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use rt::internals::scheduler::{Attendance, DriverLock, Park};
use rt_io::driver::{Driver, Handle, Woken};
use rt_loom_tests::stress::limited;

struct Seat {
    park: Park,
    driver: DriverLock<Driver>,
    handle: Arc<Handle>,
    attendance: Attendance,
}

impl Seat {
    fn new() -> Self {
        let (driver, handle) = Driver::new("stress".into()).unwrap();
        Self {
            park: Park::new(),
            driver: DriverLock::new(driver),
            handle,
            attendance: Attendance::new(),
        }
    }

    /// Whether there was an event; the one of its eventfd serves as well as one of a socket.
    fn help(&self) -> bool {
        self.driver
            .turn(|driver| driver.select_now(&mut Woken::new()).unwrap().woken)
            .unwrap_or(false)
    }

    fn unpark(&self) {
        self.park.unpark(|| self.handle.unpark());
    }

    /// One sleep in place `place`, in the selector of `other` as well if nobody else is there.
    fn sleep(&self, place: usize, other: &Seat, attends: &AtomicBool) {
        let register = || {
            assert!(!attends.swap(true, Relaxed), "two attend");
            self.handle.attend(&other.handle).unwrap();
            true
        };
        let began = other
            .attendance
            .begin(place, &other.park, &other.driver, register);
        self.driver.sleep(&self.park, |driver| {
            let awake = || self.park.after_select();
            driver.select_until(None, awake, &mut Woken::new()).unwrap()
        });
        if began {
            other
                .attendance
                .end(place, || self.ignore(&other.handle, attends));
        }
    }

    fn ignore(&self, other: &Handle, attends: &AtomicBool) {
        self.handle.ignore(other);
        assert!(attends.swap(false, Relaxed));
    }

    /// One sleep of the sitter of a seat to which one of `sleepers` may attend.
    /// Whether there was an event.
    fn sit(&self, sleepers: &[Seat], attends: &AtomicBool) -> bool {
        let slept = self.driver.sleep(&self.park, |driver| {
            self.attendance
                .end_by_sitter(|place| sleepers[place].ignore(&self.handle, attends));
            let awake = || self.park.after_select();
            driver.select_until(None, awake, &mut Woken::new()).unwrap()
        });
        slept.is_some_and(|turn| turn.woken)
    }
}

/// One event at a time, so that each depends on a sleeper of its own; and unparks of both sleepers that mix them up.
#[test]
fn each_event_wakes_a_sleeper() {
    const ROUNDS: usize = 20_000;
    limited(|| {
        let (busy, sleepers) = (Seat::new(), [Seat::new(), Seat::new()]);
        let (events, sleeps) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (attends, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            for (place, own) in sleepers.iter().enumerate() {
                let (busy, events, sleeps) = (&busy, &events, &sleeps);
                let (attends, ended) = (&attends, &ended);
                scope.spawn(move || {
                    while !ended.load(Relaxed) {
                        if busy.help() {
                            events.fetch_add(1, Relaxed);
                        } else {
                            sleeps.fetch_add(1, Relaxed);
                            own.sleep(place, busy, attends);
                        }
                    }
                });
            }
            for round in 1..=ROUNDS {
                busy.handle.unpark();
                if round % 3 == 0 {
                    sleepers[round % 2].unpark();
                }
                while events.load(Relaxed) < round {
                    thread::yield_now();
                }
            }
            ended.store(true, Relaxed);
            sleepers.iter().for_each(Seat::unpark);
        });
        // One for each event and each unpark, and another where the sleeper that an unpark woke was in the way of the first.
        let sleeps = sleeps.load(Relaxed);
        assert!(sleeps <= 2 * ROUNDS, "{sleeps} sleeps");
        assert!(!busy.attendance.is_attended());
    });
}

/// While a thread is held up with the lock of the driver in hand, and an event is pending, the sleeper does not run in
/// circles.
#[test]
fn a_holder_that_is_held_up_lets_the_sleeper_sleep() {
    limited(|| {
        let (busy, own) = (Seat::new(), Seat::new());
        let (attends, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (asleep, slept) = mpsc::channel();
        busy.handle.unpark();
        thread::scope(|scope| {
            let turned = busy.driver.turn(|_| {
                scope.spawn(|| {
                    while !ended.load(Relaxed) {
                        assert!(!busy.help(), "the lock is taken");
                        asleep.send(()).unwrap();
                        own.sleep(0, &busy, &attends);
                    }
                });
                for _ in 0..3 {
                    slept.recv().unwrap();
                    while !own.park.is_parked() {
                        thread::yield_now();
                    }
                    // Nothing woke it in the meantime, so nothing but this is what it wakes up for.
                    assert!(slept.try_recv().is_err());
                    own.unpark();
                }
                slept.recv().unwrap();
                ended.store(true, Relaxed);
                own.unpark();
            });
            assert_eq!(turned, Some(()), "nobody had the lock");
        });
    });
}

/// A sitter that falls asleep while a sleeper attends has its events to itself.
#[test]
fn a_sitter_that_sleeps_wakes_alone() {
    const ROUNDS: usize = 2_000;
    limited(|| {
        let (busy, sleepers) = (Seat::new(), [Seat::new()]);
        let own = &sleepers[0];
        let (attends, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (woken, wakes) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    own.sleep(0, &busy, &attends);
                    woken.send(()).unwrap();
                }
            });
            for _ in 0..ROUNDS {
                while !(busy.attendance.is_attended() && own.park.is_parked()) {
                    thread::yield_now();
                }
                let sitter = scope.spawn(|| busy.sit(&sleepers, &attends));
                while !busy.park.is_parked() || busy.attendance.is_attended() {
                    thread::yield_now();
                }
                busy.unpark();
                sitter.join().unwrap();
                assert!(wakes.try_recv().is_err(), "the sleeper woke up as well");
                // It attends again with its next sleep.
                own.unpark();
                wakes.recv().unwrap();
            }
            ended.store(true, Relaxed);
            own.unpark();
        });
        assert!(!busy.attendance.is_attended());
    });
}

/// Events for a sitter that sleeps and wakes up all the time, while sleepers attend: each is found by somebody.
#[test]
fn each_event_wakes_somebody_while_the_sitter_comes_and_goes() {
    const ROUNDS: usize = 10_000;
    limited(|| {
        let (busy, sleepers) = (Seat::new(), [Seat::new(), Seat::new()]);
        let events = AtomicUsize::new(0);
        let (attends, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            for (place, own) in sleepers.iter().enumerate() {
                let (busy, events, attends, ended) = (&busy, &events, &attends, &ended);
                scope.spawn(move || {
                    while !ended.load(Relaxed) {
                        if busy.help() {
                            events.fetch_add(1, Relaxed);
                        } else {
                            own.sleep(place, busy, attends);
                        }
                    }
                });
            }
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    if busy.sit(&sleepers, &attends) {
                        events.fetch_add(1, Relaxed);
                    }
                }
            });
            for round in 1..=ROUNDS {
                busy.handle.unpark();
                if round % 3 == 0 {
                    sleepers[round % 2].unpark();
                }
                while events.load(Relaxed) < round {
                    thread::yield_now();
                }
            }
            ended.store(true, Relaxed);
            sleepers.iter().for_each(Seat::unpark);
            busy.unpark();
        });
        assert!(!busy.attendance.is_attended());
    });
}
