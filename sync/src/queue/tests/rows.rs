//! The rows of asyncio's own tests, by number.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use futures_lite::future::{block_on, or, zip};

use super::*;

each_kind! {
    fn q01_a_new_queue_is_empty(queue: S, 3) {
        assert!(queue.is_empty());
        assert!(!queue.is_full());
        assert_eq!(queue.len(), 0);
    }

    fn q02_an_item_comes_back(queue: S, 3) {
        now(queue.put(7)).unwrap();
        assert!(!queue.is_empty());
        assert_eq!(queue.len(), 1);
        assert_eq!(now(queue.get()), Ok(7));
        assert!(queue.is_empty());
    }

    fn q03_a_put_into_an_unbounded_queue_never_waits(queue: S, 0) {
        for item in 0..1000 {
            now(queue.put(item)).unwrap();
            assert!(!queue.is_full());
        }
        assert_eq!(queue.len(), 1000);
        assert_eq!(queue.max_size(), 0);
    }

    fn q04_a_queue_of_one_is_full_with_one(queue: S, 1) {
        assert!(!queue.is_full());
        now(queue.put(1)).unwrap();
        assert!(queue.is_full());
    }

    fn q05_q06_q07_items_come_in_the_order_of_the_kind(queue: S, 0) {
        put_all(&queue, &[1, 3, 2]);
        assert_eq!(get_all(&queue), S::order(&[1, 3, 2]));
    }

    fn q08_q09_a_third_put_waits_until_an_item_is_taken(queue: S, 2) {
        put_all(&queue, &[1, 2]);
        let third = Task::waiting(queue.put(3));
        assert_eq!(queue.max_size(), 2);
        assert_eq!(queue.len(), 2);
        let first = now(queue.get()).unwrap();
        assert_eq!(first, S::order(&[1, 2])[0]);
        assert_eq!(third.woken(), Ok(()));
        let mut left = vec![1, 2, 3];
        left.retain(|&item| item != first);
        assert_eq!(get_all(&queue), S::order(&left));
    }

    fn q10_a_getter_ends_with_an_item_that_is_put_later(queue: S, 0) {
        let other = queue.clone();
        let putter = thread::spawn(move || {
            while !format!("{other:?}").contains("getters: 1") {
                thread::yield_now();
            }
            other.try_put(5).unwrap();
        });
        assert_eq!(block_on(queue.get()), Ok(5));
        putter.join().unwrap();
    }

    fn q11_try_get_gives_what_is_there(queue: S, 0) {
        put_all(&queue, &[1, 2]);
        assert_eq!(queue.try_get(), Ok(S::order(&[1, 2])[0]));
    }

    fn q12_try_get_of_an_empty_queue_fails(queue: S, 0) {
        assert_eq!(queue.try_get(), Err(TryGetError::Empty(QueueEmpty)));
    }

    fn q13_try_put_into_a_full_queue_gives_the_item_back(queue: S, 1) {
        queue.try_put(1).unwrap();
        assert_eq!(queue.try_put(2), Err(TryPutError::Full(QueueFull(2))));
        assert_eq!(get_all(&queue), [1]);
    }

    fn q14_a_cancelled_getter_loses_nothing(queue: S, 0) {
        let first = Task::waiting(queue.get());
        let second = Task::waiting(queue.get());
        let probe = first.probe.clone();
        drop(first);
        now(queue.put(1)).unwrap();
        assert_eq!(second.woken(), Ok(1));
        assert_eq!((probe.wakes(), probe.alive()), (0, 0));
        whole(&queue);
    }

    fn q15_a_woken_getter_that_is_cancelled_leaves_items_and_order(queue: S, 0) {
        let getter = Task::waiting(queue.get());
        put_all(&queue, &[1, 2]);
        assert_eq!(getter.wakes(), 1);
        drop(getter);
        assert_eq!(now(queue.get()), Ok(S::order(&[1, 2])[0]));
        assert_eq!(queue.len(), 1);
        whole(&queue);
    }

    fn q16_two_items_reach_the_two_getters_that_are_left(queue: S, 0) {
        let first = Task::waiting(queue.get());
        let second = Task::waiting(queue.get());
        let third = Task::waiting(queue.get());
        put_all(&queue, &[1, 2]);
        assert_eq!((first.wakes(), second.wakes(), third.wakes()), (1, 1, 0));
        drop(first);
        let mut got = vec![third.woken().unwrap(), second.woken().unwrap()];
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
        whole(&queue);
    }

    fn q17_waiting_puts_keep_their_order(queue: S, 1) {
        let putter = |item| Task::new(queue.put(item));
        let (mut a, mut b) = (putter(1), putter(2));
        assert!(a.poll().is_ready());
        assert!(b.poll().is_pending());
        assert_eq!(now(queue.get()), Ok(1));
        b.woken().unwrap();
        assert_eq!(now(queue.get()), Ok(2));
        whole(&queue);
    }

    fn q18_producer_and_consumer_through_a_queue_of_one(queue: S, 1) {
        const COUNT: i32 = 1000;
        let other = queue.clone();
        let producer = thread::spawn(move || block_on(async {
            for item in 0..COUNT {
                other.put(item).await.unwrap();
            }
        }));
        block_on(async {
            for item in 0..COUNT {
                assert_eq!(queue.get().await, Ok(item));
            }
        });
        producer.join().unwrap();
        whole(&queue);
    }

    fn q19_a_get_that_gives_up_is_not_waiting_any_more(queue: S, 0) {
        let given_up = block_on(or(async { queue.get().await.ok() }, async { None }));
        assert_eq!(given_up, None);
        assert!(format!("{queue:?}").contains("getters: 0"));
        now(queue.put(1)).unwrap();
        assert_eq!(queue.try_get(), Ok(1));
        whole(&queue);
    }

    fn q20_a_cancelled_put_is_not_waiting_and_its_item_not_stored(queue: S, 1) {
        now(queue.put(1)).unwrap();
        let putter = Task::waiting(queue.put(2));
        let probe = putter.probe.clone();
        drop(putter);
        assert_eq!(probe.alive(), 0);
        assert_eq!(get_all(&queue), [1]);
        whole(&queue);
    }

    fn q21_q22_a_place_is_not_lost_with_a_cancelled_put(queue: S, 1) {
        now(queue.put(1)).unwrap();
        let putter = Task::waiting(queue.put(2));
        assert_eq!(now(queue.get()), Ok(1));
        assert_eq!(putter.wakes(), 1);
        drop(putter);
        now(queue.put(3)).unwrap();
        assert_eq!(queue.len(), 1);
        assert_eq!(get_all(&queue), [3]);
        whole(&queue);
    }

    fn q23_the_item_of_a_cancelled_put_never_shows(queue: S, 1) {
        now(queue.put(1)).unwrap();
        let b = Task::waiting(queue.put(2));
        let x = Task::waiting(queue.put(3));
        drop(x);
        assert_eq!(now(queue.get()), Ok(1));
        b.woken().unwrap();
        assert_eq!(now(queue.get()), Ok(2));
        whole(&queue);
    }

    fn q24_a_waiting_getter_ends_with_the_item(queue: S, 1) {
        let getter = Task::waiting(queue.get());
        now(queue.put(1)).unwrap();
        assert_eq!(getter.woken(), Ok(1));
        whole(&queue);
    }

    fn q25_all_putters_end_when_one_takes_what_is_there(queue: S, 2) {
        let mut putters: Vec<_> = (0..4).map(|item| Task::new(queue.put(item))).collect();
        putters.retain_mut(|putter| putter.poll().is_pending());
        assert_eq!(putters.len(), 2);
        assert_eq!(get_all(&queue).len(), 2);
        for putter in putters {
            putter.woken().unwrap();
        }
        assert_eq!(get_all(&queue).len(), 2);
        whole(&queue);
    }

    fn q26_put_and_get_in_two_tasks_both_end(queue: S, 0) {
        let (put, got) = block_on(zip(
            async { queue.put(1).await.map(|()| "put") },
            queue.get(),
        ));
        assert_eq!((put, got), (Ok("put"), Ok(1)));
    }

    fn q27_task_done_without_an_item_fails(queue: S, 0) {
        let error = queue.task_done().unwrap_err();
        assert!(error.to_string().contains("more often"), "{error}");
        put_all(&queue, &[1]);
        queue.task_done().unwrap();
        queue.task_done().unwrap_err();
    }

    fn q28_join_ends_when_all_items_are_marked(queue: S, 0) {
        let handled = AtomicUsize::new(0);
        let sum = AtomicUsize::new(0);
        put_all(&queue, &(0..100).collect::<Vec<_>>());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Ok(item) = queue.try_get() {
                        handled.fetch_add(1, SeqCst);
                        sum.fetch_add(item as usize, SeqCst);
                        queue.task_done().unwrap();
                    }
                });
            }
            block_on(queue.join());
            assert_eq!(handled.load(SeqCst), 100);
            assert_eq!(sum.load(SeqCst), 4950);
        });
    }

    fn q29_join_of_a_queue_with_nothing_outstanding_ends_at_once(queue: S, 0) {
        now(queue.join());
        now(queue.join());
    }

    fn q30_join_waits_for_what_is_put_meanwhile(queue: S, 0) {
        put_all(&queue, &[1]);
        let mut join = Task::waiting(queue.join());
        put_all(&queue, &[2]);
        queue.task_done().unwrap();
        assert_eq!(join.wakes(), 0);
        assert!(join.poll().is_pending());
        queue.task_done().unwrap();
        join.woken();
    }
}
