//! [`CapacityLimiter`]: how many things of a kind may go on at a time, to be changed while they do.
//!
//! # What it guarantees
//! There are `total + debt` permits, held ones included. A total that is lowered takes those away that nobody holds; the
//! rest is *debt*, which tokens that come back pay before they are given to anyone else.
//!
//! # The race
//! A token comes back, or the total is raised, while it is lowered: who adds permits looks for debt before and after they
//! are counted, who lowers counts what is there after the debt is written, both under the lock. So debt and free permits
//! are not there together for longer than that.
#![expect(
    unsafe_code,
    reason = "vouches for references to semaphores, as `PermitsRef` asks"
)]

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::TryAcquireError;
use crate::permits::{self, Permits, PermitsRef, Wait};
use crate::primitive::{Mutex, MutexGuard};
use crate::wait::WaitKind;

/// Limits how many calls (threads, processes, connections) of a kind there are at a time.
///
/// A semaphore whose number of tokens can be changed at any time, in names and meaning that of Trio and anyio. Fair, as a
/// [`Semaphore`](super::Semaphore) is.
///
/// # Examples
/// ```
/// use rt_sync::semaphore::CapacityLimiter;
///
/// # futures_lite::future::block_on(async {
/// let limiter = CapacityLimiter::new(2);
/// let token = limiter.acquire().await;
/// assert_eq!((limiter.borrowed_tokens(), limiter.available_tokens()), (1, 1));
/// // Tokens that are out stay valid; there are none to be had until enough have come back.
/// limiter.set_total_tokens(1);
/// assert!(limiter.try_acquire().is_err());
/// drop(token);
/// assert!(limiter.try_acquire().is_ok());
/// # });
/// ```
pub struct CapacityLimiter {
    permits: Permits,
    tokens: Mutex<Tokens>,
}

#[derive(Clone, Copy)]
struct Tokens {
    total: usize,
    debt: usize,
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl PermitsRef for &CapacityLimiter {
    const KIND: WaitKind = WaitKind::Capacity;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    fn give_back(&self, n: usize) {
        self.take_back(n);
    }
}

// SAFETY: what an `Arc` leads to stays where it is.
unsafe impl PermitsRef for Arc<CapacityLimiter> {
    const KIND: WaitKind = WaitKind::Capacity;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    fn give_back(&self, n: usize) {
        self.take_back(n);
    }
}

impl CapacityLimiter {
    /// A limiter with so many tokens.
    ///
    /// # Panics
    /// If that is more than [`Semaphore::MAX_PERMITS`](super::Semaphore::MAX_PERMITS), which is as good as no limit.
    #[must_use]
    #[track_caller]
    pub fn new(total_tokens: usize) -> Self {
        check(total_tokens);
        Self {
            permits: Permits::new(total_tokens),
            tokens: Mutex::new(Tokens {
                total: total_tokens,
                debt: 0,
            }),
        }
    }

    /// How many tokens may be out at a time.
    #[must_use]
    pub fn total_tokens(&self) -> usize {
        self.tokens.lock().total
    }

    /// How many tokens are out: for a while more than the total, when that has been lowered.
    #[must_use]
    pub fn borrowed_tokens(&self) -> usize {
        let tokens = *self.tokens.lock();
        (tokens.total + tokens.debt).saturating_sub(self.permits.available())
    }

    /// How many tokens a newcomer could have now.
    #[must_use]
    pub fn available_tokens(&self) -> usize {
        self.permits.available()
    }

    /// Changes how many tokens may be out at a time. More are given to who waits; fewer take effect as tokens come back.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn set_total_tokens(&self, total_tokens: usize) {
        check(total_tokens);
        let mut tokens = self.tokens.lock();
        let before = tokens.total;
        tokens.total = total_tokens;
        let Some(more) = total_tokens.checked_sub(before) else {
            tokens.debt += before - total_tokens;
            self.settle(tokens);
            return;
        };
        self.add(tokens, more);
    }

    /// Waits for a token.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> AcquireCapacity<'_> {
        AcquireCapacity {
            wait: Wait::new(self, 1),
        }
    }

    /// Takes a token if there is one and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire(&self) -> Result<CapacityToken<'_>, TryAcquireError> {
        self.permits.try_take(1)?;
        Ok(CapacityToken { limiter: self })
    }

    /// [`acquire`](Self::acquire) for a token that keeps the limiter alive.
    ///
    /// # Cancel safety
    /// Dropping the future loses the place in line; nothing else is lost.
    #[inline]
    #[track_caller]
    pub fn acquire_owned(self: Arc<Self>) -> AcquireCapacityOwned {
        AcquireCapacityOwned {
            wait: Wait::new(self, 1),
        }
    }

    /// [`try_acquire`](Self::try_acquire) for a token that keeps the limiter alive.
    ///
    /// # Errors
    /// [`TryAcquireError::NoPermits`].
    #[inline]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedCapacityToken, TryAcquireError> {
        self.permits.try_take(1)?;
        Ok(OwnedCapacityToken { limiter: self })
    }

    /// Takes tokens back, to pay debt or for the next.
    fn take_back(&self, n: usize) {
        self.add(self.tokens.lock(), n);
    }

    /// Pays debt, and gives the rest to who waits or comes.
    fn add(&self, mut tokens: MutexGuard<'_, Tokens>, n: usize) {
        let paid = n.min(tokens.debt);
        tokens.debt -= paid;
        drop(tokens);
        if n > paid {
            self.permits.release(n - paid);
            self.settle(self.tokens.lock());
        }
    }

    /// Pays debt with what nobody holds.
    fn settle(&self, mut tokens: MutexGuard<'_, Tokens>) {
        if tokens.debt > 0 {
            tokens.debt -= self.permits.forget(tokens.debt);
        }
    }
}

#[track_caller]
fn check(total: usize) {
    assert!(
        total <= permits::MAX,
        "a CapacityLimiter may not have more than MAX_PERMITS tokens ({}), and {total} were asked for",
        permits::MAX
    );
}

impl fmt::Debug for CapacityLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityLimiter")
            .field("total", &self.total_tokens())
            .field("borrowed", &self.borrowed_tokens())
            .finish_non_exhaustive()
    }
}

/// A token of a [`CapacityLimiter`]. Dropping it gives it back.
#[must_use = "dropping the token gives it back"]
#[clippy::has_significant_drop]
pub struct CapacityToken<'a> {
    limiter: &'a CapacityLimiter,
}

impl Drop for CapacityToken<'_> {
    fn drop(&mut self) {
        self.limiter.take_back(1);
    }
}

impl fmt::Debug for CapacityToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityToken").finish_non_exhaustive()
    }
}

/// A token of a [`CapacityLimiter`], which it keeps alive. Dropping it gives it back.
#[must_use = "dropping the token gives it back"]
#[clippy::has_significant_drop]
pub struct OwnedCapacityToken {
    limiter: Arc<CapacityLimiter>,
}

impl Drop for OwnedCapacityToken {
    fn drop(&mut self) {
        self.limiter.take_back(1);
    }
}

impl fmt::Debug for OwnedCapacityToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedCapacityToken").finish_non_exhaustive()
    }
}

pin_project! {
    /// Future of [`CapacityLimiter::acquire`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireCapacity<'a> {
        #[pin]
        wait: Wait<&'a CapacityLimiter>,
    }
}

impl<'a> Future for AcquireCapacity<'a> {
    type Output = CapacityToken<'a>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wait = self.project().wait;
        match ready!(wait.as_mut().poll(cx)) {
            Ok(limiter) => Poll::Ready(CapacityToken { limiter }),
            Err(()) => unreachable!("a limiter is never closed"),
        }
    }
}

pin_project! {
    /// Future of [`CapacityLimiter::acquire_owned`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireCapacityOwned {
        #[pin]
        wait: Wait<Arc<CapacityLimiter>>,
    }
}

impl Future for AcquireCapacityOwned {
    type Output = OwnedCapacityToken;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut wait = self.project().wait;
        match ready!(wait.as_mut().poll(cx)) {
            Ok(limiter) => Poll::Ready(OwnedCapacityToken { limiter }),
            Err(()) => unreachable!("a limiter is never closed"),
        }
    }
}
