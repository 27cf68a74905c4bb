//! The stress twin of `park.rs` and `root_flag.rs`: real sleeps, in both beds by turns, and real wakers.
#![cfg(not(rt_loom))]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use rt::internals::scheduler::{Park, RootFlag, Wakeup};
use rt_loom_tests::stress::limited;

/// Remembers a wake, as an eventfd does.
#[derive(Default)]
struct Selector {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Selector {
    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

#[derive(Default)]
struct Seat {
    park: Park,
    selector: Selector,
    work: AtomicUsize,
    done: AtomicUsize,
}

/// Two threads add work; every fourth time they wait until the owner has seen it, so that it sleeps.
#[test]
fn unparks_against_every_bed() {
    const EACH: usize = 40_000;
    limited(|| {
        let seat = Arc::<Seat>::default();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let seat = seat.clone();
                thread::spawn(move || {
                    for round in 0..EACH {
                        let number = seat.work.fetch_add(1, Relaxed) + 1;
                        seat.park.unpark(|| seat.selector.wake());
                        while round % 4 == 0 && seat.done.load(Relaxed) < number {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut sleeps = 0;
        loop {
            let work = seat.work.load(Relaxed);
            if seat.done.load(Relaxed) < work {
                seat.done.store(work, Relaxed);
                continue;
            }
            if work == 2 * EACH {
                break;
            }
            sleeps += 1;
            match sleeps % 3 {
                0 => seat.park.park(None),
                1 => seat
                    .park
                    .park(Some(Instant::now() + Duration::from_micros(sleeps % 50))),
                _ => {
                    if seat.park.before_select() {
                        seat.selector.wait();
                        seat.park.after_select();
                    }
                }
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Three threads wake a root future: every piece of news is seen, also when the wakes fall together.
#[test]
fn root_flag_of_three_wakers() {
    const EACH: usize = 40_000;
    limited(|| {
        let wakeup = Arc::new(Wakeup::new());
        let flag = Arc::new(RootFlag::new(wakeup.clone()));
        let news = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let seen = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let threads: Vec<_> = (0..3)
            .map(|place| {
                let (waker, news, seen) = (Waker::from(flag.clone()), news.clone(), seen.clone());
                thread::spawn(move || {
                    for round in 1..=EACH {
                        news[place].store(round, Relaxed);
                        waker.wake_by_ref();
                        while round % 4 == 0 && seen[place].load(Relaxed) < round {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        loop {
            if flag.take() {
                let mut over = true;
                for place in 0..3 {
                    let round = news[place].load(Relaxed);
                    seen[place].store(round, Relaxed);
                    over &= round == EACH;
                }
                if over {
                    break;
                }
            }
            if !flag.is_set() {
                wakeup.park.park(None);
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
