//! Waits that are given up half-way: row B10 of the known pains of async runtimes. The primitives alone, on one thread and
//! against models, are in `rt-sync`; here tasks of several workers give up at any poll.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use rt::runtime::Runtime;
use rt::sync::{Mutex, Notify, Queue, Semaphore, Shutdown, mpsc, oneshot};
use rt::task::yield_now;
use rt::time::timeout;

use crate::pains_support::{LONG, MS, each_kind};
use crate::support::within_limit;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Polls a future at most so often, at random, and drops it if it is not ready by then.
    async fn patience<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut polls = self.below(4);
        let mut future = pin!(future);
        poll_fn(|cx| {
            if polls == 0 {
                return Poll::Ready(None);
            }
            polls -= 1;
            match future.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending => {
                    // Asks again although nobody has woken it: a grant may have come in between, or not.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        })
        .await
    }
}

fn on_each<F: Future<Output = ()> + Send + 'static>(body: fn() -> F) {
    within_limit(move || {
        for runtime in each_kind() {
            let runtime: Runtime = runtime;
            let task = runtime.spawn(body());
            runtime.block_on(task).unwrap();
        }
    });
}

const ITEMS: usize = 10_000;

/// Every number comes out once, whoever gave up in between.
fn assert_all(seen: &[AtomicUsize]) {
    for (number, times) in seen.iter().enumerate() {
        assert_eq!(times.load(SeqCst), 1, "item {number}");
    }
}

fn counters() -> Arc<Vec<AtomicUsize>> {
    Arc::new((0..ITEMS).map(|_| AtomicUsize::new(0)).collect())
}

#[test]
fn b10_getters_of_a_queue_that_give_up_lose_nothing() {
    on_each(|| async {
        let (queue, seen) = (Arc::new(Queue::new(3)), counters());
        let getters: Vec<_> = (1..=4)
            .map(|seed| {
                let (queue, seen) = (queue.clone(), seen.clone());
                rt::spawn(async move {
                    let mut random = Random(seed * 0x9e37_79b9);
                    let mut gave_up = 0;
                    loop {
                        match random.patience(queue.get()).await {
                            Some(Ok(number)) => {
                                let number: usize = number;
                                seen[number].fetch_add(1, SeqCst);
                            }
                            Some(Err(_)) => return gave_up,
                            None => gave_up += 1,
                        }
                        yield_now().await;
                    }
                })
            })
            .collect();
        for number in 0..ITEMS {
            queue.put(number).await.unwrap();
        }
        queue.shutdown(Shutdown::Draining);
        let mut gave_up = 0;
        for getter in getters {
            gave_up += getter.await.unwrap();
        }
        assert_all(&seen);
        assert!(gave_up > 100, "only {gave_up} waits were given up");
    });
}

#[test]
fn b10_a_receiver_that_gives_up_loses_nothing() {
    on_each(|| async {
        let (sender, mut receiver) = mpsc::channel(3);
        let seen = counters();
        let senders: Vec<_> = (0..2)
            .map(|part| {
                let sender = sender.clone();
                rt::spawn(async move {
                    for number in (part..ITEMS).step_by(2) {
                        sender.send(number).await.unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        let mut random = Random(7);
        loop {
            match random.patience(receiver.recv()).await {
                Some(Some(number)) => drop(seen[number].fetch_add(1, SeqCst)),
                Some(None) => break,
                None => yield_now().await,
            }
        }
        for sender in senders {
            sender.await.unwrap();
        }
        assert_all(&seen);
    });
}

#[test]
fn b10_permits_and_locks_that_are_given_up_come_back() {
    on_each(|| async {
        let permits = Arc::new(Semaphore::new(3));
        let lock = Arc::new(Mutex::new(0_usize));
        let entered = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (1..=6)
            .map(|seed| {
                let (permits, lock, entered) = (permits.clone(), lock.clone(), entered.clone());
                rt::spawn(async move {
                    let mut random = Random(seed * 0x9e37_79b9);
                    for _ in 0..2000 {
                        let wanted = 1 + random.below(3) as u32;
                        let permit = random.patience(permits.acquire_many(wanted)).await;
                        if random.below(2) == 0 {
                            yield_now().await;
                        }
                        drop(permit);
                        if let Some(mut value) = random.patience(lock.lock()).await {
                            *value += 1;
                            entered.fetch_add(1, SeqCst);
                            if random.below(4) == 0 {
                                yield_now().await;
                            }
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(permits.available_permits(), 3);
        // Nobody holds it, nobody is in line.
        assert_eq!(
            *lock.try_lock().expect("the lock is free"),
            entered.load(SeqCst)
        );
    });
}

#[test]
fn b10_a_notification_that_is_given_up_goes_to_the_next() {
    on_each(|| async {
        let notify = Arc::new(Notify::new());
        for round in 0..2000 {
            let mut first = Box::pin(notify.notified());
            let mut second = Box::pin(notify.notified());
            let polled =
                poll_fn(|cx| Poll::Ready((first.as_mut().poll(cx), second.as_mut().poll(cx))));
            assert_eq!(polled.await, (Poll::Pending, Poll::Pending));
            let notifier = {
                let notify = notify.clone();
                rt::spawn(async move { notify.notify_one() })
            };
            if round % 2 == 0 {
                yield_now().await;
            }
            // Before or after it was notified.
            drop(first);
            timeout(LONG, second).await.expect("the second is notified");
            notifier.await.unwrap();
        }
    });
}

/// Where the work must not stop with whoever waits for it, it is shielded.
#[test]
fn b10_shielded_work_goes_on_without_who_waits_for_it() {
    on_each(|| async {
        let (go, goes) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let work = rt::shield(async move {
            goes.await.unwrap();
            done.send(5).unwrap();
        });
        assert!(timeout(MS, work).await.is_err());
        go.send(()).unwrap();
        assert_eq!(is_done.await, Ok(5));
    });
}
