//! The pool: futures that are polled by one task, each of them only when it was woken.
//!
//! # How it works
//! Every future lies in a place (`slab.rs`) and is polled with the waker of that place. A wake puts the number of the
//! place into a queue (`task/wake_queue.rs`) and, if that was empty, wakes the task that owns the pool. The owner polls
//! what the queue has, once each. Places are used again with their wakers: a pool that keeps its size allocates nothing.
//!
//! # What it guarantees
//! A future whose waker was woken after its last poll began is polled again, and no poll is without such a wake, but
//! for a late wake of the future that had the place before.
//!
//! The order is that of the wakes. When the coop budget of the task is spent the pool stops, with what was woken still
//! in line: so a future that spends the whole budget in each poll keeps none of the others from theirs.
//!
//! # Who may touch what
//! `queued` of a place says that its number is in the queue or about to be. Any thread sets it, and who has set it puts
//! the number in; the owner clears it before it polls.
//!
//! # The race
//! 1. The owner clears `queued` (and reads what was there).
//! 2. It polls: the future looks at what it waits for.
//! 3. Another thread changes that.
//! 4. It sets `queued` (and reads what was there).
//!
//! Both 1 and 4 are exchanges. If 4 comes after 1, it finds the flag clear and puts the number in: there is another
//! poll. If it comes before, 1 reads the flag from 4 or later and acquires what 3 did: 2 sees it.
//! Model: loom-tests/tests/future_pool.rs.
//!
//! # User code
//! Futures are polled and dropped, and wakers woken, with no lock held and the pool whole. When the pool is dropped, the
//! queue is closed and the owner's waker taken out before the futures go.
//!
//! # Where it comes from
//! The idea is that of `FuturesUnordered`. That one knows nothing of budgets: of two futures, one that spends the
//! budget and a sleep, it polls the sleep with no budget left for ever. It also allocates for each future.

use std::collections::VecDeque;
// What `Wake` asks for; the queue, whose drop has to come after every use, is in a modelled one.
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use rt_sync::coop;
use rt_sync::primitive::Arc;
use rt_sync::primitive::atomic::{AtomicBool, Ordering::AcqRel};

use super::slab::Slab;
use crate::task::wake_queue::WakeQueue;

/// See the module head.
pub struct Pool<F> {
    // Dropped in this order: see `drop`.
    places: Slab<F>,
    wakers: Vec<(Waker, StdArc<Place>)>,
    free: Vec<u32>,
    /// Numbers of places that are to be polled.
    ready: VecDeque<u32>,
    woken: Arc<WakeQueue<u32>>,
    len: usize,
}

struct Place {
    woken: Arc<WakeQueue<u32>>,
    queued: AtomicBool,
    number: u32,
}

impl Wake for Place {
    fn wake(self: StdArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &StdArc<Self>) {
        // AcqRel: with the exchange in `Pool::poll_place` (module head, 1 and 4).
        if !self.queued.swap(true, AcqRel) {
            // Closed: the pool is gone.
            let _ = self.woken.push(self.number);
        }
    }
}

impl<F> Pool<F> {
    /// An empty pool that will hold about so many futures.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            places: Slab::with_first(capacity.clamp(1, 4096)),
            wakers: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            woken: Arc::new(WakeQueue::new()),
            len: 0,
        }
    }

    /// Number of futures that are not done.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all futures are done.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a future and gives the number of its place: the first that is free. The next poll of the pool polls it.
    pub fn push(&mut self, future: F) -> u32 {
        let number = match self.free.pop() {
            Some(number) => number,
            None => self.new_place(),
        };
        self.places.get(number as usize).set(Some(future));
        self.ready.push_back(number);
        self.len += 1;
        number
    }

    fn new_place(&mut self) -> u32 {
        let number = u32::try_from(self.wakers.len())
            .expect("fewer than 2^32 futures can be waited for at once");
        if number as usize == self.places.capacity() {
            self.places.grow();
        }
        let place = StdArc::new(Place {
            woken: self.woken.clone(),
            queued: AtomicBool::new(false),
            number,
        });
        self.wakers.push((Waker::from(place.clone()), place));
        number
    }

    /// The futures that are not done, with their numbers and in their order. The pool is empty then.
    pub fn take_rest(&mut self) -> Vec<(u32, F)>
    where
        F: Unpin,
    {
        let mut rest = Vec::with_capacity(self.len);
        for number in 0..self.wakers.len() as u32 {
            if let Some(future) = self.places.get(number as usize).get_mut().take() {
                rest.push((number, future));
                self.free.push(number);
            }
        }
        self.len = 0;
        rest
    }
}

impl<F: Future> Pool<F> {
    /// Polls what was woken until one of the futures is done: its number and its output. `None`: all are done.
    ///
    /// Each output spends a unit of the task's budget.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(u32, F::Output)>> {
        if self.len == 0 {
            return Poll::Ready(None);
        }
        // What is left from before, and then what was woken since: that once, or a future that wakes itself would
        // never let go of the task.
        for fresh in [false, true] {
            if fresh {
                self.woken.register(cx.waker());
                self.woken.take_into(&mut self.ready);
            }
            while let Some(number) = self.ready.pop_front() {
                if !coop::budget_left() {
                    self.ready.push_front(number);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                if let Some(output) = self.poll_place(number) {
                    spend(cx);
                    return Poll::Ready(Some((number, output)));
                }
            }
        }
        Poll::Pending
    }

    /// Polls the future in this place. `None`: it is not done, or the place is empty.
    fn poll_place(&mut self, number: u32) -> Option<F::Output> {
        let (waker, place) = &self.wakers[number as usize];
        // AcqRel: with the exchange in `wake_by_ref` (module head, 1 and 4).
        place.queued.swap(false, AcqRel);
        let mut future = self.places.get(number as usize);
        let output = match future
            .as_mut()
            .as_pin_mut()?
            .poll(&mut Context::from_waker(waker))
        {
            Poll::Ready(output) => output,
            Poll::Pending => return None,
        };
        // Before its destructor runs, which may panic.
        self.len -= 1;
        self.free.push(number);
        future.set(None);
        Some(output)
    }
}

/// Spends a unit for an operation that is done already.
#[inline]
pub(super) fn spend(cx: &mut Context<'_>) {
    if coop::budget_left()
        && let Poll::Ready(unit) = coop::poll_proceed(cx)
    {
        unit.made_progress();
    }
}

impl<F> Drop for Pool<F> {
    fn drop(&mut self) {
        // Not woken for the wakes of futures that are dropped next, and no waker of the owner stays with wakers of
        // places that live on elsewhere.
        drop(self.woken.close());
        drop(self.woken.take_waker());
    }
}

impl<F> std::fmt::Debug for Pool<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

// Futures are pinned in boxes of their own.
impl<F> Unpin for Pool<F> {}
