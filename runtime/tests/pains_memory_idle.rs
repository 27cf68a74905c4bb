//! What a task costs that waits: row I5 of the known pains of async runtimes. A binary with one test, since it measures the
//! process.
#![cfg(target_os = "linux")]

mod resident;
mod watchdog;

use std::future::pending;

use rt::runtime::Builder;

use self::resident::resident;
use self::watchdog::within_limit;

const TASKS: usize = 200_000;
/// Beyond its future: header and cell, the list that holds the handle, and what the allocator adds.
const MOST: usize = 300;

async fn waits(data: [u8; 200]) {
    pending::<()>().await;
    std::hint::black_box(data);
}

#[test]
fn i5_a_task_that_waits_costs_little_more_than_its_future() {
    within_limit(idle_tasks);
}

fn idle_tasks() {
    let future = size_of_val(&waits([0; 200]));
    // What is freed would be used again.
    let mut kept = Vec::new();
    for workers in [0, 2] {
        let mut builder = if workers == 0 {
            Builder::new_current_thread()
        } else {
            Builder::new_multi_thread()
        };
        let runtime = builder
            .worker_threads(workers.max(1))
            .debug(false)
            .build()
            .unwrap();
        let mut tasks = Vec::with_capacity(TASKS);
        let before = resident();
        runtime.block_on(async {
            for _ in 0..TASKS {
                tasks.push(rt::spawn(waits([7; 200])));
            }
            // Whoever is behind them in the queues is polled after them.
            while runtime
                .metrics()
                .workers
                .iter()
                .map(|worker| worker.polls)
                .sum::<u64>()
                < TASKS as u64
            {
                rt::task::yield_now().await;
            }
        });
        let each = resident().saturating_sub(before) / TASKS;
        assert!(
            (future..=future + MOST).contains(&each),
            "{each} bytes a task with a future of {future}"
        );
        drop(runtime);
        assert!(tasks.iter().all(rt::task::JoinHandle::is_finished));
        kept.push(tasks);
    }
}
