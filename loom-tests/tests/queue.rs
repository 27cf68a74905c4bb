//! Models of `Queue`: grants against cancelled waiters, shutdown, and `join` against `task_done`. The desk (`desk.rs`)
//! is what is modelled as much as the queue.
//!
//! Seen to fail: with a getter that does not pass its item on when it is dropped, or a putter its place
//! (`put_against_a_cancelled_get`, `get_against_a_cancelled_put`, `a_getter_that_gives_up_against_another`); with a `get`
//! that gets in line without a second look after it has cloned its waker (`immediate_shutdown_against_get_put_and_join`
//! hangs), a `join` that does the same (`join_against_task_done` hangs), and a shutdown that leaves getters
//! waiting (both models of shutdown hang).
#![cfg(rt_loom)]

use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::thread;

use rt_loom_tests::model::{Probe, model};
use rt_sync::primitive::Arc;
use rt_sync::queue::{Queue, QueueShutDown, Shutdown};

/// A put against a get that waits: the item arrives, whichever comes first.
#[test]
fn put_against_get() {
    model(3, || {
        let queue = Arc::new(Queue::new(1));
        let other = queue.clone();
        let putter = thread::spawn(move || {
            block_on(other.put(1)).unwrap();
            block_on(other.put(2)).unwrap();
        });
        assert_eq!(block_on(queue.get()), Ok(1));
        assert_eq!(block_on(queue.get()), Ok(2));
        putter.join().unwrap();
        assert!(queue.is_empty());
    });
}

/// A getter is dropped while another thread puts: the item goes to the getter behind it.
#[test]
fn put_against_a_cancelled_get() {
    model(3, || {
        let queue = Arc::new(Queue::unbounded());
        let (first_probe, first_waker) = Probe::new();
        let (second_probe, second_waker) = Probe::new();
        let mut first = Box::pin(queue.get());
        let mut second = Box::pin(queue.get());
        let mut cx = Context::from_waker(&second_waker);
        assert!(
            first
                .as_mut()
                .poll(&mut Context::from_waker(&first_waker))
                .is_pending()
        );
        assert!(second.as_mut().poll(&mut cx).is_pending());
        let other = queue.clone();
        let putter = thread::spawn(move || other.try_put(1).unwrap());
        drop(first);
        putter.join().unwrap();
        assert_eq!(second_probe.wakes(), 1);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Ready(Ok(1)));
        drop(second);
        drop((first_waker, second_waker));
        assert!(first_probe.wakes() <= 1);
        assert_eq!(StdArc::strong_count(&first_probe), 1);
        assert_eq!(StdArc::strong_count(&second_probe), 1);
        assert!(queue.is_empty());
    });
}

/// A putter is dropped while another thread takes the item whose place it waits for: the place is not lost, and the
/// item of the dropped one does not show.
#[test]
fn get_against_a_cancelled_put() {
    model(3, || {
        let queue = Arc::new(Queue::new(1));
        queue.try_put(1).unwrap();
        let (second_probe, second_waker) = Probe::new();
        let mut first = Box::pin(queue.put(2));
        let mut second = Box::pin(queue.put(3));
        let mut cx = Context::from_waker(&second_waker);
        assert!(
            first
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert!(second.as_mut().poll(&mut cx).is_pending());
        let other = queue.clone();
        let getter = thread::spawn(move || assert_eq!(other.try_get(), Ok(1)));
        drop(first);
        getter.join().unwrap();
        assert_eq!(second_probe.wakes(), 1);
        assert_eq!(second.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
        assert_eq!(queue.try_get(), Ok(3));
        assert!(queue.try_get().is_err());
    });
}

/// Two getters on two threads, one of which gives up at some point; two items are put: what the one that gave up did
/// not take is there for the other.
#[test]
fn a_getter_that_gives_up_against_another() {
    model(2, || {
        let queue = Arc::new(Queue::unbounded());
        let other = queue.clone();
        let fickle = thread::spawn(move || {
            let mut get = Box::pin(other.get());
            let mut cx = Context::from_waker(Waker::noop());
            let first = get.as_mut().poll(&mut cx);
            thread::yield_now();
            match first {
                Poll::Ready(item) => Some(item.unwrap()),
                Poll::Pending => None,
            }
        });
        let other = queue.clone();
        let putter = thread::spawn(move || {
            other.try_put(1).unwrap();
            other.try_put(2).unwrap();
        });
        let mut sum = block_on(queue.get()).unwrap();
        putter.join().unwrap();
        sum += fickle.join().unwrap().unwrap_or(0);
        while let Ok(item) = queue.try_get() {
            sum += item;
        }
        assert_eq!(sum, 3);
    });
}

/// The last `task_done` comes while `join` gets in line: it is seen, or `join` is woken.
#[test]
fn join_against_task_done() {
    model(3, || {
        let queue = Arc::new(Queue::unbounded());
        queue.try_put(1).unwrap();
        queue.try_put(2).unwrap();
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    queue.try_get().unwrap();
                    queue.task_done().unwrap();
                })
            })
            .collect();
        block_on(queue.join());
        assert!(queue.is_empty());
        for worker in workers {
            worker.join().unwrap();
        }
        queue.task_done().unwrap_err();
    });
}

/// A draining shutdown against a put and a get: the get ends, with the item if and only if the put put it.
#[test]
fn shutdown_against_get_and_put() {
    model(2, || {
        let queue = Arc::new(Queue::unbounded());
        let (a, b) = (queue.clone(), queue.clone());
        let putter = thread::spawn(move || block_on(a.put(1)).is_ok());
        let ender = thread::spawn(move || b.shutdown(Shutdown::Draining));
        let got = block_on(queue.get());
        let put = putter.join().unwrap();
        ender.join().unwrap();
        assert_eq!(got, if put { Ok(1) } else { Err(QueueShutDown(())) });
        assert_eq!(block_on(queue.get()), Err(QueueShutDown(())));
    });
}

/// An immediate shutdown against a get and a put that waits: both end, and so does `join`.
#[test]
fn immediate_shutdown_against_get_put_and_join() {
    model(2, || {
        let queue = Arc::new(Queue::new(1));
        queue.try_put(1).unwrap();
        let (a, b) = (queue.clone(), queue.clone());
        let putter = thread::spawn(move || block_on(a.put(2)).is_ok());
        let ender = thread::spawn(move || b.shutdown(Shutdown::Immediate));
        let mut got = 0;
        while let Ok(_item) = block_on(queue.get()) {
            got += 1;
            queue.task_done().unwrap();
        }
        block_on(queue.join());
        let put = putter.join().unwrap();
        ender.join().unwrap();
        assert!(got <= 1 + usize::from(put));
        assert!(queue.is_empty());
    });
}

/// The waker is changed while the item comes: the newest is woken, or the item is seen.
#[test]
fn a_new_waker_against_put() {
    model(3, || {
        let queue = Arc::new(Queue::unbounded());
        let (old, old_waker) = Probe::new();
        let (new, new_waker) = Probe::new();
        let mut get = Box::pin(queue.get());
        assert!(
            get.as_mut()
                .poll(&mut Context::from_waker(&old_waker))
                .is_pending()
        );
        let other = queue.clone();
        let putter = thread::spawn(move || other.try_put(1).unwrap());
        let seen = get.as_mut().poll(&mut Context::from_waker(&new_waker));
        putter.join().unwrap();
        assert!(seen.is_ready() || new.wakes() == 1);
        drop(get);
        drop((old_waker, new_waker));
        assert_eq!(StdArc::strong_count(&old), 1);
        assert_eq!(StdArc::strong_count(&new), 1);
    });
}
