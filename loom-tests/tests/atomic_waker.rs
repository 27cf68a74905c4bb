//! Models of `AtomicWaker`. The condition is a relaxed flag, so that only the slot itself orders it.
//!
//! Seen to fail: with `Acquire` for `AcqRel` in the exchange of `take` (the flag is missed: a deadlock); with a `take`
//! that returns early when its first load finds no waker (the same); with `Acquire` for `AcqRel` where `register` or
//! `register_exclusive` publishes (a null waker is taken); without the bump of the generation (a waker dropped twice).
#![cfg(rt_loom)]

use std::future::poll_fn;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::AtomicWaker;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicBool, AtomicUsize as ModelUsize, Ordering::Relaxed};

struct Flag {
    set: AtomicBool,
    slot: AtomicWaker,
}

impl Flag {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            set: AtomicBool::new(false),
            slot: AtomicWaker::new(),
        })
    }

    fn set(&self) {
        self.set.store(true, Relaxed);
        self.slot.wake();
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.slot.register(cx.waker());
        if self.set.load(Relaxed) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// The condition becomes true while the waiting side registers: seen, or woken.
#[test]
fn register_against_wake() {
    model(3, || {
        let flag = Flag::new();
        let other = flag.clone();
        let setter = thread::spawn(move || other.set());
        block_on(poll_fn(|cx| flag.poll(cx)));
        setter.join().unwrap();
    });
}

/// The same with the registration that needs one exchange.
#[test]
#[expect(unsafe_code, reason = "register_exclusive")]
fn register_exclusive_against_wake() {
    model(3, || {
        let flag = Flag::new();
        let other = flag.clone();
        let setter = thread::spawn(move || other.set());
        block_on(poll_fn(|cx| {
            // SAFETY: only this thread registers.
            unsafe { flag.slot.register_exclusive(cx.waker()) };
            if flag.set.load(Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        setter.join().unwrap();
    });
}

/// Two threads make half of the condition true each: whoever takes the waker wakes for both.
#[test]
fn register_against_two_wakes() {
    model(2, || {
        let shared = Arc::new((ModelUsize::new(0), AtomicWaker::new()));
        let (probe, waker) = Probe::new();
        let setters: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.0.fetch_add(1, Relaxed);
                    shared.1.wake();
                })
            })
            .collect();
        shared.1.register(&waker);
        let seen = shared.0.load(Relaxed);
        for setter in setters {
            setter.join().unwrap();
        }
        assert!(seen == 2 || probe.wakes() == 1, "a wake is lost");
        drop((shared, waker));
        assert_eq!(StdArc::strong_count(&probe), 1);
    });
}

/// The waiting side changes its waker while another thread takes it and a third wakes: the pair of words is never torn,
/// no waker is lost or doubled, and the flag is seen or the newest waker woken.
#[test]
fn register_against_take_and_register() {
    for exclusive in [false, true] {
        model(2, move || {
            let flag = Flag::new();
            let (old, old_waker) = Probe::new();
            let (new, new_waker) = Probe::new();
            flag.slot.register(&old_waker);
            let (a, b) = (flag.clone(), flag.clone());
            let taker = thread::spawn(move || a.slot.take());
            let setter = thread::spawn(move || b.set());

            #[expect(unsafe_code, reason = "register_exclusive")]
            if exclusive {
                // SAFETY: only this thread registers.
                unsafe { flag.slot.register_exclusive(&new_waker) };
            } else {
                flag.slot.register(&new_waker);
            }
            let seen = flag.set.load(Relaxed);

            let taken = taker.join().unwrap();
            setter.join().unwrap();
            let took_new = taken
                .as_ref()
                .is_some_and(|taken| taken.will_wake(&new_waker));
            assert!(seen || new.wakes() == 1 || took_new, "the wake is lost");
            assert!(old.wakes() + new.wakes() <= 2);
            drop((taken, old_waker, new_waker, flag));
            assert_eq!(
                (StdArc::strong_count(&old), StdArc::strong_count(&new)),
                (1, 1)
            );
        });
    }
}

/// Two waiting sides break the contract: one of them is woken at once or both get in, and no waker is lost or doubled.
#[test]
fn register_against_register() {
    model(2, || {
        let slot = Arc::new(AtomicWaker::new());
        let (a, a_waker) = Probe::new();
        let (b, b_waker) = Probe::new();
        let other = slot.clone();
        let rival = thread::spawn(move || other.register(&a_waker));
        slot.register(&b_waker);
        slot.wake();
        rival.join().unwrap();
        slot.wake();
        assert!(a.wakes() + b.wakes() >= 1);
        drop((slot, b_waker));
        assert_eq!((StdArc::strong_count(&a), StdArc::strong_count(&b)), (1, 1));
    });
}
