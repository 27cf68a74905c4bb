//! Fairness, shutdown, panics, and the rules that hold for every primitive.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Mutex;

use futures_lite::future::block_on;
use futures_lite::stream::StreamExt;

use super::*;
use crate::testing::{once, polls};
use crate::wait::{self, WaitKind};

each_kind! {
    fn a_newcomer_does_not_overtake_a_granted_getter(queue: S, 0) {
        let getter = Task::waiting(queue.get());
        put_all(&queue, &[1]);
        // The item belongs to the getter, which has not run yet.
        assert_eq!(queue.try_get(), Err(TryGetError::Empty(QueueEmpty)));
        let late = Task::waiting(queue.get());
        assert_eq!(getter.woken(), Ok(1));
        assert_eq!(late.wakes(), 0);
        put_all(&queue, &[2]);
        assert_eq!(late.woken(), Ok(2));
        whole(&queue);
    }

    fn a_newcomer_does_not_overtake_a_granted_putter(queue: S, 1) {
        put_all(&queue, &[1]);
        let putter = Task::waiting(queue.put(2));
        now(queue.get()).unwrap();
        assert!(queue.try_put(3).unwrap_err().is_full());
        let late = Task::waiting(queue.put(3));
        putter.woken().unwrap();
        assert_eq!(late.wakes(), 0);
        assert_eq!(now(queue.get()), Ok(2));
        late.woken().unwrap();
        assert_eq!(now(queue.get()), Ok(3));
        whole(&queue);
    }

    fn getters_and_putters_are_served_in_order_of_arrival(queue: S, 1) {
        let getters: Vec<_> = (0..3).map(|_| Task::waiting(queue.get())).collect();
        for getter in getters {
            queue.try_put(7).unwrap();
            assert_eq!(getter.woken(), Ok(7));
        }
        queue.try_put(0).unwrap();
        let putters: Vec<_> = (1..4).map(|item| Task::waiting(queue.put(item))).collect();
        for (item, putter) in putters.into_iter().enumerate() {
            assert_eq!(queue.try_get(), Ok(item as i32));
            putter.woken().unwrap();
        }
        whole(&queue);
    }

    fn a_granted_putter_that_is_cancelled_passes_its_place_on(queue: S, 1) {
        queue.try_put(1).unwrap();
        let first = Task::waiting(queue.put(2));
        let second = Task::waiting(queue.put(3));
        assert_eq!(queue.try_get(), Ok(1));
        drop(first);
        second.woken().unwrap();
        assert_eq!(get_all(&queue), [3]);
        whole(&queue);
    }

    fn the_newest_waker_is_woken_and_the_old_one_dropped(queue: S, 0) {
        let mut getter = Task::waiting(queue.get());
        let old = getter.renew();
        assert!(getter.poll().is_pending());
        assert_eq!(old.alive(), 0);
        assert!(getter.poll().is_pending());
        put_all(&queue, &[1]);
        assert_eq!(getter.woken(), Ok(1));
        assert_eq!(old.wakes(), 0);
    }

    fn a_draining_shutdown_lets_gets_go_on(queue: S, 2) {
        put_all(&queue, &[1, 2]);
        let putter = Task::waiting(queue.put(3));
        let join = Task::waiting(queue.join());
        queue.shutdown(Shutdown::Draining);
        assert!(queue.is_shutdown());
        assert_eq!(putter.woken(), Err(QueueShutDown(3)));
        assert_eq!(now(queue.put(4)), Err(QueueShutDown(4)));
        assert_eq!(queue.try_put(5), Err(TryPutError::ShutDown(QueueShutDown(5))));
        assert_eq!(get_all(&queue), S::order(&[1, 2]));
        assert_eq!(now(queue.get()), Err(QueueShutDown(())));
        assert_eq!(queue.try_get(), Err(TryGetError::ShutDown(QueueShutDown(()))));
        assert_eq!(now(queue.next()), None);
        queue.task_done().unwrap();
        queue.task_done().unwrap();
        join.woken();
    }

    fn an_immediate_shutdown_drops_what_is_left(queue: S, 2) {
        put_all(&queue, &[1, 2]);
        let join = Task::waiting(queue.join());
        let putter = Task::waiting(queue.put(3));
        queue.shutdown(Shutdown::Immediate);
        assert_eq!(putter.woken(), Err(QueueShutDown(3)));
        assert!(queue.is_empty());
        assert_eq!(now(queue.get()), Err(QueueShutDown(())));
        join.woken();
        queue.task_done().unwrap_err();
    }

    fn an_immediate_shutdown_leaves_join_waiting_for_what_was_taken(queue: S, 0) {
        put_all(&queue, &[1, 2]);
        queue.try_get().unwrap();
        let join = Task::waiting(queue.join());
        queue.shutdown(Shutdown::Immediate);
        assert_eq!(join.wakes(), 0);
        queue.task_done().unwrap();
        join.woken();
    }

    fn waiting_getters_fail_at_shutdown(queue: S, 0) {
        for how in [Shutdown::Draining, Shutdown::Immediate] {
            let queue = BaseQueue::<S>::with_max_size(queue.max_size());
            // More than fit into one batch of wakers.
            let getters: Vec<_> = (0..70).map(|_| Task::waiting(queue.get())).collect();
            queue.shutdown(how);
            for getter in getters {
                assert_eq!(getter.woken(), Err(QueueShutDown(())));
            }
        }
    }

    fn a_granted_getter_of_a_draining_queue_gets_its_item(queue: S, 0) {
        let first = Task::waiting(queue.get());
        let second = Task::waiting(queue.get());
        let third = Task::waiting(queue.get());
        put_all(&queue, &[1]);
        queue.shutdown(Shutdown::Draining);
        // The item may still reach the second, if the first does not take it.
        assert_eq!((second.wakes(), third.wakes()), (0, 0));
        drop(first);
        assert_eq!(third.wakes(), 0);
        assert_eq!(second.woken(), Ok(1));
        assert_eq!(third.woken(), Err(QueueShutDown(())));
    }

    fn a_granted_getter_finds_nothing_after_an_immediate_shutdown(queue: S, 0) {
        let (first, second) = (Task::waiting(queue.get()), Task::waiting(queue.get()));
        let cancelled = Task::waiting(queue.get());
        put_all(&queue, &[1, 2, 3]);
        queue.shutdown(Shutdown::Immediate);
        drop(cancelled);
        assert_eq!(first.woken(), Err(QueueShutDown(())));
        assert_eq!(second.woken(), Err(QueueShutDown(())));
        now(queue.join());
    }

    fn a_granted_putter_fails_after_shutdown(queue: S, 1) {
        queue.try_put(1).unwrap();
        let putter = Task::waiting(queue.put(2));
        queue.try_get().unwrap();
        queue.shutdown(Shutdown::Draining);
        assert_eq!(putter.woken(), Err(QueueShutDown(2)));
        assert!(queue.is_empty());
        queue.shutdown(Shutdown::Immediate);
    }

    fn items_come_until_the_queue_ends(queue: S, 0) {
        put_all(&queue, &[1, 2, 3]);
        queue.shutdown(Shutdown::Draining);
        let items = block_on(queue.items().collect::<Vec<_>>());
        assert_eq!(items, S::order(&[1, 2, 3]));
    }

    fn a_task_whose_every_operation_succeeds_gives_way(queue: S, 0) {
        let polls = polls(async {
            for item in 0..10_000 {
                queue.put(item).await.unwrap();
                queue.get().await.unwrap();
                queue.task_done().unwrap();
                queue.join().await;
            }
        });
        assert!(polls > 100, "{polls} polls");
    }

    fn a_waiting_task_tells_what_it_waits_for(queue: S, 1) {
        let _ = wait::take();
        let getter = Task::waiting(queue.get());
        let line = line!() - 1;
        let waits = wait::take();
        assert_eq!(waits.kind, WaitKind::Queue);
        assert_eq!(waits.site.unwrap().line(), line);
        drop(getter);
        queue.try_put(1).unwrap();
        let _putter = Task::waiting(queue.put(2));
        assert_eq!(wait::take().site.unwrap().line(), line!() - 1);
        let _join = Task::waiting(queue.join());
        assert_eq!(wait::take().kind, WaitKind::Queue);
    }

    fn wakers_are_woken_cloned_and_dropped_without_the_lock(queue: S, 1) {
        let look = |queue: &Arc<BaseQueue<S>>| {
            let queue = queue.clone();
            // Would hang if the lock was held.
            move || _ = queue.len()
        };
        let mut getter = Task::new(queue.get());
        once(&getter.probe.on_clone, look(&queue));
        once(&getter.probe.on_wake, look(&queue));
        assert!(getter.poll().is_pending());
        queue.try_put(1).unwrap();
        assert_eq!(getter.woken(), Ok(1));

        let getter = Task::waiting(queue.get());
        once(&getter.probe.on_drop, look(&queue));
        drop(getter);

        queue.task_done().unwrap();
        queue.try_put(1).unwrap();
        let putter = Task::waiting(queue.put(2));
        let join = Task::waiting(queue.join());
        once(&putter.probe.on_wake, look(&queue));
        once(&join.probe.on_wake, look(&queue));
        queue.shutdown(Shutdown::Immediate);
        assert_eq!((putter.wakes(), join.wakes()), (1, 1));
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_being_woken() {
    limited(|| {
        let queue = Queue::<i32>::unbounded();
        let mut getters: Vec<_> = (0..70).map(|_| Task::waiting(queue.get())).collect();
        for bad in [0, 40] {
            once(&getters[bad].probe.on_wake, || panic!("a bad waker"));
        }
        catch_unwind(AssertUnwindSafe(|| queue.shutdown(Shutdown::Immediate))).unwrap_err();
        for getter in &mut getters {
            assert_eq!(getter.wakes(), 1);
            assert_eq!(getter.poll(), Poll::Ready(Err(QueueShutDown(()))));
        }
    });
}

#[test]
fn a_getter_keeps_its_item_when_the_waker_of_another_panics() {
    limited(|| {
        let queue = Queue::new(1);
        let bad = |task: &Task<_>| once(&task.probe.on_wake, || panic!("a bad waker"));
        queue.try_put(0).unwrap();
        for item in 0..3 {
            let putter = Task::waiting(queue.put(item + 1));
            bad(&putter);
            let got = match item {
                0 => queue.try_get().ok(),
                1 => now(queue.get()).ok(),
                _ => now(queue.next()),
            };
            assert_eq!(got, Some(item));
            putter.woken().unwrap();
        }
        // One that has waited for it, with another behind it when the queue ends.
        assert_eq!(queue.try_get(), Ok(3));
        let getter = Task::waiting(queue.get());
        let late = Task::waiting(queue.get());
        once(&late.probe.on_wake, || panic!("a bad waker"));
        queue.try_put(4).unwrap();
        queue.shutdown(Shutdown::Draining);
        assert_eq!(getter.woken(), Ok(4));
        assert_eq!(late.woken(), Err(QueueShutDown(())));
    });
}

/// Looks at its queue when it is dropped, which hangs if the lock is held.
struct Nosy(Arc<Mutex<Vec<usize>>>, Option<Arc<Queue<Nosy>>>);

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(queue) = &self.1 {
            self.0.lock().unwrap().push(queue.len());
        }
    }
}

#[test]
fn items_are_dropped_without_the_lock() {
    limited(|| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let queue = Arc::new(Queue::new(3));
        for _ in 0..3 {
            let item = Nosy(seen.clone(), Some(queue.clone()));
            assert!(now(queue.put(item)).is_ok());
        }
        let waiting = Task::waiting(queue.put(Nosy(seen.clone(), Some(queue.clone()))));
        drop(waiting);
        assert_eq!(*seen.lock().unwrap(), [3]);
        queue.shutdown(Shutdown::Immediate);
        assert_eq!(*seen.lock().unwrap(), [3, 0, 0, 0]);
    });
}

#[test]
fn an_item_that_panics_when_it_is_dropped_wakes_those_who_wait_all_the_same() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("a bad item");
        }
    }
    limited(|| {
        let queue = Queue::new(1);
        assert!(queue.try_put(Bad).is_ok());
        let join = Task::waiting(queue.join());
        catch_unwind(AssertUnwindSafe(|| queue.shutdown(Shutdown::Immediate))).unwrap_err();
        join.woken();
        assert!(queue.is_empty());
    });
}

#[test]
fn queues_and_their_futures_go_from_thread_to_thread() {
    fn send_sync<T: Send + Sync>() {}
    fn send<T: Send>(_: &T) {}
    send_sync::<Queue<std::cell::Cell<u8>>>();
    send_sync::<PriorityQueue<std::cell::Cell<u8>>>();
    send_sync::<LifoQueue<std::cell::Cell<u8>>>();
    let queue = Queue::new(1);
    send(&queue.put(String::new()));
    send(&queue.get());
    send(&queue.join());
    // Items that are not `Send` make a queue for one thread.
    let local = Queue::unbounded();
    local.try_put(Rc::new(RefCell::new(1))).unwrap();
    assert_eq!(*local.try_get().unwrap().borrow(), 1);
}

#[test]
fn errors_say_what_was_wrong() {
    let queue = Queue::new(1);
    assert_eq!(format!("{queue:?}").matches("Queue").count(), 1);
    queue.try_put(1).unwrap();
    let full = queue.try_put(2).unwrap_err();
    assert!(full.to_string().contains("full"));
    assert_eq!(full.into_inner(), 2);
    queue.try_get().unwrap();
    assert!(queue.try_get().unwrap_err().to_string().contains("no item"));
    queue.shutdown(Shutdown::Immediate);
    let shut = now(queue.put(3)).unwrap_err();
    assert!(shut.to_string().contains("shut down"));
    assert_eq!(shut.into_inner(), 3);
}
