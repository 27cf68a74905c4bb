//! Every seat of a runtime: a list that only grows, read without a lock by whoever keeps a copy.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::seat::Seat;

use crate::unpoisoned::lock;

/// How long a `block_on` waits for a seat that it has asked back from a stand-in, before it makes a new one: far longer
/// than a turn, so that only a stand-in that is stuck in a poll costs a seat.
const RECALL: Duration = Duration::from_millis(10);

/// All seats; workers come first, guests follow in the order of their first use.
pub(crate) struct Seats {
    list: RwLock<Arc<[Arc<Seat>]>>,
    /// Length of `list`: tells whether a copy is out of date.
    len: AtomicUsize,
    guests: Mutex<Guests>,
    /// A seat was put among the free ones while somebody waits for one.
    freed: Condvar,
    /// Set under the lock of `list`, so that shutdown sees every seat that was added before.
    closed: AtomicBool,
}

struct Guests {
    /// On which nobody sits, the last left on top.
    free: Vec<Arc<Seat>>,
    /// On which a stand-in sits.
    served: Vec<Arc<Seat>>,
    /// Threads that wait for a free one.
    waiting: usize,
}

/// A worker's copy of the list.
pub(crate) struct Snapshot(Arc<[Arc<Seat>]>);

impl Seats {
    pub(crate) fn new() -> Self {
        Self {
            list: RwLock::new(Arc::new([])),
            len: AtomicUsize::new(0),
            guests: Mutex::new(Guests {
                free: Vec::new(),
                served: Vec::new(),
                waiting: 0,
            }),
            freed: Condvar::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// Adds a seat that `make` makes for the next index. Once closed, the seat is its maker's alone.
    pub(crate) fn add<E>(
        &self,
        make: impl FnOnce(usize) -> Result<Arc<Seat>, E>,
    ) -> Result<Arc<Seat>, E> {
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
        Snapshot(
            self.list
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        )
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
        self.list
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(index)
            .cloned()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        lock(&self.guests)
    }

    /// A guest seat on which nobody sits, if there is one.
    pub(crate) fn take_free(&self) -> Option<Arc<Seat>> {
        self.guests().free.pop()
    }

    /// A guest seat that a stand-in gives back for it, if that happens soon.
    pub(crate) fn recall(&self) -> Option<Arc<Seat>> {
        let mut guests = self.guests();
        // The last one: the others are served as well as this one. Not a spare worker, who is needed where it is.
        let place = guests
            .served
            .iter()
            .rposition(|seat| !seat.works.load(Ordering::Relaxed))?;
        let asked = guests.served.remove(place);
        guests.waiting += 1;
        drop(guests);
        asked.wanted.store(true, Ordering::SeqCst);
        asked.wakeup.unpark();
        let deadline = Instant::now() + RECALL;
        let mut guests = self.guests();
        let free = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !guests.free.is_empty() || left.is_zero() || self.is_closed() {
                break guests.free.pop();
            }
            guests = self
                .freed
                .wait_timeout(guests, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        guests.waiting -= 1;
        free
    }

    /// Takes a free seat for which `which` holds, for a stand-in.
    pub(crate) fn take_to_serve(&self, which: impl Fn(&Seat) -> bool) -> Option<Arc<Seat>> {
        let mut guests = self.guests();
        let place = guests.free.iter().position(|seat| which(seat))?;
        let seat = guests.free.remove(place);
        guests.served.push(seat.clone());
        Some(seat)
    }

    /// A seat on which a stand-in sits and for which `which` holds.
    pub(crate) fn served(&self, which: impl Fn(&Seat) -> bool) -> Option<Arc<Seat>> {
        self.guests()
            .served
            .iter()
            .find(|seat| which(seat))
            .cloned()
    }

    /// A guest lends its seat to a stand-in.
    pub(crate) fn note_served(&self, seat: &Arc<Seat>) {
        if !self.is_closed() {
            self.guests().served.push(seat.clone());
        }
    }

    /// There was no stand-in.
    pub(crate) fn forget_served(&self, seat: &Arc<Seat>) {
        self.guests()
            .served
            .retain(|served| !Arc::ptr_eq(served, seat));
    }

    /// Whether a free seat exists for which `which` holds.
    pub(crate) fn any_free(&self, which: impl Fn(&Seat) -> bool) -> bool {
        self.guests().free.iter().any(|seat| which(seat))
    }

    /// Nobody sits on a guest seat any more.
    pub(crate) fn put_free(&self, seat: Arc<Seat>) {
        seat.wanted.store(false, Ordering::Relaxed);
        let mut guests = self.guests();
        guests.served.retain(|served| !Arc::ptr_eq(served, &seat));
        // `clear` has been here, or will find it closed: a seat left here would keep the runtime for ever.
        if !self.is_closed() {
            guests.free.push(seat);
        }
        if guests.waiting > 0 {
            self.freed.notify_all();
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
        let list = std::mem::replace(
            &mut *self.list.write().unwrap_or_else(PoisonError::into_inner),
            Arc::new([]),
        );
        let mut guests = self.guests();
        let left = (
            std::mem::take(&mut guests.free),
            std::mem::take(&mut guests.served),
        );
        drop(guests);
        self.freed.notify_all();
        drop((list, left));
    }
}

impl Snapshot {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Seat>> {
        self.0.iter()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Arc<Seat>> {
        self.0.get(index)
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
