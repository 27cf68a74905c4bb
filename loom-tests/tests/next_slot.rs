//! Models of the next slot (`rt/src/scheduler/next_slot.rs`) and of the way from it to the queue, against a rescuer and
//! a thief.
//!
//! The queue behind the slot is a list behind a lock. Tasks are real ones, made by the owner: loom sees to it that
//! whoever takes one has also got what lies in it.
//!
//! Seen to fail: no `light` fence in `take` (`take_against_rescue`: both get the task); a rescuer that exchanges also what
//! is empty, and an owner that looks at the slot without acquiring (`put_against_rescue_and_thief`: a task is lost. loom may
//! be stricter here than the language, which orders all writes to one place; the weaker form saved nothing); a rescuer that
//! the kernel has refused and that does not ask whether the owner fences by now, and an owner that says so and does not
//! (`takes_against_rescues_when_the_kernel_refuses`). Not to be seen here: a rescuer that asks without acquiring.
#![cfg(rt_loom)]

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use loom::thread;

use rt::internals::scheduler::NextSlot;
use rt::internals::task::Runnable;
use rt::task::JoinHandle;
use rt_loom_tests::model::model_tasks;
use rt_loom_tests::scheduler::Scheduler;
use rt_sync::primitive::Arc;

/// A task that counts its run.
fn counted(scheduler: &Scheduler, runs: &StdArc<AtomicUsize>) -> (Runnable, JoinHandle<()>) {
    let runs = runs.clone();
    let task = scheduler.make(async move {
        runs.fetch_add(1, SeqCst);
    });
    (task.runnable, task.handle)
}

/// The owner takes its task while the monitor rescues it: one of them gets it.
#[test]
fn take_against_rescue() {
    model_tasks(4, || {
        let (scheduler, runs) = (Scheduler::new(), StdArc::default());
        let slot = Arc::new(NextSlot::new());
        let (task, handle) = counted(&scheduler, &runs);
        assert!(slot.put(task).is_none());
        let other = slot.clone();
        let rescuer = thread::spawn(move || other.rescue().map(Runnable::run).is_some());
        let own = slot.take().map(Runnable::run).is_some();
        assert!(own ^ rescuer.join().unwrap());
        assert_eq!(runs.load(SeqCst), 1);
        assert!(handle.is_finished());
    });
}

/// The owner puts one task after another, which sends the first to the queue, while a rescuer looks at the slot and a
/// thief at the queue: each task runs once.
#[test]
fn put_against_rescue_and_thief() {
    model_tasks(2, || {
        let (scheduler, runs) = (Scheduler::new(), StdArc::default());
        let queue = Scheduler::new();
        let slot = Arc::new(NextSlot::new());
        let rescuer = {
            let slot = slot.clone();
            thread::spawn(move || slot.rescue().map(Runnable::run))
        };
        let thief = {
            let queue = queue.clone();
            thread::spawn(move || queue.pop().map(Runnable::run))
        };
        let mut handles = Vec::new();
        for _ in 0..2 {
            let (task, handle) = counted(&scheduler, &runs);
            handles.push(handle);
            if let Some(displaced) = slot.put(task) {
                queue.push(displaced);
            }
        }
        if let Some(task) = slot.take() {
            task.run();
        }
        queue.run();
        rescuer.join().unwrap();
        thief.join().unwrap();
        assert_eq!(runs.load(SeqCst), 2);
        assert!(handles.iter().all(JoinHandle::is_finished));
    });
}

/// A slot that goes away with a task in it, after a rescuer may have been there: the task ends once, run or cancelled.
#[test]
fn drop_after_rescue() {
    model_tasks(3, || {
        let (scheduler, runs) = (Scheduler::new(), StdArc::<AtomicUsize>::default());
        let slot = Arc::new(NextSlot::new());
        let (task, handle) = counted(&scheduler, &runs);
        assert!(slot.put(task).is_none());
        let other = slot.clone();
        let rescuer = thread::spawn(move || other.rescue().map(Runnable::run));
        drop(slot);
        rescuer.join().unwrap();
        assert!(handle.is_finished());
        assert!(runs.load(SeqCst) <= 1);
    });
}

/// The kernel refuses the fence that the slot relies on, while the owner takes one task after another without any: nobody
/// rescues before the owner fences for itself.
#[test]
fn takes_against_rescues_when_the_kernel_refuses() {
    model_tasks(3, || {
        rt_io::fence::pretend();
        let (scheduler, runs) = (Scheduler::new(), StdArc::default());
        let slot = Arc::new(NextSlot::new());
        let other = slot.clone();
        let rescuer = thread::spawn(move || {
            (0..3)
                .filter_map(|_| other.rescue().map(Runnable::run))
                .count()
        });
        let mut own = 0;
        for turn in 0..3 {
            if turn == 1 {
                slot.begin_turn();
            }
            let (task, handle) = counted(&scheduler, &runs);
            assert!(slot.put(task).is_none());
            own += usize::from(slot.take().map(Runnable::run).is_some());
            drop(handle);
        }
        assert_eq!(own + rescuer.join().unwrap(), 3);
        assert_eq!(runs.load(SeqCst), 3);
    });
}
