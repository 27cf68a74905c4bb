//! `PriorityQueue`: order, ties, and comparisons that panic.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};

use super::*;

/// Compared by its first field only.
#[derive(Debug, Clone, Copy, Eq)]
struct Item(u32, u32);

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

/// A row of numbers that looks random and is the same each time.
fn numbers(seed: u64) -> impl Iterator<Item = u32> {
    let mut state = seed * 2 + 1;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32
    })
}

#[test]
fn equal_items_come_in_the_order_of_their_puts() {
    let queue = PriorityQueue::unbounded();
    for (i, number) in numbers(1).take(2000).enumerate() {
        queue.try_put(Item(number % 7, i as u32)).unwrap();
        if i % 3 == 2 {
            // Some gets in between, of whatever is first.
            queue.try_get().unwrap();
        }
    }
    let mut last = Item(0, 0);
    while let Ok(item) = queue.try_get() {
        assert!(
            (last.0, last.1) <= (item.0, item.1),
            "{last:?} before {item:?}"
        );
        last = item;
    }
    assert_eq!(last.0, 6);
}

#[test]
fn it_gives_what_sorting_gives() {
    for size in 0..70 {
        let queue = PriorityQueue::unbounded();
        let mut items: Vec<_> = numbers(size as u64).take(size).map(|n| n % 50).collect();
        for &item in &items {
            queue.try_put(item).unwrap();
        }
        items.sort_unstable();
        let got: Vec<_> = std::iter::from_fn(|| queue.try_get().ok()).collect();
        assert_eq!(got, items);
    }
}

static COMPARISONS_LEFT: AtomicIsize = AtomicIsize::new(isize::MAX);
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Panics in `cmp` when `COMPARISONS_LEFT` runs out.
#[derive(Debug, PartialEq, Eq)]
struct Fuse(u32);

impl Fuse {
    fn new(value: u32) -> Self {
        ALIVE.fetch_add(1, SeqCst);
        Self(value)
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, SeqCst);
    }
}

impl PartialOrd for Fuse {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fuse {
    fn cmp(&self, other: &Self) -> Ordering {
        assert!(
            COMPARISONS_LEFT.fetch_sub(1, SeqCst) > 0,
            "a comparison that panics"
        );
        self.0.cmp(&other.0)
    }
}

/// Runs `operation` with every number of comparisons that is too small, then with enough; returns how often it failed.
fn with_every_fuse(mut operation: impl FnMut() -> bool) -> usize {
    for comparisons in 0.. {
        COMPARISONS_LEFT.store(comparisons, SeqCst);
        let done = catch_unwind(AssertUnwindSafe(&mut operation));
        COMPARISONS_LEFT.store(isize::MAX, SeqCst);
        match done {
            Ok(true) => return comparisons as usize,
            Ok(false) => panic!("it failed without a panic"),
            Err(_) => {}
        }
    }
    unreachable!()
}

/// One test, since it uses statics: a comparison that panics leaves the queue as it was.
#[test]
fn a_comparison_that_panics_undoes_the_operation_and_harms_nobody_else() {
    limited(|| {
        const SIZE: usize = 40;
        let queue = PriorityQueue::new(SIZE);
        let mut values: Vec<_> = numbers(3).take(SIZE).map(|n| n % 30).collect();
        let mut failed = 0;
        for (len, &value) in values.iter().enumerate() {
            failed += with_every_fuse(|| {
                assert_eq!(queue.len(), len);
                // The item of a put that panics is dropped.
                assert_eq!(ALIVE.load(SeqCst), len);
                queue.try_put(Fuse::new(value)).is_ok()
            });
        }
        assert!(failed > SIZE);
        assert!(queue.is_full());

        // A granted putter that panics passes its place on.
        values.sort_unstable();
        let mut first = Task::waiting(queue.put(Fuse::new(0)));
        let second = Task::waiting(queue.put(Fuse::new(99)));
        assert_eq!(queue.try_get().unwrap().0, values.remove(0));
        COMPARISONS_LEFT.store(0, SeqCst);
        catch_unwind(AssertUnwindSafe(|| first.poll())).unwrap_err();
        COMPARISONS_LEFT.store(isize::MAX, SeqCst);
        assert_eq!((first.wakes(), second.wakes()), (1, 0));
        drop(first);
        second.woken().unwrap();
        values.push(99);

        for (left, &value) in values.iter().enumerate() {
            failed += with_every_fuse(|| {
                assert_eq!(queue.len(), SIZE - left);
                let got = queue.try_get().unwrap();
                got.0 == value
            });
        }
        assert!(failed > 4 * SIZE, "{failed}");
        assert!(queue.is_empty());

        // A granted getter that panics passes its item on.
        let mut first = Task::waiting(queue.get());
        let second = Task::waiting(queue.get());
        for value in 1..5 {
            queue.try_put(Fuse::new(value)).unwrap();
        }
        assert_eq!((first.wakes(), second.wakes()), (1, 1));
        COMPARISONS_LEFT.store(0, SeqCst);
        catch_unwind(AssertUnwindSafe(|| first.poll())).unwrap_err();
        COMPARISONS_LEFT.store(isize::MAX, SeqCst);
        drop(first);
        assert_eq!(second.woken().unwrap().0, 1);
        assert_eq!(queue.len(), 3);
        drop(queue);
        assert_eq!(ALIVE.load(SeqCst), 0);
    });
}
