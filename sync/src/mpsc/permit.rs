//! Slots that were reserved. Each is used to send, or goes back by [`Chan::release`].

use std::fmt;
use std::iter::FusedIterator;
use std::mem;

use super::bounded::Sender;
use super::chan::Chan;

/// A slot for one value: made by [`Sender::reserve`] and [`Sender::try_reserve`]. Dropping it gives the slot back.
#[must_use = "dropping a permit gives its slot back"]
pub struct Permit<'a, T> {
    chan: &'a Chan<T>,
}

impl<'a, T> Permit<'a, T> {
    /// The caller has reserved a slot, which is the permit's from now on.
    #[inline]
    pub(super) fn new(chan: &'a Chan<T>) -> Self {
        Self { chan }
    }

    /// Sends a value, without waiting, also when the channel was closed after the permit was given. If the receiver has
    /// gone, the value is dropped.
    #[inline]
    pub fn send(self, value: T) {
        let chan = self.chan;
        mem::forget(self);
        chan.send_reserved(chan.lock(), value);
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.chan.release(1);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// Several slots, as an iterator of [`Permit`]s: made by [`Sender::reserve_many`] and [`Sender::try_reserve_many`].
/// Dropping it gives back the slots that are left.
#[must_use = "dropping the iterator gives its slots back"]
pub struct PermitIterator<'a, T> {
    chan: &'a Chan<T>,
    left: usize,
}

impl<'a, T> PermitIterator<'a, T> {
    /// The caller has reserved so many slots, which are the iterator's from now on.
    #[inline]
    pub(super) fn new(chan: &'a Chan<T>, left: usize) -> Self {
        Self { chan, left }
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.left = self.left.checked_sub(1)?;
        Some(Permit::new(self.chan))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.chan.release(self.left);
        }
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// A slot for one value that owns its sender: made by [`Sender::reserve_owned`] and [`Sender::try_reserve_owned`].
/// Dropping it gives the slot back, and drops the sender.
#[must_use = "dropping a permit gives its slot back"]
pub struct OwnedPermit<T> {
    /// `None` when the slot has been used or given back.
    sender: Option<Sender<T>>,
}

impl<T> OwnedPermit<T> {
    /// The caller has reserved a slot, which is the permit's from now on.
    #[inline]
    pub(super) fn new(sender: Sender<T>) -> Self {
        Self {
            sender: Some(sender),
        }
    }

    /// Sends a value, without waiting, also when the channel was closed after the permit was given; gives the sender
    /// back. If the receiver has gone, the value is dropped.
    #[inline]
    pub fn send(mut self, value: T) -> Sender<T> {
        let sender = self.take();
        let chan = sender.chan();
        chan.send_reserved(chan.lock(), value);
        sender
    }

    /// Gives the slot back without sending, and the sender.
    pub fn release(mut self) -> Sender<T> {
        let sender = self.take();
        sender.chan().release(1);
        sender
    }

    /// Whether both permits are of the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        match (&self.sender, &other.sender) {
            (Some(one), Some(other)) => one.same_channel(other),
            _ => false,
        }
    }

    /// Whether this is a permit of the channel that `sender` sends into.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender
            .as_ref()
            .is_some_and(|own| own.same_channel(sender))
    }

    #[inline]
    fn take(&mut self) -> Sender<T> {
        match self.sender.take() {
            Some(sender) => sender,
            None => unreachable!("a permit that was used does not exist any more"),
        }
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.chan().release(1);
            // And then the sender goes, which tells the receiver if it was the last.
        }
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}
