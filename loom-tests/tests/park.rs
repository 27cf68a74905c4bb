//! Models of a seat's sleep (`rt/src/scheduler/park.rs`), with both kinds of bed.
//!
//! What the sleeper waits for is a relaxed flag, so that only the park word orders it. The selector is a lock and a
//! condition variable that remember a wake, as an eventfd does. A lost unpark shows as a deadlock.
//!
//! Seen to fail: `Acquire` for `AcqRel` in the exchange of `unpark` (every model); an `unpark` that notifies without
//! having passed the lock (the models of the condition variable).
#![cfg(rt_loom)]

use std::time::Instant;

use loom::thread;

use rt::internals::scheduler::Park;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};
use rt_sync::primitive::{Arc, Condvar, Mutex};

fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(body);
}

/// Stands for a selector with its eventfd.
struct Selector {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Selector {
    fn wake(&self) {
        *self.woken.lock() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut woken = self.woken.lock();
        while !*woken {
            woken = self.changed.wait(woken);
        }
        *woken = false;
    }
}

struct Seat {
    park: Park,
    selector: Selector,
    work: AtomicUsize,
}

/// Where the owner sleeps.
#[derive(Clone, Copy)]
enum Bed {
    Thread,
    Selector,
    /// On the condition variable, with a deadline that has passed.
    Late,
}

impl Seat {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            park: Park::new(),
            selector: Selector {
                woken: Mutex::new(false),
                changed: Condvar::new(),
            },
            work: AtomicUsize::new(0),
        })
    }

    /// Adds one piece of work and wakes the owner.
    fn add(&self) {
        self.work.fetch_add(1, Relaxed);
        self.park.unpark(|| self.selector.wake());
    }

    fn sleep(&self, bed: Bed) {
        match bed {
            Bed::Thread => self.park.park(None),
            Bed::Late => self.park.park(Some(Instant::now())),
            Bed::Selector => {
                if self.park.before_select() {
                    self.selector.wait();
                    self.park.after_select();
                }
            }
        }
    }

    /// Sleeps in the given beds in turn, the last again and again, until there are `count` pieces of work.
    fn wait_for(&self, count: usize, beds: &[Bed]) {
        let last = *beds.last().expect("a bed");
        let mut beds = beds.iter().copied();
        while self.work.load(Relaxed) < count {
            self.sleep(beds.next().unwrap_or(last));
        }
    }
}

/// `adders` threads add one piece of work each, while the owner goes to bed.
fn owner_against(adders: usize, preemptions: usize, beds: &'static [Bed]) {
    check(preemptions, move || {
        let seat = Seat::new();
        let threads: Vec<_> = (0..adders)
            .map(|_| {
                let seat = seat.clone();
                thread::spawn(move || seat.add())
            })
            .collect();
        seat.wait_for(adders, beds);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// An unpark against the owner on its way to the condition variable.
#[test]
fn unpark_against_park() {
    owner_against(1, 4, &[Bed::Thread]);
}

/// An unpark against the owner on its way into its selector.
#[test]
fn unpark_against_select() {
    owner_against(1, 4, &[Bed::Selector]);
}

/// Two unparks of which one may be used up before the other's work is seen.
#[test]
fn two_unparks_against_park() {
    owner_against(2, 3, &[Bed::Thread]);
}

/// The same in the selector: the wake that is left over from the first sleep does no harm to the second.
#[test]
fn two_unparks_against_select() {
    owner_against(2, 3, &[Bed::Selector]);
}

/// The bed changes between the two unparks, as it does when the first socket of a seat registers.
#[test]
fn unparks_against_a_change_of_bed() {
    owner_against(2, 3, &[Bed::Thread, Bed::Selector]);
}

/// And back.
#[test]
fn unparks_against_a_change_back() {
    owner_against(2, 3, &[Bed::Selector, Bed::Thread]);
}

/// A sleep whose deadline passes uses up the unpark that comes in that moment; its work is seen all the same.
#[test]
fn unpark_against_a_deadline() {
    owner_against(2, 3, &[Bed::Late, Bed::Thread]);
}
