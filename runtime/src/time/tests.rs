//! Futures of this module polled by hand, on a clock that is moved by hand; and what wakers do from inside.

use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant as RealInstant};

use rt_sync::wait::{self, WaitKind};

use super::clock::Clock;
use super::current;
use super::timer::Timer;
use super::timers::Timers;
use super::*;

const MS: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// A seat without a scheduler, current on this thread, with a paused clock.
struct Bed {
    timers: Arc<Timers>,
    unparks: Arc<AtomicUsize>,
    count: Arc<Count>,
    waker: Waker,
    _current: current::Guard,
}

impl Bed {
    fn new() -> Bed {
        Bed::with(Clock::pausable(true))
    }

    fn with(clock: Clock) -> Bed {
        let unparks = Arc::new(AtomicUsize::new(0));
        let counted = unparks.clone();
        let timers = Timers::new(
            clock,
            Box::new(move || {
                counted.fetch_add(1, SeqCst);
            }),
        );
        let count = Arc::<Count>::default();
        Bed {
            _current: current::enter(timers.clone()),
            timers,
            unparks,
            waker: Waker::from(count.clone()),
            count,
        }
    }

    fn poll<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&self.waker))
    }

    fn advance(&self, by: Duration) -> usize {
        self.timers.clock().advance(by).unwrap();
        self.timers.expire(RealInstant::now())
    }
}

fn panic_message(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).expect_err("no panic");
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().unwrap()).to_owned(),
    }
}

#[test]
fn a_sleep_is_ready_at_its_deadline_to_the_nanosecond_of_a_paused_clock() {
    let bed = Bed::new();
    let mut sleep = pin!(sleep(5 * MS));
    assert!(bed.poll(sleep.as_mut()).is_pending());
    assert_eq!(wait::take().kind, WaitKind::Sleep);
    assert_eq!(bed.advance(5 * MS - Duration::from_nanos(1)), 0);
    assert!(!sleep.is_elapsed());
    assert_eq!(bed.advance(Duration::from_nanos(1)), 1);
    assert_eq!(bed.count.get(), 1);
    assert!(sleep.is_elapsed());
    assert!(bed.poll(sleep).is_ready());
}

#[test]
fn a_sleep_without_end_is_never_ready_and_costs_no_slot() {
    let bed = Bed::new();
    let mut sleep = pin!(sleep(Duration::MAX));
    assert!(bed.poll(sleep.as_mut()).is_pending());
    assert!(bed.timers.is_empty());
    assert!(!bed.timers.clock().auto_advance(&bed.timers));
    bed.advance(Duration::MAX);
    assert!(bed.poll(sleep.as_mut()).is_pending());
}

#[test]
fn a_sleep_of_zero_gives_way_once() {
    let bed = Bed::new();
    let mut sleep = pin!(sleep(Duration::ZERO));
    assert!(bed.poll(sleep.as_mut()).is_pending());
    assert_eq!(bed.count.get(), 1);
    assert!(bed.poll(sleep.as_mut()).is_ready());
    sleep.as_mut().reset(Instant::now() + MS);
    assert!(bed.poll(sleep).is_pending());
}

#[test]
fn timers_that_are_not_polled_touch_no_wheel() {
    let bed = Bed::new();
    let mut sleep = Box::pin(sleep(MS));
    sleep.as_mut().reset(Instant::now() + 2 * MS);
    assert!(bed.timers.is_empty());
    drop(sleep);
    drop(interval(MS));
    drop(timeout(MS, pending::<()>()));
    assert!(bed.timers.is_empty());
}

#[test]
fn dropping_takes_the_timer_out_from_any_thread() {
    let bed = Bed::new();
    let mut here = Box::pin(sleep(MS));
    let mut there = Box::pin(sleep(2 * MS));
    assert!(bed.poll(here.as_mut()).is_pending());
    assert!(bed.poll(there.as_mut()).is_pending());
    drop(here);
    thread::spawn(move || drop(there)).join().unwrap();
    assert!(bed.timers.is_empty());
    // Both wakers are gone with them.
    assert_eq!(Arc::strong_count(&bed.count), 2);
}

#[test]
fn a_reset_from_another_thread_unparks_only_for_an_earlier_deadline() {
    let bed = Bed::with(Clock::new());
    let mut sleep = Box::pin(sleep(Duration::from_secs(100)));
    assert!(bed.poll(sleep.as_mut()).is_pending());
    let reset = |mut sleep: Pin<Box<Sleep>>, to: Duration| {
        let reset = move || {
            sleep.as_mut().reset(Instant::now() + to);
            sleep
        };
        thread::spawn(reset).join().unwrap()
    };
    bed.timers.before_park();
    let sleep = reset(sleep, Duration::from_secs(200));
    assert_eq!(bed.unparks.load(SeqCst), 0);
    let sleep = reset(sleep, Duration::from_secs(50));
    assert_eq!(bed.unparks.load(SeqCst), 1);
    // Told once: the owner has not looked yet.
    let sleep = reset(sleep, Duration::from_secs(40));
    assert_eq!(bed.unparks.load(SeqCst), 1);
    bed.timers.before_park();
    bed.timers.after_park();
    let _sleep = reset(sleep, Duration::from_secs(30));
    assert_eq!(bed.unparks.load(SeqCst), 1);
}

#[test]
fn a_timer_follows_its_task_within_a_runtime_and_stays_out_of_another_one() {
    let bed = Bed::new();
    let mut sleep = pin!(sleep(MS));
    assert!(bed.poll(sleep.as_mut()).is_pending());
    bed.advance(MS);

    let sibling = Timers::new(bed.timers.clock().clone(), Box::new(|| {}));
    let foreign = Timers::new(Clock::pausable(true), Box::new(|| {}));
    {
        let _inside = current::enter(foreign.clone());
        sleep
            .as_mut()
            .reset(Instant::now() + Duration::from_secs(1));
        assert!(bed.poll(sleep.as_mut()).is_pending());
        assert!(foreign.is_empty() && !bed.timers.is_empty());
    }
    // Under way it stays where it is.
    {
        let _inside = current::enter(sibling.clone());
        sleep
            .as_mut()
            .reset(Instant::now() + Duration::from_millis(500));
        assert!(bed.poll(sleep.as_mut()).is_pending());
        assert!(sibling.is_empty());
        bed.advance(Duration::from_secs(1));
        sleep.as_mut().reset(Instant::now() + MS);
        assert!(bed.poll(sleep.as_mut()).is_pending());
        assert!(!sibling.is_empty() && bed.timers.is_empty());
    }
}

#[test]
fn outside_a_runtime_the_panic_names_the_place_and_the_remedy() {
    let mut cx = Context::from_waker(Waker::noop());
    let message = panic_message(|| assert!(pin!(sleep(MS)).poll(&mut cx).is_pending()));
    assert!(message.contains("tests.rs"), "{message}");
    assert!(message.contains("block_on"), "{message}");
    let message = panic_message(|| {
        assert!(
            pin!(timeout(MS, pending::<()>()))
                .poll(&mut cx)
                .is_pending()
        )
    });
    assert!(message.contains("`timeout` made at"), "{message}");
    let message = panic_message(pause);
    assert!(message.contains("no runtime"), "{message}");
    // What needs no timer needs no runtime.
    assert_eq!(
        pin!(timeout(MS, ready(1))).poll(&mut cx),
        Poll::Ready(Ok(1))
    );
}

#[test]
fn after_shutdown_a_poll_panics_instead_of_hanging() {
    let bed = Bed::new();
    let mut waiting = pin!(sleep(MS));
    assert!(bed.poll(waiting.as_mut()).is_pending());
    bed.timers.close();
    assert_eq!(bed.count.get(), 1);
    let message = panic_message(|| assert!(bed.poll(waiting).is_pending()));
    assert!(message.contains("shut down"), "{message}");
    let message = panic_message(|| {
        assert!(
            bed.poll(pin!(interval_at(Instant::now() + MS, MS).tick()))
                .is_pending()
        )
    });
    assert!(message.contains("`interval` made at"), "{message}");
}

#[test]
fn a_waker_that_panics_keeps_no_other_timer_from_firing() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker panics, as it should in this test");
        }
    }
    let bed = Bed::new();
    let bad = Waker::from(Arc::new(Panics));
    let mut sleeps: Vec<_> = (0..100).map(|_| Box::pin(sleep(MS))).collect();
    for (n, sleep) in sleeps.iter_mut().enumerate() {
        let waker = if n % 10 == 0 { &bad } else { &bed.waker };
        let polled = sleep.as_mut().poll(&mut Context::from_waker(waker));
        assert!(polled.is_pending());
    }
    assert_eq!(bed.advance(MS), 100);
    assert_eq!(bed.count.get(), 90);
}

#[test]
fn a_waker_may_use_the_wheel_that_wakes_it() {
    /// Drops one timer and starts another from inside `wake`.
    struct Busy {
        timers: Arc<Timers>,
        held: Mutex<Vec<Pin<Box<Timer>>>>,
    }
    impl Wake for Busy {
        fn wake(self: Arc<Self>) {
            let mut held = self.held.lock().unwrap();
            held.clear();
            let mut next = Box::pin(Timer::new());
            let mut cx = Context::from_waker(Waker::noop());
            let later = Instant::now() + MS;
            let _ = next.as_mut().poll_on(&self.timers, &mut cx, later);
            held.push(next);
        }
    }
    let bed = Bed::new();
    let mut victim = Box::pin(Timer::new());
    let soon = Instant::now() + MS;
    let _ = victim
        .as_mut()
        .poll_on(&bed.timers, &mut Context::from_waker(&bed.waker), soon + MS);
    let busy = Arc::new(Busy {
        timers: bed.timers.clone(),
        held: Mutex::new(vec![victim]),
    });
    let waker = Waker::from(busy.clone());
    let mut timer = Box::pin(Timer::new());
    let _ = timer
        .as_mut()
        .poll_on(&bed.timers, &mut Context::from_waker(&waker), soon);
    assert_eq!(bed.advance(MS), 1);
    assert_eq!(bed.count.get(), 0);
    assert!(!bed.timers.is_empty());
    busy.held.lock().unwrap().clear();
    assert!(bed.timers.is_empty());
}

#[test]
fn a_timeout_counts_from_its_first_poll_and_reads_back_then() {
    let bed = Bed::new();
    let mut limited = pin!(timeout(10 * MS, pending::<()>()));
    bed.advance(100 * MS);
    assert_eq!(limited.deadline(), None);
    assert!(bed.poll(limited.as_mut()).is_pending());
    assert_eq!(limited.deadline(), Some(Instant::now() + 10 * MS));
    assert_eq!(wait::take().kind, WaitKind::Timeout);
    bed.advance(10 * MS - Duration::from_nanos(1));
    assert!(bed.poll(limited.as_mut()).is_pending());
    bed.advance(Duration::from_nanos(1));
    assert!(matches!(bed.poll(limited), Poll::Ready(Err(_))));
}

/// Asyncio's T16: moved later, then away; it does not fire at the old deadline.
#[test]
fn the_deadline_of_a_timeout_can_be_moved() {
    let bed = Bed::new();
    let mut limited = pin!(timeout_at(Instant::now() + MS, pending::<()>()));
    assert!(bed.poll(limited.as_mut()).is_pending());
    let later = Instant::now() + 50 * MS;
    limited.as_mut().reset(later);
    assert_eq!(limited.deadline(), Some(later));
    bed.advance(10 * MS);
    assert!(bed.poll(limited.as_mut()).is_pending());
    limited.as_mut().reset(Instant::far_future());
    bed.advance(Duration::from_secs(3600));
    assert!(bed.poll(limited.as_mut()).is_pending());
    limited.as_mut().reset(Instant::now());
    bed.advance(Duration::ZERO);
    assert!(matches!(bed.poll(limited), Poll::Ready(Err(_))));
}

#[test]
fn a_value_at_the_poll_where_the_timer_fired_wins() {
    let bed = Bed::new();
    let done = AtomicUsize::new(0);
    let work = poll_fn(|_| match done.load(SeqCst) {
        0 => Poll::Pending,
        value => Poll::Ready(value),
    });
    let mut limited = pin!(timeout(MS, work));
    assert!(bed.poll(limited.as_mut()).is_pending());
    bed.advance(MS);
    done.store(7, SeqCst);
    assert_eq!(bed.poll(limited), Poll::Ready(Ok(7)));
}

fn ticks(bed: &Bed, interval: &mut Interval) -> usize {
    let mut ticks = 0;
    while bed.poll(pin!(interval.tick())).is_ready() {
        ticks += 1;
    }
    ticks
}

#[test]
fn a_missed_tick_bursts_delays_or_skips() {
    for (behavior, at_once, missed, next_in) in [
        (MissedTickBehavior::Burst, 10, 0, 5),
        (MissedTickBehavior::Delay, 1, 9, 10),
        (MissedTickBehavior::Skip, 1, 9, 5),
    ] {
        let bed = Bed::new();
        let mut interval = interval(10 * MS);
        interval.set_missed_tick_behavior(behavior);
        assert_eq!(ticks(&bed, &mut interval), 1, "the first is at once");
        assert_eq!(wait::take().kind, WaitKind::Interval);
        bed.advance(105 * MS);
        assert_eq!(ticks(&bed, &mut interval), at_once, "{behavior:?}");
        assert_eq!(interval.missed(), missed, "{behavior:?}");
        bed.advance(next_in * MS - Duration::from_nanos(1));
        assert_eq!(ticks(&bed, &mut interval), 0, "{behavior:?}");
        bed.advance(Duration::from_nanos(1));
        assert_eq!(ticks(&bed, &mut interval), 1, "{behavior:?}");
        assert_eq!(interval.missed(), 0, "{behavior:?}");
    }
}

#[test]
fn a_tick_gives_the_moment_it_was_due_and_a_little_lateness_delays_nothing() {
    let bed = Bed::new();
    let start = Instant::now();
    let mut interval = interval(100 * MS);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for n in 0..5u32 {
        let tick = bed.poll(pin!(interval.tick()));
        assert_eq!(tick, Poll::Ready(start + n * 100 * MS));
        bed.advance(100 * MS + if n == 0 { MS } else { Duration::ZERO });
    }
}

#[test]
fn an_interval_can_be_reset() {
    let bed = Bed::new();
    let mut interval = interval(10 * MS);
    assert_eq!(ticks(&bed, &mut interval), 1);
    bed.advance(9 * MS);
    interval.reset();
    bed.advance(9 * MS);
    assert_eq!(ticks(&bed, &mut interval), 0);
    interval.reset_immediately();
    bed.advance(Duration::ZERO);
    assert_eq!(ticks(&bed, &mut interval), 1);
    interval.reset_after(3 * MS);
    bed.advance(3 * MS);
    assert_eq!(ticks(&bed, &mut interval), 1);
    interval.reset_at(Instant::now() + MS);
    bed.advance(MS);
    assert_eq!(ticks(&bed, &mut interval), 1);
    assert_eq!(interval.period(), 10 * MS);
}

#[test]
fn a_period_without_end_ticks_once() {
    let bed = Bed::new();
    let mut interval = interval(Duration::MAX);
    assert_eq!(ticks(&bed, &mut interval), 1);
    assert!(bed.timers.is_empty());
}

#[test]
#[should_panic(expected = "the period of an interval is zero")]
fn a_period_of_zero_is_refused() {
    drop(interval(Duration::ZERO));
}

#[test]
fn virtual_time_jumps_to_the_earliest_deadline_unless_it_is_inhibited() {
    let bed = Bed::new();
    let clock = bed.timers.clock().clone();
    let start = Instant::now();
    let (mut far, mut near) = (pin!(sleep(1000 * MS)), pin!(sleep(3 * MS)));
    assert!(bed.poll(far.as_mut()).is_pending());
    assert!(bed.poll(near.as_mut()).is_pending());
    // Nobody sleeps for a virtual deadline.
    assert_eq!(bed.timers.before_park(), None);
    bed.timers.after_park();

    let guard = clock.inhibit();
    assert!(!clock.auto_advance(&bed.timers));
    drop(guard);
    assert!(clock.auto_advance(&bed.timers));
    assert_eq!(start.elapsed(), 3 * MS);
    assert_eq!(bed.timers.expire(RealInstant::now()), 1);
    assert!(clock.auto_advance(&bed.timers));
    assert_eq!(start.elapsed(), 1000 * MS);
    assert_eq!(bed.timers.expire(RealInstant::now()), 1);
    assert!(!clock.auto_advance(&bed.timers));
}

#[test]
fn what_the_system_is_told_is_real_time_also_after_a_jump() {
    let bed = Bed::new();
    bed.advance(Duration::from_secs(1000));
    resume();
    let mut sleep = pin!(sleep(Duration::from_secs(10)));
    let before = RealInstant::now();
    assert!(bed.poll(sleep.as_mut()).is_pending());
    let until = bed.timers.before_park().unwrap();
    let ahead = until.saturating_duration_since(before);
    assert!(
        ahead > Duration::from_secs(9) && ahead < Duration::from_secs(60),
        "{ahead:?}"
    );
    assert_eq!(bed.timers.expire(until), 1);
}

/// Whoever looks after several seats is not kept by one of them.
#[test]
fn a_helper_fires_a_portion_and_does_not_wait_for_the_lock() {
    const MANY: usize = 2000;
    let bed = Bed::new();
    let mut sleeps: Vec<_> = (0..MANY).map(|_| Box::pin(sleep(MS))).collect();
    for sleep in &mut sleeps {
        assert!(bed.poll(sleep.as_mut()).is_pending());
    }
    bed.timers.clock().advance(MS).unwrap();
    let now = RealInstant::now();
    let held = bed.timers.hold();
    let helper = bed.timers.clone();
    let (done, end) = mpsc::channel();
    thread::spawn(move || done.send(helper.expire_some(now)));
    let fired = end.recv_timeout(Duration::from_secs(40));
    assert_eq!(fired, Ok(0), "it waits for the lock");
    drop(held);
    let first = bed.timers.expire_some(now);
    assert!(first > 0 && first < MANY, "{first}");
    assert_eq!(bed.count.get(), first);
    let mut fired = first;
    while fired < MANY {
        let more = bed.timers.expire_some(now);
        assert!(more > 0, "what is due is fired by and by: {fired}");
        fired += more;
    }
    assert_eq!((bed.count.get(), bed.timers.expire_some(now)), (MANY, 0));
}
