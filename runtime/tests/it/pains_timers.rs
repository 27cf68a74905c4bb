//! Timers: theme C of the known pains of async runtimes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant as RealInstant};

use rt::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use crate::pains_support::{LONG, MS, Mailbox, current_thread, each_kind, workers};
use crate::support::within_limit;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A timer that comes from another thread reaches a worker that is asleep for longer.
#[test]
fn c2_an_earlier_deadline_from_elsewhere_ends_the_sleep() {
    within_limit(|| {
        for runtime in each_kind() {
            let handle = runtime.handle().clone();
            // The root future holds the seat asleep with a far deadline of its own.
            let (done, over) = (Mailbox::new(), Mailbox::new());
            let foreign = thread::spawn({
                let over = over.clone();
                move || {
                    let _entered = handle.enter();
                    let least = (0..500)
                        .map(|_| {
                            // Polled here, so it is put into a wheel whose owner sleeps.
                            let start = RealInstant::now();
                            futures_lite::future::block_on(sleep(MS));
                            start.elapsed()
                        })
                        .min();
                    over.send(());
                    least.unwrap()
                }
            });
            runtime.block_on(async {
                let far = rt::spawn(sleep(DAY));
                over.recv().await;
                far.abort();
                done.send(());
            });
            let least = foreign.join().unwrap();
            assert!(least >= MS && least < 100 * MS, "{least:?}");
        }
    });
}

/// A timer that changes thread and runtime, is reset there and dropped elsewhere, fires once or is gone.
#[test]
fn c3_a_timer_keeps_its_wheel_wherever_it_is_polled() {
    within_limit(|| {
        let (rt1, rt2) = (workers(1), workers(2));
        let fired = Arc::new(AtomicUsize::new(0));
        let mut expected = 0;
        let mut tasks = Vec::new();
        for n in 0..2000u64 {
            let mut timer = Box::pin(sleep(Duration::from_micros(n % 700)));
            {
                let _entered = rt1.enter();
                let _ = timer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            match n % 4 {
                0 => drop(timer),
                1 => {
                    let _entered = rt2.enter();
                    timer
                        .as_mut()
                        .reset(Instant::now() + Duration::from_micros(n % 900));
                    drop(timer);
                }
                _ => {
                    expected += 1;
                    let fired = fired.clone();
                    tasks.push(rt2.spawn(async move {
                        if n % 4 == 3 {
                            timer
                                .as_mut()
                                .reset(Instant::now() + Duration::from_micros(n % 900));
                        }
                        timer.await;
                        fired.fetch_add(1, SeqCst);
                    }));
                }
            }
        }
        rt2.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(fired.load(SeqCst), expected);
    });
}

/// After a stall an interval does not fire a burst, unless it was asked to.
#[test]
fn c5_an_interval_after_a_stall() {
    within_limit(|| {
        let runtime = rt::runtime::Builder::new_current_thread()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            for (behavior, at_once, missed) in [
                (MissedTickBehavior::Skip, 1, 9),
                (MissedTickBehavior::Burst, 10, 0),
                (MissedTickBehavior::Delay, 1, 9),
            ] {
                let mut ticks = interval(10 * MS);
                ticks.set_missed_tick_behavior(behavior);
                ticks.tick().await;
                rt::time::advance(105 * MS).await;
                let now = Instant::now();
                let mut burst = 0;
                while Instant::now() == now {
                    ticks.tick().await;
                    if Instant::now() == now {
                        burst += 1;
                        if burst == 1 {
                            assert_eq!(ticks.missed(), missed, "{behavior:?}");
                        }
                    }
                }
                assert_eq!(burst, at_once, "{behavior:?}");
                let distance = Instant::now() - now;
                let expected = if behavior == MissedTickBehavior::Delay {
                    10 * MS
                } else {
                    5 * MS
                };
                assert_eq!(distance, expected, "{behavior:?}");
            }
        });
    });
}

/// The only timer is far away: no busy loop on the way to it, whatever the selector's largest timeout is.
#[test]
fn c8_a_far_timer_costs_nothing() {
    within_limit(|| {
        for runtime in [current_thread(), workers(1)] {
            for far in [30 * DAY, 365 * DAY, Duration::MAX] {
                let turns = |runtime: &rt::runtime::Runtime| {
                    let metrics = runtime.metrics();
                    metrics
                        .workers
                        .iter()
                        .map(|worker| worker.turns + worker.parks)
                        .sum::<u64>()
                };
                let task = runtime.spawn(sleep(far));
                // A socket, so that the sleep is in the selector.
                let (_keep, before) = runtime.block_on(async {
                    let socket = rt::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    assert!(timeout(MS, socket.recv(&mut [0])).await.is_err());
                    sleep(20 * MS).await;
                    (socket, turns(&runtime))
                });
                runtime.block_on(async {
                    sleep(100 * MS).await;
                });
                let after = turns(&runtime);
                assert!(
                    after - before < 60,
                    "{} turns and sleeps in 100 ms for {far:?}",
                    after - before
                );
                assert!(!task.is_finished());
                task.abort();
            }
        }
    });
}

/// Timers made on a worker that is awake wake nobody.
#[test]
fn c8_sleeps_of_a_running_worker_unpark_nobody() {
    within_limit(|| {
        let runtime = workers(1);
        let unparks = runtime.block_on(runtime.spawn(async {
            let metrics = || rt::runtime::Handle::current().metrics().unparks;
            let before = metrics();
            for n in 0..20_000u64 {
                let mut timer = pin!(sleep(Duration::from_secs(3600) + Duration::from_millis(n)));
                let _ = timer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            metrics() - before
        }));
        assert!(unparks.unwrap() <= 1);
    });
}

/// An endless sleep neither ends nor holds anything up.
#[test]
fn endless_sleeps_never_end_and_hold_up_nothing() {
    within_limit(|| {
        for runtime in each_kind() {
            runtime.block_on(async {
                let endless: Vec<_> = (0..3)
                    .map(|n| {
                        rt::spawn(async move {
                            match n {
                                0 => sleep(Duration::MAX).await,
                                1 => {
                                    assert!(
                                        timeout(Duration::MAX, std::future::pending::<()>())
                                            .await
                                            .is_ok()
                                    )
                                }
                                _ => {
                                    let mut timer = pin!(sleep(MS));
                                    timer.as_mut().reset(
                                        Instant::now() + Duration::from_secs(u32::MAX.into()),
                                    );
                                    timer.await;
                                }
                            }
                        })
                    })
                    .collect();
                assert_eq!(timeout(Duration::MAX, async { 5 }).await, Ok(5));
                assert!(timeout(20 * MS, sleep(Duration::MAX)).await.is_err());
                for task in endless {
                    assert!(!task.is_finished());
                    task.abort();
                    assert!(task.await.unwrap_err().is_aborted());
                }
                // A deadline in the past, and one at the very moment.
                sleep_until(Instant::now() - Duration::from_millis(1).min(MS)).await;
                sleep(Duration::ZERO).await;
            });
            let start = RealInstant::now();
            drop(runtime.spawn(sleep(Duration::MAX)));
            drop(runtime);
            assert!(start.elapsed() < LONG);
        }
    });
}

/// Timers that a `block_on` leaves behind fire while nobody blocks, and the seat is taken again.
#[test]
fn timers_of_a_guest_seat_fire_after_block_on_returned() {
    within_limit(|| {
        let runtime = workers(1);
        let (done, fired) = std::sync::mpsc::channel();
        for _ in 0..20 {
            let done = done.clone();
            let start = RealInstant::now();
            runtime.block_on(async {
                // Polled here, so that the timer is on this thread's seat.
                let mut timer = Box::pin(sleep(15 * MS));
                assert!(
                    futures_lite::future::poll_once(timer.as_mut())
                        .await
                        .is_none()
                );
                rt::spawn(async move {
                    timer.await;
                    done.send(start.elapsed()).unwrap();
                });
            });
            let after = fired.recv_timeout(LONG).expect("the timer fires");
            assert!(after >= 15 * MS);
        }
    });
}

/// Each worker has timers of its own: those that it makes lie in its wheel, wherever they are dropped they leave nothing
/// there, and they wake nobody. What many cores would cost each other with one wheel cannot be seen on a few.
#[test]
fn c1_workers_that_make_timers_do_not_share_a_wheel() {
    const TIMERS: u32 = 50_000;
    within_limit(|| {
        let runtime = rt::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            // These polls are long.
            .debug(false)
            .build()
            .unwrap();
        let make = |worker: usize, number: usize| {
            let body = move || async move {
                for _ in 0..TIMERS {
                    // As around each request of a server: created, polled, cancelled.
                    let request = std::future::pending::<()>();
                    let mut limit = pin!(timeout(Duration::from_secs(30), request));
                    let polled = limit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(polled.is_pending());
                }
                let mut kept: Vec<_> = (0..=number).map(|_| Box::pin(sleep(DAY))).collect();
                // All but one, which is nowhere then.
                for timer in &mut kept[..number] {
                    let polled = timer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(polled.is_pending());
                }
                kept
            };
            runtime.handle().spawn_pinned(worker, body).unwrap()
        };
        let unparks = runtime.metrics().unparks;
        let both = (make(0, 30), make(1, 50));
        let (first, second) = runtime.block_on(async { (both.0.await, both.1.await) });
        let pending = |worker: usize| runtime.metrics().workers[worker].pending_timers;
        assert_eq!((pending(0), pending(1)), (30, 50));
        assert_eq!(runtime.metrics().pending_timers, 80);
        // By a thread that is neither of them.
        drop(first.unwrap());
        assert_eq!((pending(0), pending(1)), (0, 50));
        drop(second.unwrap());
        assert_eq!(runtime.metrics().pending_timers, 0);
        // Each worker for its task, this thread for both.
        let unparks = runtime.metrics().unparks - unparks;
        assert!(unparks <= 6, "{unparks} unparks");
    });
}
