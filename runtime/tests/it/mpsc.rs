//! `mpsc` between tasks of a runtime.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rt::runtime::{Builder, Runtime};
use rt::sync::mpsc::error::SendTimeoutError;
use rt::sync::{mpsc, oneshot};
use rt::task::yield_now;
use rt::time::{SendTimeoutExt, timeout};

use crate::support::within_limit;

/// Runs the test on runtimes of 0, 1 and 3 workers.
fn on_each(test: fn(&Runtime)) {
    within_limit(move || {
        for workers in [0, 1, 3] {
            let runtime = match workers {
                0 => Builder::new_current_thread().build(),
                _ => Builder::new_multi_thread().worker_threads(workers).build(),
            };
            test(&runtime.expect("a runtime"));
        }
    });
}

const SENDERS: usize = 5;
const EACH: usize = 20_000;

fn in_order(next: &mut [usize; SENDERS], (who, n): (usize, usize)) {
    assert_eq!(n, next[who]);
    next[who] += 1;
}

#[test]
fn values_of_each_sender_keep_their_order() {
    on_each(|runtime| {
        runtime.block_on(async {
            for capacity in [1, 100] {
                let (sender, mut receiver) = mpsc::channel(capacity);
                for who in 0..SENDERS {
                    let sender = sender.clone();
                    rt::spawn(async move {
                        for n in 0..EACH / 10 {
                            sender.send((who, n)).await.unwrap();
                        }
                    });
                }
                drop(sender);
                let mut next = [0; SENDERS];
                while let Some(value) = receiver.recv().await {
                    in_order(&mut next, value);
                }
                assert_eq!(next, [EACH / 10; SENDERS]);
            }
            let (sender, mut receiver) = mpsc::unbounded_channel();
            for who in 0..SENDERS {
                let sender = sender.clone();
                rt::spawn(async move {
                    for n in 0..EACH {
                        sender.send((who, n)).unwrap();
                        if n % 100 == 0 {
                            yield_now().await;
                        }
                    }
                });
            }
            drop(sender);
            let mut next = [0; SENDERS];
            let mut buffer = Vec::new();
            while receiver.recv_many(&mut buffer, 64).await > 0 {
                for value in buffer.drain(..) {
                    in_order(&mut next, value);
                }
            }
            assert_eq!(next, [EACH; SENDERS]);
        });
    });
}

/// A million values, sent and received without ever waiting: others run in between all the same.
#[test]
fn a_task_that_always_succeeds_gives_way() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, mut receiver) = mpsc::channel(16);
            let busy = rt::spawn(async move {
                for n in 0..1_000_000_u32 {
                    sender.send(n).await.unwrap();
                    assert_eq!(receiver.recv().await, Some(n));
                }
            });
            let mut turns = 0;
            while !busy.is_finished() {
                yield_now().await;
                turns += 1;
            }
            busy.await.unwrap();
            assert!(turns > 2, "{turns} turns");
        });
    });
}

/// The receiver takes one value and then waits for what the sender does only after its next one.
#[test]
fn one_slot_is_handed_out_though_the_receiver_takes_no_more() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, mut receiver) = mpsc::channel(4);
            let (done, all_sent) = oneshot::channel();
            rt::spawn(async move {
                for n in 0..5 {
                    sender.send(n).await.unwrap();
                }
                done.send(()).unwrap();
                sender.closed().await;
            });
            while receiver.len() < 4 {
                yield_now().await;
            }
            assert_eq!(receiver.recv().await, Some(0));
            all_sent.await.unwrap();
            assert_eq!(receiver.len(), 4);
        });
    });
}

#[test]
fn receives_that_time_out_lose_nothing() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, mut receiver) = mpsc::channel(2);
            rt::spawn(async move {
                for n in 0..1_000 {
                    sender.send(n).await.unwrap();
                    if n % 10 == 0 {
                        yield_now().await;
                    }
                }
            });
            let mut next = 0;
            loop {
                match timeout(Duration::ZERO, receiver.recv()).await {
                    Ok(Some(n)) => {
                        assert_eq!(n, next);
                        next += 1;
                    }
                    Ok(None) => break,
                    Err(_) => yield_now().await,
                }
            }
            assert_eq!(next, 1_000);
        });
    });
}

/// An aborted task leaves nothing of itself in a channel whose other end lives on.
#[test]
fn the_memory_of_an_aborted_task_is_freed_while_the_other_end_lives() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, mut receiver) = mpsc::channel::<u8>(1);
            let (full, _kept) = mpsc::channel::<u8>(1);
            full.try_send(0).unwrap();
            let payload = Arc::new(());
            let weak: Weak<()> = Arc::downgrade(&payload);
            let other = payload.clone();
            let sending = full.clone();
            let receiving = rt::spawn(async move {
                let _payload = payload;
                receiver.recv().await;
            });
            let waiting = rt::spawn(async move {
                let _payload = other;
                let _ = sending.send(1).await;
            });
            for _ in 0..10 {
                yield_now().await;
            }
            receiving.abort();
            waiting.abort();
            assert!(receiving.await.unwrap_err().is_cancelled());
            assert!(waiting.await.unwrap_err().is_cancelled());
            assert_eq!(weak.strong_count(), 0);
            assert!(sender.is_closed());
            assert_eq!(full.capacity(), 0);
        });
    });
}

#[test]
fn plain_threads_and_tasks_meet() {
    on_each(|runtime| {
        let (sender, mut receiver) = mpsc::channel(3);
        let (back, mut answers) = mpsc::unbounded_channel();
        let task = runtime.spawn(async move {
            while let Some(n) = receiver.recv().await {
                back.send(n * 2).unwrap();
            }
        });
        let thread = std::thread::spawn(move || {
            for n in 0..1_000 {
                sender.blocking_send(n).unwrap();
            }
        });
        let reading = std::thread::spawn(move || {
            let mut next = 0;
            while let Some(n) = answers.blocking_recv() {
                assert_eq!(n, next);
                next += 2;
            }
            assert_eq!(next, 2_000);
        });
        runtime.block_on(task).unwrap();
        thread.join().unwrap();
        reading.join().unwrap();
    });
}

#[test]
fn a_send_with_a_time_limit_gives_its_value_back() {
    on_each(|runtime| {
        runtime.block_on(async {
            let (sender, mut receiver) = mpsc::channel(1);
            assert_eq!(sender.send_timeout(1, Duration::ZERO).await, Ok(()));
            let limit = Duration::from_millis(5);
            assert_eq!(
                sender.send_timeout(2, limit).await,
                Err(SendTimeoutError::Timeout(2))
            );
            // Its place in the line is gone: the slot is free for others.
            assert_eq!(receiver.recv().await, Some(1));
            assert_eq!(sender.capacity(), 1);
            sender.try_send(3).unwrap();
            let other = sender.clone();
            let waiting =
                rt::spawn(async move { other.send_timeout(4, Duration::from_secs(60)).await });
            assert_eq!(receiver.recv().await, Some(3));
            assert_eq!(receiver.recv().await, Some(4));
            assert_eq!(waiting.await.unwrap(), Ok(()));
            receiver.close();
            let closed = sender.send_timeout(5, limit).await.unwrap_err();
            assert_eq!(closed, SendTimeoutError::Closed(5));
            assert_eq!(closed.into_inner(), 5);
        });
    });
}
