//! What do locks and permits cost, free and contended?
//!
//! # What would mislead
//! The contended mutex is held across a `yield_now`, so that 99 of 100 tasks wait at any time even on one worker; a turn of a
//! task is part of the figure, for each peer its own. The free rows are a loop in one task that never waits.

use std::future::Future;
use std::sync::Arc;

use super::{Micro, cpu_on_worker};
use crate::goal::Goal;
use crate::peer::{Peer, PeerId, Rt, Smol, Tokio};
use crate::report::Metric;

const fn row(
    name: &'static str,
    metrics: &'static [Metric],
    operations: u64,
    each_workers: bool,
    sample: fn(PeerId, usize, u64) -> Vec<f64>,
) -> Micro {
    Micro {
        name,
        metrics,
        quick: operations,
        full: operations * 10,
        quick_rounds: 5,
        each_workers,
        peers: &PeerId::RUNTIMES,
        sample,
    }
}

/// The rows of this file.
pub const ROWS: &[Micro] = &[
    row(
        "mutex, 100 tasks",
        &[Metric {
            name: "CPU",
            unit: "ns",
            goals: &[Goal::OfBest(1.0)],
        }],
        50_000,
        true,
        |peer, workers, n| {
            vec![match peer {
                PeerId::Rt => {
                    cpu_on_worker::<Rt, _>(workers, n, contended::<Rt, rt::sync::Mutex<u64>>)
                }
                PeerId::Tokio => cpu_on_worker::<Tokio, _>(
                    workers,
                    n,
                    contended::<Tokio, tokio::sync::Mutex<u64>>,
                ),
                _ => {
                    cpu_on_worker::<Smol, _>(workers, n, contended::<Smol, async_lock::Mutex<u64>>)
                }
            }]
        },
    ),
    row(
        "semaphore, free",
        &[Metric {
            name: "CPU",
            unit: "ns",
            goals: &[Goal::OfBest(0.9)],
        }],
        500_000,
        false,
        |peer, _, n| {
            vec![match peer {
                PeerId::Rt => cpu_on_worker::<Rt, _>(1, n, permits_rt),
                PeerId::Tokio => cpu_on_worker::<Tokio, _>(1, n, permits_tokio),
                _ => cpu_on_worker::<Smol, _>(1, n, permits_smol),
            }]
        },
    ),
    row(
        "rwlock, read mostly",
        &[Metric {
            name: "CPU",
            unit: "ns",
            goals: &[Goal::OfTokio(0.9)],
        }],
        500_000,
        false,
        |peer, _, n| {
            vec![match peer {
                PeerId::Rt => cpu_on_worker::<Rt, _>(1, n, read_rt),
                PeerId::Tokio => cpu_on_worker::<Tokio, _>(1, n, read_tokio),
                _ => cpu_on_worker::<Smol, _>(1, n, read_smol),
            }]
        },
    ),
];

trait Lock: Default + Send + Sync + 'static {
    /// Adds one under the lock, and gives way before it is released.
    fn add<P: Peer>(&self) -> impl Future<Output = ()> + Send;
}

macro_rules! lock {
    ($type:ty) => {
        impl Lock for $type {
            async fn add<P: Peer>(&self) {
                let mut guard = self.lock().await;
                *guard += 1;
                P::yield_now().await;
                drop(guard);
            }
        }
    };
}

lock!(rt::sync::Mutex<u64>);
lock!(tokio::sync::Mutex<u64>);
lock!(async_lock::Mutex<u64>);

async fn contended<P: Peer, L: Lock>(operations: u64) {
    const TASKS: u64 = 100;
    let lock = Arc::new(L::default());
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let lock = Arc::clone(&lock);
            P::spawn(async move {
                for _ in 0..operations.div_ceil(TASKS) {
                    lock.add::<P>().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
}

async fn permits_rt(operations: u64) {
    let semaphore = rt::sync::Semaphore::new(10);
    for _ in 0..operations {
        drop(semaphore.acquire().await.expect("open"));
    }
}

async fn permits_tokio(operations: u64) {
    let semaphore = tokio::sync::Semaphore::new(10);
    for _ in 0..operations {
        drop(semaphore.acquire().await.expect("open"));
    }
}

async fn permits_smol(operations: u64) {
    let semaphore = async_lock::Semaphore::new(10);
    for _ in 0..operations {
        drop(semaphore.acquire().await);
    }
}

/// One write in a hundred.
macro_rules! read_mostly {
    ($name:ident, $lock:ty) => {
        async fn $name(operations: u64) {
            let lock = <$lock>::new(0_u64);
            let mut sum = 0_u64;
            for number in 0..operations {
                if number % 100 == 0 {
                    *lock.write().await += 1;
                } else {
                    sum = sum.wrapping_add(*lock.read().await);
                }
            }
            std::hint::black_box(sum);
        }
    };
}

read_mostly!(read_rt, rt::sync::RwLock<u64>);
read_mostly!(read_tokio, tokio::sync::RwLock<u64>);
read_mostly!(read_smol, async_lock::RwLock<u64>);
