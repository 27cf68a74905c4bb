//! The stress twin of `queue.rs`: real threads, many items, a time limit.
#![cfg(not(rt_loom))]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::thread;

use rt_loom_tests::stress::{block_on, limited};
use rt_sync::queue::{LifoQueue, PriorityQueue, Queue, Shutdown};

/// Polls once, and drops the future.
fn give_up<F: Future>(future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let poll = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    thread::yield_now();
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

const EACH: usize = 20_000;
const PAIRS: usize = 2;

/// Producers and consumers, and others that give up at once; every item is got once, and all end.
macro_rules! no_item_is_lost {
    ($($name:ident: $queue:ident, $max:expr;)*) => {$(
        #[test]
        fn $name() {
            limited(|| {
                let queue = Arc::new($queue::new($max));
                let got = Arc::new(AtomicUsize::new(0));
                let sum = Arc::new(AtomicUsize::new(0));
                let over = Arc::new(AtomicBool::new(false));
                let mut producers = Vec::new();
                let mut others = Vec::new();
                for _ in 0..PAIRS {
                    let putter = queue.clone();
                    producers.push(thread::spawn(move || {
                        for item in 1..=EACH {
                            block_on(putter.put(item)).unwrap();
                        }
                    }));
                    let (getter, got, sum) = (queue.clone(), got.clone(), sum.clone());
                    others.push(thread::spawn(move || {
                        while let Ok(item) = block_on(getter.get()) {
                            got.fetch_add(1, SeqCst);
                            sum.fetch_add(item, SeqCst);
                            getter.task_done().unwrap();
                        }
                    }));
                }
                let (fickle, more, total, end) =
                    (queue.clone(), got.clone(), sum.clone(), over.clone());
                others.push(thread::spawn(move || {
                    while !end.load(SeqCst) {
                        if let Some(Ok(item)) = give_up(fickle.get()) {
                            more.fetch_add(1, SeqCst);
                            total.fetch_add(item, SeqCst);
                            fickle.task_done().unwrap();
                        }
                        if let Some(Ok(())) = give_up(fickle.put(0)) {
                            // One more than the producers put.
                            more.fetch_sub(1, SeqCst);
                        }
                    }
                }));
                for producer in producers {
                    producer.join().unwrap();
                }
                over.store(true, SeqCst);
                others.pop().unwrap().join().unwrap();
                block_on(queue.join());
                assert_eq!(got.load(SeqCst), PAIRS * EACH);
                assert_eq!(sum.load(SeqCst), PAIRS * EACH * (EACH + 1) / 2);
                assert!(queue.is_empty());
                queue.shutdown(Shutdown::Draining);
                for other in others {
                    other.join().unwrap();
                }
            });
        }
    )*};
}

no_item_is_lost! {
    through_a_queue_of_one: Queue, 1;
    through_a_queue_of_ten: Queue, 10;
    through_an_unbounded_queue: Queue, 0;
    through_a_lifo_queue: LifoQueue, 4;
    through_a_priority_queue: PriorityQueue, 4;
}

/// An immediate shutdown in the midst of it: everybody ends, and nothing stays in the queue.
#[test]
fn shutdown_ends_everybody() {
    limited(|| {
        for round in 0..200 {
            let queue = Arc::new(Queue::new(1 + round % 3));
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let queue = queue.clone();
                    thread::spawn(move || match i {
                        0 | 1 => while block_on(queue.put(i)).is_ok() {},
                        2 => {
                            while block_on(queue.get()).is_ok() {
                                queue.task_done().unwrap();
                            }
                        }
                        _ => {
                            for _ in 0..round % 8 {
                                thread::yield_now();
                            }
                            queue.shutdown(if round % 2 == 0 {
                                Shutdown::Immediate
                            } else {
                                Shutdown::Draining
                            });
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            block_on(queue.join());
            assert!(queue.is_empty());
        }
    });
}
