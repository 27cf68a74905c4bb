//! Reports of polls that take too long. A binary of its own: signals, and the thread for reports, belong to the process.

#[path = "debug/local_polls.rs"]
mod local_polls;
#[path = "debug/support.rs"]
mod support;

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rt::runtime::{Builder, Report, ReportKind};
use rt::task::WaitKind;

use self::support::{Reports, within_limit};

const STACKS: bool = cfg!(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
));

/// Longer than any poll that is not meant to be slow, on a machine that is busy with other things.
const PATIENT: Duration = Duration::from_secs(2);

#[track_caller]
fn assert_names(report: &Report, names: &[&str]) {
    if !STACKS {
        return;
    }
    for name in names {
        assert!(
            report.stack().iter().any(|line| line.contains(name)),
            "no `{name}` in:\n{report}"
        );
    }
}

#[inline(never)]
fn sleeps(stop: &AtomicBool) {
    while !stop.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(50));
    }
    black_box(());
}

#[inline(never)]
fn spins(stop: &AtomicBool) {
    let mut x = 1_u64;
    while !stop.load(SeqCst) {
        x = black_box(x.wrapping_mul(3));
    }
}

#[inline(never)]
fn locks(mutex: &Mutex<()>) {
    drop(mutex.lock().unwrap());
    black_box(());
}

#[inline(never)]
fn reads(mut stream: TcpStream) {
    stream.read_exact(&mut [0; 1]).unwrap();
    black_box(());
}

/// A blocked worker is reported while it is blocked, with all that is known, and at its end.
#[test]
fn a_slow_poll_is_reported_while_it_lasts_and_at_its_end() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).name("web").debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let spawned = line!() + 3;
        let _entered = runtime.enter();
        let builder = rt::task::Builder::new().name("reader");
        let task = builder.spawn(async move {
            rt::time::sleep(Duration::from_millis(1)).await;
            sleeps(&stopped);
        });
        let task = task.unwrap();
        let waited = spawned + 1;
        let report = reports.next(ReportKind::SlowPoll);
        // It still blocks: nobody has told it to stop.
        assert!(!task.is_finished());
        assert_eq!(report.runtime(), "web");
        let reported = report.task().unwrap();
        assert_eq!(reported.name(), Some("reader"));
        assert_eq!(reported.id(), Some(task.id()));
        assert_eq!(reported.spawned_at().line(), spawned, "{report}");
        let (kind, site) = reported.waits_for().unwrap();
        assert_eq!((kind, site.line()), (WaitKind::Sleep, waited));
        assert!(report.duration().unwrap() >= Duration::from_millis(100));
        assert_names(&report, &["sleep", "sleeps at", "debug_polls.rs"]);
        if STACKS {
            let last = report.stack().last().unwrap();
            assert!(
                last.ends_with("more of the runtime and its thread"),
                "{report}"
            );
            assert!(
                !report.stack().iter().any(|line| line.contains("rt::")),
                "{report}"
            );
        }
        let text = report.to_string();
        assert!(
            text.contains("'web': task") && text.contains("it waited last in Sleep at"),
            "{text}"
        );
        stop.store(true, SeqCst);
        let report = reports.next(ReportKind::SlowPollEnded);
        assert_eq!(report.task().unwrap().id(), Some(task.id()));
        assert!(report.duration().unwrap() >= Duration::from_millis(100));
        assert!(report.to_string().contains("that poll took"), "{report}");
        runtime.block_on(task).unwrap();
        // Once, however long it lasted.
        assert_eq!(reports.rest(Duration::from_millis(50)).len(), 0);
    });
}

#[test]
fn a_busy_loop_is_named() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        runtime.spawn(async move { spins(&stopped) });
        assert_names(&reports.next(ReportKind::SlowPoll), &["spins at"]);
        stop.store(true, SeqCst);
        reports.next(ReportKind::SlowPollEnded);
    });
}

#[test]
fn a_contended_mutex_is_named() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let mutex = Arc::new(Mutex::new(()));
        let (guard, locked) = (mutex.lock().unwrap(), mutex.clone());
        runtime.spawn(async move { locks(&locked) });
        assert_names(&reports.next(ReportKind::SlowPoll), &["locks at", "utex"]);
        drop(guard);
        reports.next(ReportKind::SlowPollEnded);
    });
}

#[test]
fn a_synchronous_read_is_named_and_goes_on() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let task = runtime.spawn(async move { reads(stream) });
        assert_names(&reports.next(ReportKind::SlowPoll), &["reads at", "recv"]);
        peer.write_all(&[1]).unwrap();
        // The signal did not make the read fail.
        runtime.block_on(task).unwrap();
        reports.next(ReportKind::SlowPollEnded);
    });
}

#[test]
fn the_future_of_block_on_counts_as_well() {
    for builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
        within_limit(move || {
            let mut builder = builder;
            builder.worker_threads(1).debug(true);
            let reports = Reports::of(&mut builder);
            let runtime = builder.build().unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = stop.clone();
            let called = line!() + 1;
            let blocked = std::thread::spawn(move || runtime.block_on(async { sleeps(&stopped) }));
            let report = reports.next(ReportKind::SlowPoll);
            let root = report.task().unwrap();
            assert_eq!(root.id(), None);
            assert_eq!(root.spawned_at().line(), called, "{report}");
            assert_names(&report, &["sleeps at"]);
            stop.store(true, SeqCst);
            reports.next(ReportKind::SlowPollEnded);
            blocked.join().unwrap();
        });
    }
}

#[test]
fn a_task_of_the_current_thread_flavour_is_reported_while_it_blocks() {
    within_limit(|| {
        let mut builder = Builder::new_current_thread();
        builder.debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = runtime.spawn(async move { spins(&stopped) });
        let blocked = std::thread::spawn(move || runtime.block_on(task).unwrap());
        assert_names(&reports.next(ReportKind::SlowPoll), &["spins at"]);
        stop.store(true, SeqCst);
        reports.next(ReportKind::SlowPollEnded);
        blocked.join().unwrap();
    });
}

#[test]
fn what_takes_half_as_long_is_silent() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .debug(true)
            .slow_poll_threshold(PATIENT);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..10)
                .map(|_| {
                    rt::spawn(async {
                        for _ in 0..3 {
                            std::thread::sleep(Duration::from_millis(50));
                            rt::task::yield_now().await;
                        }
                        // Many short ones in a row are not one long one.
                        for _ in 0..20_000 {
                            rt::task::yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            // Waiting is no poll.
            rt::time::sleep(Duration::from_millis(300)).await;
        });
        drop(runtime);
        let told = reports.rest(Duration::from_millis(1));
        assert!(told.is_empty(), "{told:?}");
    });
}

#[test]
fn what_blocks_on_purpose_is_silent() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .debug(true)
            .slow_poll_threshold(Duration::from_millis(200));
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let task = rt::spawn(async {
                rt::block_in_place(|| std::thread::sleep(Duration::from_millis(600)));
            });
            rt::spawn_blocking(|| std::thread::sleep(Duration::from_millis(600)))
                .await
                .unwrap();
            task.await.unwrap();
        });
        drop(runtime);
        let told = reports.rest(Duration::from_millis(1));
        assert!(told.is_empty(), "{told:?}");
    });
}

#[test]
fn nothing_is_told_with_debug_mode_off() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(false)
            .slow_poll_threshold(Duration::from_millis(10));
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let task = runtime.spawn(async { std::thread::sleep(Duration::from_millis(200)) });
        runtime.block_on(task).unwrap();
        drop(runtime);
        let told = reports.rest(Duration::from_millis(1));
        assert!(told.is_empty(), "{told:?}");
    });
}

#[test]
fn one_place_is_reported_a_few_times_and_the_rest_is_counted() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(true)
            .slow_poll_threshold(Duration::from_millis(1));
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let spawned = line!() + 1;
        let task = runtime.spawn(async {
            for _ in 0..40 {
                std::thread::sleep(Duration::from_millis(20));
                rt::task::yield_now().await;
            }
        });
        runtime.block_on(task).unwrap();
        drop(runtime);
        let told = reports.rest(Duration::from_millis(1));
        let slow = told
            .iter()
            .filter(|report| {
                report.kind() == ReportKind::SlowPoll && report.task().unwrap().id().is_some()
            })
            .count();
        assert_eq!(slow, 10, "{told:?}");
        // How many more there were is told at the end, once.
        let omitted: Vec<_> = told
            .iter()
            .filter(|report| {
                report.kind() == ReportKind::Omitted && report.site().unwrap().line() == spawned
            })
            .map(Report::missed)
            .collect();
        assert!(
            omitted.len() == 1 && (1..=30).contains(&omitted[0]),
            "{told:?}"
        );
    });
}

/// pains G4: what a future has captured is nobody's business.
#[test]
fn no_report_holds_what_a_future_captured() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(2)
            .debug(true)
            .slow_poll_threshold(Duration::from_millis(20));
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let secret = String::from("hunter2");
        let kept = secret.clone();
        runtime
            .block_on(runtime.spawn(async move {
                std::thread::sleep(Duration::from_millis(100));
                black_box(&secret);
            }))
            .unwrap();
        drop(runtime.spawn(async move {
            let _kept = kept;
            std::panic::panic_any(String::from("a message"));
        }));
        let panic = reports.next(ReportKind::UnretrievedPanic);
        assert!(panic.to_string().contains("a message"));
        // Waits for what is still being written.
        drop(runtime);
        let mut told = reports.rest(Duration::from_millis(1));
        told.push(panic);
        for report in told {
            assert!(!format!("{report:?}{report}").contains("hunter2"));
        }
    });
}

#[test]
fn a_hook_that_panics_costs_nothing_but_its_report() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .debug(true)
            .slow_poll_threshold(Duration::from_millis(20))
            .on_report(|_| panic!("the hook"));
        let runtime = builder.build().unwrap();
        for _ in 0..3 {
            drop(runtime.spawn(async { panic!("nobody hears of it") }));
            let slow = runtime.spawn(async { std::thread::sleep(Duration::from_millis(60)) });
            runtime.block_on(slow).unwrap();
        }
        assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    });
}

/// The other side of the next test; alone it does nothing.
#[test]
fn plays_a_child() {
    if std::env::var_os("RT_TEST_CHILD").is_none() {
        return;
    }
    // On a busy machine it takes seconds to look the names up.
    let runtime = Builder::new_multi_thread()
        .name("child")
        .shutdown_grace(Duration::from_secs(60))
        .build()
        .unwrap();
    let blocks = runtime.spawn(async {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(400));
                stop.store(true, SeqCst);
            });
            sleeps(&stop);
        });
    });
    runtime.block_on(blocks).unwrap();
    // What was noticed is told before the runtime is gone.
    drop(runtime);
}

#[test]
fn the_environment_decides_where_the_builder_does_not() {
    within_limit(|| {
        let stderr_with = |debug: &str| {
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "plays_a_child", "--nocapture"])
                .env("RT_TEST_CHILD", "1")
                .env("RT_DEBUG", debug)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        for tries_left in (0..5).rev() {
            let text = stderr_with("1");
            assert!(text.contains("rt: runtime 'child': task "), "{text}");
            assert!(text.contains("has not given way for"), "{text}");
            assert!(text.contains("that poll took"), "{text}");
            // A thread that gets no core for 100 ms has not told its stack, and the report says so.
            if tries_left > 0 && text.contains("the thread does not take signals") {
                continue;
            }
            if STACKS {
                assert!(text.contains("sleeps at"), "{text}");
            }
            break;
        }
        let text = stderr_with("0");
        assert!(!text.contains("rt: "), "{text}");
    });
}

/// Without the monitor the watcher looks; and without that too, the end of a slow poll is reported.
#[test]
fn without_the_monitor_slow_polls_are_reported_all_the_same() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).monitor(false).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = runtime.spawn(async move { spins(&stopped) });
        assert_names(&reports.next(ReportKind::SlowPoll), &["spins at"]);
        stop.store(true, SeqCst);
        reports.next(ReportKind::SlowPollEnded);
        runtime.block_on(task).unwrap();
    });
}
