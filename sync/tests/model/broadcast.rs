//! `broadcast` against a list of all values and a number for each receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use rt_sync::broadcast::error::{RecvError, TryRecvError};
use rt_sync::broadcast::{self, Receiver};

use crate::support::{Slot, pick, rounds};

/// Counts how many of its like there are.
struct Value(u64, Arc<AtomicUsize>);

impl Clone for Value {
    fn clone(&self) -> Self {
        self.1.fetch_add(1, SeqCst);
        Self(self.0, self.1.clone())
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
    }
}

type Received = (Receiver<Value>, Result<Value, RecvError>);

#[test]
fn broadcast_channel() {
    rounds("broadcast", |random, steps| {
        let alive = Arc::new(AtomicUsize::new(0));
        let capacity = 1 << random.below(3);
        let sender = broadcast::Sender::<Value>::new(capacity);
        let mut sender = Some(sender);
        let mut sent = 0_u64;
        // A receiver and the number that it is at.
        let mut idle: Vec<(Receiver<Value>, u64)> = Vec::new();
        let mut waiting: Vec<Slot<'_, Received, u64>> = Vec::new();
        let oldest = |sent: u64| sent.saturating_sub(capacity as u64);
        for step in 0..steps {
            let closed = sender.is_none();
            match random.below(9) {
                0 => idle.extend(sender.as_ref().map(|sender| (sender.subscribe(), sent))),
                1..4 => {
                    if let Some(sender) = &sender {
                        alive.fetch_add(1, SeqCst);
                        let receivers = idle.len() + waiting.len();
                        match sender.send(Value(sent, alive.clone())) {
                            Ok(count) => {
                                assert_eq!(count, receivers);
                                sent += 1;
                            }
                            Err(error) => assert!(receivers == 0 && error.0.0 == sent),
                        }
                    }
                }
                4 | 5 => {
                    let Some((mut receiver, at)) = pick(random, &mut idle) else {
                        continue;
                    };
                    assert_eq!(receiver.len() as u64, sent - at);
                    let next = match receiver.try_recv() {
                        Ok(value) => {
                            assert!(value.0 == at && at >= oldest(sent));
                            at + 1
                        }
                        Err(TryRecvError::Lagged(missed)) => {
                            assert_eq!(at + missed, oldest(sent));
                            at + missed
                        }
                        Err(TryRecvError::Empty) => {
                            assert!(at == sent && !closed);
                            at
                        }
                        Err(TryRecvError::Closed) => {
                            assert!(at == sent && closed);
                            at
                        }
                    };
                    idle.push((receiver, next));
                }
                6 => {
                    if let Some((mut receiver, at)) = pick(random, &mut idle) {
                        waiting.push(Slot::new(at, async move {
                            let received = receiver.recv().await;
                            (receiver, received)
                        }));
                    }
                }
                7 => {
                    let Some(mut slot) = pick(random, &mut waiting) else {
                        continue;
                    };
                    let at = slot.state;
                    match slot.poll(random) {
                        Poll::Pending => {
                            assert!(at == sent && !closed);
                            waiting.push(slot);
                        }
                        Poll::Ready((receiver, received)) => {
                            let next = match received {
                                Ok(value) => {
                                    assert!(value.0 == at && at >= oldest(sent));
                                    at + 1
                                }
                                Err(RecvError::Lagged(missed)) => {
                                    assert_eq!(at + missed, oldest(sent));
                                    at + missed
                                }
                                Err(RecvError::Closed) => {
                                    assert!(at == sent && closed);
                                    at
                                }
                            };
                            idle.push((receiver, next));
                        }
                    }
                }
                _ if random.below(3) == 0 => {
                    if random.below(2) == 0 {
                        drop(pick(random, &mut idle));
                    } else {
                        drop(pick(random, &mut waiting));
                    }
                }
                _ if step > steps / 2 && random.below(20) == 0 => sender = None,
                _ => {}
            }
            // As many values as somebody has yet to get.
            let ats = idle.iter().map(|(_, at)| *at);
            let least = ats.chain(waiting.iter().map(|slot| slot.state)).min();
            let wanted = least.map_or(0, |at| sent - at.max(oldest(sent)));
            assert_eq!(alive.load(SeqCst) as u64, wanted, "values that nobody gets");
            if let Some(sender) = &sender {
                assert_eq!(sender.len() as u64, wanted);
            }
        }
        drop((sender, idle, waiting));
        assert_eq!(alive.load(SeqCst), 0);
    });
}
