use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_lite::future::{block_on, or};

use super::*;
use crate::testing::{Task, limited, now, polls};

/// A waiter: takes the lock and waits; notes its number, under the lock, when it goes on.
async fn waiter(condition: &Condition, mutex: &Mutex<Vec<u32>>, number: u32) {
    let guard = mutex.lock().await;
    let mut guard = condition.wait(guard).await;
    guard.push(number);
}

#[test]
fn c01_the_lock_is_free_while_tasks_wait() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    let waiters: Vec<_> = (0..3)
        .map(|number| Task::waiting(waiter(&condition, &mutex, number)))
        .collect();
    assert!(mutex.try_lock().is_ok());
    assert!(waiters.iter().all(|waiter| waiter.wakes() == 0));
}

#[test]
fn c02_nobody_runs_until_the_lock_is_released_and_then_the_first() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    let mut waiters: Vec<_> = (0..3)
        .map(|number| Task::waiting(waiter(&condition, &mutex, number)))
        .collect();
    let guard = now(mutex.lock());
    assert!(condition.notify_one());
    assert_eq!(waiters[0].wakes(), 1);
    assert!(waiters[0].poll().is_pending());
    assert!(guard.is_empty());
    drop(guard);
    assert_eq!(waiters[0].wakes(), 2);
    assert!(waiters[0].poll().is_ready());
    assert_eq!((waiters[1].wakes(), waiters[2].wakes()), (0, 0));
    assert_eq!(*now(mutex.lock()), [0]);
}

#[test]
fn c03_the_rest_go_on_in_order_of_arrival_one_at_a_time() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    let mut waiters: Vec<_> = (0..4)
        .map(|number| Task::waiting(waiter(&condition, &mutex, number)))
        .collect();
    condition.notify(1);
    assert!(waiters[0].poll().is_ready());
    let guard = now(mutex.lock());
    assert_eq!(condition.notify(2), 2);
    for waiter in &mut waiters[1..3] {
        assert!(waiter.poll().is_pending());
    }
    drop(guard);
    // The lock went to the first of the two; it holds it while it runs.
    assert_eq!((waiters[1].wakes(), waiters[2].wakes()), (2, 1));
    assert!(waiters[1].poll().is_ready());
    assert_eq!(waiters[2].wakes(), 2);
    assert!(waiters[2].poll().is_ready());
    assert_eq!(waiters[3].wakes(), 0);
    assert_eq!(*now(mutex.lock()), [0, 1, 2]);
}

#[test]
fn c04_notifying_more_than_there_are_stores_nothing() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    assert_eq!(condition.notify(usize::MAX), 0);
    let waiters: Vec<_> = (0..3)
        .map(|number| Task::waiting(waiter(&condition, &mutex, number)))
        .collect();
    assert_eq!(condition.notify(100), 3);
    for waiter in waiters {
        waiter.woken();
    }
    let _waits = Task::waiting(waiter(&condition, &mutex, 4));
}

#[test]
fn c05_notify_all_lets_everybody_go_on_in_order() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    let waiters: Vec<_> = (0..70)
        .map(|number| Task::waiting(waiter(&condition, &mutex, number)))
        .collect();
    assert_eq!(condition.notify_all(), 70);
    for waiter in waiters {
        waiter.woken();
    }
    assert_eq!(*now(mutex.lock()), (0..70).collect::<Vec<_>>());
}

#[test]
fn c06_a_cancelled_waiter_is_not_waiting_any_more() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    let cancelled = Task::waiting(waiter(&condition, &mutex, 0));
    let probe = cancelled.probe.clone();
    let stays = Task::waiting(waiter(&condition, &mutex, 1));
    drop(cancelled);
    assert_eq!(condition.notify(2), 1);
    assert_eq!((probe.wakes(), probe.alive()), (0, 0));
    stays.woken();
}

#[test]
fn c07_a_notified_waiter_that_is_cancelled_leaves_the_lock_usable_and_passes_on() {
    let (condition, mutex) = (Condition::new(), Mutex::new(Vec::new()));
    // Cancelled in three stages: just notified; in line for the lock; given the lock.
    for stage in 0..3 {
        let mut first = Task::waiting(waiter(&condition, &mutex, 0));
        let second = Task::waiting(waiter(&condition, &mutex, 1));
        let guard = now(mutex.lock());
        condition.notify_one();
        if stage > 0 {
            assert!(first.poll().is_pending());
        }
        if stage < 2 {
            drop(first);
            drop(guard);
        } else {
            drop(guard);
            drop(first);
        }
        second.woken();
        assert!(mutex.try_lock().is_ok());
        assert_eq!(condition.notify_all(), 0);
    }
}

#[test]
fn c08_waiting_takes_the_guard() {
    // By type: `wait` cannot be called without one. Both kinds of guard do.
    let (condition, mutex) = (Condition::new(), Arc::new(Mutex::new(1)));
    let borrowed = Task::waiting(condition.wait(now(mutex.lock())));
    let owned = Task::waiting(condition.wait(now(mutex.clone().lock_owned())));
    condition.notify_all();
    assert_eq!(*borrowed.woken(), 1);
    assert_eq!(*owned.woken(), 1);
}

#[test]
fn c09_wait_for_goes_on_waiting_while_the_predicate_is_false() {
    let (condition, mutex) = (Condition::new(), Mutex::new(0));
    let guard = now(mutex.lock());
    let mut waiting = Task::waiting(condition.wait_for(guard, |count| *count == 2));
    for count in 1..3 {
        *now(mutex.lock()) = count;
        assert!(condition.notify_one());
        assert_eq!(waiting.wakes(), count);
        match waiting.poll() {
            Poll::Pending => assert_eq!(count, 1),
            Poll::Ready(guard) => assert_eq!((count, *guard), (2, 2)),
        }
    }
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn c10_wait_for_what_is_true_returns_at_once() {
    let (condition, mutex) = (Condition::new(), Mutex::new(5));
    let guard = now(mutex.lock());
    assert_eq!(*now(condition.wait_for(guard, |count| *count == 5)), 5);
}

#[test]
fn c11_a_condition_has_no_lock_but_the_mutex() {
    let (condition, other) = (Condition::new(), Condition::new());
    let mutex = Mutex::new(Vec::new());
    let first = Task::waiting(waiter(&condition, &mutex, 0));
    let mut second = Task::waiting(waiter(&other, &mutex, 1));
    let guard = now(mutex.lock());
    assert!(mutex.try_lock().is_err());
    other.notify_all();
    assert!(second.poll().is_pending());
    assert_eq!(first.wakes(), 0);
    drop(guard);
    assert!(second.poll().is_ready());
}

#[test]
fn c12_after_a_timeout_the_lock_is_usable() {
    let (condition, mutex) = (Condition::new(), Mutex::new(0));
    let timed_out = block_on(async {
        let guard = mutex.lock().await;
        or(async { *condition.wait(guard).await == 0 }, async {
            // A deadline that has passed already.
            futures_lite::future::yield_now().await;
            false
        })
        .await
    });
    assert!(!timed_out);
    assert!(mutex.try_lock().is_ok());
    assert_eq!(condition.notify_all(), 0);
}

#[test]
fn an_unpolled_wait_holds_the_lock() {
    let (condition, mutex) = (Condition::new(), Mutex::new(0));
    let wait = condition.wait(now(mutex.lock()));
    assert!(mutex.try_lock().is_err());
    drop(wait);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_predicate_that_panics_frees_the_lock() {
    limited(|| {
        let (condition, mutex) = (Condition::new(), Mutex::new(false));
        let guard = now(mutex.lock());
        let mut waiting = Task::waiting(condition.wait_for(guard, |fuse| {
            assert!(!*fuse, "a bad predicate");
            false
        }));
        *now(mutex.lock()) = true;
        condition.notify_one();
        catch_unwind(AssertUnwindSafe(|| waiting.poll().is_ready())).unwrap_err();
        drop(waiting);
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn waiters_and_notifiers_on_threads_lose_nothing() {
    const ROUNDS: usize = 2000;
    limited(|| {
        let shared = Arc::new((Mutex::new(0_usize), Condition::new()));
        let threads: Vec<_> = (0..2)
            .map(|parity| {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    let (turn, changed) = &*shared;
                    block_on(async {
                        for _ in 0..ROUNDS {
                            let guard = turn.lock().await;
                            let mut guard =
                                changed.wait_for(guard, |turn| *turn % 2 == parity).await;
                            *guard += 1;
                            drop(guard);
                            changed.notify_one();
                        }
                    });
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*now(shared.0.lock()), 2 * ROUNDS);
    });
}

#[test]
fn a_task_whose_predicate_is_always_true_gives_way() {
    let (condition, mutex) = (Condition::new(), Mutex::new(0));
    let polls = polls(async {
        let mut guard = mutex.lock().await;
        for _ in 0..10_000 {
            guard = condition.wait_for(guard, |_| true).await;
        }
    });
    assert!(polls > 50, "{polls} polls");
}

#[test]
fn a_waiting_task_tells_what_it_waits_for() {
    let (condition, mutex) = (Condition::new(), Mutex::new(0));
    let guard = now(mutex.lock());
    let mut waiting = Task::waiting(condition.wait(guard));
    let line = line!() - 1;
    let waits = wait::take();
    assert_eq!(waits.kind, WaitKind::Condition);
    assert_eq!(waits.site.unwrap().line(), line);
    // In line for the lock: still the same place.
    let guard = now(mutex.lock());
    condition.notify_one();
    assert!(waiting.poll().is_pending());
    assert_eq!(wait::take().site.unwrap().line(), line);
    drop(guard);
}

#[test]
fn it_goes_from_thread_to_thread() {
    fn send_sync<T: Send + Sync>() {}
    fn send<T: Send>(_: &T) {}
    send_sync::<Condition>();
    let (condition, mutex) = (Condition::default(), Mutex::new(0));
    send(&condition.wait(now(mutex.lock())));
    assert!(format!("{condition:?}").contains("Condition"));
}

/// What debug mode tells of a lock that nobody takes: the line of the user's `wait`, not one of ours.
#[test]
fn a_lock_that_is_granted_to_a_waiter_is_known_by_where_the_wait_was_made() {
    crate::grants::watch();
    let (condition, mutex) = (Condition::new(), Mutex::new(()));
    let owned = Arc::new(Mutex::new(()));
    let line = line!() + 1;
    let mut borrowed = Task::waiting(condition.wait(now(mutex.lock())));
    let mut kept = Task::waiting(condition.wait(now(owned.clone().lock_owned())));
    let guards = (now(mutex.lock()), now(owned.clone().lock_owned()));
    condition.notify_all();
    assert!(borrowed.poll().is_pending() && kept.poll().is_pending());
    drop(guards);
    let overdue = crate::grants::overdue(std::time::Duration::ZERO);
    let here = overdue.iter().filter(|grant| {
        grant.site.file() == file!() && (line..line + 2).contains(&grant.site.line())
    });
    assert_eq!(here.count(), 2);
}
