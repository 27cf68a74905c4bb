//! Models of the pool of futures (`gather`, `wait`, `as_completed`, bounded concurrency): wakes from other threads against
//! the poll, against another wake, and against the end of the pool.
//!
//! Seen to fail, `two_wakes_of_one_future` and `wakes_one_after_the_other` by a deadlock: with relaxed exchanges of the flag
//! (a poll does not see what the waker did that found the flag set), and with the flag cleared after the poll (a wake
//! between is lost). `a_wake_against_the_drop` failed with the queue in an `Arc` of std, whose order loom does not know.
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt::internals::future::Pool;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

fn check(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(body);
}

/// A future that is ready when all bits are set, and that hands its waker out at the first poll. Neither the bits nor the
/// waker order anything between threads: the pool alone does.
struct Bits {
    bits: Arc<AtomicUsize>,
    all: usize,
    waker: StdArc<StdMutex<Option<Waker>>>,
}

impl Future for Bits {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.waker
            .lock()
            .unwrap()
            .get_or_insert_with(|| cx.waker().clone());
        if self.bits.load(Relaxed) == self.all {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// A pool of futures that were polled once, and for each of them its bits and its waker.
fn polled(alls: &[usize], cx: &mut Context<'_>) -> (Pool<Bits>, Vec<(Arc<AtomicUsize>, Waker)>) {
    let mut pool = Pool::with_capacity(alls.len());
    let parts: Vec<_> = alls
        .iter()
        .map(|&all| {
            let (bits, waker) = (Arc::new(AtomicUsize::new(0)), StdArc::default());
            pool.push(Bits {
                bits: bits.clone(),
                all,
                waker: StdArc::clone(&waker),
            });
            (bits, waker)
        })
        .collect();
    assert!(pool.poll_next(cx).is_pending());
    let parts = parts
        .into_iter()
        .map(|(bits, waker)| (bits, waker.lock().unwrap().take().unwrap()))
        .collect();
    (pool, parts)
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

/// Two futures, woken by another thread while the pool is on its way to sleep: in the order of the wakes.
#[test]
fn wakes_of_two_futures() {
    check(2, || {
        let (mut pool, parts) = polled(&[1, 1], &mut Context::from_waker(Waker::noop()));
        let thread = thread::spawn(move || {
            for (bits, waker) in parts.into_iter().rev() {
                bits.store(1, Relaxed);
                waker.wake();
            }
        });
        assert_eq!(drain(&mut pool), [1, 0]);
        thread.join().unwrap();
    });
}

/// The waker of one future, woken by two threads that both have something to tell: the second wake may find the first
/// still in the queue, and the poll has to see what both did.
#[test]
fn two_wakes_of_one_future() {
    check(3, || {
        let (mut pool, mut parts) = polled(&[3], &mut Context::from_waker(Waker::noop()));
        let (bits, waker) = parts.remove(0);
        let (other, woken) = (bits.clone(), waker.clone());
        let thread = thread::spawn(move || {
            other.fetch_or(1, Relaxed);
            woken.wake();
        });
        bits.fetch_or(2, Relaxed);
        waker.wake();
        assert_eq!(drain(&mut pool), [0]);
        thread.join().unwrap();
    });
}

/// One future that has to be polled for each of two wakes of one thread.
#[test]
fn wakes_one_after_the_other() {
    check(3, || {
        let (mut pool, mut parts) = polled(&[2], &mut Context::from_waker(Waker::noop()));
        let (bits, waker) = parts.remove(0);
        let thread = thread::spawn(move || {
            bits.store(1, Relaxed);
            waker.wake_by_ref();
            bits.store(2, Relaxed);
            waker.wake();
        });
        assert_eq!(drain(&mut pool), [0]);
        thread.join().unwrap();
    });
}

/// A wake against the drop of the pool: no waker of its owner stays, and none is dropped twice.
#[test]
fn a_wake_against_the_drop() {
    check(3, || {
        let owner = Count::new();
        let outer = Waker::from(owner.clone());
        let (pool, mut parts) = polled(&[1], &mut Context::from_waker(&outer));
        drop(outer);
        let (bits, waker) = parts.remove(0);
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
