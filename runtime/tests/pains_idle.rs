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

/// How often the threads of a runtime whose names begin so have gone to sleep, by the kernel's count.
fn switches(prefix: &str) -> u64 {
    let mut sum = 0;
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
            .find(|line| line.starts_with("voluntary_ctxt_switches"))
            .unwrap();
        sum += line
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap();
    }
    sum
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
        let before = switches("rt-");
        thread::sleep(500 * MS);
        let during = switches("rt-") - before;
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
    let before = switches("rt-worker");
    thread::sleep(1000 * MS);
    let during = switches("rt-worker") - before;
    // Four ticks, and room for a few more sleeps around each. The monitor is not counted: it looks around every 2 ms for
    // as long as a worker is awake, and on a loaded machine that is also while the kernel keeps the worker off its core.
    assert!(
        during <= 40,
        "{during} wake-ups of workers in a second with four ticks"
    );
    ticker.abort();
    drop(waits);
}
