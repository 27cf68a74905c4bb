//! Reports of polls of local tasks, within those of what drives their sets.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rt::runtime::{Builder, ReportKind, Runtime};
use rt::task::{Id, LocalSet};

use crate::support::{Reports, within_limit};
use crate::{assert_names, sleeps};

/// Blocks in a local task of a set, between two others, until it is told to stop; which task that is, and the line.
async fn blocks_locally(set: &LocalSet, stop: Arc<AtomicBool>, told: mpsc::Sender<(Id, u32)>) {
    let before = set.spawn_local(rt::task::yield_now());
    let line = line!() + 2;
    let builder = rt::task::Builder::new().name("local");
    let blocks = builder.spawn_local_on(async move { sleeps(&stop) }, set);
    let blocks = blocks.unwrap();
    told.send((blocks.id(), line)).unwrap();
    let behind = set.spawn_local(rt::task::yield_now());
    set.run_until(async {
        blocks.await.unwrap();
        before.await.unwrap();
        behind.await.unwrap();
    })
    .await;
}

/// Runs `on` with a body for a thread or a task, and asserts that the local task is reported, and nothing else.
fn assert_local_is_named(
    mut builder: Builder,
    on: impl FnOnce(Runtime, Arc<AtomicBool>, mpsc::Sender<(Id, u32)>) + Send + 'static,
) {
    within_limit(move || {
        builder.worker_threads(1).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (told, local) = mpsc::channel();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || on(runtime, stopped, told));
        let (id, line) = local.recv_timeout(Duration::from_secs(40)).unwrap();
        let report = reports.next(ReportKind::SlowPoll);
        let task = report.task().unwrap();
        assert_eq!(
            (task.id(), task.name()),
            (Some(id), Some("local")),
            "{report}"
        );
        assert_eq!(task.spawned_at().line(), line, "{report}");
        assert_names(&report, &["sleeps at"]);
        // The poll around it lasts as long.
        let others = reports.rest(Duration::from_millis(300));
        assert!(others.is_empty(), "{others:?}");
        stop.store(true, SeqCst);
        let report = reports.next(ReportKind::SlowPollEnded);
        assert_eq!(report.task().unwrap().id(), Some(id), "{report}");
        assert!(
            report.duration().unwrap() >= Duration::from_millis(400),
            "{report}"
        );
        thread.join().unwrap();
        let others = reports.rest(Duration::from_millis(1));
        assert!(others.is_empty(), "{others:?}");
    });
}

#[test]
fn a_local_task_is_named_and_not_the_future_that_drives_its_set() {
    for builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
        assert_local_is_named(builder, |runtime, stop, told| {
            let set = LocalSet::new();
            runtime.block_on(blocks_locally(&set, stop, told));
        });
    }
}

#[test]
fn a_local_task_is_named_and_not_the_task_that_drives_its_set() {
    assert_local_is_named(Builder::new_multi_thread(), |runtime, stop, told| {
        let task = runtime.handle().spawn_pinned(0, move || async move {
            let set = LocalSet::new();
            blocks_locally(&set, stop, told).await;
        });
        runtime.block_on(task.unwrap()).unwrap();
    });
}

#[test]
fn a_local_task_is_named_and_not_the_local_task_that_drives_its_set() {
    assert_local_is_named(Builder::new_current_thread(), |runtime, stop, told| {
        let set = LocalSet::new();
        let drives = set.spawn_local(async move {
            let set = LocalSet::new();
            blocks_locally(&set, stop, told).await;
        });
        set.block_on(&runtime, drives).unwrap();
    });
}

/// Of many local tasks each is quick, and all of them together are not: a set gives way behind 61.
#[test]
fn many_quick_local_tasks_are_a_slow_poll_of_what_drives_them() {
    within_limit(|| {
        let mut builder = Builder::new_current_thread();
        builder.debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let set = LocalSet::new();
        for _ in 0..60 {
            set.spawn_local(async { std::thread::sleep(Duration::from_millis(20)) });
        }
        let called = line!() + 1;
        set.block_on(&runtime, rt::task::yield_now());
        let report = reports.next(ReportKind::SlowPoll);
        let root = report.task().unwrap();
        assert_eq!(
            (root.id(), root.spawned_at().line()),
            (None, called),
            "{report}"
        );
        let report = reports.next(ReportKind::SlowPollEnded);
        assert_eq!(report.task().unwrap().id(), None, "{report}");
        assert!(
            report.duration().unwrap() >= Duration::from_millis(600),
            "{report}"
        );
    });
}

/// What nobody looks at is told at its end.
#[test]
fn the_end_of_a_slow_poll_of_a_local_task_is_told_without_a_looker() {
    if !cfg!(debug_assertions) || std::env::var_os("RT_DEBUG").is_some() {
        return;
    }
    within_limit(|| {
        let mut builder = Builder::new_current_thread();
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let set = LocalSet::new();
        let blocks = set.spawn_local(async { std::thread::sleep(Duration::from_millis(150)) });
        let id = blocks.id();
        set.block_on(&runtime, blocks).unwrap();
        let told = reports.rest(Duration::from_millis(1));
        let [report] = &*told else {
            panic!("one report: {told:?}");
        };
        assert_eq!(report.kind(), ReportKind::SlowPollEnded);
        assert_eq!(report.task().unwrap().id(), Some(id), "{report}");
    });
}

#[test]
fn a_local_task_that_blocks_on_purpose_is_silent() {
    within_limit(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).debug(true);
        let reports = Reports::of(&mut builder);
        let runtime = builder.build().unwrap();
        let set = LocalSet::new();
        let blocks = set.spawn_local(async {
            rt::block_in_place(|| std::thread::sleep(Duration::from_millis(300)));
        });
        set.block_on(&runtime, blocks).unwrap();
        drop(runtime);
        let told = reports.rest(Duration::from_millis(1));
        assert!(told.is_empty(), "{told:?}");
    });
}
