//! Something to look into: `cargo run --release --features cli --example inside`, and beside it `rt ps PID`, `rt tree PID`,
//! `rt top PID` and `rt metrics PID`.
//!
//! A crawler that crawls nothing: a group of fetchers, a ticker, a task that awaits another, one that waits for a message
//! that never comes. On the line `block` every worker blocks until the next line. It ends with its standard input.

use std::future::pending;
use std::io::stdin;
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use rt::runtime::Builder;
use rt::task::TaskGroup;
use rt::time::{interval, sleep};

const WORKERS: usize = 2;

fn main() -> std::io::Result<()> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .name("crawler")
        .max_spare_threads(0)
        .build()?;
    runtime.block_on(start())?;
    println!("process {}", std::process::id());
    while let Some(line) = next_line() {
        if line == "block" {
            block(&runtime);
        }
    }
    Ok(())
}

/// The next line of the standard input, until that ends.
fn next_line() -> Option<String> {
    let mut line = String::new();
    let read = stdin().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

fn task(name: &str) -> rt::task::Builder<'_> {
    rt::task::Builder::new().name(name)
}

async fn start() -> std::io::Result<()> {
    task("ticker").spawn(async {
        let mut ticks = interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
        }
    })?;
    task("fetchers").spawn(TaskGroup::<std::io::Error>::scope(async |group| {
        for n in 0..3 {
            group
                .build_task()
                .name(&format!("fetcher {n}"))
                .spawn(async {
                    loop {
                        sleep(Duration::from_millis(5)).await;
                    }
                });
        }
    }))?;
    task("parent").spawn(async {
        let child = rt::task::Builder::new()
            .name("child")
            .spawn(pending::<()>())?;
        let _ = child.await;
        Ok::<_, std::io::Error>(())
    })?;
    let (keeper, receiver) = rt::sync::oneshot::channel::<()>();
    task("patient").spawn(async move {
        let _keeper = keeper;
        let _ = receiver.await;
    })?;
    Ok(())
}

/// Blocks every worker until the next line comes, and says so.
fn block(runtime: &rt::runtime::Runtime) {
    let all = Arc::new(Barrier::new(WORKERS + 1));
    let release: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            let all = Arc::clone(&all);
            runtime.spawn(async move {
                all.wait();
                let _ = released.recv();
            });
            release
        })
        .collect();
    all.wait();
    println!("blocked");
    next_line();
    drop(release);
    println!("released");
}
