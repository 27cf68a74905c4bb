use super::{poll, ready, ten_thousand_yield};
use crate::semaphore::*;
use crate::testing::Probe;
use std::sync::Arc;

#[test]
fn s09_a_bounded_semaphore_at_its_first_value_refuses_a_release() {
    let semaphore = BoundedSemaphore::new(2);
    let error = semaphore.release(1).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("1 permits released, but 0 are out")
    );
    let permit = semaphore.try_acquire().unwrap();
    // It is out, but it returns by itself.
    assert!(semaphore.release(1).is_err());
    permit.forget();
    assert!(semaphore.release(2).is_err());
    assert_eq!(semaphore.available_permits(), 1);
    assert_eq!(semaphore.release(1), Ok(()));
    assert!(semaphore.release(1).is_err());
    assert_eq!((semaphore.available_permits(), semaphore.bound()), (2, 2));
}

#[test]
fn a_release_goes_to_who_waits() {
    let semaphore = Arc::new(BoundedSemaphore::new(2));
    let probe = Probe::new();
    ready(poll(&mut Box::pin(semaphore.acquire_many(2)), &probe))
        .unwrap()
        .forget();
    let mut first = Box::pin(semaphore.clone().acquire_owned());
    let mut second = Box::pin(semaphore.acquire());
    assert!(poll(&mut first, &probe).is_pending());
    assert!(poll(&mut second, &probe).is_pending());
    semaphore.release(1).unwrap();
    assert_eq!(probe.wakes(), 1);
    let permit = ready(poll(&mut first, &probe)).unwrap();
    assert_eq!(permit.num_permits(), 1);
    assert!(semaphore.clone().try_acquire_owned().is_err());
    drop(permit);
    drop(ready(poll(&mut second, &probe)).unwrap());
    assert_eq!(semaphore.available_permits(), 1);
    semaphore.close();
    assert!(semaphore.is_closed());
    assert!(ready(poll(&mut Box::pin(semaphore.acquire()), &probe)).is_err());
    assert_eq!(
        semaphore.try_acquire().unwrap_err(),
        TryAcquireError::Closed
    );
    assert_eq!(Arc::strong_count(&semaphore), 1);
}

#[test]
fn a_grant_that_is_dropped_is_no_release_too_many() {
    let semaphore = BoundedSemaphore::new(1);
    let probe = Probe::new();
    let held = semaphore.try_acquire().unwrap();
    let mut waiter = Box::pin(semaphore.acquire());
    assert!(poll(&mut waiter, &probe).is_pending());
    drop(held);
    drop(waiter);
    assert_eq!(semaphore.available_permits(), 1);
    assert!(semaphore.release(1).is_err());
}

#[test]
fn ten_thousand_acquires_yield_at_least_once() {
    let semaphore = BoundedSemaphore::new(1);
    let limiter = CapacityLimiter::new(1);
    ten_thousand_yield(|number, probe| {
        if number % 2 == 0 {
            poll(&mut Box::pin(semaphore.acquire()), probe).map(drop)
        } else {
            poll(&mut Box::pin(limiter.acquire()), probe).map(drop)
        }
    });
}

#[test]
fn everything_is_send_and_sync() {
    fn both<T: Send + Sync>() {}
    both::<BoundedSemaphore>();
    both::<BoundedPermit<'_>>();
    both::<OwnedBoundedPermit>();
    both::<AcquireBounded<'_>>();
    both::<AcquireBoundedOwned>();
    both::<CapacityLimiter>();
    both::<CapacityToken<'_>>();
    both::<OwnedCapacityToken>();
    both::<AcquireCapacity<'_>>();
    both::<AcquireCapacityOwned>();
}
