use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use super::*;
use crate::condition::Condition;
use crate::mutex::Mutex as AsyncMutex;
use crate::notify::Notify;
use crate::once_cell::OnceCell;
use crate::queue::Queue;
use crate::rwlock::RwLock;
use crate::semaphore::{CapacityLimiter, Semaphore};
use crate::testing::{Probe, Task, once};
use crate::{broadcast, mpsc, oneshot, watch};

#[test]
fn all_are_woken_once_and_in_order() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut batch = WakeBatch::new();
    for round in 0..3 {
        for i in 0..CAPACITY {
            assert!(!batch.is_full());
            let probe = Probe::new();
            let order = order.clone();
            once(&probe.on_wake, move || order.lock().unwrap().push(i));
            batch.push(probe.waker());
        }
        assert!(batch.is_full());
        assert_eq!(batch.len(), CAPACITY);
        batch.wake_all();
        assert!(batch.is_empty());
        assert_eq!(
            mem::take(&mut *order.lock().unwrap()),
            (0..CAPACITY).collect::<Vec<_>>(),
            "round {round}"
        );
    }
}

#[test]
fn a_waker_that_panics_does_not_keep_others_asleep() {
    let bad = Probe::new();
    let good = Probe::new();
    let mut batch = WakeBatch::new();
    for i in 0..3 {
        batch.push(good.waker());
        if i > 0 {
            once(&bad.on_wake, || panic!("first"));
            batch.push(bad.waker());
        }
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| batch.wake_all()));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"first"));
    assert_eq!((good.wakes(), bad.wakes()), (3, 2));
    assert_eq!((good.alive(), bad.alive()), (0, 0));
    batch.push(good.waker());
    assert!(batch.wake_all_caught().is_none());
    assert_eq!(good.wakes(), 4);
}

#[test]
fn dropping_a_batch_wakes_what_is_left_even_while_unwinding() {
    let (bad, good) = (Probe::new(), Probe::new());
    once(&bad.on_wake, || panic!("in wake"));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let mut batch = WakeBatch::new();
        batch.push(bad.waker());
        batch.push(good.waker());
        panic!("outside");
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"outside"));
    assert_eq!((good.wakes(), bad.wakes()), (1, 1));
}

#[test]
#[should_panic(expected = "ask `is_full`")]
fn a_push_into_a_full_batch_says_what_to_do() {
    let mut batch = WakeBatch::new();
    for _ in 0..=CAPACITY {
        batch.push(Waker::noop().clone());
    }
}

#[test]
fn extend_wakes_whenever_it_is_full() {
    let probe = Probe::new();
    let mut batch = WakeBatch::new();
    batch.extend((0..2 * CAPACITY + 1).map(|_| probe.waker()));
    assert_eq!(probe.wakes(), 2 * CAPACITY);
    drop(batch);
    assert_eq!((probe.wakes(), probe.alive()), (2 * CAPACITY + 1, 0));
}

#[test]
fn extend_loses_no_waker_to_one_that_panics() {
    let (bad, good) = (Probe::new(), Probe::new());
    once(&bad.on_wake, || panic!("in wake"));
    let wakers = std::iter::once(bad.waker()).chain((0..2 * CAPACITY).map(|_| good.waker()));
    let mut batch = WakeBatch::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| batch.extend(wakers)));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"in wake"));
    drop(batch);
    assert_eq!((good.wakes(), good.alive()), (2 * CAPACITY, 0));
}

/// Drops `holder` while a panic unwinds; the waker of `waiter`, who waits for that, panics too.
fn unwound(waiter: impl Future, holder: impl Sized) {
    assert!(woken_by_unwinding(Task::waiting(waiter), holder).is_ready());
}

fn woken_by_unwinding<F: Future>(mut waiter: Task<F>, holder: impl Sized) -> Poll<F::Output> {
    once(&waiter.probe.on_wake, || panic!("in wake"));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _holder = holder;
        panic!("outside");
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"outside"));
    assert_eq!(waiter.wakes(), 1);
    waiter.poll()
}

/// A second panic would end the process.
#[test]
fn what_is_dropped_while_a_panic_unwinds_wakes_whom_it_has_to() {
    let mutex = AsyncMutex::new(());
    unwound(mutex.lock(), mutex.try_lock().unwrap());
    let lock = RwLock::new(());
    unwound(lock.read(), lock.try_write().unwrap());
    let semaphore = Semaphore::new(1);
    unwound(semaphore.acquire(), semaphore.try_acquire().unwrap());
    let limiter = CapacityLimiter::new(1);
    unwound(limiter.acquire(), limiter.try_acquire().unwrap());

    let (sender, receiver) = oneshot::channel::<()>();
    unwound(receiver, sender);
    let (mut sender, receiver) = oneshot::channel::<()>();
    unwound(sender.closed(), receiver);
    let (sender, mut receiver) = mpsc::unbounded_channel::<()>();
    unwound(receiver.recv(), sender);
    let (sender, mut receiver) = mpsc::channel::<()>(1);
    let permit = sender.try_reserve_owned().unwrap();
    receiver.close();
    unwound(receiver.recv(), permit);
    let (sender, receiver) = watch::channel(());
    unwound(sender.closed(), receiver);
    let (sender, receiver) = broadcast::channel::<()>(1);
    unwound(sender.closed(), receiver);

    // Those that were granted something hand it on.
    let notify = Notify::new();
    let first = Task::waiting(notify.notified());
    let second = notify.notified();
    let mut second = Box::pin(second);
    assert!(!second.as_mut().enable());
    notify.notify_one();
    unwound(second, first);
    let queue = Queue::unbounded();
    let first = Task::waiting(queue.get());
    let second = Task::waiting(queue.get());
    queue.try_put(1).unwrap();
    assert_eq!(woken_by_unwinding(second, first), Poll::Ready(Ok(1)));

    let cell = OnceCell::new();
    let making = Task::waiting(cell.get_or_init(std::future::pending::<u8>));
    unwound(cell.get_or_init(|| std::future::ready(1)), making);
    let condition = Condition::new();
    let first = Task::waiting(condition.wait(mutex.try_lock().unwrap()));
    let second = Task::waiting(condition.wait(mutex.try_lock().unwrap()));
    assert!(condition.notify_one());
    assert!(woken_by_unwinding(second, first).is_ready());
}
