use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use super::*;
use crate::testing::{Task, now, once, polls};

#[test]
fn wait_ends_when_the_tracker_is_closed_and_empty() {
    let tracker = TaskTracker::new();
    let (a, b) = (tracker.token(), tracker.token());
    assert_eq!(tracker.len(), 2);
    let wait = Task::waiting(tracker.wait());
    drop(a);
    assert!(tracker.close());
    assert!(!tracker.close());
    assert!(tracker.is_closed());
    assert_eq!(wait.wakes(), 0);
    drop(b);
    assert!(tracker.is_empty());
    wait.woken();
    now(tracker.wait());
}

#[test]
fn closing_an_empty_tracker_ends_wait() {
    let tracker = TaskTracker::new();
    let wait = Task::waiting(tracker.wait());
    assert!(tracker.close());
    wait.woken();
}

#[test]
fn an_open_tracker_is_waited_for_although_it_is_empty() {
    let tracker = TaskTracker::new();
    drop(tracker.token());
    let mut wait = Task::waiting(tracker.wait());
    drop(tracker.token());
    assert!(wait.poll().is_pending());
    assert!(!tracker.reopen());
    tracker.close();
    assert!(tracker.reopen());
    assert!(!tracker.is_closed());
    // It was closed and empty for a moment, while this waited.
    wait.woken();
    let _waits = Task::waiting(tracker.wait());
}

#[test]
fn tasks_may_be_added_to_a_closed_tracker() {
    let tracker = TaskTracker::new();
    tracker.close();
    let token = tracker.token();
    let another = token.clone();
    assert!(TaskTracker::ptr_eq(another.task_tracker(), &tracker));
    assert!(!TaskTracker::ptr_eq(&TaskTracker::new(), &tracker));
    let wait = Task::waiting(tracker.wait());
    drop(token);
    assert_eq!(wait.wakes(), 0);
    drop(another);
    wait.woken();
}

struct Note(&'static str, Arc<Mutex<Vec<String>>>, TaskTracker);

impl Drop for Note {
    fn drop(&mut self) {
        let entry = format!("{} {}", self.0, self.2.len());
        self.1.lock().unwrap().push(entry);
    }
}

#[test]
fn a_tracked_future_counts_until_it_was_dropped() {
    let tracker = TaskTracker::new();
    let log = Arc::new(Mutex::new(Vec::new()));
    let note = Note("future", log.clone(), tracker.clone());
    let mut tracked = Task::new(tracker.track_future(async move {
        let _note = &note;
        7
    }));
    assert_eq!(tracker.len(), 1);
    assert_eq!(tracked.poll(), Poll::Ready(7));
    assert_eq!(tracker.len(), 1);
    drop(tracked);
    assert_eq!(tracker.len(), 0);

    let note = Note("unpolled", log.clone(), tracker.clone());
    let tracked = tracker.track_future(async move {
        let _note = &note;
    });
    drop(tracked);
    assert_eq!(*log.lock().unwrap(), ["future 1", "unpolled 1"]);
    assert_eq!(tracker.len(), 0);
}

#[test]
fn a_future_that_panics_when_it_is_dropped_counts_no_longer() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("a bad future");
        }
    }
    let tracker = TaskTracker::new();
    tracker.close();
    let bad = Bad;
    let tracked = tracker.track_future(async move {
        let _bad = &bad;
    });
    let wait = Task::waiting(tracker.wait());
    catch_unwind(AssertUnwindSafe(|| drop(tracked))).unwrap_err();
    wait.woken();
}

#[test]
fn a_cancelled_wait_is_not_waiting_any_more() {
    let tracker = TaskTracker::new();
    let wait = Task::waiting(tracker.wait());
    let probe = wait.probe.clone();
    let other = tracker.clone();
    let stays = Task::waiting(tracker.wait());
    once(&stays.probe.on_wake, move || _ = other.reopen());
    drop(wait);
    tracker.close();
    assert_eq!((probe.wakes(), probe.alive()), (0, 0));
    stays.woken();
}

#[test]
fn a_task_that_waits_for_what_is_over_gives_way() {
    let tracker = TaskTracker::new();
    tracker.close();
    let polls = polls(async {
        for _ in 0..10_000 {
            tracker.wait().await;
        }
    });
    assert!(polls > 50, "{polls} polls");
}

#[test]
fn it_goes_from_thread_to_thread() {
    fn send_sync<T: Send + Sync>() {}
    send_sync::<TaskTracker>();
    send_sync::<TaskTrackerToken>();
    send_sync::<TaskTrackerWait<'_>>();
    let tracker = TaskTracker::default();
    assert!(format!("{tracker:?} {:?}", tracker.token()).contains("len: 1"));
    let _waiting = Task::waiting(tracker.wait());
    assert_eq!(wait::take().site.unwrap().line(), line!() - 1);
}
