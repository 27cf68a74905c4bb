//! What the monitor says of a seat.

use super::*;
use crate::runtime::Builder;

/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(60);

/// Its thread has slept in the selector, was woken, and the machine has no core for it yet.
#[test]
fn a_seat_that_slept_was_at_its_selector() {
    let slept = Duration::from_millis(30);
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .monitor(false)
        .build()
        .unwrap();
    let shared = runtime.handle().shared.clone();
    let seat = shared.seats.get(0).unwrap();
    runtime.spawn(async {
        let socket = rt_io::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.recv(&mut [0]).await
    });
    let began = Instant::now();
    let now = loop {
        let now = Instant::now();
        if seat.registrations() > 0
            && seat.counters.spent.rests()
            && u128::from(seat.selector_age(now)) > slept.as_nanos()
        {
            break now;
        }
        assert!(began.elapsed() < LONG, "the worker does not sleep");
        std::thread::yield_now();
    };
    let seen = Duration::from_millis(2);
    let monitor = Monitor::new(true);
    monitor.note_ages(&seat, now, now.checked_sub(seen).unwrap());
    assert_eq!(monitor.selector_age_max(), seen);
}
