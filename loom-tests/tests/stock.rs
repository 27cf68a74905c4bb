//! Models of the memory of tasks that is passed on (`rt/src/task/stock.rs`): each piece comes out once, with its companion
//! as that was put in, or both are freed.
//!
//! In a model there is one size, a chain is full with two, and the stock keeps four.
//!
//! Seen to fail: a push that does not release and a refill that does not acquire (companions are touched by two threads at
//! once); a push that does not look for the end (it links its chain to what stands for it, and the close follows).
#![cfg(rt_loom)]

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use loom::thread;

use rt::internals::task::{Freed, Memory, Size, Stock};
use rt_loom_tests::model::model;
use rt_sync::primitive::Arc;
use rt_sync::primitive::cell::UnsafeCell;

/// Written where it is put in and where it comes out: loom sees whether the one comes before the other. Counts its drop.
struct Companion {
    touched: UnsafeCell<()>,
    drops: StdArc<AtomicUsize>,
}

impl Companion {
    fn new(drops: &StdArc<AtomicUsize>) -> Self {
        let companion = Self {
            touched: UnsafeCell::new(()),
            drops: drops.clone(),
        };
        companion.touch();
        companion
    }

    fn touch(&self) {
        self.touched.with_mut(|_| ());
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.touch();
        self.drops.fetch_add(1, SeqCst);
    }
}

type Shared = Arc<Stock<Companion>>;

/// The one size that there is in a model.
const BYTES: usize = 1024;

fn size() -> Size {
    Size::of::<[u64; 8]>().expect("the one there is")
}

/// A worker that frees so many, and stands up. Companions are new, as each is when a task has ended.
fn free(stock: &Shared, drops: &StdArc<AtomicUsize>, number: usize) {
    let freed = Freed::new(stock.clone());
    for _ in 0..number {
        drop(freed.put(Memory::new(size()), Companion::new(drops)));
    }
}

/// What a spawner gets now.
fn take(stock: &Shared) -> Option<Memory> {
    let (memory, companion) = stock.take(size())?;
    companion.touch();
    Some(memory)
}

/// Two workers push, one of them twice, while a spawner takes what there is.
#[test]
fn pushes_against_a_refill() {
    model(3, || {
        let (stock, drops) = (Shared::default(), StdArc::default());
        let workers: Vec<_> = [3, 1]
            .into_iter()
            .map(|number| {
                let (stock, drops) = (stock.clone(), StdArc::clone(&drops));
                thread::spawn(move || free(&stock, &drops, number))
            })
            .collect();
        let mut taken = usize::from(take(&stock).is_some());
        taken += usize::from(take(&stock).is_some());
        for worker in workers {
            worker.join().unwrap();
        }
        while take(&stock).is_some() {
            taken += 1;
        }
        assert_eq!((taken, drops.load(SeqCst), stock.kept()), (4, 4, 0));
    });
}

/// A worker pushes while the stock closes, and a spawner takes: nothing is left in it, and nothing is lost.
#[test]
fn a_push_and_a_refill_against_the_close() {
    model(3, || {
        let (stock, drops) = (Shared::default(), StdArc::default());
        free(&stock, &drops, 1);
        let worker = {
            let (stock, drops) = (stock.clone(), StdArc::clone(&drops));
            thread::spawn(move || free(&stock, &drops, 1))
        };
        let closer = {
            let stock = stock.clone();
            thread::spawn(move || stock.close())
        };
        drop(take(&stock));
        worker.join().unwrap();
        closer.join().unwrap();
        // The stock itself is still there.
        assert_eq!(drops.load(SeqCst), 2);
        assert!(take(&stock).is_none());
        free(&stock, &drops, 2);
        assert!(take(&stock).is_none());
        assert_eq!(drops.load(SeqCst), 4);
    });
}

/// Two workers push at once what is more than the stock keeps: what it does not keep is freed.
#[test]
fn pushes_at_the_bound() {
    model(3, || {
        let (stock, drops) = (Shared::default(), StdArc::default());
        free(&stock, &drops, 2);
        let worker = {
            let (stock, drops) = (stock.clone(), StdArc::clone(&drops));
            thread::spawn(move || free(&stock, &drops, 2))
        };
        free(&stock, &drops, 2);
        worker.join().unwrap();
        let kept = 6 - drops.load(SeqCst);
        assert!((2..=4).contains(&kept), "{kept}");
        assert_eq!(stock.kept(), kept * BYTES);
        drop(stock);
        assert_eq!(drops.load(SeqCst), 6);
    });
}
