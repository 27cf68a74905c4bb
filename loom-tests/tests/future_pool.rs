//! Models of the pool of futures (`gather`, `wait`, `as_completed`, bounded concurrency): wakes from other threads against
//! the poll, against another wake, and against the end of the pool.
//!
//! Seen to fail: with the flag cleared after the poll (all but the last deadlock: a wake between is lost), and with
//! relaxed exchanges of the flag (`two_wakes_of_one_future`: the poll does not see what the second waker did).
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt::internals::future::Pool;
use rt_sync::AtomicWaker;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

fn check(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(body);
}

/// Ready when both bits are set.
struct Bits {
    bits: Arc<AtomicUsize>,
    waker: Arc<AtomicWaker>,
    all: usize,
}

impl Future for Bits {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        if self.bits.load(Relaxed) == self.all {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

fn bits(all: usize) -> (Bits, Arc<AtomicUsize>, Arc<AtomicWaker>) {
    let bits = Arc::new(AtomicUsize::new(0));
    let waker = Arc::new(AtomicWaker::new());
    let future = Bits {
        bits: bits.clone(),
        waker: waker.clone(),
        all,
    };
    (future, bits, waker)
}

fn drain<F: Future>(pool: &mut Pool<F>) -> Vec<u32> {
    let mut order = Vec::new();
    block_on(poll_fn(|cx| {
        loop {
            match pool.poll_next(cx) {
                Poll::Ready(Some((number, _))) => order.push(number),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }));
    order
}

/// Two futures, each woken by a thread of its own, while the pool is on its way to sleep.
#[test]
fn wakes_of_two_futures() {
    check(2, || {
        let mut pool = Pool::with_capacity(2);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (future, bits, waker) = bits(1);
                pool.push(future);
                thread::spawn(move || {
                    bits.store(1, Relaxed);
                    waker.wake();
                })
            })
            .collect();
        let mut order = drain(&mut pool);
        order.sort_unstable();
        assert_eq!(order, [0, 1]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// The waker of one future, woken by two threads that both have something to tell: the second wake may find the first
/// still in the queue, and the poll has to see what both did.
#[test]
fn two_wakes_of_one_future() {
    check(3, || {
        let told = StdArc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let shared = StdArc::new(StdMutex::new(None::<Waker>));
        let mut pool = Pool::with_capacity(1);
        let future = {
            let (told, shared) = (told.clone(), shared.clone());
            poll_fn(move |cx| {
                *shared.lock().unwrap() = Some(cx.waker().clone());
                if told.0.load(Relaxed) == 1 && told.1.load(Relaxed) == 1 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        };
        pool.push(future);
        // The first poll, before anybody wakes: nothing but the flag and the queue orders what follows.
        block_on(poll_fn(|cx| {
            assert!(pool.poll_next(cx).is_pending());
            Poll::Ready(())
        }));
        let waker = shared.lock().unwrap().clone().unwrap();
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                let (told, waker) = (told.clone(), waker.clone());
                thread::spawn(move || {
                    let told = if thread == 0 { &told.0 } else { &told.1 };
                    told.store(1, Relaxed);
                    waker.wake();
                })
            })
            .collect();
        assert_eq!(drain(&mut pool), [0]);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// One future that has to be polled for each of two wakes of one thread.
#[test]
fn wakes_one_after_the_other() {
    check(3, || {
        let (future, bits, waker) = bits(3);
        let mut pool = Pool::with_capacity(1);
        pool.push(future);
        let thread = thread::spawn(move || {
            bits.fetch_or(1, Relaxed);
            waker.wake();
            bits.fetch_or(2, Relaxed);
            waker.wake();
        });
        assert_eq!(drain(&mut pool), [0]);
        thread.join().unwrap();
    });
}

/// A wake against the drop of the pool: nobody is woken for a pool that is gone, and no waker of its owner stays.
#[test]
fn a_wake_against_the_drop() {
    check(3, || {
        let (future, bits, waker) = bits(1);
        let mut pool = Pool::with_capacity(1);
        pool.push(future);
        let owner = Count::new();
        let outer = Waker::from(owner.clone());
        assert!(
            pool.poll_next(&mut Context::from_waker(&outer))
                .is_pending()
        );
        drop(outer);
        let thread = thread::spawn(move || {
            bits.store(1, Relaxed);
            waker.wake();
        });
        drop(pool);
        thread.join().unwrap();
        assert_eq!(StdArc::strong_count(&owner), 1);
    });
}

struct Count;

impl Count {
    fn new() -> StdArc<Self> {
        StdArc::new(Count)
    }
}

impl std::task::Wake for Count {
    fn wake(self: StdArc<Self>) {}
}
