//! Deadlocks of `block_on`: reported, and not reported. What is certain depends on the threads of the process, so each part
//! is played by a process that has none but those of its runtime, and the tests run without a harness.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, ReportKind, Runtime};
use rt::sync::{Mutex, oneshot};

/// How a part ends in which a deadlock was reported.
const REPORTED: i32 = 3;
/// And one whose future ended.
const ENDED: i32 = 4;

/// Longer than it takes until a deadlock is reported.
const LONG: Duration = Duration::from_millis(2_500);

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some(part) if part.starts_with("part:") => play(&part["part:".len()..]),
        // Asked by tools that look for tests.
        Some("--list") => {}
        _ => test_all(),
    }
}

fn test_all() {
    // Without `/proc` nothing is certain, and nothing reported.
    if cfg!(target_os = "linux") {
        for (part, kind, others, tasks) in [
            (
                "kept-sender",
                "Oneshot",
                "; one task waits",
                &["# spawned at HERE waits in Oneshot at HERE"][..],
            ),
            ("lock-twice", "Lock", "", &[]),
            ("lock-twice-current-thread", "Lock", "", &[]),
            (
                "joins",
                "Join",
                "; # tasks wait",
                &[
                    "# 'left' spawned at HERE waits in Join at HERE",
                    "# 'right' spawned at HERE waits in Join at HERE",
                    "# spawned at HERE",
                ],
            ),
            (
                "below-another-block-on",
                "Oneshot",
                "; one task waits",
                &["# spawned at HERE waits in Oneshot at HERE"],
            ),
        ] {
            let (code, text) = run(part);
            assert_eq!(code, Some(REPORTED), "{part}: {text}");
            let place = "runtime/tests/debug_deadlock.rs:#:#";
            let mut expected = format!(
                "runtime 'stuck': the future of block_on at {place} waits in {kind} at {place}, and nothing can wake it: no \
                 timer runs, no socket is registered, no closure runs, and the process has no other thread{others}\n"
            );
            for task in tasks {
                expected += &format!("  task {}\n", task.replace("HERE", place));
            }
            let sorted = |text: &str| {
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                // Tasks are told in the order of their seats.
                lines[1..].sort();
                lines
            };
            assert_eq!(sorted(&without_numbers(&text)), sorted(&expected), "{part}");
            println!("{part}: {text}");
        }
    }
    for part in [
        "timer",
        "other-thread",
        "closure",
        "socket",
        "thread-that-may-spawn",
        "busy-task",
        "closure-in-place",
        "other-thread-of-a-bridge",
        "other-thread-below-another-block-on",
    ] {
        let (code, text) = run(part);
        assert_eq!(code, Some(ENDED), "{part}: {text}");
        println!("{part}: no report");
    }
    for part in ["pending", "off"] {
        let mut child = start(part);
        std::thread::sleep(LONG);
        assert_eq!(child.try_wait().unwrap(), None, "{part}: it has ended");
        child.kill().unwrap();
        child.wait().unwrap();
        println!("{part}: no report");
    }
}

/// The text with `#` for each number.
fn without_numbers(text: &str) -> String {
    let mut masked = String::new();
    for char in text.chars() {
        if !char.is_ascii_digit() {
            masked.push(char);
        } else if !masked.ends_with('#') {
            masked.push('#');
        }
    }
    masked
}

fn start(part: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg(format!("part:{part}"))
        .env_remove("RT_DEBUG")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Plays a part to its end; what it has printed.
fn run(part: &str) -> (Option<i32>, String) {
    let mut child = start(part);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    if part == "socket" {
        // It waits for somebody to connect.
        out.read_line(&mut text).unwrap();
        std::thread::sleep(LONG);
        std::net::TcpStream::connect(text.trim()).unwrap();
    }
    let until = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{part} did not end within 60 seconds");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    out.read_to_string(&mut text).unwrap();
    (status.code(), text)
}

fn build(mut builder: Builder, debug: bool) -> Runtime {
    builder
        .worker_threads(2)
        .name("stuck")
        .debug(debug)
        .on_report(|report| {
            println!("{report}");
            if report.kind() == ReportKind::Deadlock {
                std::process::exit(REPORTED);
            }
        });
    builder.build().unwrap()
}

async fn kept_sender() {
    let (inner, kept) = oneshot::channel::<()>();
    let (sender, receiver) = oneshot::channel::<()>();
    let _task = rt::spawn(async move {
        kept.await.unwrap();
        sender.send(()).unwrap();
    });
    receiver.await.unwrap();
    drop(inner);
}

async fn sent_by_a_thread(sender: oneshot::Sender<()>) {
    let (later, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(LONG);
        later.send(()).unwrap();
    });
    receiver.await.unwrap();
    sender.send(()).unwrap();
}

async fn lock_twice() {
    let lock = Mutex::new(());
    let _first = lock.lock().await;
    let _second = lock.lock().await;
}

/// Two tasks that await each other.
async fn joins() {
    let (to_left, right) = oneshot::channel::<rt::task::JoinHandle<()>>();
    let left = rt::task::Builder::new().name("left").spawn(async move {
        right.await.unwrap().await.unwrap();
    });
    let left = left.unwrap();
    let (to_main, left_is_awaited) = oneshot::channel::<()>();
    let right = rt::task::Builder::new().name("right").spawn(async move {
        to_main.send(()).unwrap();
        left.await.unwrap();
    });
    left_is_awaited.await.unwrap();
    let _ = to_left.send(right.unwrap());
    // And one that waits for nothing that is known.
    rt::spawn(std::future::pending::<()>()).await.unwrap();
}

fn play(part: &str) {
    let multi = Builder::new_multi_thread;
    match part {
        "kept-sender" => build(multi(), true).block_on(kept_sender()),
        "off" => build(multi(), false).block_on(kept_sender()),
        "lock-twice" => build(multi(), true).block_on(lock_twice()),
        "lock-twice-current-thread" => {
            build(Builder::new_current_thread(), true).block_on(lock_twice())
        }
        "joins" => build(multi(), true).block_on(joins()),
        "pending" => build(multi(), true).block_on(std::future::pending()),
        "timer" => build(multi(), true).block_on(async {
            let (sender, receiver) = oneshot::channel();
            rt::spawn(async move {
                rt::time::sleep(LONG).await;
                sender.send(()).unwrap();
            });
            receiver.await.unwrap();
        }),
        "other-thread" => build(multi(), true).block_on(async {
            let (sender, receiver) = oneshot::channel();
            std::thread::spawn(move || {
                std::thread::sleep(LONG);
                sender.send(()).unwrap();
            });
            receiver.await.unwrap();
        }),
        "thread-that-may-spawn" => {
            let runtime = build(Builder::new_current_thread(), true);
            let handle = runtime.handle().clone();
            let (sender, receiver) = oneshot::channel();
            std::thread::spawn(move || {
                std::thread::sleep(LONG);
                drop(handle.spawn(async move { sender.send(()).unwrap() }));
            });
            runtime.block_on(receiver).unwrap();
        }
        "closure" => build(multi(), true).block_on(async {
            let lock = Arc::new(Mutex::new(()));
            let guard = lock.clone().lock_owned().await;
            drop(rt::spawn_blocking(move || {
                std::thread::sleep(LONG);
                drop(guard);
            }));
            drop(lock.lock().await);
        }),
        "socket" => build(multi(), true).block_on(async {
            let listener = rt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            println!("{}", listener.local_addr().unwrap());
            let (sender, receiver) = oneshot::channel();
            rt::spawn(async move {
                listener.accept().await.unwrap();
                sender.send(()).unwrap();
            });
            receiver.await.unwrap();
        }),
        "busy-task" => build(multi(), true).block_on(async {
            let (sender, receiver) = oneshot::channel();
            rt::spawn(async move {
                let began = Instant::now();
                while began.elapsed() < LONG {
                    rt::task::yield_now().await;
                }
                sender.send(()).unwrap();
            });
            receiver.await.unwrap();
        }),
        "closure-in-place" => build(multi(), true).block_on(async {
            let (sender, receiver) = oneshot::channel();
            rt::spawn(async move {
                rt::task::block_in_place(|| std::thread::sleep(LONG));
                sender.send(()).unwrap();
            });
            receiver.await.unwrap();
        }),
        "other-thread-of-a-bridge" => build(multi(), true).block_on(async {
            let (sender, receiver) = oneshot::channel();
            rt::spawn(async move { rt::bridge(sent_by_a_thread(sender)) });
            receiver.await.unwrap();
        }),
        "other-thread-below-another-block-on" => build(multi(), true).block_on(async {
            let (sender, receiver) = oneshot::channel();
            rt::bridge(sent_by_a_thread(sender));
            receiver.await.unwrap();
        }),
        "below-another-block-on" => build(multi(), true).block_on(async {
            rt::bridge(kept_sender());
        }),
        _ => panic!("no part {part}"),
    }
    std::process::exit(ENDED);
}
