//! Models of a sleeper that attends to the selector of another seat (`rt/src/scheduler/attendance.rs`).
//!
//! The selectors are abstract: sockets of the busy seat stay ready until somebody turns its selector; who registers while
//! they are is told at once; and who is registered is told of each new event, once. A lost event or unpark shows as a
//! deadlock, two registrations as an access without order.
//!
//! A holder of the driver's lock that loses its core is in the stress twin alone: `try_lock` waits here.
//!
//! Seen to fail: `Relaxed` for `Acquire` in `take`, and `Relaxed` for `Release` in `give` (`two_sleepers`); a sitter that ends
//! what has begun before it has the driver's lock (`the_sitter_comes_back`).
#![cfg(rt_loom)]

use loom::thread;

use rt::internals::scheduler::{Attendance, DriverLock, Park};
use rt_loom_tests::model::model;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};
use rt_sync::primitive::cell::UnsafeCell;
use rt_sync::primitive::{Arc, Condvar, Mutex};

/// What the kernel knows of the selectors of two sleepers and of the seat that they may attend to.
#[derive(Default)]
struct State {
    /// Ready sockets of the busy seat.
    sockets: usize,
    /// The eventfd of the busy seat.
    owner_unparked: bool,
    /// The sitter of the busy seat sleeps in its selector; the sleepers sleep in theirs.
    owner_sleeps: bool,
    sleeps: [bool; 2],
    registered: [bool; 2],
    /// That something is ready in the selector attended to, and not told yet.
    told: [bool; 2],
    unparked: [bool; 2],
}

#[derive(Default)]
struct Kernel {
    state: Mutex<State>,
    changed: Condvar,
}

impl Kernel {
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state.lock());
        self.changed.notify_all();
        result
    }

    fn wait<R>(&self, mut until: impl FnMut(&mut State) -> Option<R>) -> R {
        let mut state = self.state.lock();
        loop {
            if let Some(result) = until(&mut state) {
                return result;
            }
            state = self.changed.wait(state);
        }
    }
}

struct World {
    kernel: Kernel,
    /// Of the seat that is attended to.
    park: Park,
    driver: DriverLock<()>,
    attendance: Attendance,
    registration: UnsafeCell<()>,
    sleepers: [(Park, DriverLock<()>); 2],
    /// Events that were dispatched, and other work.
    done: AtomicUsize,
    goal: usize,
}

impl World {
    fn new(goal: usize) -> Arc<Self> {
        Arc::new(Self {
            kernel: Kernel::default(),
            park: Park::new(),
            driver: DriverLock::new(()),
            attendance: Attendance::new(),
            registration: UnsafeCell::new(()),
            sleepers: [0, 1].map(|_| (Park::new(), DriverLock::new(()))),
            done: AtomicUsize::new(0),
            goal,
        })
    }

    /// A socket of the busy seat becomes ready.
    fn event(&self) {
        self.kernel.change(|state| {
            state.sockets += 1;
            for sleeper in 0..2 {
                state.told[sleeper] |= state.registered[sleeper];
                assert!(
                    !(state.owner_sleeps && state.told[sleeper] && state.sleeps[sleeper]),
                    "the event is the sitter's"
                );
            }
        });
    }

    /// Work of its own for the first sleeper.
    fn work(&self) {
        self.did(1);
        self.unpark(0);
    }

    fn unpark(&self, sleeper: usize) {
        let park = &self.sleepers[sleeper].0;
        park.unpark(|| self.kernel.change(|state| state.unparked[sleeper] = true));
    }

    /// Something was done; all is over with the last.
    fn did(&self, number: usize) {
        if number > 0 && self.done.fetch_add(number, Relaxed) + number == self.goal {
            self.unpark(0);
            self.unpark(1);
            let owner = || self.kernel.change(|state| state.owner_unparked = true);
            self.park.unpark(owner);
        }
    }

    fn is_over(&self) -> bool {
        self.done.load(Relaxed) == self.goal
    }

    fn turn(&self) -> usize {
        std::mem::take(&mut self.kernel.state.lock().sockets)
    }

    /// A sleeper until all is over: helps, attends, sleeps.
    fn sleep(&self, sleeper: usize) {
        let (park, driver) = &self.sleepers[sleeper];
        while !self.is_over() {
            let found = self.driver.turn(|()| self.turn()).unwrap_or(0);
            self.did(found);
            if found > 0 {
                continue;
            }
            let began = self
                .attendance
                .begin(sleeper, &self.park, &self.driver, || {
                    self.registration.with_mut(|_| ());
                    self.kernel.change(|state| {
                        assert_eq!(state.registered, [false; 2], "two attend");
                        state.registered[sleeper] = true;
                        state.told[sleeper] = state.sockets > 0;
                    });
                    true
                });
            if !self.is_over() {
                driver.sleep(park, |()| {
                    self.kernel.wait(|state| {
                        let told = std::mem::take(&mut state.told[sleeper]);
                        let unparked = std::mem::take(&mut state.unparked[sleeper]);
                        state.sleeps[sleeper] = !(told || unparked);
                        (told || unparked).then_some(())
                    });
                    park.after_select();
                });
            }
            if began {
                self.attendance.end(sleeper, || self.deregister(sleeper));
            }
        }
    }

    fn deregister(&self, sleeper: usize) {
        self.kernel.change(|state| {
            assert!(state.registered[sleeper], "somebody else's");
            state.registered[sleeper] = false;
            state.told[sleeper] = false;
        });
        self.registration.with_mut(|_| ());
    }

    /// The sitter of the busy seat looks at its selector, and has nothing more to do.
    fn sit(&self) {
        let found = self.driver.turn(|()| self.turn());
        self.did(found.unwrap_or(0));
        while !self.is_over() {
            let found = self.driver.sleep(&self.park, |()| {
                self.attendance
                    .end_by_sitter(|sleeper| self.deregister(sleeper));
                let found = self.kernel.wait(|state| {
                    let unparked = std::mem::take(&mut state.owner_unparked);
                    state.owner_sleeps = !unparked && state.sockets == 0;
                    (!state.owner_sleeps).then(|| std::mem::take(&mut state.sockets))
                });
                self.park.after_select();
                found
            });
            self.did(found.unwrap_or(0));
        }
    }
}

/// The first sleeper against others.
fn sleeper_against(preemptions: usize, goal: usize, others: &'static [&'static [fn(&World)]]) {
    model(preemptions, move || {
        let world = World::new(goal);
        let threads: Vec<_> = others
            .iter()
            .map(|steps| {
                let world = world.clone();
                thread::spawn(move || steps.iter().for_each(|step| step(&world)))
            })
            .collect();
        world.sleep(0);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(world.done.load(Relaxed), goal);
        assert!(!world.attendance.is_attended());
    });
}

/// The sitter computes for ever: each event wakes the sleeper, whenever it comes.
#[test]
fn events_against_a_sleeper() {
    sleeper_against(3, 2, &[&[World::event, World::event]]);
}

/// An unpark of the sleeper at the same time as the event; neither is lost.
#[test]
fn an_unpark_and_an_event() {
    sleeper_against(3, 2, &[&[World::event], &[World::work]]);
}

/// Two sleepers want to attend: one does, and one of them serves the event.
#[test]
fn two_sleepers() {
    sleeper_against(2, 1, &[&[World::event], &[|world| world.sleep(1)]]);
}

/// The sitter comes to its selector, and sleeps there, while a sleeper attends, and wakes up.
#[test]
fn the_sitter_comes_back() {
    sleeper_against(2, 1, &[&[World::event], &[World::sit]]);
}

/// The sitter comes to its selector while one sleeper attends and another wants to.
#[test]
fn the_sitter_comes_back_to_two_sleepers() {
    sleeper_against(
        2,
        1,
        &[&[World::event], &[World::sit], &[|world| world.sleep(1)]],
    );
}
