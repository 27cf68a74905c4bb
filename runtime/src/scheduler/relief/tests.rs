//! Crowds of timers on two workers, without the monitor: nobody else would fire them.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::thread;

use super::*;
use crate::runtime::{Builder, Runtime};
use crate::testing::limited;
use crate::time::sleep_until;

/// A tick of the wheel.
const TICK: Duration = Duration::from_nanos(1 << 18);

/// For how long there are timers, in ticks.
const TICKS: u32 = 1500;

/// Timers of a tick in each wheel: a crowd.
const EACH: u32 = 6;
const ALL: u32 = 2 * TICKS * EACH;

/// Time to put them all in.
const LEAD: Duration = Duration::from_secs(1);

fn two_workers() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .monitor(false)
        .build()
        .unwrap()
}

/// A crowd in the wheel of each worker, from `start` on. What runs at the end of each sleep is told how late it is.
fn crowds(runtime: &Runtime, start: Instant, then: impl Fn(Duration) + Clone + Send + 'static) {
    let spawners = (0..2).map(|worker| {
        let then = then.clone();
        let spawn_all = move || async move {
            for index in 0..TICKS * EACH {
                let due = start + TICK / EACH * index;
                let mut sleep = Box::pin(sleep_until(due.into()));
                // The first poll puts it into the wheel of this worker.
                let polled = std::future::poll_fn(|cx| {
                    std::task::Poll::Ready(sleep.as_mut().poll(cx).is_ready())
                });
                assert!(!polled.await, "start lies too near");
                let then = then.clone();
                crate::spawn(async move {
                    sleep.await;
                    then(Instant::now().saturating_duration_since(due));
                });
            }
        };
        runtime.handle().spawn_pinned(worker, spawn_all).unwrap()
    });
    for spawner in spawners.collect::<Vec<_>>() {
        runtime.block_on(spawner).unwrap();
    }
}

fn parks(runtime: &Runtime) -> u64 {
    let seats = runtime.handle().shared.seats.snapshot();
    seats.iter().map(|seat| seat.counters.parks.get()).sum()
}

#[test]
fn two_crowds_wake_one_worker_a_tick() {
    limited(|| {
        let runtime = two_workers();
        let start = Instant::now() + LEAD;
        let (late, ends) = channel();
        crowds(&runtime, start, move |by| late.send(by).unwrap());
        assert_eq!(ends.iter().count() as u32, ALL);
        let parks = parks(&runtime);
        // Each worker for itself would be two a tick.
        assert!(
            parks < u64::from(TICKS) * 3 / 2,
            "{parks} sleeps in {TICKS} ticks"
        );
        assert!(runtime.metrics().helps > 0);
        // Who is relieved wakes up at last, and has nothing to be relieved of.
        while runtime.handle().shared.relieved.load(SeqCst) > 0 {
            thread::yield_now();
        }
    });
}

/// Whoever sees to the timers of both blocks. What it has fired by then waits in its queue, since there is no monitor.
#[test]
fn a_relieved_seat_is_not_stuck_with_the_other() {
    const BLOCK: Duration = Duration::from_secs(3);
    limited(|| {
        let runtime = two_workers();
        let start = Instant::now() + LEAD;
        let (late, ends) = channel();
        let begun = Arc::new(AtomicU32::new(0));
        crowds(&runtime, start, move |by| {
            if begun.fetch_add(1, SeqCst) == ALL / 2 {
                thread::sleep(BLOCK);
            }
            late.send(by).unwrap();
        });
        let late = ends.iter().filter(|by| *by > BLOCK / 2).count() as u32;
        assert!(late < ALL / 16, "{late} timers waited for the other seat");
    });
}
