//! `Condition`: tasks that wait, without the lock, for somebody to say that what it guards has changed.
//!
//! asyncio's names and meaning, in the form of the standard library's `Condvar`: what waits hands in the guard of a
//! [`Mutex`] and gets one back.
//!
//! # What it guarantees
//! A waiter is in line before its guard is released, so a notification by who holds the lock after it reaches it. Waiters
//! are notified in order of arrival, each notification reaches one waiter, and nothing is stored for later. A waiter that
//! was notified by number and is dropped before it has the lock passes its notification on.
//!
//! A notified waiter gets in line for the lock when it runs; the lock is first come, first served. So waiters that were
//! notified go on in order of arrival, as far as their tasks are run in the order in which they were woken. Between
//! threads that is not promised.
//!
//! # The stages of a waiter
//! Its future holds the guard until the first poll. That poll joins the [`WaitList`] and then releases the guard. From
//! the notification on it holds a future of the lock; `granted` says that the notification is to be passed on if that is
//! dropped.
//!
//! # User code
//! No lock of ours is held when the guard is released, which wakes who waits for it.

use std::fmt;
use std::future::Future;
use std::ops::DerefMut;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::coop;
use crate::mutex::{Lock, LockOwned, Mutex, MutexGuard, OwnedMutexGuard};
use crate::wait::{self, WaitKind};
use crate::wait_list::{Notification, WaitList, Waiter};
use crate::wake_batch::in_drop;

/// Lets tasks wait for a change of what a [`Mutex`] guards.
///
/// A condition belongs to one mutex in the mind of its users only: it works with whatever guard is handed in. Different
/// mutexes at a time make little sense.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use rt_sync::condition::Condition;
/// use rt_sync::mutex::Mutex;
///
/// let shared = Arc::new((Mutex::new(0), Condition::new()));
/// let other = shared.clone();
/// std::thread::spawn(move || {
///     let (count, changed) = &*other;
///     futures_lite::future::block_on(async {
///         *count.lock().await = 3;
///         changed.notify_all();
///     });
/// });
/// let (count, changed) = &*shared;
/// futures_lite::future::block_on(async {
///     let guard = count.lock().await;
///     let guard = changed.wait_for(guard, |count| *count == 3).await;
///     assert_eq!(*guard, 3);
/// });
/// ```
pub struct Condition {
    waiters: WaitList,
}

/// A guard that a [`Condition`] can release and take again: [`MutexGuard`] or [`OwnedMutexGuard`].
pub trait ConditionGuard: DerefMut + sealed::Relock {}

impl<T: ?Sized> ConditionGuard for MutexGuard<'_, T> {}
impl<T: ?Sized> ConditionGuard for OwnedMutexGuard<T> {}

mod sealed {
    use std::future::Future;
    use std::panic::Location;

    pub trait Relock: Sized {
        type Mutex;
        type Lock: Future<Output = Self>;

        fn mutex(&self) -> Self::Mutex;
        fn lock(mutex: Self::Mutex, site: &'static Location<'static>) -> Self::Lock;
    }
}

impl<'a, T: ?Sized> sealed::Relock for MutexGuard<'a, T> {
    type Mutex = &'a Mutex<T>;
    type Lock = Lock<'a, T>;

    #[inline]
    fn mutex(&self) -> &'a Mutex<T> {
        MutexGuard::mutex(self)
    }

    #[inline]
    fn lock(mutex: &'a Mutex<T>, site: &'static Location<'static>) -> Lock<'a, T> {
        mutex.lock_at(site)
    }
}

impl<T: ?Sized> sealed::Relock for OwnedMutexGuard<T> {
    type Mutex = Arc<Mutex<T>>;
    type Lock = LockOwned<T>;

    #[inline]
    fn mutex(&self) -> Arc<Mutex<T>> {
        OwnedMutexGuard::mutex(self).clone()
    }

    #[inline]
    fn lock(mutex: Arc<Mutex<T>>, site: &'static Location<'static>) -> LockOwned<T> {
        mutex.lock_owned_at(site)
    }
}

impl Condition {
    /// A condition nobody waits for.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            waiters: WaitList::new(),
        }
    }

    /// A condition nobody waits for.
    #[cfg(rt_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            waiters: WaitList::new(),
        }
    }

    /// Releases the lock, waits to be notified, and takes the lock again.
    ///
    /// The lock is released by the first poll. There are no spurious returns, but what was true when the notification
    /// came may be so no longer when the lock is taken: [`wait_for`](Self::wait_for) looks again.
    ///
    /// # Cancel safety
    /// When the future is dropped, the lock is free (unlike in asyncio, where it is taken again). A notification that
    /// came meanwhile goes to the next waiter, if it was one by number; the place in line is lost.
    #[inline]
    #[track_caller]
    pub fn wait<G: ConditionGuard>(&self, guard: G) -> ConditionWait<'_, G> {
        ConditionWait::new(self, guard, Location::caller())
    }

    /// Waits until the predicate is true of what the lock guards; at once if it is.
    ///
    /// The predicate is called with the lock held: now, and after each notification that reaches this waiter. While it
    /// is false, this waits again, at the end of the line.
    ///
    /// # Cancel safety
    /// As for [`wait`](Self::wait).
    ///
    /// # Panics
    /// If the predicate panics; the lock is free then.
    #[inline]
    #[track_caller]
    pub fn wait_for<G, P>(&self, guard: G, predicate: P) -> ConditionWaitFor<'_, G, P>
    where
        G: ConditionGuard,
        P: FnMut(&mut G::Target) -> bool,
    {
        ConditionWaitFor {
            wait: ConditionWait::new(self, guard, Location::caller()),
            predicate,
        }
    }

    /// Notifies the waiter that has waited longest. `false` if there is none.
    ///
    /// It goes on when it has the lock. Who notifies need not hold the lock, but who changed what it guards without it
    /// has no promise that a waiter sees the change.
    ///
    /// # Panics
    /// If the waker panics.
    pub fn notify_one(&self) -> bool {
        self.waiters.notify_one()
    }

    /// Notifies the `n` waiters that have waited longest, or all if they are fewer. Returns how many that were; nothing
    /// is stored for others.
    ///
    /// # Panics
    /// If a waker panics; those behind it have not been notified then.
    pub fn notify(&self, n: usize) -> usize {
        (0..n).take_while(|_| self.waiters.notify_one()).count()
    }

    /// Notifies everybody who waits now. Returns how many that were.
    ///
    /// # Panics
    /// If a waker panics; the others have been woken then.
    pub fn notify_all(&self) -> usize {
        self.waiters.notify_all()
    }
}

pin_project! {
    /// Future of [`Condition::wait`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct ConditionWait<'a, G: ConditionGuard> {
        condition: &'a Condition,
        // Until the first poll.
        guard: Option<G>,
        // From then on, until the notification.
        mutex: Option<G::Mutex>,
        #[pin]
        waiter: Waiter<&'a WaitList>,
        // From then on.
        #[pin]
        lock: Option<G::Lock>,
        // Notified by number, and not yet there: to be passed on.
        granted: bool,
        site: &'static Location<'static>,
    }

    impl<'a, G: ConditionGuard> PinnedDrop for ConditionWait<'a, G> {
        fn drop(this: Pin<&mut Self>) {
            // A notification that the waiter has not handed out, it passes on itself.
            if this.granted {
                in_drop(|| {
                    this.condition.waiters.notify_one();
                });
            }
        }
    }
}

pin_project! {
    /// Future of [`Condition::wait_for`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct ConditionWaitFor<'a, G: ConditionGuard, P> {
        #[pin]
        wait: ConditionWait<'a, G>,
        predicate: P,
    }
}

impl<'a, G: ConditionGuard> ConditionWait<'a, G> {
    #[inline]
    fn new(condition: &'a Condition, guard: G, site: &'static Location<'static>) -> Self {
        Self {
            condition,
            guard: Some(guard),
            mutex: None,
            waiter: Waiter::new(&condition.waiters, ()),
            lock: None,
            granted: false,
            site,
        }
    }
}

impl<G: ConditionGuard> Future for ConditionWait<'_, G> {
    type Output = G;

    /// # Panics
    /// Polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<G> {
        let mut this = self.project();
        if this.lock.is_none() {
            // In line first; then the guard may go.
            let notified = this.waiter.poll(cx);
            if let Some(guard) = this.guard.take() {
                *this.mutex = Some(guard.mutex());
                drop(guard);
            }
            match notified {
                Poll::Pending => {
                    wait::record(WaitKind::Condition, this.site);
                    return Poll::Pending;
                }
                Poll::Ready(notification) => {
                    *this.granted = notification == Notification::One;
                    let mutex = this.mutex.take().expect("polled after it was ready");
                    this.lock.set(Some(G::lock(mutex, this.site)));
                }
            }
        }
        let lock = this.lock.as_mut().as_pin_mut().expect("set above");
        // It is the lock that spends the coop budget.
        let Poll::Ready(guard) = lock.poll(cx) else {
            wait::record(WaitKind::Condition, this.site);
            return Poll::Pending;
        };
        this.lock.set(None);
        *this.granted = false;
        Poll::Ready(guard)
    }
}

impl<G, P> Future for ConditionWaitFor<'_, G, P>
where
    G: ConditionGuard,
    P: FnMut(&mut G::Target) -> bool,
{
    type Output = G;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<G> {
        let mut this = self.project();
        if this.wait.guard.is_some() {
            // The first poll: the lock is held, and nothing else has spent coop budget.
            let unit = ready!(coop::poll_proceed(cx));
            let wait = this.wait.as_mut().project();
            let held = wait.guard.as_mut().expect("seen above");
            if (this.predicate)(held) {
                unit.made_progress();
                return Poll::Ready(wait.guard.take().expect("seen above"));
            }
        }
        loop {
            let mut guard = ready!(this.wait.as_mut().poll(cx));
            if (this.predicate)(&mut guard) {
                return Poll::Ready(guard);
            }
            // The next poll of `wait` gets in line again.
            *this.wait.as_mut().project().guard = Some(guard);
        }
    }
}

impl Default for Condition {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").finish_non_exhaustive()
    }
}

impl<G: ConditionGuard> fmt::Debug for ConditionWait<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConditionWait")
            .field("notified", &self.lock.is_some())
            .finish_non_exhaustive()
    }
}

impl<G: ConditionGuard, P> fmt::Debug for ConditionWaitFor<'_, G, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConditionWaitFor").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
