//! Waiting for a token to be cancelled.
#![expect(
    unsafe_code,
    reason = "a waiter that keeps its list: the token in the future keeps the node"
)]

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::CancellationToken;
use crate::coop;
use crate::wait::{self, WaitKind};
use crate::wait_list::{ListRef, WaitList, Waiter};

/// A token, as what keeps the list of its node.
struct Kept(CancellationToken);

// SAFETY: the list lies in the node, which is on the heap and which the token keeps; a token never changes its node.
unsafe impl ListRef for Kept {
    type Tag = ();

    #[inline]
    fn list(&self) -> &WaitList {
        &self.0.node.waiters
    }
}

pin_project! {
    /// Future of [`CancellationToken::cancelled`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct WaitForCancellationFuture<'a> {
        token: &'a CancellationToken,
        #[pin]
        waiter: Waiter<&'a WaitList>,
        site: &'static Location<'static>,
    }
}

pin_project! {
    /// Future of [`CancellationToken::cancelled_owned`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct WaitForCancellationFutureOwned {
        #[pin]
        waiter: Waiter<Kept>,
        site: &'static Location<'static>,
    }
}

impl<'a> WaitForCancellationFuture<'a> {
    #[inline]
    pub(super) fn new(token: &'a CancellationToken, site: &'static Location<'static>) -> Self {
        Self {
            token,
            waiter: Waiter::new(&token.node.waiters, ()),
            site,
        }
    }

    pub(super) fn token(&self) -> &CancellationToken {
        self.token
    }
}

impl WaitForCancellationFutureOwned {
    #[inline]
    pub(super) fn new(token: CancellationToken, site: &'static Location<'static>) -> Self {
        Self {
            waiter: Waiter::new(Kept(token), ()),
            site,
        }
    }

    pub(super) fn token(&self) -> &CancellationToken {
        &self.waiter.list_ref().0
    }
}

impl Future for WaitForCancellationFuture<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let token = *this.token;
        poll(this.waiter, cx, this.site, |_| token.is_cancelled())
    }
}

impl Future for WaitForCancellationFutureOwned {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        poll(this.waiter, cx, this.site, |kept| kept.0.is_cancelled())
    }
}

fn poll<R: ListRef>(
    mut waiter: Pin<&mut Waiter<R>>,
    cx: &mut Context<'_>,
    site: &'static Location<'static>,
    is_cancelled: impl Fn(&R) -> bool,
) -> Poll<()> {
    let unit = ready!(coop::poll_proceed(cx));
    if is_cancelled(waiter.list_ref())
        || waiter.as_mut().poll(cx).is_ready()
        || is_cancelled(waiter.list_ref())
    {
        waiter.remove();
        unit.made_progress();
        return Poll::Ready(());
    }
    wait::record(WaitKind::CancellationToken, site);
    Poll::Pending
}

impl fmt::Debug for WaitForCancellationFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellationFuture")
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WaitForCancellationFutureOwned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellationFutureOwned")
            .finish_non_exhaustive()
    }
}
