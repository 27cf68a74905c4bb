use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

use futures_lite::future::{block_on, yield_now};

use super::*;
use crate::coop;
use crate::testing::{Probe, at_once as now, limited, poll};
use crate::wait::{self, WaitKind};

#[test]
fn bounds() {
    fn send_and_sync<T: Send + Sync>(_: &T) {}
    let cell = OnceCell::<Vec<u8>>::new();
    send_and_sync(&cell);
    send_and_sync(&cell.get_or_init(|| ready(vec![])));
    send_and_sync(&cell.get_or_try_init(|| ready(Err(()))));
}

#[test]
fn it_is_made_once() {
    let cell = OnceCell::new();
    assert!(!cell.initialized() && cell.get().is_none());
    assert_eq!(now(cell.get_or_init(|| ready(1))), Some(&1));
    assert_eq!(
        now(cell.get_or_init(|| async { panic!("again") })),
        Some(&1)
    );
    assert_eq!(now(cell.get_or_try_init(|| ready(Err("e")))), Some(Ok(&1)));
    let error = cell.set(2).unwrap_err();
    assert!(error.is_already_init_err() && !error.is_initializing_err());
    assert_eq!(error, SetError::AlreadyInitializedError(2));
}

#[test]
fn it_can_be_set_changed_and_taken() {
    static CELL: OnceCell<u8> = OnceCell::const_new_with(3);
    assert_eq!(CELL.get(), Some(&3));
    let mut cell = OnceCell::new();
    assert_eq!(cell.get_mut(), None);
    assert_eq!(cell.set(1), Ok(()));
    *cell.get_mut().unwrap() += 1;
    assert_eq!(cell, cell.clone());
    assert_ne!(cell, OnceCell::default());
    assert_eq!(cell.take(), Some(2));
    assert_eq!(cell.take(), None);
    assert_eq!(now(cell.get_or_init(|| ready(5))), Some(&5));
    assert_eq!(cell.into_inner(), Some(5));
    assert_eq!(OnceCell::from(1), OnceCell::new_with(Some(1)));
    assert_eq!(OnceCell::<u8>::new_with(None).into_inner(), None);
    assert_eq!(format!("{CELL:?}"), "OnceCell { value: Some(3) }");
}

#[test]
fn others_wait_for_who_makes_it() {
    let cell = OnceCell::new();
    let (maker, waiter) = (Probe::new(), Probe::new());
    let mut making = pin!(cell.get_or_init(|| async {
        yield_now().await;
        1
    }));
    assert!(poll(making.as_mut(), &maker).is_pending());
    let error = cell.set(2).unwrap_err();
    assert!(error.is_initializing_err() && !error.is_already_init_err());
    let mut waiting = pin!(cell.get_or_init(|| async { panic!("not mine") }));
    assert!(poll(waiting.as_mut(), &waiter).is_pending());
    let mut gone = Box::pin(cell.get_or_init(|| async { panic!("not mine") }));
    assert!(poll(gone.as_mut(), &waiter).is_pending());
    drop(gone);
    assert_eq!(waiter.alive(), 1);
    assert_eq!(poll(making, &maker), Poll::Ready(&1));
    assert_eq!((waiter.wakes(), waiter.alive()), (1, 0));
    assert_eq!(poll(waiting, &waiter), Poll::Ready(&1));
}

/// How an initialiser ends without a value.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Error,
    Panic,
    PanicBeforeTheFuture,
    Dropped,
}

#[test]
fn a_failed_initialiser_lets_the_next_one_try() {
    for how in [
        Failing::Error,
        Failing::Panic,
        Failing::PanicBeforeTheFuture,
        Failing::Dropped,
    ] {
        let cell = OnceCell::new();
        let probe = Probe::new();
        let go = std::cell::Cell::new(false);
        let mut failing = Box::pin(cell.get_or_try_init(|| {
            assert!(!matches!(how, Failing::PanicBeforeTheFuture), "{how:?}");
            async {
                while !go.get() {
                    pending_once().await;
                }
                assert!(!matches!(how, Failing::Panic), "{how:?}");
                Err::<u8, _>("failed")
            }
        }));
        let mut waiting = Box::pin(cell.get_or_init(|| ready(1)));
        if matches!(how, Failing::PanicBeforeTheFuture) {
            assert!(catch_unwind(AssertUnwindSafe(|| now(failing.as_mut()))).is_err());
            assert_eq!(now(waiting.as_mut()), Some(&1), "{how:?}");
            continue;
        }
        assert!(now(failing.as_mut()).is_none());
        assert!(poll(waiting.as_mut(), &probe).is_pending());
        go.set(true);
        match how {
            Failing::Error => assert_eq!(now(failing.as_mut()), Some(Err("failed"))),
            Failing::Panic => {
                assert!(catch_unwind(AssertUnwindSafe(|| now(failing.as_mut()))).is_err());
                // What a task that panics does.
                drop(failing);
            }
            _ => drop(failing),
        }
        assert_eq!(probe.wakes(), 1, "{how:?}");
        assert_eq!(poll(waiting.as_mut(), &probe), Poll::Ready(&1), "{how:?}");
    }
}

async fn pending_once() {
    let mut polled = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

#[test]
fn a_turn_that_was_given_to_one_that_goes_is_passed_on() {
    let cell = OnceCell::new();
    let (one, two) = (Probe::new(), Probe::new());
    let mut making = Box::pin(cell.get_or_init(pending::<u8>));
    assert!(now(making.as_mut()).is_none());
    let mut told = Box::pin(cell.get_or_init(pending::<u8>));
    let mut next = Box::pin(cell.get_or_init(|| ready(2)));
    assert!(poll(told.as_mut(), &one).is_pending());
    assert!(poll(next.as_mut(), &two).is_pending());
    drop(making);
    assert_eq!((one.wakes(), two.wakes()), (1, 0));
    drop(told);
    assert_eq!(two.wakes(), 1);
    assert_eq!(poll(next.as_mut(), &two), Poll::Ready(&2));
}

#[test]
fn the_future_goes_before_the_next_one_begins() {
    /// What the first initialiser keeps: the next may not begin before it is gone.
    struct Held<'a>(&'a OnceCell<u8>, &'a AtomicUsize);
    impl Drop for Held<'_> {
        fn drop(&mut self) {
            assert!(self.0.set(9).unwrap_err().is_initializing_err());
            self.1.fetch_add(1, SeqCst);
        }
    }
    let cell = OnceCell::new();
    let drops = AtomicUsize::new(0);
    let mut making = Box::pin(cell.get_or_init(|| async {
        let _held = Held(&cell, &drops);
        pending::<u8>().await
    }));
    assert!(now(making.as_mut()).is_none());
    drop(making);
    assert_eq!(drops.load(SeqCst), 1);
    assert_eq!(cell.set(9), Ok(()));
}

#[test]
fn a_future_that_has_failed_goes_before_the_next_one_begins() {
    /// Fails at once, and looks at its cell when it is dropped.
    struct Failed<'a>(&'a OnceCell<u8>, &'a AtomicUsize);
    impl Future for Failed<'_> {
        type Output = Result<u8, ()>;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(Err(()))
        }
    }
    impl Drop for Failed<'_> {
        fn drop(&mut self) {
            assert!(self.0.set(9).unwrap_err().is_initializing_err());
            self.1.fetch_add(1, SeqCst);
        }
    }
    let cell = OnceCell::new();
    let drops = AtomicUsize::new(0);
    let mut making = pin!(cell.get_or_try_init(|| Failed(&cell, &drops)));
    assert_eq!(now(making.as_mut()), Some(Err(())));
    assert_eq!(drops.load(SeqCst), 1);
    assert_eq!(cell.set(9), Ok(()));
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_poll_after_the_end_says_so() {
    let cell = OnceCell::new();
    let mut future = pin!(cell.get_or_init(|| ready(1)));
    assert!(now(future.as_mut()).is_some());
    let _ = now(future);
}

#[test]
fn the_budget_is_spent_and_the_wait_is_recorded() {
    let cell = OnceCell::new();
    let probe = Probe::new();
    let saved = coop::start();
    let mut yields = 0;
    for _ in 0..10_000 {
        while poll(pin!(cell.get_or_init(|| ready(1))), &probe).is_pending() {
            yields += 1;
            let _ = coop::start();
        }
    }
    coop::restore(saved);
    assert_eq!(yields, 10_000 / usize::from(coop::BUDGET));

    let cell = OnceCell::new();
    let mut making = pin!(cell.get_or_init(pending::<u8>));
    assert!(now(making.as_mut()).is_none());
    let _ = wait::take();
    let line = line!() + 1;
    assert!(now(cell.get_or_init(|| ready(1))).is_none());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::OnceCell);
    assert_eq!(wait.site.map(Location::line), Some(line));
}

#[test]
fn many_threads_get_the_same() {
    limited(|| {
        for _ in 0..200 {
            let cell = Arc::new(OnceCell::new());
            let tries = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (cell, tries) = (cell.clone(), tries.clone());
                    std::thread::spawn(move || {
                        block_on(async {
                            loop {
                                let value = cell.get_or_try_init(|| async {
                                    yield_now().await;
                                    // The first two fail.
                                    match tries.fetch_add(1, SeqCst) {
                                        0 | 1 => Err(()),
                                        n => Ok(n),
                                    }
                                });
                                if let Ok(value) = value.await {
                                    return *value;
                                }
                            }
                        })
                    })
                })
                .collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), 2);
            }
        }
    });
}
