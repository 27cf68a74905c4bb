//! The stress twin of `future_pool.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread;

use rt::internals::future::Pool;
use rt_loom_tests::stress::{Unpark, block_on, limited};
use rt_sync::AtomicWaker;

#[derive(Default)]
struct Counter {
    count: AtomicUsize,
    waker: AtomicWaker,
}

/// Ready when the counter has reached a number, which every poll may find nearer.
struct Reaches(Arc<Counter>, usize);

impl Future for Reaches {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        self.0.waker.register(cx.waker());
        match self.0.count.load(Relaxed) {
            count if count >= self.1 => Poll::Ready(count),
            _ => Poll::Pending,
        }
    }
}

/// Two threads count up many counters; each is waited for in steps, in places that are used again.
#[test]
fn no_wake_is_lost() {
    const COUNTERS: usize = 16;
    const STEPS: usize = 20_000;
    limited(|| {
        let counters: Arc<Vec<Arc<Counter>>> =
            Arc::new((0..COUNTERS).map(|_| Arc::default()).collect());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let counters = counters.clone();
                thread::spawn(move || {
                    for step in 0..COUNTERS * STEPS / 2 {
                        let counter = &counters[step * 7 % COUNTERS];
                        counter.count.fetch_add(1, Relaxed);
                        counter.waker.wake();
                    }
                })
            })
            .collect();
        let mut pool = Pool::with_capacity(COUNTERS);
        let mut owner = Vec::new();
        for (index, counter) in counters.iter().enumerate() {
            let place = pool.push(Reaches(counter.clone(), 1)) as usize;
            owner.resize(owner.len().max(place + 1), 0);
            owner[place] = index;
        }
        let mut ended = 0;
        block_on(poll_fn(|cx| {
            loop {
                match pool.poll_next(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Ready(Some((_, count))) if count >= STEPS => ended += 1,
                    Poll::Ready(Some((place, count))) => {
                        let index = owner[place as usize];
                        let next = Reaches(counters[index].clone(), count + 1);
                        let place = pool.push(next) as usize;
                        owner[place] = index;
                    }
                }
            }
        }));
        assert_eq!(ended, COUNTERS);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Pools that are dropped while their futures are woken.
#[test]
fn wakes_against_drops() {
    limited(|| {
        let counter = Arc::new(Counter::default());
        let other = counter.clone();
        let stop = Arc::new(AtomicUsize::new(0));
        let stopped = stop.clone();
        let waking = thread::spawn(move || {
            while stopped.load(Relaxed) == 0 {
                other.waker.wake();
            }
        });
        for _ in 0..50_000 {
            let mut pool = Pool::with_capacity(1);
            pool.push(Reaches(counter.clone(), 1));
            let owner = Arc::new(Unpark(thread::current()));
            let waker = Waker::from(owner.clone());
            let turn = pool.poll_next(&mut Context::from_waker(&waker));
            assert!(turn.is_pending());
            drop((pool, waker));
            // The waking thread may still hold the one that it has taken out.
            while Arc::strong_count(&owner) > 1 {
                thread::yield_now();
            }
        }
        stop.store(1, Relaxed);
        waking.join().unwrap();
    });
}
