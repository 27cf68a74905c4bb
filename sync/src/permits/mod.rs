//! A count of permits and the queue of those who wait for some: what semaphore, mutex and read-write lock are made of.
//!
//! # What it guarantees
//! Permits are handed out first come, first served: who asks while somebody waits gets in line, however many permits
//! there are. A permit that is returned is counted, or granted to who waits longest and needs no more than there are;
//! a future that is dropped with a grant returns it. One function, [`Permits::release`], returns permits on all paths.
//!
//! # The word
//!
//! | bits        | meaning                                                                                      |
//! |-------------|----------------------------------------------------------------------------------------------|
//! | `CLOSED`    | nothing is granted any more; never cleared                                                   |
//! | `WAITERS`   | the queue is not empty; never together with `CLOSED`, except inside `close`                  |
//! | the others  | how many permits there are. With `WAITERS`, fewer than the head of the queue needs (or they are about to be handed out) |
//!
//! # Who may touch what
//! Permits are *taken* by a compare-exchange from a word without flags, or, with `WAITERS`, by who holds the lock of the
//! queue. Anyone may *add* to them. Flags are changed by who holds the lock only, so under the lock without `CLOSED`,
//! `WAITERS` says exactly whether the queue is empty.
//!
//! # The races
//! A future that finds too few permits takes the lock and (1) sets `WAITERS` in the word that said so. Who returns
//! permits (2) adds them and sees in the same step whether `WAITERS` is set; if so, it takes the lock and serves the
//! queue. Of (1) and (2) one comes first: then the future sees the permits, or the returning side sees the waiter.
//!
//! A waiter that goes has the lock to leave with. If it was the head, the next one may need less: so the queue is served
//! then too. If it was granted meanwhile, it releases.
//!
//! # What it costs
//! Uncontended: one exchange to take, one addition to return, no lock. A hand-over under contention: the lock, no
//! change of the word unless the queue becomes empty, and one wake.
//!
//! # Orderings
//! All changes of the word are read-modify-writes, so an addition (Release) is seen by every later taker (Acquire), be
//! there other changes in between. A grant is seen through the state of the node (`queue.rs`).
//!
//! # User code
//! Wakers are cloned, woken and dropped with the lock released and the queue whole.
//!
//! # Where it comes from
//! tokio's `batch_semaphore`, in meaning. That one takes the lock for each release, and hands permits to the head piece
//! by piece; here they stay in the word until they suffice, and count as not available meanwhile all the same.
#![expect(
    unsafe_code,
    reason = "nodes of the queue lie in pinned futures and are reached by pointer"
)]

use std::task::{Poll, Waker};

use crate::primitive::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::primitive::{Mutex, MutexGuard};
use crate::wake_batch::{self, WakeBatch, in_drop, keep_first, resume};

mod future;
mod guard;
mod queue;
mod wait;

pub(crate) use self::future::lock_future;
pub(crate) use self::guard::{leads_to, leads_to_mut, try_part, try_part_mut};
use self::queue::{GRANTED, IDLE, Node, Queue, REFUSED, Served, WAITING};
pub(crate) use self::wait::{Held, HeldOnly, PermitsRef, Wait};

const CLOSED: usize = 1;
const WAITERS: usize = 1 << 1;
const SHIFT: u32 = 2;
/// One permit.
const ONE: usize = 1 << SHIFT;

/// tokio's number. One bit of the word is left free above, so that an addition that goes too far is noticed before it
/// has done harm.
pub(crate) const MAX: usize = usize::MAX >> 3;

/// Permits, and those who wait for them.
pub(crate) struct Permits {
    word: AtomicUsize,
    queue: Mutex<Queue>,
}

/// Why permits are not to be had at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    TooFew,
}

impl Permits {
    #[cfg(not(rt_loom))]
    #[inline]
    pub(crate) const fn new(permits: usize) -> Self {
        Self {
            word: AtomicUsize::new(permits << SHIFT),
            queue: Mutex::new(Queue::new()),
        }
    }

    #[cfg(rt_loom)]
    pub(crate) fn new(permits: usize) -> Self {
        Self {
            word: AtomicUsize::new(permits << SHIFT),
            queue: Mutex::new(Queue::new()),
        }
    }

    /// How many a newcomer could take: none while others wait.
    #[inline]
    pub(crate) fn available(&self) -> usize {
        // Acquire: what was done before a release that is seen here is seen too.
        let word = self.word.load(Acquire);
        if word & WAITERS == 0 {
            word >> SHIFT
        } else {
            0
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: with `close`; what was done before it is seen.
        self.word.load(Acquire) & CLOSED != 0
    }

    /// Takes permits if nobody is waiting and there are enough.
    #[inline]
    pub(crate) fn try_take(&self, n: usize) -> Result<(), Refusal> {
        if self.take(n) { Ok(()) } else { self.refuse(n) }
    }

    #[inline]
    fn take(&self, n: usize) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & (CLOSED | WAITERS) == 0 && word >> SHIFT >= n {
            // Acquire: with the Release of who returned them.
            match self
                .word
                .compare_exchange_weak(word, word - (n << SHIFT), Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    #[cold]
    fn refuse(&self, n: usize) -> Result<(), Refusal> {
        if self.is_closed() {
            Err(Refusal::Closed)
        } else if n == 0 {
            // Overtakes nobody.
            Ok(())
        } else {
            Err(Refusal::TooFew)
        }
    }

    /// [`try_take`](Self::try_take) of the only permit there is: one exchange, without a look at the word before it.
    #[inline]
    pub(crate) fn try_take_only(&self) -> bool {
        // Acquire: with the Release of who returned it.
        self.word.compare_exchange(ONE, 0, Acquire, Relaxed).is_ok()
    }

    /// Returns permits: to those who wait, or to the count.
    #[inline]
    pub(crate) fn release(&self, n: usize) {
        // Relaxed: it only chooses the way. What it says may be old: `fetch_add` says what is true.
        if self.word.load(Relaxed) & WAITERS != 0 {
            return self.release_queued(n);
        }
        // Release: with the Acquire of who takes them.
        let before = self.word.fetch_add(n << SHIFT, Release);
        if before & WAITERS != 0 {
            self.release_queued(0);
        }
    }

    /// [`release`](Self::release) of the only permit there is.
    #[inline]
    pub(crate) fn release_only(&self) {
        // Release: with the Acquire of who takes it.
        if self
            .word
            .compare_exchange(0, ONE, Release, Relaxed)
            .is_err()
        {
            self.release_queued(1);
        }
    }

    /// [`release`](Self::release) of permits that nobody held; `false`, and nothing done, if there would be too many.
    pub(crate) fn add(&self, n: usize) -> bool {
        if n > MAX - (self.word.load(Relaxed) >> SHIFT).min(MAX) {
            return false;
        }
        self.release(n);
        true
    }

    #[cold]
    fn release_queued(&self, n: usize) {
        self.serve(self.queue.lock(), n);
    }

    /// Serves those at the head of the queue with the permits of the word and `extra` ones, and leaves the rest in the
    /// word.
    fn serve<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, mut extra: usize) {
        let mut panicked = None;
        loop {
            // Acquire: whom we grant permits sees what was done before they were returned.
            let word = self.word.load(Acquire);
            let served = if word & CLOSED == 0 {
                queue.affordable((word >> SHIFT) + extra, wake_batch::CAPACITY)
            } else {
                Served {
                    count: 0,
                    permits: 0,
                    all: false,
                }
            };
            let mut change = extra.wrapping_sub(served.permits) << SHIFT;
            extra = 0;
            if served.all && word & WAITERS != 0 {
                change = change.wrapping_sub(WAITERS);
            }
            if change != 0 {
                // Nobody else takes permits meanwhile, so this does not go below zero. Release: with the Acquire of who
                // takes what is left.
                self.word.fetch_add(change, Release);
            }
            if served.count <= 1 {
                let head = queue.head();
                let waker = (served.count == 1)
                    // SAFETY: we hold the lock, and there is a head: it is served.
                    .then(|| unsafe { queue.settle(head, GRANTED) })
                    .flatten();
                drop(queue);
                if let Some(waker) = waker {
                    // Guards come here when they are dropped.
                    in_drop(|| waker.wake());
                }
                break;
            }
            let panic = settle_some(queue, served.count, GRANTED);
            keep_first(&mut panicked, panic);
            if served.all || served.count < wake_batch::CAPACITY {
                break;
            }
            queue = self.queue.lock();
        }
        resume(panicked);
    }

    /// Refuses those who wait and all who come later.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        // Release: with the Acquire of `is_closed`.
        let word = self.word.fetch_or(CLOSED, Release);
        if word & WAITERS != 0 {
            // Relaxed: it tells nobody anything new.
            self.word.fetch_sub(WAITERS, Relaxed);
        }
        // From here on nobody joins the queue, and nobody is served; some may still leave.
        let mut panicked = None;
        while !queue.is_empty() {
            let panic = settle_some(queue, wake_batch::CAPACITY, REFUSED);
            keep_first(&mut panicked, panic);
            queue = self.queue.lock();
        }
        drop(queue);
        resume(panicked);
    }

    /// Removes up to `n` of the permits that nobody holds; returns how many these were.
    pub(crate) fn forget(&self, n: usize) -> usize {
        let mut word = self.word.load(Relaxed);
        loop {
            let forgotten = if word & WAITERS == 0 {
                n.min(word >> SHIFT)
            } else {
                0
            };
            if forgotten == 0 {
                return 0;
            }
            // Acquire: as if they had been taken.
            match self.word.compare_exchange_weak(
                word,
                word - (forgotten << SHIFT),
                Acquire,
                Relaxed,
            ) {
                Ok(_) => return forgotten,
                Err(now) => word = now,
            }
        }
    }

    /// Takes what `node` needs, or gets in line.
    fn join(&self, node: &Node, waker: &Waker) -> Poll<Result<(), ()>> {
        let waker = waker.clone();
        let mut queue = self.queue.lock();
        // Acquire: with `close`.
        let mut word = self.word.load(Acquire);
        let outcome = loop {
            if word & CLOSED != 0 {
                break Some(Err(()));
            }
            // None at all overtake nobody.
            if word & WAITERS != 0 && node.needed() > 0 {
                break None;
            }
            let enough = word >> SHIFT >= node.needed();
            let next = if enough {
                word - (node.needed() << SHIFT)
            } else {
                word | WAITERS
            };
            // Acquire: with the Release of who returned the permits.
            match self
                .word
                .compare_exchange_weak(word, next, Acquire, Acquire)
            {
                Ok(_) => break enough.then_some(Ok(())),
                Err(now) => word = now,
            }
        };
        if let Some(result) = outcome {
            drop(queue);
            if result.is_ok() {
                // User code comes next. If it panics, the future gives back what it has when it goes.
                node.take_itself();
            }
            drop(waker);
            return Poll::Ready(result);
        }
        // SAFETY: the node is `IDLE`. It is pinned, and dropping its future removes it (`Wait`).
        unsafe { queue.push(node, waker) };
        Poll::Pending
    }

    /// The way of a node that was `WAITING` when it was looked at.
    fn update(&self, node: &Node, waker: &Waker) -> Poll<Result<(), ()>> {
        let mut spare = None;
        loop {
            let mut queue = self.queue.lock();
            match node.state() {
                GRANTED => return Poll::Ready(Ok(())),
                REFUSED => return Poll::Ready(Err(())),
                _ => {}
            }
            // SAFETY: we hold the lock, and the node is `WAITING`, so it is in the queue.
            let renewed = unsafe { queue.renew(node, waker, &mut spare) };
            drop(queue);
            if renewed {
                // What is left in `spare` is dropped here, after the lock.
                return Poll::Pending;
            }
            spare = Some(waker.clone());
        }
    }

    /// Takes what `node` needs, if it is not in line and there is no line. `only`: there is one permit at most.
    #[inline]
    fn take_at_once(&self, node: &Node, only: bool) -> bool {
        node.state() == IDLE
            && if only {
                self.try_take_only()
            } else {
                self.take(node.needed())
            }
    }

    /// One poll for the permits that `node` needs and did not get at once.
    fn poll(&self, node: &Node, waker: &Waker) -> Poll<Result<(), ()>> {
        match node.state() {
            IDLE => self.join(node, waker),
            WAITING => self.update(node, waker),
            GRANTED => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err(())),
        }
    }

    /// The future of `node` goes before it is over. `true` if it was granted what it needs, which the caller returns.
    #[cold]
    #[must_use]
    fn leave(&self, node: &Node) -> bool {
        match node.state() {
            WAITING => {}
            state => return state == GRANTED,
        }
        let mut queue = self.queue.lock();
        let state = node.state();
        if state != WAITING {
            return state == GRANTED;
        }
        let was_head = std::ptr::eq(queue.head(), node);
        // SAFETY: we hold the lock, and the node is `WAITING`, so it is in the queue.
        let waker = unsafe { queue.settle(node, IDLE) };
        if was_head {
            // The next one may need less. And if there is none, `WAITERS` must go.
            self.serve(queue, 0);
        } else {
            drop(queue);
        }
        drop(waker);
        false
    }
}

/// Settles the first `count` nodes, or all if there are fewer, and wakes them with the lock released.
///
/// `count` is at most the capacity of a batch.
fn settle_some(
    mut queue: MutexGuard<'_, Queue>,
    count: usize,
    state: u8,
) -> Option<Box<dyn std::any::Any + Send>> {
    let mut batch = WakeBatch::new();
    for _ in 0..count {
        let head = queue.head();
        if head.is_null() {
            break;
        }
        // SAFETY: the caller holds the lock, and the head is in the queue.
        if let Some(waker) = unsafe { queue.settle(head, state) } {
            batch.push(waker);
        }
    }
    drop(queue);
    batch.wake_all_caught()
}
