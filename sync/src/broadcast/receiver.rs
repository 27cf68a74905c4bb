//! The end of `broadcast` that receives.

use std::fmt;
use std::panic::{self, AssertUnwindSafe, Location};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::buffer::{Found, Shared};
use super::error::{RecvError, TryRecvError};
use crate::blocking;
use crate::coop;
use crate::notify::Notified;
use crate::primitive::Arc;
use crate::primitive::atomic::Ordering::Acquire;
use crate::wait::{self, WaitKind};
use crate::wake_batch::{keep_first, resume};

/// The end that receives: made by [`channel`](super::channel), by [`Sender::subscribe`](super::Sender::subscribe) or by
/// [`resubscribe`](Self::resubscribe). Gets a clone of every value that is sent while it exists.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of the value that it gets next.
    next: u64,
}

impl<T> Receiver<T> {
    #[track_caller]
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let next = shared.add_receiver();
        Self { shared, next }
    }

    /// How many values have been sent that this receiver has not got, those that were overwritten among them.
    #[must_use]
    pub fn len(&self) -> usize {
        // A value may be received before `next` of the channel is moved on.
        let behind = self.shared.next_number().saturating_sub(self.next);
        usize::try_from(behind).unwrap_or(usize::MAX)
    }

    /// Whether this receiver has got everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both receive from the same channel.
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// How many senders there are.
    #[must_use]
    pub fn sender_strong_count(&self) -> usize {
        self.shared.senders.load(Acquire)
    }

    /// How many weak senders there are.
    #[must_use]
    pub fn sender_weak_count(&self) -> usize {
        self.shared.weak_senders.load(Acquire)
    }

    /// Whether every sender has gone. There may be values that were sent before.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl<T: Clone> Receiver<T> {
    /// Another receiver, which gets the values that are sent from now on (not those that this one has not got yet).
    ///
    /// # Panics
    /// If there are `u32::MAX` receivers already.
    #[must_use]
    #[track_caller]
    pub fn resubscribe(&self) -> Self {
        Self::new(self.shared.clone())
    }

    /// Receives the next value; waits for it if there is none.
    ///
    /// # Errors
    /// [`RecvError::Lagged`] if values were overwritten before this receiver got them, and [`RecvError::Closed`] if
    /// every sender has gone and everything was received.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    ///
    /// # Panics
    /// If the `clone` of the value panics, or the destructor of one that nobody else wants any more. That value counts as
    /// received.
    #[inline]
    #[track_caller]
    pub fn recv(&mut self) -> Recv<'_, T> {
        let site = Location::caller();
        Recv {
            shared: &self.shared,
            next: &mut self.next,
            notified: None,
            site,
        }
    }

    /// Receives the next value if there is one.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv), and [`TryRecvError::Empty`] instead of waiting.
    ///
    /// # Panics
    /// As for [`recv`](Self::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match receive(&self.shared, &mut self.next) {
            Some(Ok(value)) => Ok(value),
            Some(Err(RecvError::Lagged(missed))) => Err(TryRecvError::Lagged(missed)),
            Some(Err(RecvError::Closed)) => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// [`recv`](Self::recv) for threads that run no tasks: blocks until there is a value.
    ///
    /// # Errors
    /// As for [`recv`](Self::recv).
    ///
    /// # Panics
    /// Inside a task, and as for [`recv`](Self::recv).
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        blocking::forbid_in_task("broadcast::Receiver::blocking_recv", "recv()");
        blocking::block_on(self.recv())
    }
}

/// The next value for who is at `next`, or why there will be none; `None` if it must be waited for.
#[inline]
fn receive<T: Clone>(shared: &Shared<T>, next: &mut u64) -> Option<Result<T, RecvError>> {
    loop {
        let number = *next;
        // When `clone` panics the value counts as received all the same.
        *next = number + 1;
        match shared.get(number, T::clone, |value| value) {
            Found::Value(value) => return Some(Ok(value)),
            Found::Overwritten(oldest) => {
                *next = oldest;
                return Some(Err(RecvError::Lagged(oldest - number)));
            }
            Found::Nothing => *next = number,
        }
        if !shared.is_closed() {
            return None;
        }
        // What was sent before the last sender went is to be seen now.
        if number == shared.next_number() {
            return Some(Err(RecvError::Closed));
        }
    }
}

impl<T> Drop for Receiver<T> {
    /// Drops the values that nobody else wants.
    fn drop(&mut self) {
        let (end, last) = self.shared.remove_receiver();
        let mut panicked = None;
        while self.next < end {
            // A destructor that panics must not keep the other values.
            match panic::catch_unwind(AssertUnwindSafe(|| self.shared.skip(self.next))) {
                Ok(next) => self.next = next,
                // Its share is taken all the same.
                Err(payload) => {
                    self.next += 1;
                    keep_first(&mut panicked, Some(payload));
                }
            }
        }
        if last {
            self.shared.deserted.notify_waiters();
        }
        resume(panicked);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`Receiver::recv`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Recv<'a, T> {
        shared: &'a Shared<T>,
        next: &'a mut u64,
        // Not before there is something to wait for.
        #[pin]
        notified: Option<Notified<'a>>,
        site: &'static Location<'static>,
    }
}

impl<T: Clone> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let mut this = self.project();
        loop {
            if let Some(received) = receive(this.shared, this.next) {
                unit.made_progress();
                return Poll::Ready(received);
            }
            if let Some(notified) = this.notified.as_mut().as_pin_mut()
                && notified.poll_inner(cx.waker()).is_pending()
            {
                wait::record(WaitKind::Broadcast, this.site);
                return Poll::Pending;
            }
            // Then look once more: see the race in mod.rs.
            this.notified
                .set(Some(this.shared.sent.notified_at(this.site)));
        }
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}
