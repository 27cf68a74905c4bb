use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

use futures_lite::future::block_on;

use super::error::{RecvError, SendError, TryRecvError};
use super::*;
use crate::coop;
use crate::testing::{Probe, at_once as now, limited, once, poll};
use crate::wait::{self, WaitKind};

/// Counts clones and drops.
#[derive(Default, Debug)]
struct Counts {
    clones: AtomicUsize,
    drops: AtomicUsize,
}

#[derive(Debug)]
struct Counted(Arc<Counts>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.0.clones.fetch_add(1, SeqCst);
        Self(self.0.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, SeqCst);
    }
}

#[test]
fn bounds() {
    fn send_and_sync<T: Send + Sync>() {}
    fn send<T: Send>(_: T) {}
    send_and_sync::<Sender<Vec<u8>>>();
    send_and_sync::<WeakSender<Vec<u8>>>();
    send_and_sync::<Receiver<Vec<u8>>>();
    let (sender, mut receiver) = channel::<u8>(1);
    send(receiver.recv());
    send(sender.closed());
}

#[test]
fn every_receiver_gets_every_value_that_is_sent_after_it() {
    let (sender, mut first) = channel(4);
    assert_eq!(sender.send(1).unwrap(), 1);
    let mut second = sender.subscribe();
    let mut third = first.resubscribe();
    assert_eq!(sender.receiver_count(), 3);
    assert_eq!(sender.send(2).unwrap(), 3);
    assert_eq!((first.len(), second.len(), sender.len()), (2, 1, 2));
    assert_eq!(first.try_recv(), Ok(1));
    assert_eq!(first.try_recv(), Ok(2));
    assert_eq!(first.try_recv(), Err(TryRecvError::Empty));
    assert!(first.is_empty() && !sender.is_empty());
    assert_eq!(now(second.recv()), Some(Ok(2)));
    assert_eq!(sender.len(), 1);
    assert_eq!(now(third.recv()), Some(Ok(2)));
    assert_eq!((sender.len(), sender.is_empty()), (0, true));
    assert_eq!(now(third.recv()), None);
    assert!(first.same_channel(&second));
    assert!(!sender.same_channel(&Sender::new(1)));
}

#[test]
fn a_late_receiver_is_told_how_much_it_missed() {
    // 3 is rounded up to 4.
    let (sender, mut receiver) = channel(3);
    for value in 0..4 {
        sender.send(value).unwrap();
    }
    assert_eq!(receiver.try_recv(), Ok(0));
    for value in 4..10 {
        sender.send(value).unwrap();
    }
    assert_eq!((receiver.len(), sender.len()), (9, 4));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Lagged(5)));
    assert_eq!((receiver.len(), sender.len()), (4, 4));
    for value in 6..10 {
        assert_eq!(now(receiver.recv()), Some(Ok(value)));
    }
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn without_receivers_send_gives_the_value_back() {
    let (sender, receiver) = channel(2);
    drop(receiver);
    let Err(SendError(back)) = sender.send(String::from("x")) else {
        panic!("there is nobody");
    };
    assert_eq!(back, "x");
    let mut receiver = sender.subscribe();
    assert_eq!(sender.send(back).unwrap(), 1);
    assert_eq!(receiver.try_recv().unwrap(), "x");
}

#[test]
fn the_end_comes_after_the_values_and_weak_senders_do_not_delay_it() {
    let (sender, mut receiver) = channel(2);
    let weak = sender.downgrade();
    let other = weak.clone().upgrade().unwrap();
    assert_eq!((sender.strong_count(), weak.strong_count()), (2, 2));
    assert_eq!((sender.weak_count(), receiver.sender_weak_count()), (1, 1));
    assert_eq!(receiver.sender_strong_count(), 2);
    other.send(1).unwrap();
    drop(other);
    let probe = Probe::new();
    assert_eq!(poll(pin!(receiver.recv()), &probe), Poll::Ready(Ok(1)));
    let mut waiting = Box::pin(receiver.recv());
    assert!(poll(waiting.as_mut(), &probe).is_pending());
    sender.send(2).unwrap();
    drop(sender);
    assert_eq!(probe.wakes(), 1);
    assert_eq!(poll(waiting.as_mut(), &probe), Poll::Ready(Ok(2)));
    drop(waiting);
    assert!(receiver.is_closed());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(now(receiver.recv()), Some(Err(RecvError::Closed)));
    assert!(weak.upgrade().is_none());

    let (sender, mut receiver) = channel::<u8>(2);
    let mut waiting = pin!(receiver.recv());
    assert!(poll(waiting.as_mut(), &probe).is_pending());
    drop(sender);
    assert_eq!(probe.wakes(), 2);
    assert_eq!(poll(waiting, &probe), Poll::Ready(Err(RecvError::Closed)));
}

#[test]
fn values_are_dropped_with_the_last_who_wants_them_and_the_last_gets_the_original() {
    let (sender, mut first) = channel(2);
    let mut second = sender.subscribe();
    let counts = Arc::new(Counts::default());
    let count = || (counts.clones.load(SeqCst), counts.drops.load(SeqCst));
    sender.send(Counted(counts.clone())).unwrap();
    drop(first.try_recv().unwrap());
    assert_eq!(count(), (1, 1));
    drop(second.try_recv().unwrap());
    assert_eq!(count(), (1, 2));
    // Overwritten.
    for _ in 0..3 {
        sender.send(Counted(counts.clone())).unwrap();
    }
    assert_eq!(count(), (1, 3));
    // Nobody wants them any more.
    drop(first);
    assert_eq!(count(), (1, 3));
    drop(second);
    assert_eq!(count(), (1, 5));
    assert!(sender.is_empty());
    // Refused.
    assert!(sender.send(Counted(counts.clone())).is_err());
    assert_eq!(count(), (1, 6));
    // With the channel.
    let receiver = sender.subscribe();
    sender.send(Counted(counts.clone())).unwrap();
    drop(sender);
    drop(receiver);
    assert_eq!(count(), (1, 7));
}

/// A value whose clone and drop use the channel that it is in, and wait for other threads that do.
struct Curious {
    sender: WeakSender<Curious>,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Clone for Curious {
    fn clone(&self) -> Self {
        self.log.lock().unwrap().push("clone");
        self.look();
        Self {
            sender: self.sender.clone(),
            log: self.log.clone(),
        }
    }
}

impl Drop for Curious {
    fn drop(&mut self) {
        self.log.lock().unwrap().push("drop");
        self.look();
    }
}

impl Curious {
    /// Hangs if a lock of the channel is held by whoever clones or drops us.
    fn look(&self) {
        if let Some(sender) = self.sender.upgrade() {
            let thread = std::thread::spawn(move || {
                let mut late = sender.subscribe();
                assert!(late.try_recv().is_err());
                (sender.len(), sender.is_empty())
            });
            thread.join().unwrap();
        }
    }
}

#[test]
fn clones_and_drops_run_without_a_lock() {
    limited(|| {
        let (sender, mut first) = channel(1);
        let mut second = sender.subscribe();
        let log = Arc::new(Mutex::new(Vec::new()));
        let value = || Curious {
            sender: sender.downgrade(),
            log: log.clone(),
        };
        assert!(sender.send(value()).is_ok());
        drop(first.try_recv().ok().unwrap());
        drop(second.try_recv().ok().unwrap());
        assert_eq!(*log.lock().unwrap(), ["clone", "drop", "drop"]);
        assert!(sender.send(value()).is_ok());
        assert!(sender.send(value()).is_ok());
        drop(first);
        drop(second);
        assert_eq!(log.lock().unwrap().len(), 5);
    });
}

#[test]
fn a_clone_that_takes_long_keeps_nobody_waiting() {
    /// Clones on the thread named `slow` wait until they are told.
    struct Slow(Arc<Mutex<mpsc::Receiver<()>>>, mpsc::Sender<()>, u32);
    impl Clone for Slow {
        fn clone(&self) -> Self {
            if std::thread::current().name() == Some("slow") {
                self.1.send(()).unwrap();
                self.0.lock().unwrap().recv().unwrap();
            }
            Self(self.0.clone(), self.1.clone(), self.2)
        }
    }
    limited(|| {
        let (sender, mut slow) = channel(1);
        let mut quick = [sender.subscribe(), sender.subscribe()];
        let (go_on, told) = mpsc::channel();
        let (begun, is_cloning) = mpsc::channel();
        let told = Arc::new(Mutex::new(told));
        let value = |n| Slow(told.clone(), begun.clone(), n);
        assert!(sender.send(value(1)).is_ok());
        let thread = std::thread::Builder::new()
            .name("slow".into())
            .spawn(move || slow.try_recv().ok().unwrap().2)
            .unwrap();
        is_cloning.recv().unwrap();
        for receiver in &mut quick {
            assert_eq!(receiver.try_recv().ok().unwrap().2, 1);
        }
        // Round the ring, over the value that is being cloned.
        assert!(sender.send(value(2)).is_ok());
        assert_eq!(quick[0].try_recv().ok().unwrap().2, 2);
        assert_eq!(sender.more_cells(), (1, 0));
        go_on.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), 1);
        assert_eq!(sender.more_cells(), (1, 1));
    });
}

#[test]
fn a_value_that_is_late_while_it_is_cloned_is_dropped_after_that_and_its_cell_used_again() {
    /// Sends through its own channel, round the ring, when it is cloned.
    struct Sends(Counted, Option<Sender<Sends>>);
    impl Clone for Sends {
        fn clone(&self) -> Self {
            if let Some(sender) = &self.1 {
                assert!(sender.send(Self(self.0.clone(), None)).is_ok());
                assert_eq!(sender.more_cells(), (1, 0));
            }
            Self(self.0.clone(), None)
        }
    }
    limited(|| {
        let counts = Arc::new(Counts::default());
        let count = || (counts.clones.load(SeqCst), counts.drops.load(SeqCst));
        let (sender, mut first) = channel(1);
        let mut second = sender.subscribe();
        for round in 1..=3 {
            let value = Sends(Counted(counts.clone()), Some(sender.clone()));
            assert!(sender.send(value).is_ok());
            // The first value is the only one that is dropped so far: its other share is late.
            let clone = first.try_recv().ok().unwrap();
            assert_eq!(count(), (2 + 3 * (round - 1), 1 + 4 * (round - 1)));
            drop(clone);
            assert_eq!(sender.more_cells(), (1, 1));
            assert!(matches!(second.try_recv(), Err(TryRecvError::Lagged(1))));
            drop(first.try_recv().ok().unwrap());
            drop(second.try_recv().ok().unwrap());
            assert_eq!(count(), (3 * round, 4 * round));
            assert!(sender.is_empty());
        }
    });
}

#[test]
fn panics_of_clone_and_drop_lose_nothing_else() {
    #[derive(Debug)]
    struct Bad(Counted, bool);
    impl Clone for Bad {
        fn clone(&self) -> Self {
            assert!(!self.1, "clone");
            Self(self.0.clone(), false)
        }
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            assert!(!self.1, "drop");
        }
    }
    limited(|| {
        let counts = Arc::new(Counts::default());
        let drops = || counts.drops.load(SeqCst);
        let value = |bad| Bad(Counted(counts.clone()), bad);
        let (sender, mut first) = channel(2);
        let mut second = sender.subscribe();
        sender.send(value(true)).unwrap();
        sender.send(value(false)).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| first.try_recv())).is_err());
        assert!(first.try_recv().is_ok());
        // Overwriting the bad one: the new value is there all the same, and its receivers are told.
        let probe = Probe::new();
        let mut waiting = Box::pin(first.recv());
        assert!(poll(waiting.as_mut(), &probe).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| sender.send(value(true)))).is_err());
        assert_eq!(probe.wakes(), 1);
        drop(waiting);
        sender.send(value(false)).unwrap();
        assert_eq!(second.try_recv().unwrap_err(), TryRecvError::Lagged(2));
        // A receiver that goes drops the rest, and the sender is told.
        drop(second);
        let mut closed = pin!(sender.closed());
        assert!(poll(closed.as_mut(), &probe).is_pending());
        let before = drops();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(first))).is_err());
        assert_eq!(drops() - before, 2);
        assert_eq!(probe.wakes(), 2);
        assert!(poll(closed, &probe).is_ready());
    });
}

#[test]
fn closed_waits_for_the_last_receiver() {
    let (sender, receiver) = channel::<u8>(1);
    let probe = Probe::new();
    let other = sender.subscribe();
    let mut closed = pin!(sender.closed());
    assert!(poll(closed.as_mut(), &probe).is_pending());
    drop(receiver);
    assert_eq!(probe.wakes(), 0);
    drop(other);
    assert_eq!(probe.wakes(), 1);
    let again = sender.subscribe();
    assert!(poll(closed.as_mut(), &probe).is_pending());
    drop(again);
    assert!(poll(closed, &probe).is_ready());
    assert_eq!(probe.alive(), 0);
}

#[test]
fn a_future_that_goes_takes_its_waker_along_and_loses_no_value() {
    let (sender, mut receiver) = channel(1);
    let probe = Probe::new();
    let mut waiting = Box::pin(receiver.recv());
    assert!(poll(waiting.as_mut(), &probe).is_pending());
    drop(waiting);
    assert_eq!(probe.alive(), 0);
    let mut waiting = Box::pin(receiver.recv());
    assert!(poll(waiting.as_mut(), &probe).is_pending());
    sender.send(7).unwrap();
    drop(waiting);
    assert_eq!((probe.wakes(), probe.alive()), (1, 0));
    assert_eq!(receiver.try_recv(), Ok(7));
}

#[test]
fn wakers_may_call_back_into_the_channel() {
    limited(|| {
        let (sender, mut receiver) = channel(2);
        let probe = Probe::new();
        let mut waiting = Box::pin(receiver.recv());
        assert!(poll(waiting.as_mut(), &probe).is_pending());
        let other = sender.clone();
        once(&probe.on_wake, move || assert!(other.send(2).is_ok()));
        sender.send(1).unwrap();
        assert_eq!(poll(waiting.as_mut(), &probe), Poll::Ready(Ok(1)));
        drop(waiting);
        assert_eq!(receiver.try_recv(), Ok(2));
    });
}

#[test]
fn capacities_that_cannot_be_are_refused() {
    for capacity in [0, usize::MAX / 2 + 1] {
        let payload = catch_unwind(|| channel::<u8>(capacity)).unwrap_err();
        let message = payload.downcast_ref::<String>().cloned();
        let message = message.or_else(|| payload.downcast_ref::<&str>().map(|&s| s.into()));
        assert!(message.unwrap().contains(&format!("capacity {capacity}")));
    }
}

#[test]
fn the_budget_is_spent_and_the_wait_is_recorded() {
    let (sender, mut receiver) = channel(1);
    let probe = Probe::new();
    let saved = coop::start();
    let mut yields = 0;
    for value in 0..10_000 {
        sender.send(value).unwrap();
        while poll(pin!(receiver.recv()), &probe).is_pending() {
            yields += 1;
            let _ = coop::start();
        }
    }
    coop::restore(saved);
    assert_eq!(yields, 10_000 / usize::from(coop::BUDGET));

    let _ = wait::take();
    let line = line!() + 1;
    assert!(now(receiver.recv()).is_none());
    let wait = wait::take();
    assert_eq!(wait.kind, WaitKind::Broadcast);
    assert_eq!(wait.site.map(Location::line), Some(line));
}

#[test]
fn blocking_recv_panics_inside_a_task_and_waits_outside() {
    limited(|| {
        let (sender, mut receiver) = channel(1);
        let saved = coop::start();
        let inside = catch_unwind(AssertUnwindSafe(|| receiver.blocking_recv()));
        coop::restore(saved);
        let message = inside.unwrap_err();
        assert!(message.downcast_ref::<String>().unwrap().contains("recv()"));
        let thread = std::thread::spawn(move || receiver.blocking_recv());
        sender.send(1).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(1));
    });
}

#[test]
fn values_stay_in_order_between_threads() {
    limited(|| {
        const VALUES: u64 = 20_000;
        let (sender, receiver) = channel(16);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let mut receiver = receiver.resubscribe();
                std::thread::spawn(move || {
                    let mut next = 0;
                    loop {
                        match block_on(receiver.recv()) {
                            Ok(value) => {
                                assert_eq!(value, next);
                                next += 1;
                            }
                            Err(RecvError::Lagged(missed)) => {
                                assert!(missed > 0);
                                next += missed;
                            }
                            Err(RecvError::Closed) => return next,
                        }
                    }
                })
            })
            .collect();
        drop(receiver);
        for value in 0..VALUES {
            sender.send(value).unwrap();
        }
        drop(sender);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), VALUES);
        }
    });
}
