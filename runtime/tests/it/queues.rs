//! Queues, conditions, barriers, cancellation and trackers between tasks of a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::sync::{
    Barrier, CancellationToken, Condition, Event, LifoQueue, PriorityQueue, Queue, Shutdown,
};
use rt::task::{LocalSet, TaskTracker, yield_now};
use rt::time::{sleep, timeout};
use rt_sync::mutex::Mutex;

use crate::support::within_limit;

fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_all().build().unwrap(),
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    ]
}

/// Runs a body on a runtime of one thread and on one of two workers.
fn on_each<F: Future<Output = ()>>(body: impl Fn() -> F + Send + 'static) {
    within_limit(move || {
        for runtime in runtimes() {
            runtime.block_on(body());
        }
    });
}

macro_rules! each_kind {
    ($($name:ident($queue:ident: $max:expr) $body:block)*) => {$(
        #[test]
        fn $name() {
            on_each(|| async {
                let $queue = Arc::new(Queue::new($max));
                $body
                let $queue = Arc::new(LifoQueue::new($max));
                $body
                let $queue = Arc::new(PriorityQueue::new($max));
                $body
            });
        }
    )*};
}

each_kind! {
    q10_a_getter_ends_with_an_item_that_is_put_from_a_timer(queue: 0) {
        let putter = rt::spawn({
            let queue = queue.clone();
            async move {
                sleep(Duration::from_millis(5)).await;
                queue.try_put(1).unwrap();
            }
        });
        assert_eq!(queue.get().await, Ok(1));
        putter.await.unwrap();
    }

    q18_producer_and_consumer_of_a_queue_of_one_both_end(queue: 1) {
        let producer = rt::spawn({
            let queue = queue.clone();
            async move {
                for item in 0..500 {
                    queue.put(item).await.unwrap();
                }
            }
        });
        for item in 0..500 {
            assert_eq!(queue.get().await, Ok(item));
        }
        producer.await.unwrap();
    }

    q19_a_get_that_a_timeout_gives_up_is_not_waiting_any_more(queue: 0) {
        timeout(Duration::from_millis(2), queue.get()).await.unwrap_err();
        queue.try_put(1).unwrap();
        assert_eq!(queue.try_get(), Ok(1));
    }

    q20_an_aborted_put_stores_nothing(queue: 1) {
        queue.try_put(1).unwrap();
        let putter = rt::spawn({
            let queue = queue.clone();
            async move { queue.put(2).await.unwrap() }
        });
        while !format!("{queue:?}").contains("putters: 1") {
            yield_now().await;
        }
        putter.abort();
        assert!(putter.await.unwrap_err().is_cancelled());
        assert_eq!(queue.get().await, Ok(1));
        assert!(queue.try_get().is_err());
    }

    q25_four_putters_and_a_getter_that_takes_what_is_there(queue: 2) {
        let putters: Vec<_> = (0..4)
            .map(|item| {
                let queue = queue.clone();
                rt::spawn(async move { queue.put(item).await.unwrap() })
            })
            .collect();
        let mut got = 0;
        while got < 4 {
            yield_now().await;
            while queue.try_get().is_ok() {
                got += 1;
            }
        }
        for putter in putters {
            putter.await.unwrap();
        }
    }

    q28_two_workers_take_and_mark_a_hundred_items(queue: 0) {
        let sum = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (queue, sum) = (queue.clone(), sum.clone());
                rt::spawn(async move {
                    while let Some(item) = queue.next().await {
                        yield_now().await;
                        sum.fetch_add(item, SeqCst);
                        queue.task_done().unwrap();
                    }
                })
            })
            .collect();
        for item in 0..100_usize {
            queue.put(item).await.unwrap();
        }
        queue.join().await;
        assert_eq!(sum.load(SeqCst), 4950);
        queue.shutdown(Shutdown::Draining);
        for worker in workers {
            worker.await.unwrap();
        }
    }
}

#[test]
fn c12_after_a_timeout_in_wait_the_lock_is_usable() {
    on_each(|| async {
        let (condition, mutex) = (Condition::new(), Mutex::new(1));
        let guard = mutex.lock().await;
        timeout(Duration::from_millis(2), condition.wait(guard))
            .await
            .unwrap_err();
        assert_eq!(*mutex.lock().await, 1);
    });
}

#[test]
fn b05_tasks_that_pass_twice_pass_with_their_round() {
    on_each(|| async {
        let shared = Arc::new((Barrier::new(4), AtomicUsize::new(0)));
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                rt::spawn(async move {
                    for round in 1..50 {
                        shared.1.fetch_add(1, SeqCst);
                        shared.0.wait().await;
                        assert!(shared.1.load(SeqCst) >= 4 * round);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(shared.1.load(SeqCst), 4 * 49);
    });
}

#[test]
fn e01_an_event_lets_all_tasks_go_on() {
    on_each(|| async {
        let event = Arc::new(Event::new());
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let event = event.clone();
                rt::spawn(async move { event.wait().await })
            })
            .collect();
        yield_now().await;
        event.set();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_tracker_waits_for_tasks_of_every_kind() {
    on_each(|| async {
        let tracker = TaskTracker::new();
        let token = CancellationToken::new();
        for _ in 0..20 {
            let token = token.child_token();
            tracker.spawn(async move { token.cancelled().await });
        }
        let aborted = tracker.spawn(std::future::pending::<()>());
        let closure = tracker.spawn_blocking(|| 7);
        let panics = tracker.spawn(async { panic!("on purpose") });
        assert!(tracker.len() >= 21);
        tracker.close();
        aborted.abort();
        token.cancel();
        tracker.wait().await;
        assert!(tracker.is_empty());
        assert_eq!(closure.await.unwrap(), 7);
        assert!(panics.await.unwrap_err().is_panic());

        let same = tracker.clone();
        assert!(TaskTracker::ptr_eq(&same, &tracker));
        let local = LocalSet::new();
        let number = std::rc::Rc::new(5);
        let got = tracker.spawn_local_on(async move { *number }, &local);
        assert_eq!(same.len(), 1);
        let got = local.run_until(async move {
            same.spawn_local(async {}).await.unwrap();
            got.await.unwrap()
        });
        assert_eq!(got.await, 5);
        drop(local);
        tracker.wait().await;
    });
}

#[test]
fn a_tracker_of_a_runtime_that_is_gone_waits_for_nobody() {
    within_limit(|| {
        let tracker = TaskTracker::new();
        let [single, multi] = runtimes();
        tracker.spawn_on(std::future::pending::<()>(), single.handle());
        tracker.spawn_on(std::future::pending::<()>(), multi.handle());
        tracker.close();
        drop((single, multi));
        futures_lite::future::block_on(tracker.wait());
    });
}
