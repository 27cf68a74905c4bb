//! A filter of system calls that comes after the start takes away what the runtime relied on.
#![cfg(target_os = "linux")]

#[path = "fence/filter.rs"]
mod filter;
#[path = "debug/support.rs"]
mod support;

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use rt::runtime::{Builder, ReportKind, Runtime};

use self::filter::refuse_membarrier;
use self::support::{Reports, within_limit};

const LONG: Duration = Duration::from_secs(40);

/// A task that blocks the worker, with another in the next slot of that worker.
struct Blocked {
    release: mpsc::Sender<()>,
    next: mpsc::Receiver<()>,
}

impl Blocked {
    fn worker(runtime: &Runtime) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (ran, next) = mpsc::channel();
        let (entered, begun) = mpsc::channel();
        runtime.spawn(async move {
            rt::spawn(async move { ran.send(()).unwrap() });
            entered.send(()).unwrap();
            let _ = released.recv();
        });
        begun.recv_timeout(LONG).unwrap();
        Self { release, next }
    }
}

/// From which moment on the kernel refuses is a matter of the process, so each story has one of its own: this binary again.
const PART: &str = "RT_TEST_CHILD_PART";

#[track_caller]
fn play(part: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "plays_a_child", "--nocapture"])
        .env(PART, part)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The other side of the tests; alone it does nothing.
#[test]
fn plays_a_child() {
    let Some(part) = std::env::var_os(PART) else {
        return;
    };
    within_limit(move || match part.to_str() {
        Some("rescues") => rescues(None),
        Some("waits") => rescues(Some(libc::SYS_sched_setaffinity)),
        part => unreachable!("{part:?}"),
    });
}

#[test]
fn a_kernel_that_refuses_later_is_told_of_and_done_without() {
    play("rescues");
}

/// Then who is stuck just then keeps its task.
#[test]
fn so_is_one_that_does_not_move_threads_either() {
    play("waits");
}

fn rescues(also: Option<libc::c_long>) {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1);
    let reports = Reports::of(&mut builder);
    let runtime = builder.build().unwrap();

    // Rescued while the worker is blocked.
    let blocked = Blocked::worker(&runtime);
    blocked.next.recv_timeout(LONG).unwrap();
    drop(blocked.release);

    if !refuse_membarrier(also) {
        return;
    }
    let blocked = Blocked::worker(&runtime);
    let report = reports.next(ReportKind::FenceRefused);
    let text = report.to_string();
    assert!(text.contains("membarrier"), "{text}");
    if also.is_some() {
        // Whether the worker was about to take the task cannot be told.
        assert_eq!(blocked.next.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(blocked.release);
        blocked.next.recv_timeout(LONG).unwrap();
    } else {
        blocked.next.recv_timeout(LONG).unwrap();
        drop(blocked.release);
    }

    // From here on it fences for itself, and its tasks are rescued again.
    for _ in 0..3 {
        let blocked = Blocked::worker(&runtime);
        blocked.next.recv_timeout(LONG).unwrap();
        drop(blocked.release);
    }
    drop(runtime);
    let again = reports.rest(Duration::ZERO);
    assert!(
        again
            .iter()
            .all(|report| report.kind() != ReportKind::FenceRefused)
    );
}
