//! Models of `Semaphore`, and so of the permits and the queue that mutex and read-write lock share with it.
//!
//! Seen to fail: without the look at `WAITERS` in what the addition of `Permits::release` returns
//! (`acquire_against_release` hangs); with a head that leaves without serving the next
//! (`a_head_that_goes_against_release`); with a grant that is dropped and not returned (both `grant_against_cancel`); with
//! a `close` that refuses nobody in line (`close_against_acquire` hangs); with a newcomer that takes in spite of `WAITERS`
//! (`try_acquire_against_what_is_kept_for_the_head`); with `Relaxed` for the load of `Permits::serve`
//! (`acquire_many_against_release`), and for its addition (`what_is_left_against_try_acquire`); with a total that is raised
//! without a look for new debt afterwards (`a_raised_total_against_a_lowered_one`).
#![cfg(rt_loom)]

use std::pin::pin;
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicUsize as ModelUsize, Ordering::Relaxed};
use rt_sync::semaphore::{CapacityLimiter, Semaphore, TryAcquireError};

/// A permit is returned while somebody gets in line for it: it is seen, or granted. Steps 1 and 2 of the module head.
#[test]
fn acquire_against_release() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let written = Arc::new(ModelUsize::new(0));
        let (other, writes) = (semaphore.clone(), written.clone());
        let releaser = thread::spawn(move || {
            writes.store(1, Relaxed);
            other.add_permits(1);
        });
        let permit = block_on(semaphore.acquire()).unwrap();
        // Brought along by the permit, whichever way it came.
        assert_eq!(written.load(Relaxed), 1);
        drop(permit);
        releaser.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
    });
}

/// A waiter goes while its permit is granted: the permit is there afterwards, and no waker stays.
#[test]
fn grant_against_cancel() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let (probe, waker) = Probe::new();
        let mut waiter = Box::pin(semaphore.acquire());
        let mut cx = Context::from_waker(&waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let other = semaphore.clone();
        let releaser = thread::spawn(move || other.add_permits(1));
        drop(waiter);
        releaser.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
        drop(waker);
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// The same with another one behind it: that one gets the permit.
#[test]
fn grant_against_cancel_serves_the_next() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let (first, waker) = Probe::new();
        let (second, second_waker) = Probe::new();
        let mut goes = Box::pin(semaphore.acquire());
        assert!(
            goes.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let mut stays = pin!(semaphore.acquire());
        let mut cx = Context::from_waker(&second_waker);
        assert!(stays.as_mut().poll(&mut cx).is_pending());
        let other = semaphore.clone();
        let releaser = thread::spawn(move || other.add_permits(1));
        drop(goes);
        releaser.join().unwrap();
        assert_eq!(second.wakes(), 1);
        assert!(first.wakes() <= 1);
        assert!(matches!(stays.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
        assert_eq!(semaphore.available_permits(), 1);
    });
}

/// A waiter changes its waker while its permit is granted: the newest is woken, or the grant is seen.
#[test]
fn grant_against_another_waker() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let (old, old_waker) = Probe::new();
        let (new, new_waker) = Probe::new();
        let mut waiter = Box::pin(semaphore.acquire());
        let mut cx = Context::from_waker(&old_waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let other = semaphore.clone();
        let releaser = thread::spawn(move || other.add_permits(1));
        let seen = waiter
            .as_mut()
            .poll(&mut Context::from_waker(&new_waker))
            .is_ready();
        releaser.join().unwrap();
        assert!(seen || new.wakes() == 1);
        drop((waiter, old_waker, new_waker));
        assert_eq!(semaphore.available_permits(), 1);
        assert_eq!(StdArc::strong_count(&old), 1);
        assert_eq!(StdArc::strong_count(&new), 1);
    });
}

/// The semaphore is closed while somebody gets in line: it is refused, now or when it waits, and never waits for ever.
#[test]
fn close_against_acquire() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let other = semaphore.clone();
        let closer = thread::spawn(move || other.close());
        assert!(block_on(semaphore.acquire()).is_err());
        closer.join().unwrap();
        assert_eq!(
            semaphore.try_acquire().unwrap_err(),
            TryAcquireError::Closed
        );
    });
}

/// The same with a permit that comes at the same time: acquired or refused, it is counted afterwards.
#[test]
fn close_against_release_and_acquire() {
    model(2, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let (closes, adds) = (semaphore.clone(), semaphore.clone());
        let closer = thread::spawn(move || closes.close());
        let adder = thread::spawn(move || adds.add_permits(1));
        drop(block_on(semaphore.acquire()));
        closer.join().unwrap();
        adder.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
    });
}

/// One asks for two permits that come one by one from two threads, and each brings along what was done before.
#[test]
fn acquire_many_against_release() {
    model(2, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let written = Arc::new([ModelUsize::new(0), ModelUsize::new(0)]);
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let (semaphore, written) = (semaphore.clone(), written.clone());
                thread::spawn(move || {
                    written[i].store(1, Relaxed);
                    semaphore.add_permits(1);
                })
            })
            .collect();
        let permit = block_on(semaphore.acquire_many(2)).unwrap();
        // Before any other look at the semaphore, which would bring them along as well.
        for write in &*written {
            assert_eq!(write.load(Relaxed), 1);
        }
        assert_eq!(permit.num_permits(), 2);
        assert_eq!(semaphore.available_permits(), 0);
        drop(permit);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(semaphore.available_permits(), 2);
    });
}

/// More comes back than who waits needs: who takes the rest sees what was done before too.
#[test]
fn what_is_left_against_try_acquire() {
    let taken = StdArc::new(AtomicUsize::new(0));
    let count = taken.clone();
    model(3, move || {
        let semaphore = Arc::new(Semaphore::new(0));
        let written = Arc::new(ModelUsize::new(0));
        let (_, waker) = Probe::new();
        let mut waiter = Box::pin(semaphore.acquire());
        let mut cx = Context::from_waker(&waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let (other, writes, count) = (semaphore.clone(), written.clone(), count.clone());
        let taker = thread::spawn(move || {
            if let Ok(permit) = other.try_acquire() {
                assert_eq!(writes.load(Relaxed), 1);
                count.fetch_add(1, SeqCst);
                drop(permit);
            }
        });
        written.store(1, Relaxed);
        semaphore.add_permits(2);
        taker.join().unwrap();
        assert_eq!(semaphore.available_permits(), 1);
        drop(waiter);
        assert_eq!(semaphore.available_permits(), 2);
    });
    assert!(
        taken.load(SeqCst) > 0,
        "the model never gets to what it is about"
    );
}

/// The head asks for many and goes, while a permit comes that is enough for who is behind it.
#[test]
fn a_head_that_goes_against_release() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let (_, waker) = Probe::new();
        let (few, few_waker) = Probe::new();
        let mut many = Box::pin(semaphore.acquire_many(2));
        assert!(
            many.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let mut next = pin!(semaphore.acquire());
        let mut cx = Context::from_waker(&few_waker);
        assert!(next.as_mut().poll(&mut cx).is_pending());
        let other = semaphore.clone();
        let releaser = thread::spawn(move || other.add_permits(1));
        drop(many);
        releaser.join().unwrap();
        assert_eq!(few.wakes(), 1);
        assert!(next.as_mut().poll(&mut cx).is_ready());
    });
}

/// A newcomer tries its luck while a permit is handed over: it does not get what is granted, and none is lost.
#[test]
fn try_acquire_against_hand_over() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.try_acquire().unwrap();
        let (_, waker) = Probe::new();
        let mut waiter = pin!(semaphore.acquire());
        let mut cx = Context::from_waker(&waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let other = semaphore.clone();
        let newcomer = thread::spawn(move || assert!(other.try_acquire().is_err()));
        drop(held);
        newcomer.join().unwrap();
        let permit = waiter.as_mut().poll(&mut cx);
        assert!(permit.is_ready());
        drop(permit);
        assert_eq!(semaphore.available_permits(), 1);
    });
}

/// A newcomer tries to take what is kept for the head, while the rest of it comes.
#[test]
fn try_acquire_against_what_is_kept_for_the_head() {
    model(3, || {
        let semaphore = Arc::new(Semaphore::new(1));
        let (_, waker) = Probe::new();
        let mut waiter = pin!(semaphore.acquire_many(2));
        let mut cx = Context::from_waker(&waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        let other = semaphore.clone();
        let releaser = thread::spawn(move || other.add_permits(1));
        assert!(semaphore.try_acquire().is_err());
        assert_eq!(semaphore.forget_permits(1), 0);
        releaser.join().unwrap();
        let permit = waiter.as_mut().poll(&mut cx);
        assert!(permit.is_ready());
        drop(permit);
        assert_eq!(semaphore.available_permits(), 2);
    });
}

/// Permits are forgotten, taken and returned at the same time: they add up.
#[test]
fn forget_against_acquire_and_release() {
    model(2, || {
        let semaphore = Arc::new(Semaphore::new(1));
        let (forgets, adds) = (semaphore.clone(), semaphore.clone());
        let forgetter = thread::spawn(move || forgets.forget_permits(1));
        let adder = thread::spawn(move || adds.add_permits(1));
        drop(block_on(semaphore.acquire()).unwrap());
        let forgotten = forgetter.join().unwrap();
        adder.join().unwrap();
        assert_eq!(semaphore.available_permits(), 2 - forgotten);
    });
}

/// The total of a limiter is raised and lowered at the same time: whichever comes last, no more tokens than it says can be
/// had afterwards.
#[test]
fn a_raised_total_against_a_lowered_one() {
    model(2, || {
        let limiter = Arc::new(CapacityLimiter::new(1));
        let other = limiter.clone();
        let lowers = thread::spawn(move || other.set_total_tokens(0));
        limiter.set_total_tokens(2);
        lowers.join().unwrap();
        let counts = (limiter.borrowed_tokens(), limiter.available_tokens());
        assert_eq!(counts, (0, limiter.total_tokens()));
    });
}
