//! The stress twin of `local_set.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use rt::internals::task::WakeQueue;
use rt::task::{LocalSet, yield_now};
use rt_loom_tests::stress::{block_on, limited};
use rt_sync::AtomicWaker;

/// Each pusher's items come out in its order, none is lost, and the last ones are not left behind by a sleeper.
#[test]
fn nothing_pushed_is_left_behind() {
    const PUSHERS: usize = 3;
    const ITEMS: usize = 50_000;
    limited(|| {
        let queue = Arc::new(WakeQueue::new());
        let pushers: Vec<_> = (0..PUSHERS)
            .map(|pusher| {
                let queue = queue.clone();
                thread::spawn(move || {
                    for item in 0..ITEMS {
                        queue.push((pusher, item)).expect("open");
                    }
                })
            })
            .collect();
        let mut next = [0; PUSHERS];
        let mut items = VecDeque::new();
        block_on(poll_fn(|cx| {
            queue.register(cx.waker());
            queue.take_into(&mut items);
            for (pusher, item) in items.drain(..) {
                assert_eq!(next[pusher], item);
                next[pusher] += 1;
            }
            if next == [ITEMS; PUSHERS] {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        for pusher in pushers {
            pusher.join().unwrap();
        }
    });
}

/// Tasks of a set wait for rounds that another thread starts, so that the set goes to sleep again and again.
#[test]
fn no_wake_from_elsewhere_is_lost() {
    const TASKS: usize = 4;
    const ROUNDS: usize = 10_000;
    limited(|| {
        let shared = Arc::new((
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            [const { AtomicWaker::new() }; TASKS],
        ));
        let other = shared.clone();
        let starter = thread::spawn(move || {
            let (round, seen, wakers) = &*other;
            for number in 1..=ROUNDS {
                round.store(number, SeqCst);
                wakers.iter().for_each(AtomicWaker::wake);
                while seen.load(SeqCst) < number * TASKS {
                    thread::yield_now();
                }
            }
        });
        let set = LocalSet::new();
        for task in 0..TASKS {
            let shared = shared.clone();
            drop(set.spawn_local(async move {
                let (round, seen, wakers) = &*shared;
                for number in 1..=ROUNDS {
                    poll_fn(|cx| {
                        wakers[task].register(cx.waker());
                        if round.load(SeqCst) >= number {
                            Poll::Ready(())
                        } else {
                            Poll::Pending
                        }
                    })
                    .await;
                    seen.fetch_add(1, SeqCst);
                }
            }));
        }
        block_on(set);
        starter.join().unwrap();
    });
}

struct DropThread(Arc<Mutex<Vec<ThreadId>>>);

impl Drop for DropThread {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(thread::current().id());
    }
}

/// Wakes and aborts from another thread against the drop of the set: each future is dropped once, by the owner.
#[test]
fn futures_are_dropped_by_the_owner_only() {
    const ROUNDS: usize = 3_000;
    const TASKS: usize = 8;
    limited(|| {
        let (send, receive) = mpsc::channel::<Vec<(Waker, rt::task::AbortHandle)>>();
        let other = thread::spawn(move || {
            for (round, tasks) in receive.into_iter().enumerate() {
                for (number, (waker, abort)) in tasks.into_iter().enumerate() {
                    if (round + number) % 3 == 0 {
                        abort.abort();
                    }
                    waker.wake();
                }
            }
        });
        for round in 0..ROUNDS {
            let drops = Arc::default();
            let wakers = Arc::new(Mutex::new(Vec::new()));
            let set = LocalSet::new();
            let aborts: Vec<_> = (0..TASKS)
                .map(|_| {
                    let (guard, wakers) = (DropThread(Arc::clone(&drops)), wakers.clone());
                    let task = set.spawn_local(async move {
                        let _guard = guard;
                        poll_fn(|cx| {
                            wakers.lock().unwrap().push(cx.waker().clone());
                            Poll::<()>::Pending
                        })
                        .await;
                    });
                    task.abort_handle()
                })
                .collect();
            block_on(set.run_until(yield_now()));
            let wakers = std::mem::take(&mut *wakers.lock().unwrap());
            send.send(wakers.into_iter().zip(aborts).collect()).unwrap();
            for _ in 0..round % 3 {
                block_on(set.run_until(yield_now()));
            }
            drop(set);
            assert_eq!(*drops.lock().unwrap(), [thread::current().id(); TASKS]);
        }
        drop(send);
        other.join().unwrap();
    });
}
