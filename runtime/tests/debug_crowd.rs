//! Reports of slow polls on a machine with far more to do than it has cores. A binary of its own, with one test: others would
//! wait for their cores as well.
#![cfg(target_os = "linux")]

#[path = "debug/support.rs"]
mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, ReportKind};
use rustix::time::{ClockId, clock_gettime};

use self::support::{Reports, within_limit};

/// Threads that keep every core busy.
struct Crowd {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Crowd {
    fn for_each_core(number: usize) -> Self {
        let cores = thread::available_parallelism().unwrap().get();
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..cores * number)
            .map(|_| {
                let stop = stop.clone();
                thread::spawn(move || {
                    while !stop.load(SeqCst) {
                        black_box(());
                    }
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Keeps a core busy for so long, however long it takes to get it.
fn computes(time: Duration) {
    let used = || {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
    };
    let end = used() + time;
    while used() < end {
        std::hint::spin_loop();
    }
}

/// The kernel keeps a worker from its core: its task has not done anything wrong.
#[test]
fn a_poll_whose_thread_waits_for_a_core_is_not_slow() {
    const THRESHOLD: Duration = Duration::from_millis(300);
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(true)
            .slow_poll_threshold(THRESHOLD);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let crowd = Crowd::for_each_core(24);
        let task = runtime.spawn(async {
            let mut long = 0;
            while long < 3 {
                let start = Instant::now();
                computes(THRESHOLD / 10);
                long += usize::from(start.elapsed() >= THRESHOLD * 2);
                rt::task::yield_now().await;
            }
        });
        runtime.block_on(task).unwrap();
        drop(crowd);
        let slow: Vec<_> = reports
            .rest(Duration::from_millis(1))
            .into_iter()
            .filter(|report| report.task().is_some_and(|task| task.id().is_some()))
            .collect();
        assert!(slow.is_empty(), "{slow:?}");

        // One that computes for that long is, and the report tells how long it waited besides.
        let crowd = Crowd::for_each_core(1);
        let task = runtime.spawn(async { computes(THRESHOLD * 3 / 2) });
        let report = reports.next(ReportKind::SlowPoll);
        assert!(report.duration().unwrap() >= THRESHOLD, "{report}");
        let text = report.to_string();
        assert!(
            text.contains("of it its thread waited for a core"),
            "{text}"
        );
        reports.next(ReportKind::SlowPollEnded);
        runtime.block_on(task).unwrap();
        drop(crowd);
    });
}
