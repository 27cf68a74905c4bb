//! The futures of senders.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::coop;
use crate::wait::{self, WaitKind};
use crate::wait_list::{WaitList, Waiter};

use super::bounded::Sender;
use super::chan::{Admission, Chan};
use super::error::SendError;
use super::permit::{OwnedPermit, Permit, PermitIterator};
use super::ticket::{self, Reach, Ticket};

pin_project! {
    /// Future of [`Sender::send`].
    ///
    /// # Panics
    /// Polled again after it was ready.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Sending<'a, T> {
        #[pin]
        ticket: Ticket<&'a Chan<T>>,
        chan: &'a Chan<T>,
        value: Option<T>,
        site: &'static Location<'static>,
    }
}

impl<'a, T> Sending<'a, T> {
    #[inline]
    pub(super) fn new(chan: &'a Chan<T>, value: T, site: &'static Location<'static>) -> Self {
        Self {
            ticket: Ticket::new(chan, 1),
            chan,
            value: Some(value),
            site,
        }
    }
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let this = self.project();
        let chan = *this.chan;
        assert!(
            this.value.is_some(),
            "the future of mpsc::Sender::send was polled after it was ready"
        );
        if !this.ticket.is_queued() {
            // The usual way: there is room.
            let mut state = chan.lock();
            if chan.admit(&mut state, 1) == Admission::Granted
                && let Some(value) = this.value.take()
            {
                chan.push(state, value);
                unit.made_progress();
                return Poll::Ready(Ok(()));
            }
        }
        let sent = wait_and_send(this.ticket, chan, this.value, cx);
        if sent.is_ready() {
            unit.made_progress();
        } else {
            wait::record(WaitKind::Send, this.site);
        }
        sent
    }
}

/// The other way: waits for a slot, or finds the channel closed.
#[inline(never)]
fn wait_and_send<'a, T>(
    ticket: Pin<&mut Ticket<&'a Chan<T>>>,
    chan: &'a Chan<T>,
    value: &mut Option<T>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), SendError<T>>> {
    let admitted = ready!(ticket.poll_wait(cx.waker()));
    Poll::Ready(match (admitted, value.take()) {
        (Ok(state), Some(value)) => {
            chan.send_reserved(state, value);
            Ok(())
        }
        (Err(ticket::Closed), Some(value)) => Err(SendError(value)),
        (_, None) => unreachable!("`poll` has seen that it is there"),
    })
}

/// Polls a ticket whose slots become a permit.
#[inline]
fn poll_reserve<R: Reach>(
    ticket: Pin<&mut Ticket<R>>,
    cx: &mut Context<'_>,
    site: &'static Location<'static>,
) -> Poll<Result<(), SendError<()>>> {
    let unit = ready!(coop::poll_proceed(cx));
    let at_once = ticket.try_now().map(|admitted| admitted.map(drop));
    let admitted = match at_once {
        Some(admitted) => Poll::Ready(admitted),
        None => ticket
            .poll_wait(cx.waker())
            .map(|admitted| admitted.map(drop)),
    };
    match admitted {
        // The lock is given back, the slots stay reserved.
        Poll::Ready(admitted) => {
            unit.made_progress();
            Poll::Ready(admitted.map_err(|ticket::Closed| SendError(())))
        }
        Poll::Pending => {
            wait::record(WaitKind::Send, site);
            Poll::Pending
        }
    }
}

pin_project! {
    /// Future of [`Sender::reserve`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Reserve<'a, T> {
        #[pin]
        ticket: Ticket<&'a Chan<T>>,
        chan: &'a Chan<T>,
        site: &'static Location<'static>,
    }
}

impl<'a, T> Reserve<'a, T> {
    #[inline]
    pub(super) fn new(chan: &'a Chan<T>, site: &'static Location<'static>) -> Self {
        Self {
            ticket: Ticket::new(chan, 1),
            chan,
            site,
        }
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<Permit<'a, T>, SendError<()>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        ready!(poll_reserve(this.ticket, cx, this.site))?;
        Poll::Ready(Ok(Permit::new(this.chan)))
    }
}

pin_project! {
    /// Future of [`Sender::reserve_many`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct ReserveMany<'a, T> {
        #[pin]
        ticket: Ticket<&'a Chan<T>>,
        chan: &'a Chan<T>,
        n: usize,
        site: &'static Location<'static>,
    }
}

impl<'a, T> ReserveMany<'a, T> {
    #[inline]
    pub(super) fn new(chan: &'a Chan<T>, n: usize, site: &'static Location<'static>) -> Self {
        Self {
            ticket: Ticket::new(chan, n),
            chan,
            n,
            site,
        }
    }
}

impl<'a, T> Future for ReserveMany<'a, T> {
    type Output = Result<PermitIterator<'a, T>, SendError<()>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if *this.n > this.chan.max() {
            // It would wait for ever, and everybody behind it.
            ready!(coop::poll_proceed(cx)).made_progress();
            return Poll::Ready(Err(SendError(())));
        }
        ready!(poll_reserve(this.ticket, cx, this.site))?;
        Poll::Ready(Ok(PermitIterator::new(this.chan, *this.n)))
    }
}

impl<T> Reach for Sender<T> {
    type Value = T;

    #[inline]
    fn chan(&self) -> &Chan<T> {
        Sender::chan(self)
    }
}

pin_project! {
    /// Future of [`Sender::reserve_owned`].
    ///
    /// # Panics
    /// Polled again after it was ready.
    #[must_use = "futures do nothing unless awaited"]
    pub struct ReserveOwned<T> {
        #[pin]
        ticket: Ticket<Sender<T>>,
        site: &'static Location<'static>,
    }
}

impl<T> ReserveOwned<T> {
    #[inline]
    pub(super) fn new(sender: Sender<T>, site: &'static Location<'static>) -> Self {
        Self {
            ticket: Ticket::new(sender, 1),
            site,
        }
    }
}

impl<T> Future for ReserveOwned<T> {
    type Output = Result<OwnedPermit<T>, SendError<()>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        ready!(poll_reserve(this.ticket.as_mut(), cx, this.site))?;
        match this.ticket.take_reach() {
            Some(sender) => Poll::Ready(Ok(OwnedPermit::new(sender))),
            None => unreachable!("the ticket has handed its slot out, so it is in no line"),
        }
    }
}

pin_project! {
    /// Future of [`Sender::closed`] and [`UnboundedSender::closed`](super::UnboundedSender::closed).
    #[must_use = "futures do nothing unless awaited"]
    pub struct Closed<'a, T> {
        #[pin]
        waiter: Waiter<&'a WaitList>,
        chan: &'a Chan<T>,
        site: &'static Location<'static>,
    }
}

impl<'a, T> Closed<'a, T> {
    pub(super) fn new(chan: &'a Chan<T>, site: &'static Location<'static>) -> Self {
        Self {
            waiter: Waiter::new(chan.closing(), ()),
            chan,
            site,
        }
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut this = self.project();
        if !this.chan.is_closed() {
            let _ = this.waiter.as_mut().poll(cx);
            // Once more, now that we are in the list.
            if !this.chan.is_closed() {
                wait::record(WaitKind::Other, this.site);
                return Poll::Pending;
            }
        }
        let _ = this.waiter.remove();
        unit.made_progress();
        Poll::Ready(())
    }
}

impl<T> fmt::Debug for Sending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Reserve<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ReserveMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveMany")
            .field("n", &self.n)
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ReserveOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReserveOwned")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}
