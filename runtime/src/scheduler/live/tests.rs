//! Walks over a list that changes meanwhile.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::runtime::{Builder, Handle, Runtime};
use crate::scheduler::Seat;
use crate::task::JoinHandle;

const LONG: Duration = Duration::from_secs(40);

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime")
}

/// What is spawned from outside is in the list of this seat.
fn first_seat(handle: &Handle) -> Arc<Seat> {
    handle.shared.seats.get(0).expect("a worker")
}

fn spawn_many(handle: &Handle, number: usize) -> Vec<JoinHandle<()>> {
    (0..number).map(|_| handle.spawn(pending())).collect()
}

/// Between two portions the list is free: a spawn and the end of a task, also of the one that would have come next, do not
/// wait for the walk, and nobody else is met twice or not at all.
#[test]
fn spawns_and_ends_proceed_while_a_list_is_walked() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let mut tasks = spawn_many(&handle, 4 * PORTION + 1);
    // New ones lie in front: these come next after the first portion, and these are the last.
    let mut doomed = tasks.split_off(tasks.len() - PORTION - 10);
    let first_portion = doomed.split_off(10);
    doomed.extend(tasks.drain(..2));
    let lives: Vec<Id> = tasks
        .iter()
        .chain(&first_portion)
        .map(JoinHandle::id)
        .collect();

    let mut doomed = Some(doomed);
    let mut met: HashMap<Id, usize> = HashMap::new();
    let mut portions = 0;
    first_seat(&handle).live.walk(false, |portion| {
        portions += 1;
        assert!(portion.len() <= PORTION);
        for task in portion.drain(..) {
            *met.entry(task.header().id).or_default() += 1;
        }
        let Some(doomed) = doomed.take() else { return };
        let (done, over) = mpsc::channel();
        let handle = handle.clone();
        thread::spawn(move || {
            let new = handle.spawn(pending::<()>());
            for task in &doomed {
                task.abort();
            }
            handle.block_on(async {
                for task in doomed {
                    assert!(task.await.is_err_and(|error| error.is_cancelled()));
                }
            });
            done.send(new).expect("somebody waits");
        });
        drop(over.recv_timeout(LONG).expect("spawned, and ended"));
    });
    assert!(portions >= 4, "{portions}");
    assert_eq!(met.len(), lives.len());
    assert!(lives.iter().all(|id| met[id] == 1), "{met:?}");
}

/// Whoever waits for the list gets it before the walk goes on, though the walk takes the lock again at once.
#[test]
fn a_walk_gives_way_to_spawns() {
    const ENOUGH: usize = 50;
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let tasks = spawn_many(&handle, 500 * PORTION);
    let (spawned, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                drop(handle.spawn(async {}));
                spawned.fetch_add(1, SeqCst);
            }
        });
        // The other thread may be without a core during one walk.
        let proceeds = (0..200).any(|_| {
            let mut first = None;
            let mut last = 0;
            first_seat(&handle).live.walk(false, |portion| {
                portion.clear();
                last = spawned.load(SeqCst);
                first.get_or_insert(last);
            });
            last - first.expect("a portion") >= ENOUGH
        });
        over.store(true, SeqCst);
        assert!(proceeds, "never {ENOUGH} spawns during one walk");
    });
    drop(tasks);
}
