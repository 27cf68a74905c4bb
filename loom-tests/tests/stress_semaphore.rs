//! The stress twin of `semaphore.rs`: real threads, many rounds, a time limit.
#![cfg(not(rt_loom))]

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rt_sync::semaphore::{CapacityLimiter, Semaphore};

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

/// Many and few at a time, with waiters that give up, newcomers that try, and one that takes permits away and puts them
/// back: never more inside than permits, and all of them there in the end.
#[test]
fn permits_add_up() {
    const PERMITS: u32 = 5;
    const EACH: usize = 5_000;
    limited(|| {
        let semaphore = Arc::new(Semaphore::new(PERMITS as usize));
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..6)
            .map(|i| {
                let (semaphore, inside) = (semaphore.clone(), inside.clone());
                thread::spawn(move || {
                    for round in 0..EACH {
                        let n = 1 + ((i + round) as u32) % PERMITS;
                        let permit = match (i + round) % 4 {
                            0 => {
                                give_up(semaphore.acquire_many(n));
                                continue;
                            }
                            1 => match semaphore.try_acquire_many(n) {
                                Ok(permit) => permit,
                                Err(_) => continue,
                            },
                            2 if i == 0 => {
                                let gone = semaphore.forget_permits(2);
                                thread::yield_now();
                                semaphore.add_permits(gone);
                                continue;
                            }
                            _ => block_on(semaphore.acquire_many(n)).unwrap(),
                        };
                        let now = inside.fetch_add(n as usize, SeqCst) + n as usize;
                        assert!(now <= PERMITS as usize, "{now} inside");
                        if round % 3 == 0 {
                            thread::yield_now();
                        }
                        inside.fetch_sub(n as usize, SeqCst);
                        drop(permit);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(semaphore.available_permits(), PERMITS as usize);
    });
}

/// A semaphore is closed while others wait, come and go: everybody ends.
#[test]
fn close_ends_everybody() {
    const ROUNDS: usize = 2_000;
    limited(|| {
        for round in 0..ROUNDS {
            let semaphore = Arc::new(Semaphore::new(round % 2));
            let threads: Vec<_> = (0..3)
                .map(|i| {
                    let semaphore = semaphore.clone();
                    thread::spawn(move || {
                        while let Ok(permit) = block_on(semaphore.acquire_many(1 + i % 2)) {
                            drop(permit);
                        }
                    })
                })
                .collect();
            if round % 3 == 0 {
                semaphore.add_permits(1);
            }
            semaphore.close();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(
                semaphore.available_permits(),
                round % 2 + usize::from(round % 3 == 0)
            );
        }
    });
}

/// A limiter whose total goes up and down: tokens and debt add up.
#[test]
fn a_total_that_changes() {
    const EACH: usize = 10_000;
    limited(|| {
        let limiter = Arc::new(CapacityLimiter::new(2));
        let (inside, running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(3)));
        let threads: Vec<_> = (0..3)
            .map(|i| {
                let (limiter, inside, running) = (limiter.clone(), inside.clone(), running.clone());
                thread::spawn(move || {
                    for round in 0..EACH {
                        if (i + round) % 4 == 0 {
                            give_up(limiter.acquire());
                            continue;
                        }
                        let token = block_on(limiter.acquire());
                        assert!(inside.fetch_add(1, SeqCst) < 4);
                        inside.fetch_sub(1, SeqCst);
                        drop(token);
                    }
                    running.fetch_sub(1, Relaxed);
                })
            })
            .collect();
        let mut total = 0;
        while running.load(Relaxed) > 0 {
            total = total % 4 + 1;
            limiter.set_total_tokens(total);
            thread::yield_now();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        limiter.set_total_tokens(3);
        assert_eq!(limiter.borrowed_tokens(), 0);
        assert_eq!(limiter.available_tokens(), 3);
    });
}
