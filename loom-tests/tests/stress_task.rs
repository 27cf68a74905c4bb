//! The stress twin of `task.rs`: the task protocol on real threads, under the small scheduler of the models.
//!
//! Several threads run what is ready, others wake, abort, await and drop handles. Each future counts its drop.
#![cfg(not(rt_loom))]

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self};
use std::task::{Poll, Waker};
use std::thread::{self};

use rt::task::JoinHandle;
use rt_loom_tests::count_drop::CountDrop;
use rt_loom_tests::scheduler::Scheduler;
use rt_loom_tests::stress::{block_on, limited};

/// Threads that run what is ready until told to stop.
struct Runners {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Runners {
    fn start(scheduler: &Scheduler, number: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let threads = (0..number)
            .map(|_| {
                let (scheduler, over) = (scheduler.clone(), over.clone());
                thread::spawn(move || {
                    while !over.load(SeqCst) {
                        if scheduler.run() == 0 {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        Self { over, threads }
    }

    fn stop(self) {
        self.over.store(true, SeqCst);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

/// A task that counts to `wakes`, one for each time it is woken, and gives a counter of its drop.
fn counting(
    scheduler: &Scheduler,
    wakes: usize,
    drops: &Arc<AtomicUsize>,
) -> (JoinHandle<CountDrop>, Waker, Arc<AtomicUsize>) {
    let (send, receive) = mpsc::channel();
    let mut send = Some(send);
    let news = Arc::new(AtomicUsize::new(0));
    let seen = news.clone();
    let mut output = Some(CountDrop(drops.clone()));
    let handle = scheduler.spawn(poll_fn(move |cx| {
        if let Some(send) = send.take() {
            let _ = send.send(cx.waker().clone());
        }
        if seen.load(SeqCst) >= wakes {
            Poll::Ready(output.take().expect("polled once after the last wake"))
        } else {
            Poll::Pending
        }
    }));
    let waker = receive.recv().expect("polled");
    (handle, waker, news)
}

/// Wakes, by value and by reference, from two threads, against aborts, joins and handle drops.
#[test]
fn everything_at_once() {
    const ROUNDS: usize = 2_000;
    const WAKES: usize = 6;
    limited(|| {
        let scheduler = Scheduler::new();
        let runners = Runners::start(&scheduler, 2);
        let drops = Arc::new(AtomicUsize::new(0));
        let (send, receive) =
            mpsc::channel::<(Waker, Arc<AtomicUsize>, Option<rt::task::AbortHandle>)>();
        let other = thread::spawn(move || {
            for (waker, news, abort) in receive {
                for _ in 0..WAKES / 2 {
                    news.fetch_add(1, SeqCst);
                    waker.wake_by_ref();
                }
                if let Some(abort) = abort {
                    abort.abort();
                }
                waker.wake();
            }
        });
        for round in 0..ROUNDS {
            let (handle, waker, news) = counting(&scheduler, WAKES, &drops);
            let abort = (round % 3 == 0).then(|| handle.abort_handle());
            let aborted = abort.is_some();
            send.send((waker.clone(), news.clone(), abort)).unwrap();
            for _ in 0..WAKES / 2 {
                news.fetch_add(1, SeqCst);
                let by_value = waker.clone();
                by_value.wake();
            }
            drop(waker);
            if round % 4 == 0 {
                drop(handle);
            } else {
                match block_on(handle) {
                    Ok(output) => drop(output),
                    Err(error) => assert!(aborted && error.is_cancelled(), "{error}"),
                }
            }
        }
        drop(send);
        other.join().unwrap();
        while drops.load(SeqCst) < ROUNDS {
            thread::yield_now();
        }
        runners.stop();
        assert_eq!(scheduler.run(), 0);
        assert_eq!(drops.load(SeqCst), ROUNDS);
    });
}

/// Shutdown claims tasks that are queued, polled and woken at that moment; others are spawned meanwhile.
#[test]
fn shutdown_against_everything() {
    const ROUNDS: usize = 300;
    const TASKS: usize = 6;
    limited(|| {
        for round in 0..ROUNDS {
            let scheduler = Scheduler::listed();
            let runners = Runners::start(&scheduler, 1);
            let drops = Arc::new(AtomicUsize::new(0));
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| counting(&scheduler, 2, &drops))
                .collect();
            let closing = scheduler.clone();
            let closer = thread::spawn(move || closing.shut_down());
            let mut handles = Vec::new();
            for (handle, waker, news) in tasks {
                for _ in 0..1 + round % 2 {
                    news.fetch_add(1, SeqCst);
                    waker.wake_by_ref();
                }
                handles.push(handle);
            }
            let guard = CountDrop(drops.clone());
            handles.push(scheduler.spawn(async move { guard }));
            for handle in handles {
                if let Err(error) = block_on(handle) {
                    assert!(error.is_runtime_closed(), "{error}");
                }
            }
            closer.join().unwrap();
            runners.stop();
            scheduler.run();
            assert_eq!(drops.load(SeqCst), TASKS + 1);
            assert_eq!(scheduler.living(), 0);
        }
    });
}
