//! The futures that make the value of a `OnceCell`, or wait for somebody else who does.

use std::convert::Infallible;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::OnceCell;
use crate::coop;
use crate::notify::{Notified, Notify};
use crate::once_value::{Room, Taken};
use crate::wait::{self, WaitKind};
use crate::wake_batch::in_drop;

/// The right to make the value. Dropped without, it goes to the next one that waits.
struct Turn<'a, T> {
    room: Option<Room<'a, T>>,
    notify: &'a Notify,
}

impl<'a, T> Turn<'a, T> {
    fn fill(mut self, value: T) -> &'a T {
        let Some(room) = self.room.take() else {
            unreachable!("only `fill` and `drop` take the room");
        };
        let value = room.fill(value);
        self.notify.notify_waiters();
        value
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        if let Some(room) = self.room.take() {
            // First the room, then the notification.
            drop(room);
            in_drop(|| self.notify.notify_one());
        }
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<'a, T, F, Fut> {
        // Not polled so far: most callers find the value and need nothing else.
        New {
            init: Option<F>,
        },
        Waiting {
            #[pin]
            notified: Notified<'a>,
            init: Option<F>,
        },
        // In this order: the future goes before somebody else begins.
        Making {
            #[pin]
            future: Fut,
            turn: Option<Turn<'a, T>>,
        },
        Over,
    }
}

pin_project! {
    pub(super) struct Init<'a, T, F, Fut> {
        cell: &'a OnceCell<T>,
        #[pin]
        stage: Stage<'a, T, F, Fut>,
        site: &'static Location<'static>,
    }
}

impl<'a, T, F, Fut> Init<'a, T, F, Fut>
where
    F: FnOnce() -> Fut,
    Fut: Future,
{
    #[inline]
    pub(super) fn new(cell: &'a OnceCell<T>, init: F, site: &'static Location<'static>) -> Self {
        Self {
            cell,
            stage: Stage::New { init: Some(init) },
            site,
        }
    }

    /// `accept` says what the output of the initialiser is.
    #[inline]
    fn poll_with<E>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        accept: impl FnOnce(Fut::Output) -> Result<T, E>,
    ) -> Poll<Result<&'a T, E>> {
        let cell: &'a OnceCell<T> = self.cell;
        if matches!(self.stage, Stage::New { .. })
            && let Some(value) = cell.get()
        {
            let unit = ready!(coop::poll_proceed(cx));
            unit.made_progress();
            self.project().stage.set(Stage::Over);
            return Poll::Ready(Ok(value));
        }
        self.poll_without_value(cx, accept)
    }

    /// `poll_with` where there was no value at first, or that has waited.
    #[inline(never)]
    fn poll_without_value<E>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        accept: impl FnOnce(Fut::Output) -> Result<T, E>,
    ) -> Poll<Result<&'a T, E>> {
        let mut this = self.project();
        let cell: &'a OnceCell<T> = this.cell;
        loop {
            match this.stage.as_mut().project() {
                StageProj::New { init } => {
                    // The future of `Notify` comes first, then another look: see the race in mod.rs.
                    let waiting = Stage::Waiting {
                        notified: cell.notify.notified_at(this.site),
                        init: init.take(),
                    };
                    this.stage.set(waiting);
                }
                StageProj::Waiting { mut notified, init } => {
                    let unit = ready!(coop::poll_proceed(cx));
                    if let Some(value) = cell.get() {
                        unit.made_progress();
                        this.stage.set(Stage::Over);
                        return Poll::Ready(Ok(value));
                    }
                    match cell.value.begin() {
                        Ok(room) => {
                            let turn = Turn {
                                room: Some(room),
                                notify: &cell.notify,
                            };
                            let Some(init) = init.take() else {
                                unreachable!("the initialiser is taken when the stage is left");
                            };
                            unit.made_progress();
                            let future = init();
                            this.stage.set(Stage::Making {
                                future,
                                turn: Some(turn),
                            });
                        }
                        Err(Taken::Set) => {}
                        Err(Taken::Busy) => {
                            if notified.as_mut().poll_inner(cx.waker()).is_pending() {
                                wait::record(WaitKind::OnceCell, this.site);
                                return Poll::Pending;
                            }
                            notified.set(cell.notify.notified_at(this.site));
                        }
                    }
                }
                StageProj::Making { future, turn } => {
                    let output = ready!(future.poll(cx));
                    let turn = turn.take();
                    // The future goes before somebody else begins.
                    this.stage.set(Stage::Over);
                    let result = match (accept(output), turn) {
                        (Ok(value), Some(turn)) => Ok(turn.fill(value)),
                        (Err(error), turn) => {
                            drop(turn);
                            Err(error)
                        }
                        (Ok(_), None) => unreachable!("the turn is taken when the stage is left"),
                    };
                    return Poll::Ready(result);
                }
                StageProj::Over => panic!(
                    "future of `OnceCell` (made at {}) polled after it was ready",
                    this.site
                ),
            }
        }
    }
}

pin_project! {
    /// Future of [`OnceCell::get_or_init`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct GetOrInit<'a, T, F, Fut> {
        #[pin]
        init: Init<'a, T, F, Fut>,
    }
}

pin_project! {
    /// Future of [`OnceCell::get_or_try_init`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct GetOrTryInit<'a, T, F, Fut> {
        #[pin]
        init: Init<'a, T, F, Fut>,
    }
}

impl<'a, T, F, Fut> GetOrInit<'a, T, F, Fut> {
    pub(super) fn new(init: Init<'a, T, F, Fut>) -> Self {
        Self { init }
    }
}

impl<'a, T, F, Fut> GetOrTryInit<'a, T, F, Fut> {
    pub(super) fn new(init: Init<'a, T, F, Fut>) -> Self {
        Self { init }
    }
}

impl<'a, T, F, Fut> Future for GetOrInit<'a, T, F, Fut>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = T>,
{
    type Output = &'a T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<&'a T> {
        let polled = self.project().init.poll_with(cx, Ok::<T, Infallible>);
        polled.map(|result| match result {
            Ok(value) => value,
            Err(never) => match never {},
        })
    }
}

impl<'a, T, E, F, Fut> Future for GetOrTryInit<'a, T, F, Fut>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Output = Result<&'a T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().init.poll_with(cx, |output| output)
    }
}

impl<T, F, Fut> fmt::Debug for GetOrInit<'_, T, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetOrInit").finish_non_exhaustive()
    }
}

impl<T, F, Fut> fmt::Debug for GetOrTryInit<'_, T, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetOrTryInit").finish_non_exhaustive()
    }
}
