//! Models of the monitor's sleep (`rt/src/scheduler/bed.rs`): it lies down while a worker wakes up.
//!
//! That a worker is awake is a relaxed flag, so that only the fences order it. A monitor that nobody woke shows as a
//! deadlock.
//!
//! Seen to fail: no fence in `wake`, and none in `sleep` (the models whose monitor waits for a worker); a `rouse` that has not
//! passed the lock (the first model, at which the run ends).
#![cfg(rt_loom)]

use loom::thread;

use rt::internals::scheduler::{Bed, Sleep};
use rt_loom_tests::model::model;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

struct World {
    bed: Bed,
    /// How often a worker woke up; it stays awake.
    awake: AtomicUsize,
}

impl World {
    fn wake(&self) {
        self.awake.fetch_add(1, Relaxed);
        self.bed.wake();
    }

    /// Sleeps until a worker has woken up so many times; what `sleep` said last.
    fn sleep_until(&self, wakes: usize, sleep: Sleep) -> bool {
        let is_busy = || self.awake.load(Relaxed) >= wakes;
        let mut open = true;
        // A sleep may end early.
        while open && !is_busy() {
            open = self.bed.sleep(sleep, false, is_busy);
            if self.bed.has_guests() {
                break;
            }
        }
        open
    }
}

fn monitor_against(others: &'static [fn(&World)], monitor: fn(&World)) {
    model(3, move || {
        let world = Arc::new(World {
            bed: Bed::new(),
            awake: AtomicUsize::new(0),
        });
        let threads: Vec<_> = others
            .iter()
            .map(|step| {
                let world = world.clone();
                thread::spawn(move || step(&world))
            })
            .collect();
        monitor(&world);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_worker_wakes_up() {
    monitor_against(&[World::wake], |world| {
        assert!(world.sleep_until(1, Sleep::UntilBusy));
    });
}

/// Both wakes are heard of, also if one finds the monitor's first sleep and the other its second.
#[test]
fn two_workers_and_two_sleeps() {
    monitor_against(&[World::wake, World::wake], |world| {
        world.sleep_until(1, Sleep::UntilBusy);
        world.sleep_until(2, Sleep::UntilBusy);
    });
}

/// The runtime closes, and a worker wakes up at the same time.
#[test]
fn the_end() {
    monitor_against(&[|world| world.bed.close(), World::wake], |world| {
        while world.bed.sleep(Sleep::UntilBusy, false, || false) {}
    });
}

/// A guest seat is left, where the workers are watched and where they are not.
#[test]
fn a_guest_seat_is_left() {
    fn leave(world: &World) {
        world.bed.call_for_guests();
    }
    monitor_against(&[leave], |world| {
        world.sleep_until(1, Sleep::UntilBusy);
        assert!(world.bed.has_guests());
    });
    monitor_against(&[leave], |world| {
        world.sleep_until(1, Sleep::UntilCalled);
        assert!(world.bed.has_guests());
    });
}
