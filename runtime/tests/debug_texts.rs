//! What reports say, word for word: people search for these sentences. Each kind is here, but for those that need a process
//! of another make: `Deadlock` (`debug_deadlock.rs`), `FenceRefused` (`fence_refused.rs`) and `AcceptBackOff`
//! (`bad_luck_descriptors.rs`). A binary of its own: what was granted is known to the whole process.

#[cfg(target_os = "linux")]
#[path = "fence/filter.rs"]
mod filter;
#[path = "debug/support.rs"]
mod support;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use rt::runtime::{Builder, Report, ReportKind, Runtime, UnhandledPanic};
use rt::sync::{Mutex, Semaphore, oneshot};
use rt::task::WaitKind;

use self::support::{Reports, within_limit};

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(40);

fn builder(name: &str) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .name(name)
        .debug(true)
        // Only what is meant to be.
        .slow_poll_threshold(LONG)
        .shutdown_grace(20 * MS);
    builder
}

fn build(mut builder: Builder) -> (Runtime, Reports) {
    let reports = Reports::of(&mut builder);
    (builder.build().unwrap(), reports)
}

/// The text of a report about a task of the runtime 'texts', which begins with that task.
#[track_caller]
fn assert_told(report: &Report, name: Option<&str>, line: u32, text: &str) {
    let task = report.task().expect("a report about a task");
    assert_eq!(task.spawned_at().line(), line, "{report}");
    let name = name.map_or(String::new(), |name| format!(" '{name}'"));
    let expected = format!(
        "runtime 'texts': task {}{name} spawned at {} {text}",
        task.id().unwrap(),
        task.spawned_at()
    );
    assert_eq!(report.to_string(), expected);
}

#[test]
fn panics() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("too loud");
        }
    }
    within_limit(|| {
        let (runtime, reports) = build(builder("texts"));
        let entered = runtime.enter();
        let named = rt::task::Builder::new().name("bee");
        let line = line!() + 1;
        drop(named.spawn(async { panic!("out of honey") }).unwrap());
        let report = reports.next(ReportKind::UnretrievedPanic);
        let text = "panicked: out of honey (nobody retrieved the error)";
        assert_told(&report, Some("bee"), line, text);

        let line = line!() + 1;
        drop(rt::spawn(async { std::panic::panic_any(5) }));
        let report = reports.next(ReportKind::UnretrievedPanic);
        let text = "panicked (nobody retrieved the error)";
        assert_told(&report, None, line, text);

        let line = line!() + 1;
        drop(rt::spawn(async { Loud }));
        let report = reports.next(ReportKind::DestructorPanic);
        let text = "panicked: too loud (in a destructor, a waker or a callback, which cannot fail)";
        assert_told(&report, None, line, text);
        drop(entered);

        let mut last = builder("texts");
        last.unhandled_panic(UnhandledPanic::ShutdownRuntime);
        let (runtime, reports) = build(last);
        let line = line!() + 1;
        drop(runtime.spawn(async { panic!("the last word") }));
        let report = reports.next(ReportKind::UnretrievedPanic);
        let text = "panicked: the last word (nobody retrieved the error; the runtime shuts down)";
        assert_told(&report, None, line, text);
    });
}

#[test]
fn errors() {
    within_limit(|| {
        let (runtime, reports) = build(builder("texts"));
        let entered = runtime.enter();
        let line = line!() + 1;
        let task = rt::task::spawn_result(async { Err::<(), _>(io::Error::other("no disk")) });
        drop(task);
        let report = reports.next(ReportKind::UnretrievedError);
        let text = "failed: no disk (nobody retrieved the error)";
        assert_told(&report, None, line, text);
        drop(entered);
        drop(runtime);
        let more = reports.rest(MS);
        assert!(more.is_empty(), "{more:?}");
    });
}

#[test]
fn slow_polls() {
    within_limit(|| {
        let mut patient = builder("texts");
        patient.slow_poll_threshold(50 * MS);
        let (runtime, reports) = build(patient);
        let (release, held) = mpsc::channel::<()>();
        let line = line!() + 1;
        drop(runtime.spawn(async move {
            let _ = held.recv();
        }));
        let report = reports.next(ReportKind::SlowPoll);
        drop(release);
        let text = report.to_string();
        let task = report.task().unwrap();
        assert_eq!(task.spawned_at().line(), line);
        let begin = format!(
            "runtime 'texts': task {} spawned at {} has not given way for {:.1?}",
            task.id().unwrap(),
            task.spawned_at(),
            report.duration().unwrap()
        );
        let (first, frames) = text.split_once('\n').unwrap_or((&text, ""));
        // On a busy machine its thread waited for a core as well; not everywhere is there a stack.
        let rest = first.strip_prefix(&begin).expect(first);
        let ends = ["and blocks its thread here:", "(no stack: "];
        assert!(ends.iter().any(|end| rest.contains(end)), "{text}");
        assert_eq!(frames.lines().count(), report.stack().len());
        for (number, (line, frame)) in frames.lines().zip(report.stack()).enumerate() {
            assert_eq!(line, format!("  {number:>3}: {frame}"));
        }
        let report = reports.next(ReportKind::SlowPollEnded);
        let took = report.duration().unwrap();
        let text = format!("has given its thread back: that poll took {took:.1?}");
        assert_told(&report, None, line, &text);
    });
}

#[test]
fn objects_of_other_runtimes() {
    const WHAT_TO_DO: &str = "each wake goes through 'other', and when that closes, the wait fails; make it where it is used";
    within_limit(|| {
        let (other, _) = build(builder("other"));
        let (runtime, reports) = build(builder("texts"));
        let mut timer = Box::pin(rt::time::sleep(50 * MS));
        other.block_on(poll_fn(|cx| {
            assert!(timer.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }));
        let line = line!() + 1;
        runtime.block_on(timer);
        let report = reports.next(ReportKind::OtherRuntime);
        let root = report.task().unwrap().spawned_at();
        assert_eq!(root.line(), line);
        let made = report.site().unwrap();
        let expected = format!(
            "runtime 'texts': the future of block_on at {root} waits for a timer of runtime 'other', which was made at {made}: \
             {WHAT_TO_DO}"
        );
        assert_eq!(report.to_string(), expected);

        let wait = |socket: &rt::net::UdpSocket, runtime: &Runtime| {
            runtime.block_on(async {
                assert!(
                    rt::time::timeout(20 * MS, socket.recv(&mut [0]))
                        .await
                        .is_err()
                );
            });
        };
        let socket = other.block_on(rt::net::UdpSocket::bind("127.0.0.1:0"));
        let socket = socket.unwrap();
        wait(&socket, &other);
        wait(&socket, &runtime);
        let report = reports.next(ReportKind::OtherRuntime);
        let root = report.task().unwrap().spawned_at();
        let text = report.to_string();
        let begin = format!("runtime 'texts': the future of block_on at {root} waits");
        let middle = "for a socket of runtime 'other', which had to wait first at ";
        assert!(text.starts_with(&begin), "{text}");
        assert!(text.contains(middle), "{text}");
        assert!(text.ends_with(&format!(": {WHAT_TO_DO}")), "{text}");
    });
}

#[test]
fn grants() {
    const WHAT_TO_DO: &str = "whoever wants the same waits meanwhile: poll that future, or drop it";
    within_limit(|| {
        let (runtime, reports) = build(builder("texts"));
        let lock: &'static Mutex<()> = Box::leak(Box::new(Mutex::new(())));
        let (released, wait) = oneshot::channel::<()>();
        let guard = runtime.block_on(lock.lock());
        let (waits, waiting) = mpsc::channel();
        let line = line!() + 1;
        let task = runtime.spawn(async move {
            let mut ours = pin!(lock.lock());
            poll_fn(|cx| {
                assert!(ours.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            waits.send(()).unwrap();
            wait.await.unwrap();
            drop(ours.await);
        });
        waiting.recv_timeout(LONG).unwrap();
        drop(guard);
        let report = reports.next(ReportKind::UnpolledGrant);
        let (kind, at) = report.task().unwrap().waits_for().unwrap();
        assert_eq!(kind, WaitKind::Oneshot);
        let text = format!(
            "waits in Oneshot at {at} instead: a lock was granted {:.1?} ago to its future made at {}, which it has kept and does \
             not poll; {WHAT_TO_DO}\n  it waited last in Oneshot at {at}",
            report.duration().unwrap(),
            report.site().unwrap()
        );
        assert_told(&report, None, line, &text);
        released.send(()).unwrap();
        runtime.block_on(task).unwrap();

        // Of nobody that is known.
        let permits: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0)));
        let mut kept = Box::pin(permits.acquire());
        let line = line!() - 1;
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(kept.as_mut().poll(&mut cx).is_pending());
        permits.add_permits(1);
        let report = reports.next(ReportKind::UnpolledGrant);
        let site = report.site().unwrap();
        assert_eq!(site.line(), line);
        let expected = format!(
            "runtime 'texts': permits were granted {:.1?} ago to a future made at {site} that nobody polls; {WHAT_TO_DO}",
            report.duration().unwrap()
        );
        assert_eq!(report.to_string(), expected);
    });
}

#[test]
fn a_blocking_pool_that_waits_for_itself() {
    within_limit(|| {
        let mut small = builder("texts");
        small.max_blocking_threads(1);
        let (runtime, reports) = build(small);
        let handle = runtime.handle().clone();
        let (open, gate) = oneshot::channel::<()>();
        drop(runtime.spawn_blocking(move || handle.block_on(gate)));
        drop(runtime.spawn_blocking(|| ()));
        let text = reports.next(ReportKind::BlockingPoolStuck).to_string();
        let begin = "runtime 'texts': all 1 threads of the blocking pool wait inside block_on, and 1 closures wait for a thread, \
                     the first for ";
        let rest = text.strip_prefix(begin).expect(&text);
        let (_age, rest) = rest.split_once(": ").expect(&text);
        assert_eq!(
            rest,
            "if one of these is what the others wait for, none of them ends; raise max_blocking_threads, or await in tasks \
             instead of blocking closures"
        );
        drop(open);
    });
}

#[test]
fn what_is_left_behind() {
    within_limit(|| {
        let (runtime, reports) = build(builder("texts"));
        let (release, held) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel();
        let begins_too = begins.clone();
        let spawned = line!() + 1;
        drop(runtime.spawn_blocking(move || {
            begins.send(()).unwrap();
            let _ = held.recv();
        }));
        let (release_task, held) = mpsc::channel::<()>();
        runtime.spawn(async move {
            begins_too.send(()).unwrap();
            let _ = held.recv();
        });
        for _ in 0..2 {
            begun.recv_timeout(LONG).unwrap();
        }
        drop(runtime);
        let report = reports.next(ReportKind::LeftBehind);
        assert_eq!(
            report.to_string(),
            "runtime 'texts': closed after 20ms while a task still held a worker; its thread is left behind"
        );
        let report = reports.next(ReportKind::LeftBehind);
        let site = report.site().unwrap();
        assert_eq!(site.line(), spawned);
        let begin = format!(
            "runtime 'texts': closed after 20ms while a blocking closure still ran: blocking closure spawned at {site}, running \
             for "
        );
        let text = report.to_string();
        let age = text.strip_prefix(&begin).expect(&text);
        assert!(age.ends_with('s') && !age.contains(' '), "{text}");
        drop((release, release_task));
    });
}

#[cfg(target_os = "linux")]
const PART: &str = "RT_TEST_CHILD_PART";

/// A filter of system calls takes the selector away. In a process of its own, since it does so for all of it.
#[cfg(target_os = "linux")]
#[test]
fn a_selector_that_fails() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "plays_a_child", "--nocapture"])
        .env(PART, "selector")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The other side of the test before; alone it does nothing.
#[cfg(target_os = "linux")]
#[test]
fn plays_a_child() {
    if std::env::var_os(PART).is_none() {
        return;
    }
    within_limit(|| {
        let (runtime, reports) = build(builder("texts"));
        let socket = runtime.block_on(rt::net::UdpSocket::bind("127.0.0.1:0"));
        let socket = socket.unwrap();
        // Not every architecture has the older call.
        #[cfg(target_arch = "x86_64")]
        let calls = [libc::SYS_epoll_pwait, libc::SYS_epoll_wait];
        #[cfg(not(target_arch = "x86_64"))]
        let calls = [libc::SYS_epoll_pwait; 2];
        if !filter::refuse(calls, libc::EPERM) {
            return;
        }
        drop(runtime.spawn(async move { socket.recv(&mut [0]).await }));
        let report = reports.next(ReportKind::SelectorFailed);
        assert_eq!(
            report.to_string(),
            "runtime 'texts': a selector failed: Operation not permitted (os error 1)"
        );
        // It is asked again now and then, not all the time (60,000 times were seen), and the rest goes on.
        let selects = || -> u64 {
            let workers = runtime.metrics().workers;
            workers.iter().map(|worker| worker.selects).sum()
        };
        let before = selects();
        runtime.block_on(async {
            for _ in 0..20 {
                rt::spawn(rt::time::sleep(Duration::from_millis(10)))
                    .await
                    .unwrap();
            }
        });
        let asked = selects() - before;
        assert!((1..1000).contains(&asked), "asked {asked} times in 200 ms");
        // It ends all the same.
        drop(runtime);
    });
}
