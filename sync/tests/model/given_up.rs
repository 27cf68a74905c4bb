//! `watch`, `oneshot`, `Event`, `Barrier`, `Condition`, `OnceCell`, `SetOnce`, `CapacityLimiter`, `CancellationToken` and
//! `TaskTracker`: futures that are given up at random, against what must be true all the same. Whoever can go on has been
//! woken, nobody is woken for nothing, and no waker is left behind.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Poll, Waker};

use rt_sync::barrier::Barrier;
use rt_sync::cancellation_token::CancellationToken;
use rt_sync::condition::Condition;
use rt_sync::event::Event;
use rt_sync::mutex::{Mutex, MutexGuard};
use rt_sync::once_cell::OnceCell;
use rt_sync::semaphore::{CapacityLimiter, CapacityToken};
use rt_sync::set_once::SetOnce;
use rt_sync::task_tracker::TaskTracker;
use rt_sync::{oneshot, watch};

use crate::support::{Random, Slot, pick, rounds};

/// Every slot was polled and waits. After `step`, polls all: those that go on have been woken; the others go on waiting.
/// Returns how many went on.
fn advance<T, S>(
    random: &mut Random,
    slots: &mut Vec<Slot<'_, T, S>>,
    mut done: impl FnMut(T),
) -> usize {
    let before = slots.len();
    let mut left = Vec::new();
    for mut slot in slots.drain(..) {
        let woken = slot.woken();
        match slot.poll(random) {
            Poll::Ready(output) => {
                assert!(woken, "a wake is lost");
                done(output);
            }
            Poll::Pending => left.push(slot),
        }
    }
    *slots = left;
    before - slots.len()
}

/// A future that has to wait, polled once.
fn waiting<'a, T>(
    random: &mut Random,
    future: impl Future<Output = T> + 'a,
) -> Option<Slot<'a, T, ()>> {
    let mut slot = Slot::new((), future);
    slot.poll(random).is_pending().then_some(slot)
}

#[test]
fn event_and_set_once() {
    rounds("event", |random, steps| {
        let event = Event::new();
        let once = SetOnce::new();
        let mut waits = Vec::new();
        let mut sets = Vec::new();
        for step in 0..steps {
            match random.below(6) {
                0 | 1 => {
                    let slot = waiting(random, event.wait());
                    assert_eq!(slot.is_none(), event.is_set());
                    waits.extend(slot);
                }
                2 => drop(pick(random, &mut waits)),
                3 => {
                    let left = waits.len();
                    event.set();
                    // Also who runs after it was cleared again.
                    if random.below(2) == 0 {
                        event.clear();
                    }
                    assert_eq!(advance(random, &mut waits, drop), left);
                }
                4 => event.clear(),
                _ => {
                    sets.extend(waiting(random, once.wait()).map(|slot| (step, slot)));
                    if random.below(2) == 0 {
                        drop(pick(random, &mut sets));
                    }
                }
            }
        }
        once.set(5).unwrap();
        for (_, mut slot) in sets {
            assert!(slot.woken());
            assert_eq!(slot.poll(random), Poll::Ready(&5));
        }
    });
}

#[test]
fn watch() {
    rounds("watch", |random, steps| {
        let (sender, receiver) = watch::channel(0);
        let last = Cell::new(0);
        let mut waits = Vec::new();
        for _ in 0..steps {
            match random.below(5) {
                0 | 1 => {
                    let mut receiver = receiver.clone();
                    receiver.mark_unchanged();
                    let last = &last;
                    let least = last.get() + 1 + random.below(2);
                    let wait_for = random.below(2) == 0;
                    waits.extend(waiting(random, async move {
                        if wait_for {
                            assert!(
                                *receiver.wait_for(|value| *value >= least).await.unwrap() >= least
                            );
                        } else {
                            // Given up, it is as if it had not been asked for.
                            for _ in 0..2 {
                                let mut changed = Box::pin(receiver.changed());
                                let polled = std::future::poll_fn(|cx| {
                                    Poll::Ready(changed.as_mut().poll(cx))
                                })
                                .await;
                                assert!(polled.is_pending());
                            }
                            receiver.changed().await.unwrap();
                        }
                        assert_eq!(*receiver.borrow_and_update(), last.get());
                    }));
                }
                2 => drop(pick(random, &mut waits)),
                _ => {
                    last.set(last.get() + 1);
                    sender.send(last.get()).unwrap();
                    for slot in &waits {
                        assert!(slot.woken());
                    }
                    advance(random, &mut waits, drop);
                }
            }
        }
        drop(waits);
        let mut closed = waiting(random, sender.closed()).unwrap();
        drop(receiver);
        assert!(closed.woken());
        assert!(closed.poll(random).is_ready());
    });
}

#[test]
fn oneshot() {
    rounds("oneshot", |random, _| {
        let (mut sender, mut receiver) = oneshot::channel();
        for _ in 0..random.below(4) {
            let mut wait = waiting(random, &mut receiver).unwrap();
            if random.below(2) == 0 {
                assert!(wait.poll(random).is_pending());
            }
            drop(wait);
            drop(waiting(random, sender.closed()).unwrap());
        }
        match random.below(3) {
            0 => {
                let mut wait = waiting(random, receiver).unwrap();
                sender.send(7).unwrap();
                assert!(wait.woken());
                assert_eq!(wait.wakers_left(), 0);
                assert_eq!(wait.poll(random), Poll::Ready(Ok(7)));
            }
            1 => {
                let mut wait = waiting(random, sender.closed()).unwrap();
                drop(receiver);
                assert!(wait.woken());
                assert!(wait.poll(random).is_ready());
            }
            // Sent, woken, and never polled again: the value is still there.
            _ => {
                let wait = waiting(random, &mut receiver).unwrap();
                sender.send(7).unwrap();
                assert!(wait.woken());
                drop(wait);
                assert_eq!(receiver.try_recv(), Ok(7));
            }
        }
    });
}

#[test]
fn barrier() {
    rounds("barrier", |random, steps| {
        let parties = 1 + random.below(4);
        let barrier = Barrier::new(parties);
        let mut waits: Vec<Slot<'_, _, ()>> = Vec::new();
        for _ in 0..steps {
            assert_eq!(barrier.waiting(), waits.len());
            match random.below(4) {
                0 => drop(pick(random, &mut waits)),
                1 => assert_eq!(advance(random, &mut waits, drop), 0),
                _ => {
                    let last = waits.len() + 1 == parties;
                    let mut slot = Slot::new((), barrier.wait());
                    let polled = slot.poll(random);
                    assert_eq!(polled.is_ready(), last);
                    match polled {
                        Poll::Pending => waits.push(slot),
                        Poll::Ready(leader) => {
                            assert!(leader.is_leader());
                            assert_eq!(leader.index(), parties - 1);
                            // Who passes has passed, whether it runs or not.
                            if random.below(3) == 0 {
                                drop(pick(random, &mut waits));
                            }
                            let left = waits.len();
                            assert_eq!(
                                advance(random, &mut waits, |passed| assert!(!passed.is_leader())),
                                left
                            );
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn condition() {
    rounds("condition", |random, steps| {
        let (mutex, condition) = (Mutex::new(()), Condition::new());
        let mut waits: Vec<Slot<'_, MutexGuard<'_, ()>, u64>> = Vec::new();
        // Who was notified by number, in order, and has not gone on.
        let mut notified: Vec<u64> = Vec::new();
        for step in 0..steps as u64 {
            match random.below(6) {
                0 | 1 => {
                    let guard = mutex.try_lock().unwrap();
                    let mut slot = Slot::new(step, condition.wait(guard));
                    assert!(slot.poll(random).is_pending());
                    assert!(mutex.try_lock().is_ok(), "it is released");
                    waits.push(slot);
                }
                2 => {
                    let next = waits
                        .iter()
                        .map(|slot| slot.state)
                        .find(|id| !notified.contains(id));
                    assert_eq!(condition.notify_one(), next.is_some());
                    notified.extend(next);
                }
                3 if !waits.is_empty() => {
                    let slot = waits.remove(random.below(waits.len()));
                    let id = slot.state;
                    // With the lock granted already, now and then.
                    if notified.contains(&id) {
                        let holder = mutex.try_lock().unwrap();
                        let mut slot = slot;
                        if random.below(2) == 0 {
                            assert!(slot.poll(random).is_pending());
                        }
                        drop(holder);
                        drop(slot);
                        notified.retain(|other| *other != id);
                        let next = waits
                            .iter()
                            .map(|slot| slot.state)
                            .find(|id| !notified.contains(id));
                        notified.extend(next);
                    }
                    assert!(mutex.try_lock().is_ok(), "the lock is free");
                }
                4 => {
                    let mut left = Vec::new();
                    for mut slot in waits.drain(..) {
                        let told = notified.contains(&slot.state);
                        assert!(!told || slot.woken(), "a wake is lost");
                        match slot.poll(random) {
                            Poll::Ready(_guard) => {
                                assert!(told, "not notified");
                                notified.retain(|other| *other != slot.state);
                            }
                            Poll::Pending => {
                                assert!(!told, "notified, and the lock is free");
                                left.push(slot);
                            }
                        }
                    }
                    waits = left;
                }
                _ if random.below(4) == 0 => {
                    assert_eq!(condition.notify_all(), waits.len() - notified.len());
                    for mut slot in waits.drain(..) {
                        assert!(slot.woken());
                        assert!(slot.poll(random).is_ready());
                    }
                    notified.clear();
                }
                _ => {}
            }
        }
    });
}

/// What an initialiser waits for.
#[derive(Default)]
struct Finish {
    result: Cell<Option<Result<u32, ()>>>,
    waker: Cell<Option<Waker>>,
    /// How many initialisers there are.
    making: Cell<usize>,
}

impl Finish {
    fn set(&self, result: Result<u32, ()>) {
        self.result.set(Some(result));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

async fn initialise(finish: Rc<Finish>) -> Result<u32, ()> {
    struct Making(Rc<Finish>);
    impl Drop for Making {
        fn drop(&mut self) {
            self.0.making.set(self.0.making.get() - 1);
        }
    }
    finish.making.set(finish.making.get() + 1);
    let making = Making(finish);
    std::future::poll_fn(|cx| match making.0.result.take() {
        Some(result) => Poll::Ready(result),
        None => {
            making.0.waker.set(Some(cx.waker().clone()));
            Poll::Pending
        }
    })
    .await
}

#[test]
fn once_cell() {
    rounds("once cell", |random, steps| {
        let cell = OnceCell::new();
        let finish = Rc::new(Finish::default());
        let mut waits = Vec::new();
        let mut results = Vec::new();
        for step in 0..=steps {
            match random.below(5) {
                _ if step == steps && !waits.is_empty() => finish.set(Ok(3)),
                0 | 1 => {
                    let finish = finish.clone();
                    let get = cell.get_or_try_init(|| initialise(finish));
                    waits.extend(waiting(random, get));
                }
                // Whoever makes the value, or waits for that, may go: then another one makes it.
                2 | 3 => drop(pick(random, &mut waits)),
                _ if !waits.is_empty() => finish.set(Err(())),
                _ => {}
            }
            // Nobody is polled but who was woken.
            while let Some(index) = waits.iter().position(|slot| slot.woken()) {
                if let Poll::Ready(result) = waits[index].poll(random) {
                    drop(waits.swap_remove(index));
                    results.push(result);
                }
            }
            let makers = if cell.initialized() {
                0
            } else {
                waits.len().min(1)
            };
            assert_eq!(
                finish.making.get(),
                makers,
                "one of those that wait makes the value"
            );
        }
        assert!(waits.is_empty() || !cell.initialized());
        let values = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(values > 0, cell.initialized());
    });
}

#[test]
fn capacity_limiter() {
    rounds("capacity limiter", |random, steps| {
        let mut total = random.below(3);
        let limiter = CapacityLimiter::new(total);
        let mut held: Vec<CapacityToken<'_>> = Vec::new();
        let mut waits: Vec<Slot<'_, CapacityToken<'_>, ()>> = Vec::new();
        for _ in 0..steps {
            match random.below(7) {
                0 | 1 => {
                    let mut slot = Slot::new((), limiter.acquire());
                    match slot.poll(random) {
                        Poll::Ready(token) => held.push(token),
                        Poll::Pending => waits.push(slot),
                    }
                }
                2 | 3 => drop(pick(random, &mut held)),
                4 => drop(pick(random, &mut waits)),
                5 => {
                    total = random.below(4);
                    limiter.set_total_tokens(total);
                }
                // In between they may be given up with a token that they have not taken.
                _ => drop(advance(random, &mut waits, |token| held.push(token))),
            }
            assert_eq!(limiter.total_tokens(), total);
            let granted = waits.iter().filter(|slot| slot.woken()).count();
            let borrowed = held.len() + granted;
            assert_eq!(limiter.borrowed_tokens(), borrowed);
            let free = total.saturating_sub(borrowed);
            assert_eq!(limiter.available_tokens(), free);
            assert!(
                free == 0 || granted == waits.len(),
                "somebody waits for what is free"
            );
        }
    });
}

#[test]
fn token_and_tracker() {
    rounds("cancellation token", |random, steps| {
        let root = CancellationToken::new();
        let child = root.child_token();
        let tracker = TaskTracker::new();
        tracker.close();
        let tasks = tracker.token();
        let mut cancelled = Vec::new();
        let mut ended = Vec::new();
        for _ in 0..steps / 4 {
            match random.below(5) {
                0 => cancelled.extend(waiting(random, root.cancelled())),
                1 => {
                    let owned = child.clone().cancelled_owned();
                    cancelled.extend(waiting(random, owned));
                }
                2 => drop(pick(random, &mut cancelled)),
                3 => ended.extend(waiting(random, tracker.wait())),
                _ => drop(pick(random, &mut ended)),
            }
            assert!(cancelled.iter().chain(&ended).all(|slot| !slot.woken()));
        }
        root.cancel();
        drop(tasks);
        for mut slot in cancelled.into_iter().chain(ended) {
            assert!(slot.woken());
            assert!(slot.poll(random).is_ready());
            assert_eq!(slot.wakers_left(), 0);
        }
    });
}
