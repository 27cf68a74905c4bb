//! Semaphore and RwLock against a count and a line.

use std::collections::VecDeque;
use std::task::Poll;

use rt_sync::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rt_sync::semaphore::{Semaphore, SemaphorePermit};

use crate::support::{Random, Slot, pick, rounds};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Waits,
    Granted,
    Refused,
}

struct Wish {
    id: u64,
    need: usize,
    state: State,
}

#[derive(Default)]
struct Model {
    permits: usize,
    closed: bool,
    line: VecDeque<(u64, usize)>,
    /// Whose wish was granted since it was looked at.
    granted: Vec<u64>,
}

impl Model {
    fn serve(&mut self) {
        while let Some(&(id, need)) = self.line.front()
            && need <= self.permits
            && !self.closed
        {
            self.permits -= need;
            self.granted.push(id);
            self.line.pop_front();
        }
    }

    fn release(&mut self, n: usize) {
        self.permits += n;
        self.serve();
    }

    fn try_take(&mut self, n: usize) -> bool {
        let taken = !self.closed && (n == 0 || (self.line.is_empty() && n <= self.permits));
        if taken {
            self.permits -= n;
        }
        taken
    }

    fn poll(&mut self, wish: &mut Wish) -> Poll<bool> {
        match wish.state {
            State::New if self.closed => Poll::Ready(false),
            State::New if self.try_take(wish.need) => Poll::Ready(true),
            State::New => {
                self.line.push_back((wish.id, wish.need));
                wish.state = State::Waits;
                Poll::Pending
            }
            State::Waits => Poll::Pending,
            State::Granted => Poll::Ready(true),
            State::Refused => Poll::Ready(false),
        }
    }

    fn give_up(&mut self, wish: &Wish) {
        match wish.state {
            State::Waits => {
                self.line.retain(|(id, _)| *id != wish.id);
                self.serve();
            }
            State::Granted => self.release(wish.need),
            State::New | State::Refused => {}
        }
    }

    /// Tells wishes what became of them, and looks whether the right ones were woken.
    fn settle<T>(&mut self, slots: &mut [Slot<'_, T, Wish>]) {
        for slot in slots {
            if slot.state.state == State::Waits {
                if self.granted.contains(&slot.state.id) {
                    slot.state.state = State::Granted;
                } else if self.closed {
                    slot.state.state = State::Refused;
                }
            }
            match slot.state.state {
                State::New => {}
                State::Waits => assert!(!slot.woken(), "woken for nothing"),
                State::Granted | State::Refused => {
                    assert!(slot.woken(), "a wake is lost");
                    assert_eq!(slot.wakers_left(), 0, "a waker that nobody needs");
                }
            }
        }
        self.granted.clear();
        if self.closed {
            self.line.clear();
        }
    }
}

fn semaphore_round(random: &mut Random, steps: usize) {
    let first = random.below(5);
    let semaphore = Semaphore::new(first);
    let mut model = Model {
        permits: first,
        ..Model::default()
    };
    let mut slots: Vec<Slot<'_, _, Wish>> = Vec::new();
    let mut held: Vec<SemaphorePermit<'_>> = Vec::new();
    for step in 0..steps {
        match random.below(if step < steps / 2 { 11 } else { 12 }) {
            0 | 1 => {
                let need = random.below(4);
                let wish = Wish {
                    id: step as u64,
                    need,
                    state: State::New,
                };
                slots.push(Slot::new(wish, semaphore.acquire_many(need as u32)));
            }
            2..5 => {
                if let Some(mut slot) = pick(random, &mut slots) {
                    let expected = model.poll(&mut slot.state);
                    match (slot.poll(random), expected) {
                        (Poll::Pending, Poll::Pending) => slots.push(slot),
                        (Poll::Ready(Ok(permit)), Poll::Ready(true)) => held.push(permit),
                        (Poll::Ready(Err(_)), Poll::Ready(false)) => {}
                        (got, expected) => panic!("{got:?} instead of {expected:?}"),
                    }
                }
            }
            5 => {
                if let Some(slot) = pick(random, &mut slots) {
                    model.give_up(&slot.state);
                }
            }
            6 | 7 => {
                if let Some(permit) = pick(random, &mut held) {
                    model.release(permit.num_permits());
                }
            }
            8 => {
                let n = random.below(4);
                match semaphore.try_acquire_many(n as u32) {
                    Ok(permit) => {
                        assert!(model.try_take(n));
                        held.push(permit);
                    }
                    Err(_) => assert!(!model.try_take(n)),
                }
            }
            9 => {
                let n = random.below(3);
                semaphore.add_permits(n);
                model.release(n);
            }
            10 => {
                let n = random.below(3);
                let expected = if model.line.is_empty() {
                    n.min(model.permits)
                } else {
                    0
                };
                assert_eq!(semaphore.forget_permits(n), expected);
                model.permits -= expected;
            }
            _ if random.below(20) == 0 => {
                semaphore.close();
                model.closed = true;
            }
            _ => {}
        }
        model.settle(&mut slots);
        let available = if model.line.is_empty() {
            model.permits
        } else {
            0
        };
        assert_eq!(semaphore.available_permits(), available);
    }
}

#[test]
fn semaphore() {
    rounds("semaphore", semaphore_round);
}

enum Guard<'a> {
    Read(#[expect(dead_code, reason = "held")] RwLockReadGuard<'a, ()>),
    Write(RwLockWriteGuard<'a, ()>),
}

#[test]
fn rwlock() {
    rounds("rwlock", |random, steps| {
        let all = 1 + random.below(3);
        let lock = RwLock::with_max_readers((), all as u32);
        let mut model = Model {
            permits: all,
            ..Model::default()
        };
        let mut slots: Vec<Slot<'_, Guard<'_>, Wish>> = Vec::new();
        let mut held: Vec<Guard<'_>> = Vec::new();
        for step in 0..steps {
            match random.below(9) {
                0 | 1 => {
                    let write = random.below(3) == 0;
                    let wish = Wish {
                        id: step as u64,
                        need: if write { all } else { 1 },
                        state: State::New,
                    };
                    let lock = &lock;
                    slots.push(if write {
                        Slot::new(wish, async move { Guard::Write(lock.write().await) })
                    } else {
                        Slot::new(wish, async move { Guard::Read(lock.read().await) })
                    });
                }
                2..5 => {
                    if let Some(mut slot) = pick(random, &mut slots) {
                        let expected = model.poll(&mut slot.state);
                        match slot.poll(random) {
                            Poll::Pending => {
                                assert_eq!(expected, Poll::Pending);
                                slots.push(slot);
                            }
                            Poll::Ready(guard) => {
                                assert_eq!(expected, Poll::Ready(true));
                                held.push(guard);
                            }
                        }
                    }
                }
                5 => {
                    if let Some(slot) = pick(random, &mut slots) {
                        model.give_up(&slot.state);
                    }
                }
                6 | 7 => match pick(random, &mut held) {
                    Some(Guard::Write(guard)) if random.below(2) == 0 => {
                        held.push(Guard::Read(guard.downgrade()));
                        model.release(all - 1);
                    }
                    Some(Guard::Write(_)) => model.release(all),
                    Some(Guard::Read(_)) => model.release(1),
                    None => {}
                },
                _ => match (lock.try_write(), lock.try_read()) {
                    (Ok(guard), _) => {
                        assert!(model.try_take(all));
                        held.push(Guard::Write(guard));
                    }
                    (Err(_), Ok(guard)) => {
                        assert!(model.try_take(1));
                        held.push(Guard::Read(guard));
                    }
                    (Err(_), Err(_)) => assert!(!model.try_take(1)),
                },
            }
            model.settle(&mut slots);
        }
    });
}
