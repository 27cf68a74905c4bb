//! The stress twin of `timer.rs`: an owner that really sleeps, and waiting sides on other threads.
#![cfg(not(rt_loom))]

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant as RealInstant};

use rt::internals::time::{Clock, Outcome, Timer, Timers};
use rt::time::Instant;
use rt_loom_tests::stress::{Unpark, limited};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn micros(&mut self, n: u64) -> Duration {
        Duration::from_micros(self.below(n))
    }
}

/// A thread that owns the timers: it sleeps as long as they say, or for a while longer, and for ever if they say nothing.
struct Owner {
    timers: Arc<Timers>,
    stop: Arc<AtomicBool>,
    unparks: Arc<AtomicUsize>,
    /// Until when it sleeps, or has just begun to: what it has published to the timers by then.
    asleep_until: Arc<Mutex<Option<RealInstant>>>,
    thread: Option<thread::JoinHandle<usize>>,
}

impl Owner {
    fn new() -> Owner {
        Owner::that_oversleeps(Duration::ZERO)
    }

    fn that_oversleeps(by: Duration) -> Owner {
        let (give, take) = mpsc::channel::<Arc<Timers>>();
        let stop = Arc::new(AtomicBool::new(false));
        let asleep_until = Arc::new(Mutex::new(None));
        let (stopped, sleeps_until) = (stop.clone(), asleep_until.clone());
        let owner = thread::spawn(move || {
            let timers = take.recv().unwrap();
            let mut fired = 0;
            while !stopped.load(SeqCst) {
                *sleeps_until.lock().unwrap() = None;
                fired += timers.expire(RealInstant::now());
                let until = timers.before_park();
                *sleeps_until.lock().unwrap() = until;
                match until {
                    None => thread::park(),
                    Some(until) => {
                        let left = until.saturating_duration_since(RealInstant::now());
                        thread::park_timeout(left + by);
                    }
                }
                timers.after_park();
            }
            fired
        });
        let unparks = Arc::new(AtomicUsize::new(0));
        let (count, handle) = (unparks.clone(), owner.thread().clone());
        let timers = Timers::new(
            Clock::new(),
            Box::new(move || {
                count.fetch_add(1, SeqCst);
                handle.unpark();
            }),
        );
        give.send(timers.clone()).unwrap();
        Owner {
            timers,
            stop,
            unparks,
            asleep_until,
            thread: Some(owner),
        }
    }

    fn stop(&mut self) -> usize {
        self.stop.store(true, SeqCst);
        let thread = self.thread.take().unwrap();
        thread.thread().unpark();
        thread.join().unwrap()
    }
}

fn wait(timers: &Arc<Timers>, mut timer: Pin<&mut Timer>, deadline: Instant) {
    let waker = Unpark::waker();
    let mut cx = Context::from_waker(&waker);
    while timer.as_mut().poll_on(timers, &mut cx, deadline) == Outcome::Pending {
        thread::park();
    }
    assert!(Instant::now() >= deadline, "early");
}

/// Timers that are put in, moved, cancelled and waited for from three threads.
fn use_timers(timers: &Arc<Timers>) {
    let threads: Vec<_> = (1..=3)
        .map(|seed| {
            let timers = timers.clone();
            thread::spawn(move || {
                let mut random = Random(seed * 0x9E37_79B9);
                for _ in 0..3000 {
                    let mut timer = Box::pin(Timer::new());
                    let mut deadline = Instant::now() + random.micros(500);
                    let waker = Unpark::waker();
                    let mut cx = Context::from_waker(&waker);
                    let _ = timer.as_mut().poll_on(&timers, &mut cx, deadline);
                    for _ in 0..random.below(4) {
                        deadline = Instant::now() + random.micros(1000);
                        timer.as_mut().reset(deadline);
                    }
                    if random.below(2) == 0 {
                        wait(&timers, timer.as_mut(), deadline);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(timers.is_empty());
}

/// The owner sleeps between them.
#[test]
fn no_timer_is_lost_or_early() {
    limited(|| {
        let mut owner = Owner::new();
        use_timers(&owner.timers);
        owner.stop();
    });
}

/// The owner sleeps on while another fires its timers, and says in its name how long it may.
#[test]
fn no_timer_of_an_owner_that_is_relieved_is_lost_or_early() {
    limited(|| {
        let mut owner = Owner::that_oversleeps(Duration::from_millis(2));
        let stop = Arc::new(AtomicBool::new(false));
        let (timers, stopped) = (owner.timers.clone(), stop.clone());
        let other = thread::spawn(move || {
            let mut fired = 0;
            while !stopped.load(SeqCst) {
                fired += timers.expire_some(RealInstant::now());
                if let Some(until) = timers.before_park() {
                    thread::park_timeout(until.saturating_duration_since(RealInstant::now()));
                }
            }
            fired
        });
        use_timers(&owner.timers);
        stop.store(true, SeqCst);
        assert!(other.join().unwrap() > 0);
        owner.stop();
    });
}

/// A timer that is put in while the owner sleeps for long fires in time, and an unpark is paid for that only.
#[test]
fn an_earlier_deadline_wakes_a_sleeping_owner() {
    limited(|| {
        let mut owner = Owner::new();
        let far = Instant::now() + Duration::from_secs(3600);
        let waker = Waker::noop();
        let mut long = Box::pin(Timer::new());
        let mut cx = Context::from_waker(waker);
        let _ = long.as_mut().poll_on(&owner.timers, &mut cx, far);
        for _ in 0..1000 {
            let mut timer = Box::pin(Timer::new());
            let deadline = Instant::now() + Duration::from_micros(200);
            wait(&owner.timers, timer.as_mut(), deadline);
        }
        // Later deadlines need nobody's attention, once it sleeps for the sake of the far one.
        let long_sleep = RealInstant::now() + Duration::from_secs(1800);
        while owner
            .asleep_until
            .lock()
            .unwrap()
            .is_none_or(|until| until < long_sleep)
        {
            thread::yield_now();
        }
        let before = owner.unparks.load(SeqCst);
        for _ in 0..1000 {
            let mut timer = Box::pin(Timer::new());
            let later = far + Duration::from_secs(1);
            let _ = timer.as_mut().poll_on(&owner.timers, &mut cx, later);
        }
        assert_eq!(owner.unparks.load(SeqCst), before);
        drop(long);
        owner.stop();
    });
}

/// Shutting down ends every timer, those that come at the same time too.
#[test]
fn closing_ends_every_timer() {
    limited(|| {
        for _ in 0..300 {
            let mut owner = Owner::new();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let timers = owner.timers.clone();
                    thread::spawn(move || {
                        let waker = Unpark::waker();
                        let mut cx = Context::from_waker(&waker);
                        let never = Instant::now() + Duration::from_secs(3600);
                        let mut timer = Box::pin(Timer::new());
                        loop {
                            match timer.as_mut().poll_on(&timers, &mut cx, never) {
                                Outcome::Pending => thread::park(),
                                outcome => break assert_eq!(outcome, Outcome::Closed),
                            }
                        }
                    })
                })
                .collect();
            owner.timers.close();
            for thread in threads {
                thread.join().unwrap();
            }
            owner.stop();
        }
    });
}
