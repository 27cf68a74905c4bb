//! What the monitor says of a seat.

use super::*;
use crate::runtime::{Builder, Runtime};

/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(60);

/// Long enough that nothing of the start will wake it any more.
const SLEPT: Duration = Duration::from_millis(30);

/// A runtime without a monitor of its own, and its worker, which has slept in its selector for so long.
fn sleeper(slept: Duration) -> (Runtime, Arc<Seat>, Instant) {
    sleeper_of(false, slept)
}

/// The same, with a monitor or without.
fn sleeper_of(monitor: bool, slept: Duration) -> (Runtime, Arc<Seat>, Instant) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .monitor(monitor)
        .build()
        .unwrap();
    let seat = runtime.handle().shared.seats.get(0).unwrap();
    runtime.spawn(async {
        let socket = rt_io::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.recv(&mut [0]).await
    });
    let began = Instant::now();
    loop {
        let now = Instant::now();
        if seat.registrations() > 0
            && seat.counters.spent.rests()
            && seat.wakeup.park.is_parked()
            && u128::from(seat.selector_age(now)) > slept.as_nanos()
        {
            return (runtime, seat, now);
        }
        assert!(began.elapsed() < LONG, "the worker does not sleep");
        std::thread::yield_now();
    }
}

/// Its thread has slept in the selector, was woken, and the machine has no core for it yet.
#[test]
fn a_seat_that_slept_was_at_its_selector() {
    let (_runtime, seat, now) = sleeper(SLEPT);
    let seen = Duration::from_millis(2);
    let monitor = Monitor::new(true);
    monitor.note_ages(&seat, now, now.checked_sub(seen).unwrap());
    assert_eq!(monitor.selector_age_max(), seen);
}

/// The monitor sleeps while everybody does. It is woken together with a worker, and looks before that one is awake.
#[test]
fn a_seat_that_was_just_woken_is_not_stuck() {
    let (runtime, seat, now) = sleeper(SLEPT);
    let shared = runtime.handle().shared.clone();
    let mut looks = Looks::new(&shared);
    looks.look(&shared, now);
    assert!(!looks.stuck);

    // Whoever wakes it has got as far as this.
    let slept = seat.wakeup.park.unpark(|| ());
    let woken = now + Duration::from_millis(225);
    looks.look(&shared, woken);
    let stuck_at_once = looks.stuck;
    // It would be stuck if it stayed so.
    for ms in 1..10 {
        looks.look(&shared, woken + Duration::from_millis(ms));
    }
    // And the rest. Before anything fails: the runtime waits for it.
    seat.wakeup.selector.get().unwrap().unpark();

    assert!(slept);
    assert!(!stuck_at_once, "it has been asleep all the time");
    assert!(looks.stuck);
    let since_woken = Duration::from_millis(9);
    assert_eq!(shared.monitor.selector_age_max(), since_woken);
}

/// In a runtime that does next to nothing the monitor looks once more after each sleep, else for a while.
#[test]
fn after_a_long_sleep_one_quiet_look_is_enough() {
    let (runtime, _seat, now) = sleeper_of(true, SLEPT);
    let shared = runtime.handle().shared.clone();
    for (was_idle, looks_on) in [(true, 1), (false, 4)] {
        let mut looks = Looks::new(&shared);
        (looks.busy_at, looks.was_idle) = (now, was_idle);
        let mut at = now;
        looks.look(&shared, at);
        let mut ticks = 0;
        while let Sleep::Tick(tick) = looks.next_sleep(&shared) {
            ticks += 1;
            at += tick;
            looks.look(&shared, at);
        }
        assert_eq!(ticks, looks_on, "was idle: {was_idle}");
    }
}
