use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::*;
use crate::testing::{Probe, limited, once};

static IN_A_STATIC: AtomicWaker = AtomicWaker::new();

#[test]
fn a_waker_goes_in_and_comes_out_once() {
    let probe = Probe::new();
    let waker = probe.waker();
    IN_A_STATIC.register(&waker);
    assert_eq!(probe.alive(), 2);
    IN_A_STATIC.wake();
    IN_A_STATIC.wake();
    assert_eq!(probe.wakes(), 1);
    assert!(IN_A_STATIC.take().is_none());
    assert_eq!(probe.alive(), 1);
}

#[test]
fn the_same_waker_is_not_cloned_again() {
    let probe = Probe::new();
    let slot = AtomicWaker::new();
    let waker = probe.waker();
    for _ in 0..10 {
        slot.register(&waker);
        // SAFETY: there is one thread.
        unsafe { slot.register_exclusive(&waker) };
    }
    assert_eq!(probe.clones(), 2);
}

#[test]
fn another_waker_replaces_the_old_one_without_waking_it() {
    let (old, new) = (Probe::new(), Probe::new());
    for exclusive in [false, true] {
        let slot = AtomicWaker::new();
        slot.register(&old.waker());
        if exclusive {
            // SAFETY: there is one thread.
            unsafe { slot.register_exclusive(&new.waker()) };
        } else {
            slot.register(&new.waker());
        }
        assert_eq!((old.alive(), new.alive()), (0, 1));
        slot.wake();
    }
    assert_eq!((old.wakes(), new.wakes()), (0, 2));
}

#[test]
fn a_slot_that_is_not_shared_is_set_without_a_wake() {
    let (old, new) = (Probe::new(), Probe::new());
    let mut slot = AtomicWaker::new();
    slot.set(&old.waker());
    assert_eq!(old.alive(), 1);
    let waker = new.waker();
    slot.set(&waker);
    slot.set(&waker);
    assert_eq!((old.alive(), new.clones()), (0, 2));
    slot.wake();
    assert!(slot.take().is_none());
    slot.set(&waker);
    drop(slot);
    assert_eq!((old.wakes(), new.wakes(), new.alive()), (0, 1, 1));
}

#[test]
fn clear_and_drop_drop_the_waker_without_waking_it() {
    let probe = Probe::new();
    let slot = AtomicWaker::new();
    slot.register(&probe.waker());
    slot.clear();
    assert_eq!(probe.alive(), 0);
    slot.register(&probe.waker());
    drop(slot);
    assert_eq!((probe.alive(), probe.wakes()), (0, 0));
}

#[test]
fn a_panic_in_clone_leaves_the_old_waker_registered() {
    let (old, new) = (Probe::new(), Probe::new());
    let slot = AtomicWaker::new();
    slot.register(&old.waker());
    let waker = new.waker();
    once(&new.on_clone, || panic!("clone"));
    assert!(catch_unwind(AssertUnwindSafe(|| slot.register(&waker))).is_err());
    slot.wake();
    assert_eq!(old.wakes(), 1);
    slot.register(&waker);
    slot.wake();
    assert_eq!(new.wakes(), 1);
}

#[test]
fn a_panic_in_the_drop_of_the_old_waker_leaves_the_new_one_registered() {
    let (old, new) = (Probe::new(), Probe::new());
    let slot = AtomicWaker::new();
    slot.register(&old.waker());
    let waker = new.waker();
    once(&old.on_drop, || panic!("drop"));
    assert!(catch_unwind(AssertUnwindSafe(|| slot.register(&waker))).is_err());
    slot.wake();
    assert_eq!(new.wakes(), 1);
}

#[test]
fn a_panic_in_wake_leaves_the_slot_usable() {
    let probe = Probe::new();
    let slot = AtomicWaker::new();
    let waker = probe.waker();
    slot.register(&waker);
    once(&probe.on_wake, || panic!("wake"));
    assert!(catch_unwind(AssertUnwindSafe(|| slot.wake())).is_err());
    slot.register(&waker);
    slot.wake();
    assert_eq!((probe.wakes(), probe.alive()), (2, 1));
}

#[test]
fn wakers_may_call_back_into_the_same_slot() {
    limited(|| {
        let (old, new) = (Probe::new(), Probe::new());
        let slot = Arc::new(AtomicWaker::new());
        slot.register(&old.waker());
        let waker = new.waker();
        let inner = slot.clone();
        once(&new.on_clone, move || inner.wake());
        let inner = slot.clone();
        once(&new.on_wake, move || inner.wake());
        slot.register(&waker);
        assert_eq!(old.wakes(), 1);
        slot.wake();
        assert_eq!(new.wakes(), 1);
        // From `drop`: the old waker registers another one while it is being replaced.
        slot.register(&old.waker());
        let (inner, third) = (slot.clone(), Probe::new());
        let third_waker = third.waker();
        once(&old.on_drop, move || inner.register(&third_waker));
        slot.register(&waker);
        slot.wake();
        assert_eq!((new.wakes(), third.wakes()), (1, 1));
    });
}
