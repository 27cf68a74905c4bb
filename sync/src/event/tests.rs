use std::sync::Arc;
use std::task::Waker;

use super::*;
use crate::testing::{Task, limited, now, once};

#[test]
fn e01_set_wakes_everybody_who_waits() {
    limited(|| {
        let event = Event::new();
        let waiters: Vec<_> = (0..70).map(|_| Task::waiting(event.wait())).collect();
        event.set();
        for waiter in waiters {
            waiter.woken();
        }
    });
}

#[test]
fn e02_nobody_waits_while_it_is_set() {
    let event = Event::new();
    event.set();
    for _ in 0..3 {
        now(event.wait());
    }
    assert!(event.is_set());
}

#[test]
fn e03_a_cancelled_waiter_is_not_waiting_any_more() {
    let event = Event::new();
    let waiter = Task::waiting(event.wait());
    let probe = waiter.probe.clone();
    drop(waiter);
    assert!(event.waiters.is_empty());
    event.set();
    assert_eq!((probe.wakes(), probe.alive()), (0, 0));
}

#[test]
fn e04_after_clear_a_new_wait_waits() {
    let event = Event::new();
    event.set();
    event.clear();
    assert!(!event.is_set());
    let waiter = Task::waiting(event.wait());
    event.set();
    waiter.woken();
}

#[test]
fn e05_a_waiter_is_woken_although_the_event_was_cleared_before_it_ran() {
    let event = Event::new();
    let waiter = Task::waiting(event.wait());
    event.set();
    event.clear();
    let newcomer = Task::waiting(event.wait());
    waiter.woken();
    assert_eq!(newcomer.wakes(), 0);
}

#[test]
fn e06_setting_it_twice_changes_nothing() {
    let event = Event::new();
    let waiter = Task::waiting(event.wait());
    event.set();
    event.set();
    assert!(event.is_set());
    waiter.woken();
    now(event.wait());
}

#[test]
fn a_waiter_that_comes_back_before_it_is_woken_sees_the_event() {
    let event = Event::new();
    let mut waiter = Task::waiting(event.wait());
    assert!(waiter.poll().is_pending());
    event.set();
    assert!(waiter.poll().is_ready());
    assert_eq!(waiter.probe.alive(), 0);
}

#[test]
fn wakers_run_without_a_lock() {
    limited(|| {
        let event = Arc::new(Event::new());
        let waiter = Task::waiting(event.wait());
        let other = event.clone();
        once(&waiter.probe.on_wake, move || {
            other.set();
            other.clear();
        });
        event.set();
        waiter.woken();
        assert!(!event.is_set());
    });
}

#[test]
fn a_task_that_waits_for_a_set_event_gives_way() {
    let event = Event::new();
    event.set();
    let polls = crate::testing::polls(async {
        for _ in 0..10_000 {
            event.wait().await;
        }
    });
    assert!(polls > 50, "{polls} polls");
}

#[test]
fn a_waiting_task_tells_what_it_waits_for() {
    let event = Event::new();
    let mut waiting = Box::pin(event.wait());
    let line = line!() - 1;
    let _ = waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    let waits = wait::take();
    assert_eq!(waits.kind, WaitKind::Event);
    assert_eq!(waits.site.unwrap().line(), line);
}

#[test]
fn it_goes_from_thread_to_thread() {
    fn send_sync<T: Send + Sync>() {}
    send_sync::<Event>();
    send_sync::<EventWait<'_>>();
    assert!(format!("{:?}", Event::new()).contains("set: false"));
}
