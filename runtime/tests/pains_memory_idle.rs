//! What a task costs that waits: row I5 of the known pains of async runtimes. A binary with one test, since it measures the
//! process.
#![cfg(target_os = "linux")]

use std::future::pending;
use std::process;
use std::thread;
use std::time::Duration;

use rt::runtime::Builder;

const TASKS: usize = 200_000;
/// Beyond its future: header and cell, the list that holds the handle, and what the allocator adds.
const MOST: usize = 300;

/// What the process has in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = text.lines();
    let size = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: usize = size.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}

async fn waits(data: [u8; 200]) {
    pending::<()>().await;
    std::hint::black_box(data);
}

#[test]
fn i5_a_task_that_waits_costs_little_more_than_its_future() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(110));
        eprintln!("the test of the memory of idle tasks did not end in time");
        process::abort();
    });
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
