//! Models of a seat whose selector a helper turns while its sitter goes to sleep there (`rt/src/scheduler/driver_lock.rs`).
//!
//! The selector is abstract: what was written to it stays until somebody turns it, who takes it all, as an eventfd and
//! edge-triggered sockets do. A wake-up that a helper took from under the sitter shows as a deadlock; an event that
//! nobody handled, as a wrong count.
//!
//! Seen to fail: `before_select` without the lock in hand (all but the first).
#![cfg(rt_loom)]

use loom::thread;

use rt::internals::scheduler::{DriverLock, Park};
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};
use rt_sync::primitive::{Arc, Condvar, Mutex};

fn check(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(body);
}

/// What has been written to the selector.
#[derive(Default)]
struct Written {
    unparked: bool,
    sockets: usize,
}

/// The half that anybody writes to.
#[derive(Default)]
struct Handle {
    written: Mutex<Written>,
    changed: Condvar,
}

impl Handle {
    fn write(&self, write: impl FnOnce(&mut Written)) {
        write(&mut self.written.lock());
        self.changed.notify_one();
    }
}

/// The half that is turned.
struct Driver(Arc<Handle>);

impl Driver {
    fn turn_now(&mut self) -> Written {
        std::mem::take(&mut self.0.written.lock())
    }

    fn turn(&mut self) -> Written {
        let mut written = self.0.written.lock();
        while !written.unparked && written.sockets == 0 {
            written = self.0.changed.wait(written);
        }
        std::mem::take(&mut written)
    }
}

struct Seat {
    park: Park,
    handle: Arc<Handle>,
    driver: DriverLock<Driver>,
    /// Queued by other threads, or by whoever dispatched the event of a socket.
    work: AtomicUsize,
}

impl Seat {
    fn new() -> Arc<Self> {
        let handle = Arc::new(Handle::default());
        Arc::new(Self {
            park: Park::new(),
            driver: DriverLock::new(Driver(handle.clone())),
            handle,
            work: AtomicUsize::new(0),
        })
    }

    /// Another thread queues work and wakes the sitter for it.
    fn add(&self) {
        self.work.fetch_add(1, Relaxed);
        self.park
            .unpark(|| self.handle.write(|written| written.unparked = true));
    }

    /// A socket becomes ready.
    fn event(&self) {
        self.handle.write(|written| written.sockets += 1);
    }

    /// A helper's look; what it finds is work for the seat's tasks, about which the sitter is told as of any other.
    fn help(&self) {
        let found = self.driver.turn(Driver::turn_now);
        for _ in 0..found.map_or(0, |found| found.sockets) {
            self.add();
        }
    }

    /// The sitter sleeps until there are `count` pieces of work.
    fn wait_for(&self, count: usize) {
        while self.work.load(Relaxed) < count {
            let slept = self.driver.sleep(&self.park, |driver| {
                let found = driver.turn();
                self.park.after_select();
                found
            });
            let found = slept.or_else(|| self.driver.turn(Driver::turn_now));
            self.work
                .fetch_add(found.map_or(0, |found| found.sockets), Relaxed);
        }
    }
}

fn sitter_against(preemptions: usize, count: usize, others: &'static [&'static [fn(&Seat)]]) {
    check(preemptions, move || {
        let seat = Seat::new();
        let threads: Vec<_> = others
            .iter()
            .map(|steps| {
                let seat = seat.clone();
                thread::spawn(move || steps.iter().for_each(|step| step(&seat)))
            })
            .collect();
        seat.wait_for(count);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(seat.work.load(Relaxed), count);
    });
}

/// An event of a socket against a helper and the sitter: one of them dispatches it, and the sitter hears of it.
#[test]
fn an_event_is_dispatched_once() {
    sitter_against(3, 1, &[&[Seat::event], &[Seat::help]]);
}

/// An unpark that a helper could take away between the sitter's last look and its sleep.
#[test]
fn an_unpark_is_not_taken_from_the_sleeper() {
    sitter_against(3, 1, &[&[Seat::add], &[Seat::help]]);
}

/// The same with an event before it, so that the sitter sleeps twice.
#[test]
fn an_unpark_after_an_event() {
    sitter_against(3, 2, &[&[Seat::event, Seat::add], &[Seat::help]]);
}

/// Two unparks and a helper that looks twice: what is left over from the first sleep may be taken, the second not.
#[test]
fn two_unparks_against_two_looks() {
    sitter_against(3, 2, &[&[Seat::add, Seat::add], &[Seat::help, Seat::help]]);
}
