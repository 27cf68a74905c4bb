//! A sender's wish for slots: granted at once, or after waiting in line.
#![expect(
    unsafe_code,
    reason = "puts the node that lies in it into the list of waiting senders"
)]

use std::mem;
use std::pin::Pin;
use std::task::{Poll, Waker};

use pin_project_lite::pin_project;

use super::chan::{Admission, Chan, Guard};
use super::permit::PermitIterator;
use super::waiters::{Node, Stage};

/// How a ticket reaches its channel. Always the same one, which exists for as long as `self`.
pub(super) trait Reach {
    type Value;

    fn chan(&self) -> &Chan<Self::Value>;
}

impl<T> Reach for &Chan<T> {
    type Value = T;

    #[inline]
    fn chan(&self) -> &Chan<T> {
        self
    }
}

/// The channel is closed.
#[derive(Debug)]
pub(super) struct Closed;

pin_project! {
    /// Dropping it leaves the line; slots that were granted and not yet handed out go to the next in line.
    pub(super) struct Ticket<R: Reach> {
        #[pin]
        node: Node,
        // Whether `node` has been pushed to the list, and what became of it has not been handed out.
        queued: bool,
        need: usize,
        // `None` once it has been taken out, which comes after the end of waiting.
        reach: Option<R>,
    }

    impl<R: Reach> PinnedDrop for Ticket<R> {
        fn drop(this: Pin<&mut Self>) {
            if this.queued {
                this.cancel();
            }
        }
    }
}

impl<R: Reach> Ticket<R> {
    #[inline]
    pub(super) fn new(reach: R, need: usize) -> Self {
        Self {
            node: Node::new(()),
            queued: false,
            need,
            reach: Some(reach),
        }
    }

    /// Takes the way to the channel out, for who has been handed the slots.
    #[inline]
    pub(super) fn take_reach(self: Pin<&mut Self>) -> Option<R> {
        if self.queued {
            None
        } else {
            self.project().reach.take()
        }
    }

    /// Whether it waits in line, or has waited and not yet been told how it fared.
    #[inline]
    pub(super) fn is_queued(&self) -> bool {
        self.queued
    }

    /// Hands the slots out if they can be had at once: with the lock held, and counted as reserved.
    ///
    /// # Panics
    /// After `take_reach`.
    #[inline]
    pub(super) fn try_now(&self) -> Option<Result<Guard<'_, R::Value>, Closed>> {
        if self.queued {
            return None;
        }
        let chan = reached(&self.reach);
        let mut state = chan.lock();
        match chan.reserve(&mut state, self.need) {
            Admission::Granted => Some(Ok(state)),
            Admission::Closed => Some(Err(Closed)),
            Admission::Full => None,
        }
    }

    /// Waits for the slots; hands them out as `try_now` does, which comes first.
    ///
    /// # Panics
    /// After `take_reach`.
    pub(super) fn poll_wait<'a>(
        self: Pin<&'a mut Self>,
        waker: &Waker,
    ) -> Poll<Result<Guard<'a, R::Value>, Closed>> {
        if self.queued {
            return self.poll_queued(waker);
        }
        let this = self.project();
        let chan = reached(this.reach);
        // User code, without the lock; so everything is looked at once more.
        let waker = waker.clone();
        let mut state = chan.lock();
        match chan.reserve(&mut state, *this.need) {
            Admission::Granted => {
                drop(state);
                return Poll::Ready(Ok(lock_again(chan, *this.need, waker)));
            }
            Admission::Closed => {
                drop(state);
                drop(waker);
                return Poll::Ready(Err(Closed));
            }
            Admission::Full => {}
        }
        let first = state.waiters.is_empty();
        let node = &raw const *this.node.into_ref();
        // SAFETY: `queued` is false, so the node is in no list. It is pinned, and `cancel` takes it out, under the lock
        // of this channel, before it goes; `reach` is not taken out meanwhile.
        unsafe { state.waiters.push(node, *this.need, waker) };
        *this.queued = true;
        if first {
            // The receiver may have freed slots before it was asked to come by: then this lets us in and wakes us.
            chan.announce_waiting(state);
        }
        Poll::Pending
    }

    fn poll_queued<'a>(
        self: Pin<&'a mut Self>,
        waker: &Waker,
    ) -> Poll<Result<Guard<'a, R::Value>, Closed>> {
        let this = self.project();
        let chan = reached(this.reach);
        let node = this.node.into_ref().get_ref();
        let mut spare = None;
        loop {
            let mut state = chan.lock();
            // SAFETY: the node is ours and was pushed to this list.
            match unsafe { state.waiters.stage(node) } {
                Stage::Waiting => {
                    // SAFETY: as above, and it waits, so it is in the list.
                    let renewed = unsafe { state.waiters.renew(node, waker, &mut spare) };
                    drop(state);
                    if renewed {
                        // What is left in `spare` is dropped here, after the lock.
                        return Poll::Pending;
                    }
                    spare = Some(waker.clone());
                }
                Stage::Closed => {
                    *this.queued = false;
                    return Poll::Ready(Err(Closed));
                }
                Stage::Granted => {
                    *this.queued = false;
                    if state.rx_gone {
                        chan.release_locked(state, *this.need);
                        return Poll::Ready(Err(Closed));
                    }
                    if let Some(spare) = spare {
                        drop(state);
                        return Poll::Ready(Ok(lock_again(chan, *this.need, spare)));
                    }
                    return Poll::Ready(Ok(state));
                }
            }
        }
    }

    /// Leaves the line.
    #[cold]
    fn cancel(self: Pin<&mut Self>) {
        let this = self.project();
        let chan = reached(this.reach);
        let node = this.node.into_ref().get_ref();
        *this.queued = false;
        let mut state = chan.lock();
        // SAFETY: the node is ours and was pushed to this list.
        match unsafe { state.waiters.stage(node) } {
            Stage::Waiting => {
                // SAFETY: as above, and it waits, so it is in the list.
                let waker = unsafe { state.waiters.remove(node) };
                chan.left(state);
                drop(waker);
            }
            Stage::Granted => chan.release_locked(state, *this.need),
            Stage::Closed => {}
        }
    }
}

/// Drops a waker that was cloned in vain, with the lock released and the slots reserved, and takes the lock again.
#[cold]
fn lock_again<T>(chan: &Chan<T>, reserved: usize, waker: Waker) -> Guard<'_, T> {
    // Gives them back if dropping the waker panics.
    let slots = PermitIterator::new(chan, reserved);
    drop(waker);
    mem::forget(slots);
    chan.lock()
}

#[inline]
fn reached<R: Reach>(reach: &Option<R>) -> &Chan<R::Value> {
    match reach {
        Some(reach) => reach.chan(),
        None => panic!("a sending future of mpsc was polled after it was ready"),
    }
}
