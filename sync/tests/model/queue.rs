//! `Queue` and its kin against a list and three lines.

use std::collections::VecDeque;
use std::task::Poll;

use rt_sync::queue::{PriorityQueue, Queue, QueueShutDown, Shutdown, TryGetError, TryPutError};

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
    state: State,
}

#[derive(Default)]
struct Model {
    max: usize,
    sorted: bool,
    items: Vec<u64>,
    getters: VecDeque<u64>,
    putters: VecDeque<u64>,
    joiners: Vec<u64>,
    getting: usize,
    putting: usize,
    outstanding: usize,
    shut: bool,
    told: Vec<(u64, State)>,
}

impl Model {
    fn serve(&mut self) {
        while self.items.len() > self.getting
            && let Some(id) = self.getters.pop_front()
        {
            self.getting += 1;
            self.told.push((id, State::Granted));
        }
        while !self.shut
            && self.items.len() + self.putting < self.max
            && let Some(id) = self.putters.pop_front()
        {
            self.putting += 1;
            self.told.push((id, State::Granted));
        }
        if self.shut {
            let putters = std::mem::take(&mut self.putters);
            self.told
                .extend(putters.into_iter().map(|id| (id, State::Refused)));
            if self.items.is_empty() {
                let getters = std::mem::take(&mut self.getters);
                self.told
                    .extend(getters.into_iter().map(|id| (id, State::Refused)));
            }
        }
        if self.outstanding == 0 {
            let joiners = std::mem::take(&mut self.joiners);
            self.told
                .extend(joiners.into_iter().map(|id| (id, State::Granted)));
        }
    }

    fn take(&mut self) -> u64 {
        let index = if self.sorted {
            let least = self.items.iter().enumerate().min_by_key(|(_, item)| **item);
            least.expect("there is one").0
        } else {
            0
        };
        self.items.remove(index)
    }

    fn settle<T>(&self, slots: &mut [Slot<'_, T, Wish>]) {
        for slot in slots {
            if let Some((_, state)) = self.told.iter().find(|(id, _)| *id == slot.state.id) {
                slot.state.state = *state;
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
    }
}

macro_rules! round {
    ($name:ident, $queue:ident, $sorted:expr) => {
        fn $name(random: &mut Random, steps: usize) {
            let max = 1 + random.below(4);
            let queue = $queue::new(max);
            let mut model = Model {
                max,
                sorted: $sorted,
                ..Model::default()
            };
            let mut puts: Vec<Slot<'_, Result<(), QueueShutDown<u64>>, Wish>> = Vec::new();
            let mut gets: Vec<Slot<'_, Result<u64, QueueShutDown>, Wish>> = Vec::new();
            let mut joins: Vec<Slot<'_, (), Wish>> = Vec::new();
            for step in 0..steps {
                let id = step as u64;
                // Never the same twice, and in no order.
                let item = (random.below(1000) as u64) << 32 | id;
                let wish = Wish {
                    id,
                    state: State::New,
                };
                match random.below(14) {
                    0 | 1 => {
                        let wish = Wish { id: item, ..wish };
                        puts.push(Slot::new(wish, queue.put(item)));
                    }
                    2 | 3 => gets.push(Slot::new(wish, queue.get())),
                    4 if joins.len() < 4 => joins.push(Slot::new(wish, queue.join())),
                    5 | 6 => {
                        let Some(mut put) = pick(random, &mut puts) else {
                            continue;
                        };
                        let id = put.state.id;
                        let has_place = model.items.len() + model.putting < model.max;
                        let expected = match put.state.state {
                            State::Granted => {
                                model.putting -= 1;
                                Some(!model.shut)
                            }
                            State::Refused => Some(false),
                            State::Waits => None,
                            State::New if model.shut => Some(false),
                            State::New => has_place.then_some(true),
                        };
                        match (put.poll(random), expected) {
                            (Poll::Ready(Ok(())), Some(true)) => {
                                model.items.push(id);
                                model.outstanding += 1;
                            }
                            (Poll::Ready(Err(error)), Some(false)) => assert_eq!(error.0, id),
                            (Poll::Pending, None) => {
                                if put.state.state == State::New {
                                    put.state.state = State::Waits;
                                    model.putters.push_back(id);
                                }
                                puts.push(put);
                            }
                            (got, expected) => panic!("{got:?} instead of {expected:?}"),
                        }
                    }
                    7 | 8 => {
                        let Some(mut get) = pick(random, &mut gets) else {
                            continue;
                        };
                        let free = model.items.len() > model.getting;
                        let expected = match get.state.state {
                            State::Granted => {
                                model.getting -= 1;
                                Some(!model.items.is_empty())
                            }
                            State::Refused => Some(false),
                            State::Waits => None,
                            State::New if free => Some(true),
                            State::New => (model.shut && model.items.is_empty()).then_some(false),
                        };
                        match (get.poll(random), expected) {
                            (Poll::Ready(Ok(item)), Some(true)) => assert_eq!(item, model.take()),
                            (Poll::Ready(Err(_)), Some(false)) => {}
                            (Poll::Pending, None) => {
                                if get.state.state == State::New {
                                    get.state.state = State::Waits;
                                    model.getters.push_back(get.state.id);
                                }
                                gets.push(get);
                            }
                            (got, expected) => panic!("{got:?} instead of {expected:?}"),
                        }
                    }
                    9 => {
                        let Some(mut join) = pick(random, &mut joins) else {
                            continue;
                        };
                        let over = match join.state.state {
                            State::New => model.outstanding == 0,
                            state => state == State::Granted,
                        };
                        assert_eq!(join.poll(random).is_ready(), over);
                        if !over {
                            if join.state.state == State::New {
                                join.state.state = State::Waits;
                                model.joiners.push(join.state.id);
                            }
                            joins.push(join);
                        }
                    }
                    10 => {
                        let from = random.below(3);
                        if from == 0
                            && let Some(put) = pick(random, &mut puts)
                        {
                            model.putters.retain(|id| *id != put.state.id);
                            model.putting -= usize::from(put.state.state == State::Granted);
                        } else if from == 1
                            && let Some(get) = pick(random, &mut gets)
                        {
                            model.getters.retain(|id| *id != get.state.id);
                            model.getting -= usize::from(get.state.state == State::Granted);
                        } else if let Some(join) = pick(random, &mut joins) {
                            model.joiners.retain(|id| *id != join.state.id);
                        }
                    }
                    11 => match queue.try_put(item) {
                        Ok(()) => {
                            assert!(!model.shut && model.items.len() + model.putting < model.max);
                            model.items.push(item);
                            model.outstanding += 1;
                        }
                        Err(TryPutError::Full(_)) => {
                            assert!(!model.shut && model.items.len() + model.putting >= model.max);
                        }
                        Err(TryPutError::ShutDown(_)) => assert!(model.shut),
                    },
                    12 => match queue.try_get() {
                        Ok(item) => {
                            assert!(model.items.len() > model.getting);
                            assert_eq!(item, model.take());
                        }
                        Err(TryGetError::Empty(_)) => {
                            assert!(model.items.len() <= model.getting);
                            assert!(!model.shut || !model.items.is_empty());
                        }
                        Err(TryGetError::ShutDown(_)) => {
                            assert!(model.shut && model.items.is_empty());
                        }
                    },
                    _ if step > steps / 2 && random.below(20) == 0 => {
                        let immediate = random.below(2) == 0;
                        queue.shutdown(if immediate {
                            Shutdown::Immediate
                        } else {
                            Shutdown::Draining
                        });
                        model.shut = true;
                        if immediate {
                            let items = std::mem::take(&mut model.items);
                            model.outstanding = model.outstanding.saturating_sub(items.len());
                        }
                    }
                    _ => {
                        assert_eq!(queue.task_done().is_ok(), model.outstanding > 0);
                        model.outstanding = model.outstanding.saturating_sub(1);
                    }
                }
                model.serve();
                model.settle(&mut puts);
                model.settle(&mut gets);
                model.settle(&mut joins);
                model.told.clear();
                assert_eq!(queue.len(), model.items.len());
            }
        }
    };
}

round!(fifo, Queue, false);
round!(by_priority, PriorityQueue, true);

#[test]
fn queue() {
    rounds("queue", fifo);
}

#[test]
fn priority_queue() {
    rounds("priority queue", by_priority);
}
