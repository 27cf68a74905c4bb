//! The end of `oneshot` that sends.
#![expect(unsafe_code, reason = "an end owns what the state word says (mod.rs)")]

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::inner::{CLOSED, End, Leaving, Ptr, RX_GONE, RX_WAKER, TX_GONE, TX_WAKER, VALUE};
use crate::coop;
use crate::primitive::atomic::Ordering::{Acquire, Relaxed};
use crate::wait::{self, WaitKind};
use crate::wake_batch::in_drop;

/// The end that sends: made by [`channel`](super::channel). Dropping it without a value tells the receiver.
pub struct Sender<T> {
    pub(super) channel: Ptr<T>,
}

impl<T> Sender<T> {
    /// Sends the value: the receiver gets it, now or when it looks. Never waits.
    ///
    /// # Errors
    /// Gives the value back if the receiver has gone or closed the channel. `Ok` does not say that the value will be
    /// looked at: the receiver may go before that.
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        let ptr = ManuallyDrop::new(self).channel;
        let channel = ptr.get();
        channel.value.with_mut(|slot| {
            // SAFETY: `TX_GONE` is clear, so `value` is ours, and it is empty.
            unsafe { (*slot).write(value) };
        });
        match ptr.change(VALUE | TX_GONE, RX_WAKER | TX_WAKER, CLOSED) {
            Ok((other, own)) => {
                // The channel may be gone from here on.
                Leaving { other, own }.tell();
                Ok(())
            }
            Err(_) => {
                // SAFETY: `VALUE` was not set, so the value is still ours.
                let value = unsafe { channel.take_value() };
                drop(Self { channel: ptr });
                Err(value)
            }
        }
    }

    /// Whether the receiver has gone or closed the channel, so that [`send`](Self::send) would fail.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Acquire: with the exchange of the receiver; what it did before is seen.
        self.channel.get().state.load(Acquire) & CLOSED != 0
    }

    /// Waits until the receiver has gone or closed the channel: nobody wants the value any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    ///
    /// # Examples
    /// ```
    /// use rt_sync::oneshot::Sender;
    ///
    /// async fn answer(mut sender: Sender<u32>) {
    ///     // Something long, which is in vain once the other side has lost interest.
    ///     sender.closed().await;
    ///     assert_eq!(sender.send(1), Err(1));
    /// }
    /// ```
    #[inline]
    #[track_caller]
    pub fn closed(&mut self) -> Closed<'_, T> {
        Closed {
            sender: self,
            site: Location::caller(),
        }
    }

    /// [`closed`](Self::closed) for hand-written futures. The waker stays until the sender goes or another takes its
    /// place.
    #[inline]
    #[track_caller]
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_closed_at(cx, Location::caller())
    }

    #[inline]
    fn poll_closed_at(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        match self.channel.register(End::Tx, cx.waker(), CLOSED) {
            Ok(()) => {
                wait::record(WaitKind::Oneshot, site);
                Poll::Pending
            }
            Err(_) => {
                unit.made_progress();
                Poll::Ready(())
            }
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        match self.channel.change(TX_GONE, RX_WAKER | TX_WAKER, RX_GONE) {
            // The channel may be gone from here on.
            Ok((other, own)) => in_drop(|| Leaving { other, own }.tell()),
            // SAFETY: the receiver has gone, with the wakers; there is no value, as `VALUE` is set by `send` only,
            // which does not come here then.
            Err(_) => unsafe { self.channel.free(false) },
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Future of [`Sender::closed`].
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    sender: &'a mut Sender<T>,
    site: &'static Location<'static>,
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let site = self.site;
        self.sender.poll_closed_at(cx, site)
    }
}

impl<T> Drop for Closed<'_, T> {
    /// Drops the stored waker.
    fn drop(&mut self) {
        let channel = self.sender.channel.get();
        // Relaxed: only this end sets the bit; that it may have been cleared is for `change` to see.
        if channel.state.load(Relaxed) & TX_WAKER != 0 {
            drop(self.sender.channel.change(0, TX_WAKER, 0));
        }
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}
