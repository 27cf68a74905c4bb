use std::panic::catch_unwind;
use std::sync::Arc;

use super::{poll, ready};
use crate::semaphore::*;
use crate::testing::Probe;
use crate::wait::{self, WaitKind};

fn counts(limiter: &CapacityLimiter) -> (usize, usize, usize) {
    (
        limiter.total_tokens(),
        limiter.borrowed_tokens(),
        limiter.available_tokens(),
    )
}

#[test]
fn tokens_are_borrowed_and_given_back() {
    let limiter = Arc::new(CapacityLimiter::new(2));
    let probe = Probe::new();
    assert_eq!(counts(&limiter), (2, 0, 2));
    let one = ready(poll(&mut Box::pin(limiter.acquire()), &probe));
    let two = limiter.clone().try_acquire_owned().unwrap();
    assert_eq!(counts(&limiter), (2, 2, 0));
    assert_eq!(
        limiter.try_acquire().unwrap_err(),
        TryAcquireError::NoPermits
    );
    let mut third = Box::pin(limiter.clone().acquire_owned());
    assert!(poll(&mut third, &probe).is_pending());
    assert_eq!(wait::take().kind, WaitKind::Capacity);
    drop(one);
    assert_eq!(probe.wakes(), 1);
    assert_eq!(counts(&limiter), (2, 2, 0));
    let third = ready(poll(&mut third, &probe));
    drop((two, third));
    assert_eq!(counts(&limiter), (2, 0, 2));
    assert_eq!(Arc::strong_count(&limiter), 1);
}

#[test]
fn more_tokens_go_to_who_waits() {
    let limiter = CapacityLimiter::new(0);
    let probe = Probe::new();
    let mut first = Box::pin(limiter.acquire());
    let mut second = Box::pin(limiter.acquire());
    assert!(poll(&mut first, &probe).is_pending());
    assert!(poll(&mut second, &probe).is_pending());
    limiter.set_total_tokens(1);
    assert_eq!(probe.wakes(), 1);
    let one = ready(poll(&mut first, &probe));
    assert!(poll(&mut second, &probe).is_pending());
    limiter.set_total_tokens(3);
    let two = ready(poll(&mut second, &probe));
    assert_eq!(counts(&limiter), (3, 2, 1));
    drop((one, two));
    assert_eq!(counts(&limiter), (3, 0, 3));
}

#[test]
fn fewer_tokens_take_effect_as_they_come_back() {
    let limiter = CapacityLimiter::new(4);
    let probe = Probe::new();
    let mut tokens: Vec<_> = (0..3).map(|_| limiter.try_acquire().unwrap()).collect();
    limiter.set_total_tokens(1);
    assert_eq!(counts(&limiter), (1, 3, 0));
    let mut waiter = Box::pin(limiter.acquire());
    assert!(poll(&mut waiter, &probe).is_pending());
    tokens.pop();
    assert_eq!(counts(&limiter), (1, 2, 0));
    tokens.pop();
    assert_eq!((counts(&limiter), probe.wakes()), ((1, 1, 0), 0));
    tokens.pop();
    assert_eq!(probe.wakes(), 1);
    drop(ready(poll(&mut waiter, &probe)));
    assert_eq!(counts(&limiter), (1, 0, 1));
}

#[test]
fn a_total_that_is_raised_again_pays_its_debt_first() {
    let limiter = CapacityLimiter::new(3);
    let tokens: Vec<_> = (0..3).map(|_| limiter.try_acquire().unwrap()).collect();
    limiter.set_total_tokens(0);
    limiter.set_total_tokens(2);
    assert_eq!(counts(&limiter), (2, 3, 0));
    limiter.set_total_tokens(4);
    assert_eq!(counts(&limiter), (4, 3, 1));
    drop(tokens);
    assert_eq!(counts(&limiter), (4, 0, 4));
}

/// A token that was granted to a future which is dropped pays debt as any other does.
#[test]
fn a_grant_that_is_dropped_pays_debt() {
    let limiter = CapacityLimiter::new(1);
    let probe = Probe::new();
    let token = limiter.try_acquire().unwrap();
    let mut waiter = Box::pin(limiter.acquire());
    assert!(poll(&mut waiter, &probe).is_pending());
    drop(token);
    assert_eq!(probe.wakes(), 1);
    limiter.set_total_tokens(0);
    drop(waiter);
    assert_eq!(counts(&limiter), (0, 0, 0));
}

#[test]
fn too_many_tokens_are_refused() {
    assert!(catch_unwind(|| CapacityLimiter::new(usize::MAX)).is_err());
    let limiter = CapacityLimiter::new(Semaphore::MAX_PERMITS);
    let token = limiter.try_acquire().unwrap();
    assert_eq!(limiter.borrowed_tokens(), 1);
    drop(token);
}
