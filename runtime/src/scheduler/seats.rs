//! Every seat of a runtime: a list that only grows, read without a lock by whoever keeps a copy.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::seat::Seat;

/// All seats; workers come first, guests follow in the order of their first use.
pub(crate) struct Seats {
    list: RwLock<Arc<[Arc<Seat>]>>,
    /// Length of `list`: tells whether a copy is out of date.
    len: AtomicUsize,
    /// Guest seats on which nobody sits, the last left on top.
    free: Mutex<Vec<Arc<Seat>>>,
    /// Set under the lock of `list`, so that shutdown sees every seat that was added before.
    closed: AtomicBool,
}

/// A worker's copy of the list.
pub(crate) struct Snapshot(Arc<[Arc<Seat>]>);

impl Seats {
    pub(crate) fn new() -> Self {
        Self { list: RwLock::new(Arc::new([])), len: AtomicUsize::new(0), free: Mutex::new(Vec::new()), closed: AtomicBool::new(false) }
    }

    /// Adds a seat that `make` makes for the next index. Once closed, the seat is its maker's alone.
    pub(crate) fn add<E>(&self, make: impl FnOnce(usize) -> Result<Arc<Seat>, E>) -> Result<Arc<Seat>, E> {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let seat = make(list.len())?;
        if !self.is_closed() {
            *list = list.iter().chain([&seat]).cloned().collect();
            // Release: pairs with `refresh`.
            self.len.store(list.len(), Ordering::Release);
        }
        Ok(seat)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.list.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Brings a copy up to date.
    #[inline]
    pub(crate) fn refresh(&self, snapshot: &mut Snapshot) {
        // Acquire: pairs with `add`. A seat that is missed now is looked at the next time; what lies in its queue is
        // polled by its own thread.
        if self.len.load(Ordering::Acquire) != snapshot.0.len() {
            *snapshot = self.snapshot();
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Arc<Seat>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).get(index).cloned()
    }

    /// A guest seat on which nobody sits, if there is one.
    pub(crate) fn take_free(&self) -> Option<Arc<Seat>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Takes the free seats for which `which` holds.
    pub(crate) fn take_free_where(&self, which: impl Fn(&Seat) -> bool) -> Option<Arc<Seat>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let place = free.iter().position(|seat| which(seat))?;
        Some(free.remove(place))
    }

    /// Whether a free seat exists for which `which` holds.
    pub(crate) fn any_free(&self, which: impl Fn(&Seat) -> bool) -> bool {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|seat| which(seat))
    }

    pub(crate) fn put_free(&self, seat: Arc<Seat>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // `clear` has been here, or will find it closed: a seat left here would keep the runtime for ever.
        if !self.is_closed() {
            free.push(seat);
        }
    }

    /// At shutdown: from now on no seat is added or given back.
    pub(crate) fn close(&self) {
        let list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        self.closed.store(true, Ordering::Relaxed);
        drop(list);
        // Pairs with the fence of `Idle::claim`: see `Shared::notify_injected`.
        fence(Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Lets go of every seat: seats and runtime hold each other, and shutdown ends that.
    pub(crate) fn clear(&self) {
        let list = std::mem::replace(&mut *self.list.write().unwrap_or_else(PoisonError::into_inner), Arc::new([]));
        let free = std::mem::take(&mut *self.free.lock().unwrap_or_else(PoisonError::into_inner));
        drop((list, free));
    }
}

impl Snapshot {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Seat>> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All seats, from `start` on and round.
    pub(crate) fn iter_from(&self, start: usize) -> impl Iterator<Item = &Arc<Seat>> {
        let (before, after) = self.0.split_at(start.min(self.0.len()));
        after.iter().chain(before)
    }
}
