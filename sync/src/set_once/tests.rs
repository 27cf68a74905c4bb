use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::*;
use crate::testing::{Probe, limited, once, poll};

#[test]
fn bounds() {
    fn send_and_sync<T: Send + Sync>(_: &T) {}
    let once = SetOnce::<Vec<u8>>::new();
    send_and_sync(&once);
    send_and_sync(&once.wait());
}

#[test]
fn the_first_value_stays_and_completes_who_waits() {
    let once = SetOnce::new();
    let (one, two) = (Probe::new(), Probe::new());
    let mut polled = pin!(once.wait());
    let unpolled = pin!(once.wait());
    let mut gone = Box::pin(once.wait());
    assert!(poll(polled.as_mut(), &one).is_pending());
    assert!(poll(gone.as_mut(), &two).is_pending());
    drop(gone);
    assert_eq!(two.alive(), 0);
    assert!(!once.initialized() && once.get().is_none());
    assert_eq!(once.set("a"), Ok(()));
    assert_eq!(once.set("b"), Err(SetOnceError("b")));
    assert_eq!((one.wakes(), two.wakes()), (1, 0));
    assert_eq!(poll(polled, &one), Poll::Ready(&"a"));
    assert_eq!(poll(unpolled, &one), Poll::Ready(&"a"));
    assert_eq!(once, once.clone());
    assert_eq!(SetOnce::from(1).into_inner(), Some(1));
}

#[test]
fn it_can_be_made_with_a_value() {
    static ONCE: SetOnce<u8> = SetOnce::const_new_with(3);
    assert_eq!(ONCE.get(), Some(&3));
    assert_eq!(SetOnce::from(3), SetOnce::new_with(Some(3)));
    assert_eq!(SetOnce::<u8>::default().into_inner(), None);
    assert_eq!(SetOnce::<u8>::new_with(None).into_inner(), None);
    assert_eq!(format!("{ONCE:?}"), "SetOnce { value: Some(3) }");
}

#[test]
fn a_value_is_dropped_once() {
    let value = Arc::new(());
    let once = SetOnce::new();
    once.set(value.clone()).unwrap();
    assert!(once.set(value.clone()).is_err());
    assert_eq!(Arc::strong_count(&value), 2);
    drop(once);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn wakers_may_call_back_into_it() {
    limited(|| {
        let once_value = Arc::new(SetOnce::new());
        let probe = Probe::new();
        let mut waiting = pin!(once_value.wait());
        assert!(poll(waiting.as_mut(), &probe).is_pending());
        let other = once_value.clone();
        once(&probe.on_wake, move || assert!(other.set(2).is_err()));
        once_value.set(1).unwrap();
        assert_eq!(poll(waiting, &probe), Poll::Ready(&1));
    });
}

#[test]
fn the_budget_is_spent_and_the_wait_is_recorded() {
    let once = SetOnce::from(1);
    let probe = Probe::new();
    let saved = coop::start();
    let mut yields = 0;
    for _ in 0..10_000 {
        while poll(pin!(once.wait()), &probe).is_pending() {
            yields += 1;
            let _ = coop::start();
        }
    }
    coop::restore(saved);
    assert_eq!(yields, 10_000 / usize::from(coop::BUDGET));

    let _ = wait::take();
    let once = SetOnce::<u8>::new();
    let line = line!() + 1;
    assert!(poll(pin!(once.wait()), &probe).is_pending());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::OnceCell);
    assert_eq!(wait.site.map(Location::line), Some(line));
}
