use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc as StdArc, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::runtime::{Builder, Runtime};
use crate::task::block_in_place;

/// Counts its drop.
struct Companion(StdArc<AtomicUsize>);

impl Drop for Companion {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn size<const WORDS: usize>() -> Size {
    Size::of::<[u64; WORDS]>().expect("a size")
}

#[test]
fn what_is_put_in_comes_out_by_its_size() {
    let (stock, drops) = (Arc::new(Stock::new()), StdArc::default());
    let freed = Freed::new(stock.clone());
    // Two sizes that lie in the same place of `Freed`, and one that does not.
    let sizes = [size::<16>(), size::<24>(), size::<26>()];
    assert_eq!(sizes[0].index() % OPEN, sizes[1].index() % OPEN);
    for size in sizes {
        let memory = Memory::new(size);
        assert!(
            freed
                .put(memory, Companion(StdArc::clone(&drops)))
                .is_none()
        );
    }
    assert!(!freed.is_empty());
    drop(freed);
    assert_eq!(
        stock.kept(),
        sizes.iter().map(|size| size.bytes()).sum::<usize>()
    );
    for size in sizes {
        let (memory, companion) = stock.take(size).expect("kept");
        assert_eq!(memory.size(), size);
        assert!(stock.take(size).is_none());
        drop(companion);
    }
    assert_eq!((drops.load(SeqCst), stock.kept()), (3, 0));
}

#[test]
fn no_more_is_kept_than_the_bound() {
    let (stock, drops) = (Arc::new(Stock::new()), StdArc::default());
    let freed = Freed::new(stock.clone());
    let number = 2 * MOST / size::<18>().bytes();
    let mut kept = number;
    for _ in 0..number {
        let memory = Memory::new(size::<18>());
        if let Some(chain) = freed.put(memory, Companion(StdArc::clone(&drops))) {
            kept -= chain.len;
        }
    }
    drop(freed);
    assert!(stock.kept() <= MOST && stock.kept() > MOST - CHAIN);
    assert!(kept < number * 2 / 3);
    stock.close();
    assert_eq!(drops.load(SeqCst), number);
}

#[test]
fn what_comes_after_the_close_is_handed_back() {
    let (stock, drops) = (Arc::new(Stock::new()), StdArc::default());
    let freed = Freed::new(stock.clone());
    stock.close();
    stock.close();
    let put = || freed.put(Memory::new(size::<18>()), Companion(StdArc::clone(&drops)));
    assert!(put().is_none());
    assert!(freed.flush().into_iter().flatten().count() == 1);
    assert_eq!(drops.load(SeqCst), 1);
    assert!(stock.take(size::<18>()).is_none());
    assert!(put().is_none());
    drop(freed);
    assert_eq!((drops.load(SeqCst), stock.kept()), (2, 0));
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime")
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(40), "not: {what}");
        thread::yield_now();
    }
}

#[test]
fn a_task_from_outside_leaves_its_memory_for_the_next() {
    let runtime = runtime();
    let memory = runtime.handle().shared.memory.clone();
    let task = || {
        let (go, wait) = mpsc::channel();
        // Without its handle: else this thread may be the last that has a reference, and frees the task itself.
        drop(runtime.spawn(async move { wait.recv() }));
        go.send(()).expect("it waits");
    };
    task();
    // The worker gives it away before it sleeps.
    eventually("something is kept", || memory.kept() > 0);
    let kept = memory.kept();
    for _ in 0..100 {
        task();
        eventually("it comes back", || memory.kept() == kept);
    }
}

#[test]
fn a_runtime_that_ends_keeps_neither_memory_nor_itself() {
    let runtime = runtime();
    let weak = StdArc::downgrade(&runtime.handle().shared);
    let memory = runtime.handle().shared.memory.clone();
    for _ in 0..1000 {
        drop(runtime.spawn(async {}));
    }
    eventually("something is kept", || memory.kept() > 0);
    let (last, waits) = mpsc::channel::<()>();
    let late = runtime.spawn(async move { drop((last, std::future::pending::<()>().await)) });
    drop(runtime);
    assert!(waits.recv().is_err(), "its future is dropped");
    assert_eq!(memory.kept(), 0);
    // The handle is the last that has a reference.
    eventually("one is left", || weak.strong_count() <= 1);
    drop(late);
    eventually("none is left", || Weak::upgrade(&weak).is_none());
}

/// A callback that blocks has the seat taken away under it: the task is taken out of the list all the same.
#[test]
fn a_seat_that_is_lent_during_the_end_of_a_task() {
    let runtime = runtime();
    for _ in 0..100 {
        let (go, wait) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let first = runtime.spawn(async move { block_in_place(|| wait.recv()) });
        let second = runtime.spawn(async {});
        second.on_done(move |_| {
            block_in_place(|| ());
            tell.send(()).expect("somebody listens");
        });
        drop(second);
        go.send(()).expect("it waits");
        told.recv().expect("called");
        drop(first);
        eventually("none is alive", || runtime.metrics().live_tasks == 0);
    }
    let shared = &runtime.handle().shared;
    eventually("none is listed", || shared.live_tasks().is_empty());
}

#[test]
fn after_the_end_no_task_counts_as_alive() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    let seat = handle.shared.seats.get(0).expect("the first");
    for _ in 0..1000 {
        let task = runtime.spawn(async {});
        eventually("it is over", || task.is_finished());
        assert_eq!(seat.live_tasks(), 0);
    }
    drop(runtime);
    assert_eq!(seat.live_tasks(), 0);
    assert_eq!(handle.metrics().live_tasks, 0);
}
