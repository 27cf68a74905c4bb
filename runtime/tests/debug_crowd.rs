//! A machine with far more to do than it has cores: who waits for a core is not called slow, or stuck. A binary of its own,
//! whose tests run one after another: others would wait for their cores as well.
#![cfg(target_os = "linux")]

#[path = "debug/support.rs"]
mod support;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::{Builder, ReportKind};
use rustix::time::{ClockId, clock_gettime};

use self::support::{Reports, within_limit};

/// Threads that keep every core busy.
struct Crowd {
    _alone: MutexGuard<'static, ()>,
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Crowd {
    fn for_each_core(number: usize) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
        Self {
            _alone: alone,
            stop,
            threads,
        }
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
        let build = || {
            let mut builder = Builder::new_multi_thread();
            builder
                .worker_threads(1)
                .debug(true)
                .slow_poll_threshold(THRESHOLD);
            let reports = Reports::of(&mut builder);
            (builder.build().unwrap(), reports)
        };
        let (runtime, reports) = build();
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
        // All that was noticed is told before it is gone.
        drop(runtime);
        let slow: Vec<_> = reports
            .rest(Duration::from_millis(1))
            .into_iter()
            .filter(|report| report.task().is_some_and(|task| task.id().is_some()))
            .collect();
        assert!(slow.is_empty(), "{slow:?}");

        // One that computes for that long is, and the report tells how long it waited besides.
        let (runtime, reports) = build();
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

/// Both workers wait for a core in the middle of a poll, and tasks wait in their queues. More threads would not help.
#[test]
fn workers_that_are_kept_from_their_cores_are_not_replaced() {
    within_limit(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let crowd = Crowd::for_each_core(16);
        let end = Instant::now() + Duration::from_secs(2);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                runtime.spawn(async move {
                    while Instant::now() < end {
                        computes(Duration::from_micros(500));
                        rt::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        drop(crowd);
        let metrics = runtime.metrics();
        assert_eq!(metrics.hand_offs, 0);
    });
}

/// More workers than cores: they wait for a core more often than not, with sockets on their selectors and tasks in their
/// queues. That is no reason for more threads, be the messages small work, with the machine idle otherwise or busy, or enough
/// work to keep all workers awake.
#[test]
fn workers_that_serve_sockets_on_a_few_cores_are_not_replaced() {
    const CONNECTIONS: usize = 200;
    const TIME: Duration = Duration::from_secs(2);
    within_limit(|| {
        let some = Duration::from_micros(300);
        for (busy, work) in [(0, Duration::ZERO), (4, Duration::ZERO), (0, some)] {
            let runtime = Builder::new_multi_thread()
                .worker_threads(16)
                .build()
                .unwrap();
            let crowd = Crowd::for_each_core(busy);
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            listener.set_nonblocking(true).unwrap();
            runtime.spawn(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    rt::spawn(async move {
                        let mut message = [0; 64];
                        while stream.read_exact(&mut message).await.is_ok() {
                            computes(work);
                            stream.write_all(&message).await.unwrap();
                        }
                    });
                }
            });
            let clients = Builder::new_current_thread().build().unwrap();
            let echoes: usize = clients.block_on(async {
                let tasks: Vec<_> = (0..CONNECTIONS)
                    .map(|_| {
                        rt::spawn(async move {
                            let mut stream = TcpStream::connect(addr).await.unwrap();
                            let end = Instant::now() + TIME;
                            let mut echoes = 0;
                            while Instant::now() < end {
                                stream.write_all(&[1; 64]).await.unwrap();
                                stream.read_exact(&mut [0; 64]).await.unwrap();
                                echoes += 1;
                            }
                            echoes
                        })
                    })
                    .collect();
                let mut echoes = 0;
                for task in tasks {
                    echoes += task.await.unwrap();
                }
                echoes
            });
            drop(crowd);
            let metrics = runtime.metrics();
            assert!(echoes >= CONNECTIONS, "{echoes} echoes: nothing to see");
            assert!(
                metrics.hand_offs <= TIME.as_secs(),
                "{} hand-offs in {TIME:?}, {echoes} echoes",
                metrics.hand_offs
            );
        }
    });
}
