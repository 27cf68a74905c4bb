//! The bounded channel against a queue, a count of slots and a line of senders.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use rt_sync::mpsc::error::{TryRecvError, TrySendError};
use rt_sync::mpsc::{self, PermitIterator};

use crate::support::{Random, Slot, pick, rounds};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Waits,
    Granted,
    Closed,
}

struct Wish {
    id: u64,
    need: usize,
    /// `None`: wants permits.
    value: Option<u64>,
    state: State,
}

enum Got<'a> {
    Sent,
    Permits(PermitIterator<'a, u64>),
    Closed,
}

struct Model {
    capacity: usize,
    values: VecDeque<u64>,
    reserved: usize,
    line: VecDeque<(u64, usize)>,
    granted: Vec<u64>,
    closed: bool,
    gone: bool,
}

impl Model {
    fn free(&self) -> usize {
        self.capacity - self.values.len() - self.reserved
    }

    fn serve(&mut self) {
        while let Some(&(id, need)) = self.line.front()
            && need <= self.free()
        {
            self.reserved += need;
            self.granted.push(id);
            self.line.pop_front();
        }
    }

    fn admits(&self, need: usize) -> bool {
        // None at all overtake nobody.
        !self.closed && (need == 0 || self.line.is_empty() && need <= self.free())
    }

    fn over(&self) -> bool {
        self.closed && self.reserved == 0 && self.values.is_empty()
    }

    fn release(&mut self, n: usize) {
        self.reserved -= n;
        self.serve();
    }
}

fn round(random: &mut Random, steps: usize) {
    let capacity = 1 + random.below(4);
    let (sender, receiver) = mpsc::channel(capacity);
    let mut receiver = Some(receiver);
    let mut model = Model {
        capacity,
        values: VecDeque::new(),
        reserved: 0,
        line: VecDeque::new(),
        granted: Vec::new(),
        closed: false,
        gone: false,
    };
    let mut slots: Vec<Slot<'_, Got<'_>, Wish>> = Vec::new();
    let mut held: Vec<PermitIterator<'_, u64>> = Vec::new();
    let mut next = 0;
    for step in 0..steps {
        match random.below(13) {
            0 | 1 => {
                let sender = &sender;
                next += 1;
                let value = next;
                let (need, wants_permits) = (random.below(capacity + 1), random.below(2) == 0);
                let mut wish = Wish {
                    id: step as u64,
                    need,
                    value: None,
                    state: State::New,
                };
                slots.push(if wants_permits {
                    Slot::new(wish, async move {
                        match sender.reserve_many(need).await {
                            Ok(permits) => Got::Permits(permits),
                            Err(_) => Got::Closed,
                        }
                    })
                } else {
                    wish.need = 1;
                    wish.value = Some(value);
                    Slot::new(wish, async move {
                        match sender.send(value).await {
                            Ok(()) => Got::Sent,
                            Err(error) => {
                                assert_eq!(error.0, value);
                                Got::Closed
                            }
                        }
                    })
                });
            }
            2..5 => {
                let Some(mut slot) = pick(random, &mut slots) else {
                    continue;
                };
                let got = slot.poll(random);
                let wish = &mut slot.state;
                let granted = match wish.state {
                    State::New if model.admits(wish.need) => {
                        model.reserved += wish.need;
                        true
                    }
                    State::New if model.closed => false,
                    State::New | State::Waits => {
                        assert!(got.is_pending(), "let in out of turn");
                        if wish.state == State::New {
                            model.line.push_back((wish.id, wish.need));
                            wish.state = State::Waits;
                        }
                        slots.push(slot);
                        settle(&mut model, &mut slots);
                        continue;
                    }
                    State::Granted if model.gone => {
                        model.release(wish.need);
                        false
                    }
                    State::Granted => true,
                    State::Closed => false,
                };
                match got {
                    Poll::Ready(Got::Sent) => {
                        assert!(granted);
                        model.reserved -= 1;
                        model.values.push_back(wish.value.unwrap());
                    }
                    Poll::Ready(Got::Permits(permits)) => {
                        assert!(granted && permits.len() == wish.need);
                        held.push(permits);
                    }
                    Poll::Ready(Got::Closed) => assert!(!granted, "refused though granted"),
                    Poll::Pending => panic!("not let in though granted or closed"),
                }
            }
            5 => {
                if let Some(slot) = pick(random, &mut slots) {
                    match slot.state.state {
                        State::Waits => {
                            model.line.retain(|(id, _)| *id != slot.state.id);
                            model.serve();
                        }
                        State::Granted => model.release(slot.state.need),
                        State::New | State::Closed => {}
                    }
                }
            }
            6 | 7 => {
                if let Some(mut permits) = pick(random, &mut held) {
                    let permit = permits.next();
                    model.release(permits.len());
                    drop(permits);
                    if let Some(permit) = permit {
                        if random.below(3) == 0 {
                            model.release(1);
                        } else {
                            next += 1;
                            permit.send(next);
                            model.reserved -= 1;
                            if model.gone {
                                model.serve();
                            } else {
                                model.values.push_back(next);
                            }
                        }
                    }
                }
            }
            8 => {
                next += 1;
                match sender.try_send(next) {
                    Ok(()) => {
                        assert!(model.admits(1));
                        model.values.push_back(next);
                    }
                    Err(TrySendError::Full(_)) => assert!(!model.closed && !model.admits(1)),
                    Err(TrySendError::Closed(_)) => assert!(model.closed),
                }
            }
            9..12 => {
                let Some(receiver) = &mut receiver else {
                    continue;
                };
                assert_eq!(receiver.len(), model.values.len());
                match random.below(3) {
                    0 => match receiver.try_recv() {
                        Ok(value) => assert_eq!(model.values.pop_front(), Some(value)),
                        Err(TryRecvError::Empty) => {
                            assert!(model.values.is_empty() && !model.over());
                        }
                        Err(TryRecvError::Disconnected) => assert!(model.over()),
                    },
                    1 => {
                        let mut cx = Context::from_waker(Waker::noop());
                        match receiver.poll_recv(&mut cx) {
                            Poll::Ready(Some(value)) => {
                                assert_eq!(model.values.pop_front(), Some(value));
                            }
                            Poll::Ready(None) => assert!(model.over()),
                            Poll::Pending => assert!(model.values.is_empty() && !model.over()),
                        }
                    }
                    _ => {
                        let limit = random.below(4);
                        let mut buffer = Vec::new();
                        let mut cx = Context::from_waker(Waker::noop());
                        match receiver.poll_recv_many(&mut cx, &mut buffer, limit) {
                            Poll::Ready(count) => {
                                assert_eq!(count, limit.min(model.values.len()));
                                assert!(count > 0 || limit == 0 || model.over());
                                let expected: Vec<u64> = model.values.drain(..count).collect();
                                assert_eq!(buffer, expected);
                            }
                            Poll::Pending => assert!(model.values.is_empty() && limit > 0),
                        }
                    }
                }
                model.serve();
            }
            _ if step > steps / 2 && random.below(10) == 0 => {
                model.closed = true;
                if random.below(2) == 0 {
                    receiver.iter_mut().for_each(mpsc::Receiver::close);
                } else {
                    receiver = None;
                    model.gone = true;
                    model.values.clear();
                }
            }
            _ => {}
        }
        settle(&mut model, &mut slots);
        let capacity = if model.line.is_empty() {
            model.free()
        } else {
            0
        };
        assert_eq!(sender.capacity(), capacity);
    }
}

fn settle(model: &mut Model, slots: &mut [Slot<'_, Got<'_>, Wish>]) {
    if model.closed {
        model.line.clear();
    }
    for slot in slots {
        if slot.state.state == State::Waits {
            if model.granted.contains(&slot.state.id) {
                slot.state.state = State::Granted;
            } else if model.closed {
                slot.state.state = State::Closed;
            }
        }
        match slot.state.state {
            State::New => {}
            State::Waits => assert!(!slot.woken(), "woken for nothing"),
            State::Granted | State::Closed => {
                assert!(slot.woken(), "a wake is lost");
                assert_eq!(slot.wakers_left(), 0, "a waker that nobody needs");
            }
        }
    }
    model.granted.clear();
}

#[test]
fn bounded_channel() {
    rounds("mpsc", round);
}
