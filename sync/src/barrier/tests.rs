use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::*;
use crate::testing::{Task, limited, now, once, polls};

#[test]
fn b01_no_parties_count_as_one() {
    let barrier = Barrier::new(0);
    assert_eq!(barrier.parties(), 1);
    assert!(now(barrier.wait()).is_leader());
}

#[test]
fn b02_all_pass_each_with_another_index() {
    for parties in [2, 3, 70] {
        let barrier = Barrier::new(parties);
        let waiters: Vec<_> = (1..parties)
            .map(|_| Task::waiting(barrier.wait()))
            .collect();
        let last = now(barrier.wait());
        assert!(last.is_leader());
        let mut indices = vec![last.index()];
        for waiter in waiters {
            let passed = waiter.woken();
            assert!(!passed.is_leader());
            indices.push(passed.index());
        }
        indices.sort_unstable();
        assert_eq!(indices, (0..parties).collect::<Vec<_>>());
        assert_eq!(barrier.waiting(), 0);
    }
}

#[test]
fn b03_one_party_passes_at_once_again_and_again() {
    let barrier = Barrier::new(1);
    for _ in 0..3 {
        let passed = now(barrier.wait());
        assert_eq!((passed.is_leader(), passed.index()), (true, 0));
    }
}

#[test]
fn b04_the_count_rises_by_one_and_is_zero_after_the_last() {
    let barrier = Barrier::new(4);
    let mut waiters = Vec::new();
    for count in 0..3 {
        assert_eq!(barrier.waiting(), count);
        waiters.push(Task::waiting(barrier.wait()));
    }
    now(barrier.wait());
    assert_eq!(barrier.waiting(), 0);
}

#[test]
fn b05_nobody_of_round_two_passes_with_round_one() {
    let barrier = Barrier::new(2);
    let first = Task::waiting(barrier.wait());
    now(barrier.wait());
    // Round one is open, and one of it has not run yet.
    let mut second = Task::waiting(barrier.wait());
    first.woken();
    assert!(second.poll().is_pending());
    assert_eq!(second.wakes(), 0);
    now(barrier.wait());
    second.woken();
}

#[test]
fn b06_a_cancelled_waiter_counts_no_longer() {
    let barrier = Barrier::new(3);
    let cancelled = Task::waiting(barrier.wait());
    let probe = cancelled.probe.clone();
    let stays = Task::waiting(barrier.wait());
    drop(cancelled);
    assert_eq!((barrier.waiting(), probe.alive()), (1, 0));
    let second = Task::waiting(barrier.wait());
    assert_eq!(barrier.waiting(), 2);
    assert!(now(barrier.wait()).is_leader());
    assert_eq!(stays.woken().index(), 0);
    assert_eq!(second.woken().index(), 1);
    assert_eq!(probe.wakes(), 0);
}

#[test]
fn who_is_cancelled_after_the_barrier_opened_has_passed() {
    let barrier = Barrier::new(2);
    let first = Task::waiting(barrier.wait());
    now(barrier.wait());
    drop(first);
    assert_eq!(barrier.waiting(), 0);
    let _next = Task::waiting(barrier.wait());
}

#[test]
fn a_waker_that_panics_keeps_nobody_behind() {
    limited(|| {
        let barrier = Arc::new(Barrier::new(71));
        let mut waiters: Vec<_> = (0..70).map(|_| Task::waiting(barrier.wait())).collect();
        once(&waiters[3].probe.on_wake, || panic!("a bad waker"));
        let other = barrier.clone();
        once(&waiters[40].probe.on_wake, move || _ = other.waiting());
        catch_unwind(AssertUnwindSafe(|| now(barrier.wait()))).unwrap_err();
        for waiter in &mut waiters {
            assert_eq!(waiter.wakes(), 1);
            assert!(waiter.poll().is_ready());
        }
    });
}

#[test]
fn the_newest_waker_is_woken() {
    let barrier = Barrier::new(2);
    let mut waiter = Task::waiting(barrier.wait());
    let old = waiter.renew();
    assert!(waiter.poll().is_pending());
    assert_eq!(old.alive(), 0);
    now(barrier.wait());
    waiter.woken();
}

#[test]
fn a_task_that_always_passes_gives_way() {
    let barrier = Barrier::new(1);
    let polls = polls(async {
        for _ in 0..10_000 {
            barrier.wait().await;
        }
    });
    assert!(polls > 50, "{polls} polls");
}

#[test]
fn a_waiting_task_tells_what_it_waits_for() {
    let barrier = Barrier::new(2);
    let _waiter = Task::waiting(barrier.wait());
    let waits = wait::take();
    assert_eq!(waits.kind, WaitKind::Barrier);
    assert_eq!(waits.site.unwrap().line(), line!() - 3);
}

#[test]
fn it_goes_from_thread_to_thread() {
    fn send_sync<T: Send + Sync>() {}
    send_sync::<Barrier>();
    send_sync::<BarrierWait<'_>>();
    assert!(format!("{:?}", Barrier::new(3)).contains("parties: 3"));
}
