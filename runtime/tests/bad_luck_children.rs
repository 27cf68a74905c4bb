//! Bad luck that ends in a word on standard error, in an exit code, or in an overflow of the stack: each part runs in a
//! child process, which is this binary once more.
#![cfg(unix)]

use std::future::pending;
use std::process::{Command, Output, Stdio, exit};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rt::runtime::{Builder, Runtime, UnhandledPanic};
use rt::time::sleep;

const PART: &str = "RT_TEST_CHILD_PART";
const MS: Duration = Duration::from_millis(1);
/// How long the end of a runtime waits for what never ends; the rest of it has to be gone by then on any machine.
const GRACE: Duration = Duration::from_secs(3);

/// Plays a part in a child process, with more variables if wanted; kills it after a minute.
fn play(part: &str, variables: &[(&str, &str)]) -> (Output, Duration) {
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .env_remove("RT_WORKER_THREADS")
        .env("RUST_BACKTRACE", "0")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = rustix::process::Pid::from_child(&child);
    let (ended, end) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if end.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    });
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).map(|_| all).unwrap()
        })
    };
    let (stdout, stderr) = (read(Box::new(out)), read(Box::new(err)));
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    let status = child.wait().unwrap();
    drop(ended);
    watch.join().unwrap();
    (
        Output {
            status,
            stdout,
            stderr,
        },
        start.elapsed(),
    )
}

/// What the runtime, and not the panic hook, wrote.
fn reports(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.starts_with("rt: "))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn played(part: &str) -> Vec<String> {
    let (output, _) = play(part, &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{part}: {}\n{text}", output.status);
    reports(&output)
}

#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    match part.as_str() {
        "report-detached" => report_detached(),
        "report-kept" => report_kept(false),
        "report-at-shutdown" => report_kept(true),
        "retrieved" => retrieved(),
        "ignore" => ignore(),
        "destructor" => destructor(),
        "left-closure" => left_closure(),
        "left-task" => left_task(),
        "inner-runtime" => inner_runtime(),
        "hook-spam" => hook_spam(),
        "workers" => workers_from_environment(),
        "secret" => secret(),
        #[cfg(target_os = "linux")]
        "thread-limit" => thread_limit(),
        part => {
            let (kind, size) = part.split_once(' ').unwrap();
            large(kind, size.parse().unwrap());
        }
    }
    exit(0);
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .name("unlucky")
        .build()
        .unwrap()
}

/// On a clock that moves when nothing else does: the grace of a panic, 1 s, takes no time and is exact.
fn paused() -> Runtime {
    Builder::new_current_thread()
        .start_paused(true)
        .name("unlucky")
        .build()
        .unwrap()
}

fn report_detached() {
    let runtime = runtime();
    let (begun, begins) = mpsc::channel();
    runtime.block_on(async {
        let named = rt::task::Builder::new().name("worker bee");
        let task = named.spawn(async move {
            begun.send(()).unwrap();
            panic!("out of honey")
        });
        drop(task.unwrap());
    });
    // What has begun is polled to its end, and reported, before the runtime is gone.
    begins.recv().unwrap();
    drop(runtime);
}

/// Name, place and message, once.
#[test]
fn a_detached_task_that_panics_is_reported_once() {
    let reports = played("report-detached");
    assert_eq!(reports.len(), 1, "{reports:?}");
    for word in [
        "'unlucky'",
        "'worker bee'",
        "bad_luck_children.rs:",
        "out of honey",
    ] {
        assert!(
            reports[0].contains(word),
            "{:?} does not say {word}",
            reports[0]
        );
    }
}

fn report_kept(short: bool) {
    if short {
        let runtime = runtime();
        let (begun, begins) = mpsc::channel();
        let _kept = runtime.spawn(async move {
            begun.send(()).unwrap();
            panic!("kept")
        });
        begins.recv().unwrap();
        drop(runtime);
    } else {
        let runtime = paused();
        let task = runtime.spawn(async { panic!("kept") });
        runtime.block_on(sleep(1500 * MS));
        // Reported by now: neither its drop nor the end says it again.
        drop(task);
    }
}

#[test]
fn a_kept_handle_does_not_silence_the_report() {
    for part in ["report-kept", "report-at-shutdown"] {
        let reports = played(part);
        assert!(
            reports.len() == 1 && reports[0].contains("kept"),
            "{part}: {reports:?}"
        );
    }
}

fn retrieved() {
    runtime().block_on(async {
        assert!(rt::spawn(async { panic!("heard") }).await.is_err());
        assert!(rt::spawn_blocking(|| panic!("heard too")).await.is_err());
    });
    // The one that is awaited after a while, within the grace.
    paused().block_on(async {
        let late = rt::spawn(async { panic!("heard later") });
        sleep(900 * MS).await;
        assert!(late.is_finished() && late.await.is_err());
        sleep(1200 * MS).await;
    });
}

#[test]
fn a_retrieved_panic_is_not_reported() {
    assert_eq!(played("retrieved"), Vec::<String>::new());
}

fn ignore() {
    let mut builder = Builder::new_current_thread();
    let runtime = builder
        .start_paused(true)
        .unhandled_panic(UnhandledPanic::Ignore)
        .build()
        .unwrap();
    drop(runtime.spawn(async { panic!("who cares") }));
    let kept = runtime.spawn(async { panic!("who cares") });
    runtime.block_on(sleep(1200 * MS));
    assert!(kept.is_finished());
    drop(kept);
}

#[test]
fn ignored_panics_are_not_reported() {
    assert_eq!(played("ignore"), Vec::<String>::new());
}

fn destructor() {
    #[derive(Debug)]
    struct Panics(mpsc::Sender<()>);
    impl Drop for Panics {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            panic!("in a destructor");
        }
    }
    let runtime = runtime();
    let (dropped, drops) = mpsc::channel();
    for n in 0..2 {
        let value = Panics(dropped.clone());
        let task = runtime.spawn(async move {
            if n == 0 {
                return Some(value);
            }
            pending::<()>().await;
            Some(value)
        });
        if n == 0 {
            drop(task);
        } else {
            task.abort();
            assert!(runtime.block_on(task).unwrap_err().is_aborted());
        }
    }
    drops.recv().unwrap();
    drops.recv().unwrap();
    drop(runtime);
}

#[test]
fn a_destructor_that_panics_is_reported() {
    let reports = played("destructor");
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(
        reports
            .iter()
            .all(|line| line.contains("in a destructor") && line.contains("bad_luck_children.rs:"))
    );
}

fn left_closure() {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(1)
        .name("unlucky")
        .shutdown_grace(GRACE)
        .build()
        .unwrap();
    let (started, begun) = mpsc::channel();
    drop(runtime.spawn_blocking(move || {
        started.send(()).unwrap();
        thread::sleep(Duration::from_secs(3600));
    }));
    begun.recv().unwrap();
    drop(runtime);
}

/// B1: the end comes after the grace, and says which closure still runs.
#[test]
fn b1_a_closure_that_is_left_behind_is_named() {
    let reports = played("left-closure");
    assert_eq!(reports.len(), 1, "{reports:?}");
    for word in ["'unlucky'", "bad_luck_children.rs:", "closure"] {
        assert!(
            reports[0].contains(word),
            "{:?} does not say {word}",
            reports[0]
        );
    }
}

fn left_task() {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(1)
        .name("unlucky")
        .shutdown_grace(GRACE)
        .build()
        .unwrap();
    let (started, begun) = mpsc::channel();
    drop(runtime.spawn(async move {
        started.send(()).unwrap();
        thread::sleep(Duration::from_secs(3600));
    }));
    begun.recv().unwrap();
    drop(runtime);
}

#[test]
fn a_task_that_holds_a_worker_for_ever_does_not_hold_up_the_end() {
    let reports = played("left-task");
    assert!(
        reports.len() == 1 && reports[0].contains("'unlucky'"),
        "{reports:?}"
    );
}

fn inner_runtime() {
    let outcome: Result<(), String> = runtime().block_on(async {
        let _inner = runtime();
        let _other = Builder::new_current_thread().build().unwrap();
        sleep(MS).await;
        Err("the real error".to_owned())
    });
    if let Err(error) = outcome {
        eprintln!("{error}");
        exit(42);
    }
}

/// B2: the exit code and the text are those of the real error.
#[test]
fn b2_an_inner_runtime_does_not_bury_the_real_error() {
    let (output, _) = play("inner-runtime", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(42), "{text}");
    assert!(
        text.contains("the real error") && !text.contains("panicked"),
        "{text}"
    );
}

fn hook_spam() {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(2)
        .on_thread_start(|| panic!("a hook"))
        .build()
        .unwrap();
    runtime.block_on(async {
        rt::spawn(sleep(MS)).await.unwrap();
        rt::spawn_blocking(|| ()).await.unwrap();
    });
}

/// A start hook that panics on each thread leaves a runtime that works, and ends.
#[test]
fn a_start_hook_that_panics_costs_no_worker() {
    played("hook-spam");
}

fn workers_from_environment() {
    match Runtime::new() {
        Ok(runtime) => println!("workers: {}", runtime.metrics().num_workers),
        Err(error) => println!("error: {error}"),
    }
}

#[test]
fn the_worker_count_of_the_environment_is_checked() {
    for value in [
        "0",
        "",
        "many",
        "-1",
        "1000000000",
        "2.5",
        "99999999999999999999",
        "0x4",
        "\u{fe}",
    ] {
        let (output, _) = play("workers", &[("RT_WORKER_THREADS", value)]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(
            text.contains("error: RT_WORKER_THREADS is") && text.contains("between 1 and"),
            "{value}: {text}"
        );
    }
    for (value, workers) in [("3", "workers: 3\n"), (" 1 ", "workers: 1\n")] {
        let (output, _) = play("workers", &[("RT_WORKER_THREADS", value)]);
        assert!(String::from_utf8_lossy(&output.stdout).contains(workers));
    }
    // The current-thread flavour does not ask for it, and a builder that was told a number neither.
    let (output, _) = play("report-detached", &[("RT_WORKER_THREADS", "nonsense")]);
    assert!(output.status.success());
}

fn secret() {
    #[derive(Debug)]
    struct Secret(#[expect(dead_code, reason = "for its Debug")] &'static str);
    let runtime = paused();
    drop(runtime.spawn(async { std::panic::panic_any(Secret("hunter2")) }));
    let kept = runtime.spawn(async {
        let secret = Secret("hunter2");
        sleep(MS).await;
        let _secret = secret;
        std::panic::panic_any(Secret("hunter2"));
    });
    runtime.block_on(sleep(50 * MS));
    assert!(kept.is_finished());
    drop(kept);
}

/// G4: a payload is never printed.
#[test]
fn g4_reports_do_not_print_payloads() {
    let (output, _) = play("secret", &[]);
    assert_eq!(reports(&output).len(), 2);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hunter2"));
}

/// Lets the process start no thread more, or as many as it likes.
#[cfg(target_os = "linux")]
fn limit_threads(limited: bool) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nproc).maximum;
    let current = if limited { Some(1) } else { maximum };
    setrlimit(Resource::Nproc, Rlimit { current, maximum }).unwrap();
}

/// Two seconds are asked for, and what they take on a machine that is busy elsewhere.
#[cfg(target_os = "linux")]
fn within<F: Future>(future: F) -> rt::time::Timeout<F> {
    rt::time::timeout(Duration::from_secs(20), future)
}

#[cfg(target_os = "linux")]
fn thread_limit() {
    use rustix::process::{Uid, getuid};
    if getuid().is_root() {
        // No limit binds root: this thread, and those that it and they start, become somebody else's.
        rustix::thread::set_thread_uid(Uid::from_raw(64_951)).unwrap();
    }
    for runtime in [
        runtime(),
        Builder::new_current_thread()
            .name("unlucky")
            .build()
            .unwrap(),
    ] {
        let flavor = runtime.handle().runtime_flavor();
        runtime.block_on(async { rt::spawn(sleep(MS)).await.unwrap() });
        limit_threads(true);
        assert!(thread::Builder::new().spawn(|| ()).is_err());
        // From the root future, from a task, and for a name: an error, after a while in which a thread might end.
        runtime.block_on(async {
            let closure = rt::spawn_blocking(|| ());
            let task = rt::spawn(async { rt::spawn_blocking(|| ()).await });
            let named = rt::spawn(async { rt::net::lookup_host("localhost:80").await.map(drop) });
            for result in [
                within(closure).await.unwrap(),
                within(task).await.unwrap().unwrap(),
            ] {
                let error = result.unwrap_err();
                assert!(error.is_out_of_threads(), "{flavor:?}: {error}");
            }
            assert!(within(named).await.unwrap().unwrap().is_err());
        });
        // A task that blocks in place finds no stand-in, and goes on.
        if flavor == rt::runtime::RuntimeFlavor::MultiThread {
            let task = runtime.spawn(async {
                rt::block_in_place(|| ());
                rt::bridge(async {
                    sleep(MS).await;
                    5
                })
            });
            assert_eq!(runtime.block_on(task).unwrap(), 5);
        }
        assert!(
            Builder::new_multi_thread()
                .worker_threads(2)
                .build()
                .is_err()
        );
        // Threads are to be had again, and then one of the pool is there and no other: all closures run.
        limit_threads(false);
        runtime.block_on(async {
            within(rt::spawn_blocking(|| ())).await.unwrap().unwrap();
            limit_threads(true);
            let closures: Vec<_> = (0..20)
                .map(|_| rt::spawn_blocking(|| thread::sleep(MS)))
                .collect();
            for closure in closures {
                within(closure).await.unwrap().unwrap();
            }
            limit_threads(false);
        });
        drop(runtime);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn f1_a_thread_limit_is_an_error_for_who_needs_a_thread() {
    assert_eq!(played("thread-limit"), Vec::<String>::new());
}

/// A future of `N` bytes that was never on the stack as a whole, if the optimiser is kind; else once or twice.
struct Large<const N: usize>([u8; N]);

impl<const N: usize> std::future::Future for Large<N> {
    type Output = usize;
    fn poll(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<usize> {
        std::task::Poll::Ready(self.0.iter().map(|byte| usize::from(*byte)).sum())
    }
}

/// Runs on a thread with a stack of `stack` bytes.
fn large(kind: &str, stack: usize) {
    const KB: usize = 1024;
    let kind = kind.to_owned();
    let body = move || {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_stack_size(128 * KB)
            .build()
            .unwrap();
        match kind.as_str() {
            "spawn" => {
                let task = runtime.spawn(Large([1; MB]));
                assert_eq!(runtime.block_on(task).unwrap(), MB);
            }
            "block_on" => assert_eq!(runtime.block_on(Large([1; MB])), MB),
            "baseline" => {
                // The future, made and boxed, and nothing of ours.
                let future = Box::pin(Large([1; MB]));
                assert_eq!(futures_lite::future::block_on(future), MB);
            }
            kind => panic!("no part {kind:?}"),
        }
    };
    thread::Builder::new()
        .stack_size(stack)
        .spawn(body)
        .unwrap()
        .join()
        .unwrap();
}

const MB: usize = 1 << 20;

/// How many times a megabyte of stack a part needs: the least number with which it ends well.
fn megabytes(kind: &str) -> usize {
    (1..16)
        .find(|megabytes| {
            let (output, _) = play(&format!("{kind} {}", megabytes * MB + 400_000), &[]);
            output.status.success()
        })
        .unwrap_or(usize::MAX)
}

/// A future of a megabyte goes through `spawn` and is polled by a worker whose stack is an eighth of that.
#[test]
fn a_very_large_future_is_spawned_and_polled_on_small_stacks() {
    let (baseline, spawn, block_on) = (
        megabytes("baseline"),
        megabytes("spawn"),
        megabytes("block_on"),
    );
    eprintln!(
        "a future of 1 MB: stacks of {baseline} MB without us, {spawn} in spawn, {block_on} in block_on"
    );
    // Without optimisation each function that passes a value on has a copy of it.
    let room = if cfg!(debug_assertions) { 3 } else { 1 };
    assert!(spawn <= baseline + room, "{spawn} against {baseline}");
    assert!(
        block_on <= baseline + room + 1,
        "{block_on} against {baseline}"
    );
}
