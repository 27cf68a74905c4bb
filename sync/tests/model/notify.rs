//! `Notify` against a line, a permit and a number of calls.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::Poll;

use rt_sync::notify::{Notified, Notify};

use crate::support::{Slot, pick, rounds};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Waits,
    Oldest,
    Newest,
    All,
}

struct Wish {
    id: u64,
    calls: u64,
    state: State,
    enabled_only: bool,
}

#[derive(Default)]
struct Model {
    permit: bool,
    calls: u64,
    line: VecDeque<u64>,
    told: Vec<(u64, State)>,
}

impl Model {
    fn notify(&mut self, how: State) {
        let next = match how {
            State::Oldest => self.line.pop_front(),
            _ => self.line.pop_back(),
        };
        match next {
            Some(id) => self.told.push((id, how)),
            None => self.permit = true,
        }
    }

    fn poll(&mut self, wish: &mut Wish) -> Poll<()> {
        match wish.state {
            State::New if wish.calls != self.calls => Poll::Ready(()),
            State::New if self.permit => {
                self.permit = false;
                Poll::Ready(())
            }
            State::New => {
                self.line.push_back(wish.id);
                wish.state = State::Waits;
                Poll::Pending
            }
            State::Waits => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

/// `Notified` with a way to `enable` it from outside.
struct Enabling<'a>(Pin<Box<Notified<'a>>>, bool);

impl Future for Enabling<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        if self.1 {
            self.1 = false;
            return if self.0.as_mut().enable() {
                Poll::Ready(())
            } else {
                Poll::Pending
            };
        }
        self.0.as_mut().poll(cx)
    }
}

#[test]
fn notify() {
    rounds("notify", |random, steps| {
        let notify = Notify::new();
        let mut model = Model::default();
        let mut slots: Vec<Slot<'_, (), Wish>> = Vec::new();
        for step in 0..steps {
            match random.below(9) {
                0 | 1 => {
                    let enable = random.below(3) == 0;
                    let wish = Wish {
                        id: step as u64,
                        calls: model.calls,
                        state: State::New,
                        enabled_only: enable,
                    };
                    slots.push(Slot::new(
                        wish,
                        Enabling(Box::pin(notify.notified()), enable),
                    ));
                }
                2..5 => {
                    if let Some(mut slot) = pick(random, &mut slots) {
                        let was_new = slot.state.state == State::New;
                        let expected = model.poll(&mut slot.state);
                        slot.state.enabled_only &= was_new;
                        assert_eq!(slot.poll(random), expected);
                        if expected.is_pending() {
                            slots.push(slot);
                        }
                    }
                }
                5 => {
                    if let Some(slot) = pick(random, &mut slots) {
                        let (id, state) = (slot.state.id, slot.state.state);
                        drop(slot);
                        match state {
                            State::Waits => model.line.retain(|other| *other != id),
                            State::Oldest | State::Newest => model.notify(state),
                            State::New | State::All => {}
                        }
                    }
                }
                6 => {
                    notify.notify_one();
                    model.notify(State::Oldest);
                }
                7 => {
                    notify.notify_last();
                    model.notify(State::Newest);
                }
                _ => {
                    notify.notify_waiters();
                    model.calls += 1;
                    let line = std::mem::take(&mut model.line);
                    model
                        .told
                        .extend(line.into_iter().map(|id| (id, State::All)));
                }
            }
            for slot in &mut slots {
                let wish = &mut slot.state;
                if let Some((_, how)) = model.told.iter().find(|(id, _)| *id == wish.id) {
                    wish.state = *how;
                }
                let (state, enabled_only) = (wish.state, wish.enabled_only);
                match state {
                    State::New => {}
                    State::Waits => assert!(!slot.woken(), "woken for nothing"),
                    _ => {
                        assert!(enabled_only || slot.woken(), "a wake is lost");
                        assert_eq!(slot.wakers_left(), 0, "a waker that nobody needs");
                    }
                }
            }
            model.told.clear();
        }
    });
}
