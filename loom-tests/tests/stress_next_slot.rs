//! The stress twin of `next_slot.rs`: an owner that puts and takes, against a rescuer at the slot and a thief at the
//! queue, which is a real deque.
#![cfg(not(rt_loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use crossbeam_deque::{Steal, Worker};

use rt::internals::scheduler::NextSlot;
use rt_loom_tests::scheduler::Scheduler;
use rt_loom_tests::stress::limited;

/// Each task runs once, whoever gets it.
#[test]
fn each_task_runs_once() {
    const TASKS: usize = 200_000;
    limited(|| {
        let scheduler = Scheduler::new();
        let slot = Arc::new(NextSlot::new());
        let queue = Worker::new_fifo();
        let runs = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let rescuer = {
            let (slot, over) = (slot.clone(), over.clone());
            thread::spawn(move || {
                while !over.load(SeqCst) {
                    match slot.rescue() {
                        Some(task) => task.run(),
                        None => thread::yield_now(),
                    }
                }
            })
        };
        let thief = {
            let (stealer, over) = (queue.stealer(), over.clone());
            thread::spawn(move || {
                while !over.load(SeqCst) {
                    match stealer.steal() {
                        Steal::Success(task) => rt::internals::task::Runnable::run(task),
                        _ => thread::yield_now(),
                    }
                }
            })
        };
        for number in 0..TASKS {
            let runs = runs.clone();
            let task = scheduler.make(async move {
                runs.fetch_add(1, SeqCst);
            });
            drop(task.handle);
            if let Some(displaced) = slot.put(task.runnable) {
                queue.push(displaced);
            }
            if number % 3 == 0 {
                if let Some(task) = slot.take() {
                    task.run();
                }
                if let Some(task) = queue.pop() {
                    task.run();
                }
            }
        }
        if let Some(task) = slot.take() {
            task.run();
        }
        while let Some(task) = queue.pop() {
            task.run();
        }
        while runs.load(SeqCst) < TASKS {
            thread::yield_now();
        }
        over.store(true, SeqCst);
        rescuer.join().unwrap();
        thief.join().unwrap();
        assert_eq!(runs.load(SeqCst), TASKS);
    });
}
