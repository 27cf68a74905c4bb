//! A filter of system calls that comes after the start takes away what the runtime relied on.
#![cfg(target_os = "linux")]

#[path = "fence/ends.rs"]
mod ends;
#[path = "fence/filter.rs"]
mod filter;
#[path = "debug/support.rs"]
mod support;

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use rt::runtime::{Builder, ReportKind, Runtime};
use rustix::thread::{MembarrierQuery, membarrier_query};

use self::ends::LONG;
use self::support::{Reports, within_limit};

/// From now on `membarrier` fails, and `also`. `false`: there is nothing to test.
fn refuse_membarrier(also: Option<libc::c_long>) -> bool {
    let calls = [libc::SYS_membarrier, also.unwrap_or(libc::SYS_membarrier)];
    membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED)
        && filter::refuse(calls, libc::EPERM)
}

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
        Some("rescues") => rescues_and_ends(None),
        Some("waits") => rescues_and_ends(Some(libc::SYS_sched_setaffinity)),
        Some("end") => the_end_is_refused(None),
        Some("end, for good") => the_end_is_refused(Some(libc::SYS_sched_setaffinity)),
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

/// A runtime that has a filter installed for its process, and then is the first to be refused when it ends.
#[test]
fn the_end_of_a_runtime_needs_no_fence() {
    play("end");
    play("end, for good");
}

fn rescues_and_ends(also: Option<libc::c_long>) {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1);
    let reports = Reports::of(&mut builder);
    let runtime = builder.build().unwrap();

    // Rescued while the worker is blocked.
    let blocked = Blocked::worker(&runtime);
    blocked.next.recv_timeout(LONG).unwrap();
    drop(blocked.release);

    let before = ends::build_each(true);
    if !refuse_membarrier(also) {
        return;
    }
    let blocked = Blocked::worker(&runtime);
    let report = reports.next(ReportKind::FenceRefused);
    let expected = format!(
        "runtime '{}': the kernel refuses `membarrier`, which it did at the start: Operation not permitted (os error 1). From \
         now on each switch between two tasks pays for a fence, in all runtimes of this process; and a task that was woken \
         last by one which blocks its worker just now may have to wait until that is over. If a filter of system calls does \
         it, let it pass `membarrier`, or install it before the first runtime is built",
        runtime.handle().name()
    );
    assert_eq!(report.to_string(), expected);
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
    end_all(before);
}

fn the_end_is_refused(also: Option<libc::c_long>) {
    // Without the monitor nobody asks for a fence before.
    let before = ends::build_each(false);
    if refuse_membarrier(also) {
        end_all(before);
    }
}

fn end_all(before: [Runtime; 3]) {
    ends::end_each(before);
    ends::end_each(ends::build_each(true));
    ends::ends_without_its_workers(1);
    ends::ends_without_its_workers(2);
    ends::a_task_waits_for_the_end_of_what_is_queued();
}

/// The same in a process of which nothing is refused.
#[test]
fn a_runtime_ends_whole() {
    within_limit(|| end_all(ends::build_each(false)));
}
