//! A sender's share in a channel, strong or weak; both kinds of channel have it.

use crate::primitive::Arc;

use super::chan::Chan;

/// Counts as a sender.
pub(super) struct Tx<T>(Arc<Chan<T>>);

/// Does not count as one, and does not keep the channel open.
pub(super) struct WeakTx<T>(Arc<Chan<T>>);

impl<T> Tx<T> {
    /// `chan` counts one sender already, which is this.
    pub(super) fn first(chan: Arc<Chan<T>>) -> Self {
        Self(chan)
    }

    #[inline]
    pub(super) fn chan(&self) -> &Chan<T> {
        &self.0
    }

    pub(super) fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn downgrade(&self) -> WeakTx<T> {
        self.0.add_weak();
        WeakTx(self.0.clone())
    }
}

impl<T> Clone for Tx<T> {
    fn clone(&self) -> Self {
        self.0.add_sender();
        Self(self.0.clone())
    }
}

impl<T> Drop for Tx<T> {
    fn drop(&mut self) {
        self.0.remove_sender();
    }
}

impl<T> WeakTx<T> {
    #[inline]
    pub(super) fn chan(&self) -> &Chan<T> {
        &self.0
    }

    pub(super) fn upgrade(&self) -> Option<Tx<T>> {
        self.0.try_add_sender().then(|| Tx(self.0.clone()))
    }
}

impl<T> Clone for WeakTx<T> {
    fn clone(&self) -> Self {
        self.0.add_weak();
        Self(self.0.clone())
    }
}

impl<T> Drop for WeakTx<T> {
    fn drop(&mut self) {
        self.0.remove_weak();
    }
}
