use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};

use super::*;
use crate::coop;
use crate::testing::{Probe, limited, once};
use crate::wait::{self, WaitKind};

fn poll<F: Future + Unpin>(future: &mut F, probe: &Arc<Probe>) -> Poll<F::Output> {
    let waker = probe.waker();
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// Counts its drops.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn counted() -> (Counted, impl Fn() -> usize) {
    let drops = Arc::new(AtomicUsize::new(0));
    (Counted(drops.clone()), move || drops.load(SeqCst))
}

#[test]
fn a_value_sent_before_is_received() {
    let (sender, mut receiver) = channel();
    assert!(receiver.is_empty());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(sender.send(7), Ok(()));
    assert!(!receiver.is_empty());
    assert!(!receiver.is_terminated());
    assert_eq!(receiver.try_recv(), Ok(7));
    assert!(receiver.is_empty());
    assert!(receiver.is_terminated());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn send_wakes_the_receiver_that_waits() {
    let probe = Probe::new();
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &probe).is_pending());
    assert!(poll(&mut receiver, &probe).is_pending());
    assert_eq!(sender.send("x"), Ok(()));
    assert_eq!((probe.wakes(), probe.alive()), (1, 0));
    assert_eq!(poll(&mut receiver, &probe), Poll::Ready(Ok("x")));
}

#[test]
fn a_sender_that_goes_tells_the_receiver() {
    let probe = Probe::new();
    let (sender, mut receiver) = channel::<u8>();
    assert!(poll(&mut receiver, &probe).is_pending());
    drop(sender);
    assert_eq!(probe.wakes(), 1);
    assert_eq!(poll(&mut receiver, &probe), Poll::Ready(Err(RecvError(()))));
    assert!(receiver.is_terminated());
}

#[test]
fn a_receiver_that_goes_tells_the_sender_and_drops_its_waker() {
    let (rx, tx) = (Probe::new(), Probe::new());
    let (mut sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &rx).is_pending());
    assert!(poll(&mut Box::pin(async { sender.closed().await }), &tx).is_pending());
    // The future has gone, and its waker with it.
    assert_eq!(tx.alive(), 0);
    let waker = tx.waker();
    assert!(
        sender
            .poll_closed(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    assert!(!sender.is_closed());
    drop(receiver);
    assert_eq!((rx.wakes(), rx.alive()), (0, 0));
    assert_eq!((tx.wakes(), tx.alive()), (1, 0));
    assert!(sender.is_closed());
    assert!(poll(&mut pin!(sender.closed()), &tx).is_ready());
    let (value, drops) = counted();
    let _ = sender
        .send(value)
        .map_err(|value| assert_eq!((value.0.load(SeqCst), drops()), (0, 0)));
    assert_eq!(drops(), 1);
}

#[test]
fn close_refuses_a_later_value_and_keeps_an_earlier_one() {
    let (sender, mut receiver) = channel();
    receiver.close();
    receiver.close();
    assert!(sender.is_closed());
    assert_eq!(sender.send(1), Err(1));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));

    let (sender, mut receiver) = channel();
    assert_eq!(sender.send(1), Ok(()));
    receiver.close();
    assert_eq!(receiver.try_recv(), Ok(1));

    let (tx, rx) = (Probe::new(), Probe::new());
    let (mut sender, mut receiver) = channel::<u8>();
    let mut closed = sender.closed();
    assert!(poll(&mut closed, &tx).is_pending());
    receiver.close();
    assert_eq!(tx.wakes(), 1);
    assert!(poll(&mut closed, &tx).is_ready());
    assert_eq!(poll(&mut receiver, &rx), Poll::Ready(Err(RecvError(()))));
}

#[test]
fn a_value_nobody_took_is_dropped_once_with_the_receiver() {
    let (value, drops) = counted();
    let (sender, receiver) = channel();
    sender.send(value).unwrap();
    assert_eq!(drops(), 0);
    drop(receiver);
    assert_eq!(drops(), 1);
}

#[test]
fn a_received_value_is_dropped_once_by_its_new_owner() {
    let (value, drops) = counted();
    let (sender, receiver) = channel();
    sender.send(value).unwrap();
    let value = receiver.blocking_recv().unwrap();
    assert_eq!(drops(), 0);
    drop(value);
    assert_eq!(drops(), 1);
}

#[test]
fn a_panic_in_the_destructor_of_a_value_leaks_nothing() {
    struct Bad(#[expect(dead_code, reason = "dropped after `Bad` itself")] Counted);
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("drop");
        }
    }
    let (value, drops) = counted();
    let (sender, receiver) = channel();
    assert!(sender.send(Bad(value)).is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
    assert_eq!(drops(), 1);
}

#[test]
fn panics_in_wakers_lose_neither_value_nor_wake() {
    // `wake` panics in `send`: the value is there all the same.
    let probe = Probe::new();
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &probe).is_pending());
    once(&probe.on_wake, || panic!("wake"));
    assert!(catch_unwind(AssertUnwindSafe(|| sender.send(5))).is_err());
    assert_eq!(receiver.try_recv(), Ok(5));

    // The sender's own waker panics when it is dropped: the receiver has been woken.
    let (rx, tx) = (Probe::new(), Probe::new());
    let (mut sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &rx).is_pending());
    let waker = tx.waker();
    assert!(
        sender
            .poll_closed(&mut Context::from_waker(&waker))
            .is_pending()
    );
    once(&tx.on_drop, || panic!("drop"));
    assert!(catch_unwind(AssertUnwindSafe(|| sender.send(6))).is_err());
    assert_eq!(rx.wakes(), 1);
    assert_eq!(receiver.try_recv(), Ok(6));

    // `clone` panics in `poll`: the receiver can be polled again.
    let (sender, mut receiver) = channel();
    once(&rx.on_clone, || panic!("clone"));
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut receiver, &rx))).is_err());
    assert!(poll(&mut receiver, &rx).is_pending());
    assert_eq!(sender.send(8), Ok(()));
    assert_eq!((rx.wakes(), receiver.try_recv()), (2, Ok(8)));
}

#[test]
fn another_waker_replaces_the_old_one() {
    let (old, new) = (Probe::new(), Probe::new());
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver, &old).is_pending());
    assert!(poll(&mut receiver, &new).is_pending());
    assert_eq!((old.alive(), new.alive()), (0, 1));
    assert_eq!(sender.send(()), Ok(()));
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
}

#[test]
fn wakers_may_call_back_into_the_same_channel() {
    limited(|| {
        // The receiver is dropped by the wake of `send`, and the sender by the wake of the receiver's drop.
        let probe = Probe::new();
        let (value, drops) = counted();
        let (sender, mut receiver) = channel();
        assert!(poll(&mut receiver, &probe).is_pending());
        once(&probe.on_wake, move || drop(receiver));
        sender.send(value).unwrap();
        assert_eq!(drops(), 1);

        let (mut sender, receiver) = channel::<u8>();
        let waker = probe.waker();
        assert!(
            sender
                .poll_closed(&mut Context::from_waker(&waker))
                .is_pending()
        );
        once(&probe.on_wake, move || assert_eq!(sender.send(1), Err(1)));
        drop(receiver);
        assert_eq!(probe.wakes(), 2);
    });
}

#[test]
fn blocking_recv_waits_for_another_thread() {
    limited(|| {
        let (sender, receiver) = channel();
        let (ready, go) = channel();
        let waiting = std::thread::spawn(move || {
            ready.send(()).unwrap();
            receiver.blocking_recv()
        });
        go.blocking_recv().unwrap();
        sender.send(3).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(3));
        let (sender, receiver) = channel::<u8>();
        drop(sender);
        assert_eq!(receiver.blocking_recv(), Err(RecvError(())));
    });
}

#[test]
fn the_budget_is_spent_by_a_value_and_the_wait_is_recorded() {
    let probe = Probe::new();
    let saved = coop::start();
    let mut done = 0;
    while coop::budget_left() {
        let (sender, mut receiver) = channel();
        sender.send(()).unwrap();
        assert!(poll(&mut receiver, &probe).is_ready());
        done += 1;
    }
    assert_eq!(done, coop::BUDGET);
    let (sender, mut receiver) = channel();
    sender.send(()).unwrap();
    assert!(poll(&mut receiver, &probe).is_pending());
    assert_eq!(probe.wakes(), 1);
    coop::restore(saved);
    assert!(poll(&mut receiver, &probe).is_ready());

    let _ = wait::take();
    let (_sender, mut receiver) = channel::<()>();
    let line = line!() - 1;
    assert!(poll(&mut receiver, &probe).is_pending());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Oneshot);
    assert_eq!(
        wait.site.map(|site| (site.file(), site.line())),
        Some((file!(), line))
    );
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_poll_after_the_end_says_so() {
    let (sender, mut receiver) = channel();
    sender.send(()).unwrap();
    assert!(poll(&mut receiver, &Probe::new()).is_ready());
    let _ = poll(&mut receiver, &Probe::new());
}

#[test]
fn blocking_recv_panics_inside_a_task() {
    let (_sender, receiver) = channel::<u8>();
    let saved = coop::start();
    let inside = catch_unwind(AssertUnwindSafe(|| receiver.blocking_recv()));
    coop::restore(saved);
    let message = inside.unwrap_err();
    assert!(
        message
            .downcast_ref::<String>()
            .unwrap()
            .contains("inside a task")
    );
}

#[test]
fn bounds() {
    fn send_and_sync<T: Send + Sync>() {}
    // What is sent need not be `Sync`.
    send_and_sync::<Sender<std::cell::Cell<u8>>>();
    send_and_sync::<Receiver<std::cell::Cell<u8>>>();
    send_and_sync::<Closed<'static, std::cell::Cell<u8>>>();
}
