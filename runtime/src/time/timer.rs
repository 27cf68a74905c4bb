//! The waiting side of a timer: what `sleep`, `timeout` and `interval` have inside.
//!
//! # What it guarantees
//! A timer costs nothing before its first poll that finds nothing ready. That poll puts it in the wheel of the seat of
//! its thread, where it stays until it fires, wherever the task goes. A later registration (after it has fired) goes to
//! the seat of the thread that polls then, if that belongs to the same runtime: a timer never moves to another runtime.
//! Dropping it takes it out, from whatever thread.
//!
//! # Who may touch what
//! Everything here is the waiting side's, which is borrowed mutably; rules of the entry: [`super::entry`].
#![expect(
    unsafe_code,
    reason = "the address of the pinned entry is given to a wheel"
)]

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Waker};

use pin_project_lite::pin_project;
use rt_sync::primitive::Arc;

use super::clock::NEVER;
use super::current;
use super::entry::{End, Entry, EntryRef, State};
use super::instant::Instant;
use super::timers::Timers;
use crate::debug;
use crate::scheduler::guest;
use crate::task;

/// What a poll of a [`Timer`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The deadline has passed.
    Ready,
    /// The waker is woken when it passes.
    Pending,
    /// The runtime that the timer belongs to has shut down. Not in a task or a root future that ends with this poll, as
    /// those of that runtime do: it has nothing to wait for and nobody to tell, so the timer is pending.
    Closed,
    /// The first poll came from a thread that is in no runtime.
    NoRuntime,
}

pin_project! {
    /// A deadline that a task can wait for.
    #[derive(Debug)]
    pub struct Timer {
        #[pin]
        entry: Entry,
        // Whose wheel the entry is in, or was in last.
        owner: Option<Arc<Timers>>,
    }

    impl PinnedDrop for Timer {
        fn drop(this: Pin<&mut Self>) {
            this.cancel();
        }
    }
}

impl Timer {
    /// A timer that is in no wheel.
    #[inline]
    #[must_use]
    pub fn new() -> Timer {
        Timer {
            entry: Entry::new(),
            owner: None,
        }
    }

    /// Whether the deadline has passed and a wheel has noticed. Of a timer that never was pending: `false`.
    #[inline]
    pub fn has_fired(&self) -> bool {
        self.entry.state() == State::Fired
    }

    /// Whether the timer is in no wheel and has not ended in one: the next poll starts it.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.entry.state(), State::Idle | State::Never)
    }

    /// Whether no poll has brought the timer to a runtime yet.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.owner.is_none()
    }

    /// In debug mode tells if the timer waits in another runtime than the one that fires it. For futures that are about to
    /// return `Pending`.
    #[inline]
    pub(super) fn check_runtime(&self, site: &'static Location<'static>) {
        if let Some(owner) = &self.owner
            && debug::other::is_checked()
        {
            debug::other::check_timer(owner, site);
        }
    }

    /// Waits until `deadline`, which counts when the timer is idle: a timer that is under way has its own
    /// ([`reset`](Self::reset)).
    #[inline]
    pub fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>, deadline: Instant) -> Outcome {
        if self.is_idle() {
            if !self.as_mut().adopt() {
                return Outcome::NoRuntime;
            }
            self.start(cx, deadline)
        } else {
            self.poll_started(cx)
        }
    }

    /// Same as [`poll`](Self::poll), in the wheel of a given seat.
    pub fn poll_on(
        mut self: Pin<&mut Self>,
        timers: &Arc<Timers>,
        cx: &mut Context<'_>,
        deadline: Instant,
    ) -> Outcome {
        if self.is_idle() {
            *self.as_mut().project().owner = Some(Arc::clone(timers));
            self.start(cx, deadline)
        } else {
            self.poll_started(cx)
        }
    }

    #[inline]
    fn poll_started(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Outcome {
        let mut entry = self.project().entry;
        if let State::Linked(_) = entry.state() {
            entry.as_mut().register(cx.waker());
        }
        outcome(entry.state(), cx)
    }

    /// Chooses the wheel for an idle timer; `false` if there is none.
    #[inline]
    fn adopt(self: Pin<&mut Self>) -> bool {
        let owner = self.project().owner;
        let before = current::with_current(|current| match (&*owner, current) {
            (None, Some(current)) => owner.replace(Arc::clone(current)),
            (Some(own), Some(current))
                if !Arc::ptr_eq(own, current) && own.clock().same(current.clock()) =>
            {
                owner.replace(Arc::clone(current))
            }
            _ => None,
        });
        // Only now, with nothing borrowed: it may be the last reference.
        drop(before);
        owner.is_some()
    }

    /// The first poll, with `owner` set.
    #[inline]
    fn start(self: Pin<&mut Self>, cx: &mut Context<'_>, deadline: Instant) -> Outcome {
        let this = self.project();
        let mut entry = this.entry;
        let Some(owner) = this.owner else {
            return Outcome::NoRuntime;
        };
        // The waker is cloned here, before the lock is taken.
        entry.as_mut().set_waker(cx.waker());
        let deadline = owner.clock().ns(deadline);
        if deadline == NEVER {
            entry.set_never();
            return Outcome::Pending;
        }
        owner.insert(entry_ref(entry.as_ref()), deadline);
        outcome(entry.state(), cx)
    }

    /// Gives the timer another deadline. One that waits goes on to wait, with the waker it has; one that has ended
    /// is as new.
    #[inline]
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.project();
        let entry = this.entry;
        let Some(owner) = &*this.owner else {
            // Never polled in a runtime.
            return entry.set_idle();
        };
        let deadline = owner.clock().ns(deadline);
        if !entry.in_wheel() {
            if entry.state() != State::Never {
                // Ended, or not started.
                entry.set_idle();
            } else if deadline != NEVER {
                owner.insert(entry_ref(entry.as_ref()), deadline);
                if let State::Fired | State::Closed = entry.state() {
                    entry.wake();
                }
            }
            return;
        }
        if deadline == NEVER {
            owner.cancel(entry_ref(entry.as_ref()));
            // Unless it has ended meanwhile, the task goes on to wait.
            match entry.state() {
                State::Idle => entry.set_never(),
                _ => entry.set_idle(),
            }
            return;
        }
        while let State::Linked(current) = entry.state() {
            if deadline < current {
                break;
            }
            if entry.extend(current, deadline) {
                return;
            }
        }
        owner.move_to(entry_ref(entry.as_ref()), deadline);
    }

    /// Ends an idle timer: the next poll is ready.
    #[inline]
    pub fn set_fired(self: Pin<&mut Self>) {
        debug_assert!(self.is_idle());
        self.entry.set_ended(End::Fired);
    }

    /// Takes the timer out of its wheel: it is as new.
    #[inline]
    pub fn cancel(self: Pin<&mut Self>) {
        let this = self.project();
        let entry = this.entry;
        if let Some(owner) = this.owner
            && entry.in_wheel()
        {
            owner.cancel(entry_ref(entry.as_ref()));
        }
        entry.set_idle();
    }
}

impl Default for Timer {
    fn default() -> Self {
        Timer::new()
    }
}

#[inline]
fn entry_ref(entry: Pin<&Entry>) -> EntryRef {
    // SAFETY: it is the entry of a pinned `Timer`, whose drop takes it out (rule 1).
    unsafe { EntryRef::new(entry) }
}

/// Whether the task, or the root future, that is polled with `waker` ends with this poll, since its runtime does.
pub(super) fn ends_with_poll(waker: &Waker) -> bool {
    task::ends_with_poll(waker) || guest::ends_with_poll(waker)
}

#[inline]
fn outcome(state: State, cx: &Context<'_>) -> Outcome {
    match state {
        State::Fired => Outcome::Ready,
        State::Closed if ends_with_poll(cx.waker()) => Outcome::Pending,
        State::Closed => Outcome::Closed,
        State::Idle | State::Never | State::Linked(_) => Outcome::Pending,
    }
}
