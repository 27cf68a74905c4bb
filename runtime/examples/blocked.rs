//! What do neighbours notice of tasks that block their threads? 50 connections echo and 50 tasks tick each 10 ms, while a
//! task computes, sleeps in `std::thread::sleep`, waits for a `std::sync::Mutex`, while every worker is blocked at once, and
//! while `block_on` is. The same for tokio: `cargo bench -p rt-benches -- stall`.
//!
//! `cargo run --release --example blocked [seconds of each scenario]`

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::TcpListener;
use rt::runtime::{Builder, Runtime};
use rt::time::sleep;

const WORKERS: usize = 2;
const CONNECTIONS: usize = 50;
const TICKERS: usize = 50;
const TICK: Duration = Duration::from_millis(10);
const PAUSE: Duration = Duration::from_millis(2);
const HALF: Duration = Duration::from_millis(50);
const SECOND: Duration = Duration::from_secs(1);

type Times = Arc<Mutex<Vec<Duration>>>;

#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    Spin,
    Sleep,
    Lock,
    All,
    Root,
}

fn main() -> std::io::Result<()> {
    let seconds = match std::env::args().nth(1).map(|seconds| seconds.parse()) {
        None => 4,
        Some(Ok(seconds)) if seconds > 0 => seconds,
        Some(_) => {
            eprintln!("usage: blocked [seconds of each scenario, at least 1]");
            std::process::exit(2);
        }
    };
    println!("{WORKERS} workers; times in ms");
    println!(
        "{:<44} {:>7} {:>7} {:>7} {:>9} {:>9}",
        "scenario", "p50", "p99", "p99.9", "tick p99", "hand-offs"
    );
    for (name, trouble) in [
        ("nothing blocks", Trouble::Nothing),
        ("a task computes 50 of 100 ms", Trouble::Spin),
        ("a task sleeps 50 of 100 ms, thread::sleep", Trouble::Sleep),
        ("a task waits for a std mutex, 50 of 100 ms", Trouble::Lock),
        ("every worker sleeps 1 of 2 s", Trouble::All),
        ("block_on sleeps 50 of 100 ms", Trouble::Root),
    ] {
        scenario(name, trouble, Duration::from_secs(seconds))?;
    }
    Ok(())
}

fn scenario(name: &str, trouble: Trouble, span: Duration) -> std::io::Result<()> {
    // The reports of debug mode would come between the lines of the table.
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .debug(false)
        .build()?;
    let (echoes, late) = (Times::default(), Times::default());
    let over = Arc::new(AtomicBool::new(false));
    let addr = serve(&runtime)?;
    tick(&runtime, &late);
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| client(addr, &over, &echoes));
        }
        block(&runtime, trouble);
        if trouble == Trouble::Root {
            runtime.block_on(async {
                let end = Instant::now() + span;
                while Instant::now() < end {
                    thread::sleep(HALF);
                    sleep(HALF).await;
                }
            });
        } else {
            thread::sleep(span);
        }
        over.store(true, Relaxed);
    });
    let [p50, p99, p999] = [500, 990, 999].map(|share| quantile(&echoes, share));
    println!(
        "{name:<44} {p50:>7.2} {p99:>7.2} {p999:>7.2} {:>9.2} {:>9}",
        quantile(&late, 990),
        runtime.metrics().hand_offs
    );
    runtime.shutdown_background();
    Ok(())
}

/// Echoes on every connection.
fn serve(runtime: &Runtime) -> std::io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    runtime.spawn(async move {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            rt::spawn(async move {
                let mut message = [0; 64];
                while stream.read_exact(&mut message).await.is_ok()
                    && stream.write_all(&message).await.is_ok()
                {}
            });
        }
        #[expect(unreachable_code, reason = "names the error")]
        std::io::Result::Ok(())
    });
    Ok(addr)
}

/// Sends a message, waits for it, pauses, until told to stop.
fn client(addr: SocketAddr, over: &AtomicBool, echoes: &Times) {
    let mut stream = std::net::TcpStream::connect(addr).expect("the server listens");
    stream.set_nodelay(true).expect("an open socket");
    let mut message = [7; 64];
    let mut times = Vec::new();
    while !over.load(Relaxed) {
        let start = Instant::now();
        stream.write_all(&message).expect("the server reads");
        stream.read_exact(&mut message).expect("the server echoes");
        times.push(start.elapsed());
        thread::sleep(PAUSE);
    }
    echoes.lock().expect("nobody panics with it").extend(times);
}

fn tick(runtime: &Runtime, late: &Times) {
    for _ in 0..TICKERS {
        let late = late.clone();
        runtime.spawn(async move {
            loop {
                let due = Instant::now() + TICK;
                sleep(TICK).await;
                let by = Instant::now().saturating_duration_since(due);
                late.lock().expect("nobody panics with it").push(by);
            }
        });
    }
}

fn block(runtime: &Runtime, trouble: Trouble) {
    match trouble {
        Trouble::Nothing | Trouble::Root => {}
        Trouble::Spin => again(runtime, HALF, || {
            let end = Instant::now() + HALF;
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        }),
        Trouble::Sleep => again(runtime, HALF, || thread::sleep(HALF)),
        Trouble::Lock => {
            let lock = Arc::new(Mutex::new(()));
            let (held, holds) = (lock.clone(), mpsc::channel());
            thread::spawn(move || {
                loop {
                    let guard = held.lock();
                    let _ = holds.0.send(());
                    thread::sleep(HALF);
                    drop(guard);
                    thread::sleep(HALF);
                }
            });
            let _ = holds.1.recv();
            again(runtime, Duration::from_millis(5), move || drop(lock.lock()));
        }
        Trouble::All => {
            for _ in 0..WORKERS {
                again(runtime, SECOND, || thread::sleep(SECOND));
            }
        }
    }
}

/// A task that blocks and pauses by turns.
fn again(runtime: &Runtime, pause: Duration, block: impl Fn() + Send + 'static) {
    runtime.spawn(async move {
        loop {
            sleep(pause).await;
            block();
        }
    });
}

/// The time in ms that so many of a thousand do not exceed.
fn quantile(times: &Times, share: usize) -> f64 {
    let mut times = times.lock().expect("nobody panics with it").clone();
    times.sort_unstable();
    let place = times.len().saturating_sub(1) * share / 1000;
    times.get(place).map_or(f64::NAN, Duration::as_secs_f64) * 1e3
}
