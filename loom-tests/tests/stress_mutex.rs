//! The stress twin of `mutex.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rt_sync::mutex::{Mutex, OwnedMutexGuard};

fn limited(body: impl FnOnce() + Send + 'static) {
    let (done, end) = mpsc::channel();
    let worker = thread::spawn(move || {
        body();
        done.send(()).unwrap();
    });
    match end.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a wake is lost: not over after 60 s"),
        _ => worker.join().unwrap(),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// Gets in line and gives up at once: what was granted meanwhile must go on to somebody else.
fn give_up(future: impl Future) {
    let mut future = Box::pin(future);
    let _ = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    thread::yield_now();
}

/// Threads that await, block, try and give up: one at a time, and each count is there.
#[test]
fn one_at_a_time() {
    const EACH: usize = 10_000;
    limited(|| {
        // Two halves that are equal whenever nobody has the lock.
        let mutex = Arc::new(Mutex::new((0, 0)));
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let mut done = 0;
                    for round in 0..EACH {
                        let mut guard = match (i + round) % 5 {
                            0 => {
                                give_up(mutex.lock());
                                continue;
                            }
                            1 => match mutex.try_lock() {
                                Ok(guard) => guard,
                                Err(_) => continue,
                            },
                            2 => mutex.blocking_lock(),
                            _ => block_on(mutex.lock()),
                        };
                        assert_eq!(guard.0, guard.1);
                        guard.0 += 1;
                        if round % 7 == 0 {
                            thread::yield_now();
                        }
                        guard.1 += 1;
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        let done: usize = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(*mutex.try_lock().unwrap(), (done, done));
    });
}

/// Owned guards that go over to other threads, where they unlock.
#[test]
fn guards_travel() {
    const ROUNDS: usize = 10_000;
    limited(|| {
        let mutex = Arc::new(Mutex::new(0));
        let (guards, arriving) = mpsc::channel::<OwnedMutexGuard<usize>>();
        let unlocks = thread::spawn(move || {
            while let Ok(mut guard) = arriving.recv() {
                *guard += 1;
                drop(guard);
            }
        });
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (mutex, guards) = (mutex.clone(), guards.clone());
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        guards.send(block_on(mutex.clone().lock_owned())).unwrap();
                    }
                })
            })
            .collect();
        drop(guards);
        for thread in threads {
            thread.join().unwrap();
        }
        unlocks.join().unwrap();
        assert_eq!(*mutex.try_lock().unwrap(), 2 * ROUNDS);
    });
}
