//! An idle runtime does nothing (A13): a binary with one test, since it counts what all threads of the process do.
#![cfg(target_os = "linux")]

use std::fs;
use std::process;
use std::thread;
use std::time::Duration;

use rt::net::UdpSocket;
use rt::runtime::Builder;
use rt::time::{interval, sleep};

const MS: Duration = Duration::from_millis(1);

/// What the threads whose names begin so have done, by the kernel's count.
#[derive(Clone, Copy, Default)]
struct Counts {
    /// How often they have gone to sleep.
    sleeps: u64,
    /// How long they were kept off a core although they were awake.
    delayed: Duration,
}

impl Counts {
    fn of(prefix: &str) -> Counts {
        let mut sum = Counts::default();
        for task in fs::read_dir("/proc/self/task").unwrap() {
            let path = task.unwrap().path();
            // A thread may end meanwhile.
            let Ok(name) = fs::read_to_string(path.join("comm")) else {
                continue;
            };
            let Ok(status) = fs::read_to_string(path.join("status")) else {
                continue;
            };
            if !name.starts_with(prefix) {
                continue;
            }
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
                .unwrap();
            sum.sleeps += line.trim().parse::<u64>().unwrap();
            // Not on every kernel. Time on a core, time in wait for one, both in ns.
            if let Ok(times) = fs::read_to_string(path.join("schedstat")) {
                let delayed = times.split(' ').nth(1).unwrap();
                sum.delayed += Duration::from_nanos(delayed.parse().unwrap());
            }
        }
        sum
    }

    fn since(self, before: &Counts) -> Counts {
        Counts {
            sleeps: self.sleeps - before.sleeps,
            delayed: self.delayed - before.delayed,
        }
    }
}

#[test]
fn a13_an_idle_runtime_sleeps() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(60));
        eprintln!("the test of an idle runtime did not end within 60 seconds");
        process::abort();
    });
    let runtime = Builder::new_multi_thread()
        .worker_threads(8)
        .build()
        .unwrap();
    // Sockets and timers that wait, on workers and on the seat of this thread.
    let mut waits = None;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..50u64)
            .map(|n| {
                rt::spawn(async move {
                    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                    let _ = rt::time::timeout(Duration::from_secs(3600 + n), socket.recv(&mut [0]))
                        .await;
                })
            })
            .collect();
        drop(tasks);
        sleep(20 * MS).await;
        let mut socket = Box::pin(async {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.recv(&mut [0]).await
        });
        assert!(
            futures_lite::future::poll_once(socket.as_mut())
                .await
                .is_none()
        );
        waits = Some(socket);
    });
    // Until stand-ins have taken over and the monitor sleeps.
    let settled = |limit: u64| {
        let before = Counts::of("rt-");
        thread::sleep(500 * MS);
        let during = Counts::of("rt-").since(&before).sleeps;
        (during <= limit).then_some(during).ok_or(during)
    };
    let mut attempts = 0;
    while let Err(during) = settled(0) {
        attempts += 1;
        assert!(
            attempts < 20,
            "{during} wake-ups in half a second of idleness"
        );
    }
    let unparks = runtime.metrics().unparks;
    thread::sleep(1000 * MS);
    assert_eq!(runtime.metrics().unparks, unparks);

    // With a ticker: one worker wakes for each tick, and the monitor for a moment.
    let ticker = runtime.spawn(async {
        let mut ticks = interval(250 * MS);
        loop {
            ticks.tick().await;
        }
    });
    thread::sleep(300 * MS);
    let before = ["rt-worker", "rt-monitor"].map(Counts::of);
    thread::sleep(1000 * MS);
    let now = ["rt-worker", "rt-monitor"].map(Counts::of);
    let [worker, monitor] = [0, 1].map(|n| now[n].since(&before[n]));
    // Four ticks or five, and a sleep before and after each.
    assert!(
        worker.sleeps <= 2 * 5 + 2,
        "{} sleeps of workers in a second with four ticks",
        worker.sleeps
    );
    // Woken by each tick, it looks once more 8 ms later; and as often as fits into the time in which a worker was awake, but
    // kept off its core, with half a dozen looks after each.
    let delayed = worker.delayed.as_millis();
    assert!(
        u128::from(monitor.sleeps) <= if delayed == 0 { 5 * 3 } else { 5 * 8 + delayed },
        "{} sleeps of the monitor in a second with four ticks, workers delayed by {:?}",
        monitor.sleeps,
        worker.delayed
    );
    ticker.abort();
    drop(waits);
}
