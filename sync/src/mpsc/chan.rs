//! What the ends of a channel share, and every change of it. The module head of [`mpsc`](super) has the protocol.

#![expect(unsafe_code, reason = "hands values over to a receiver that waits")]

use std::any::Any;
use std::panic::{self, RefUnwindSafe, UnwindSafe};
use std::task::Waker;

use crate::primitive::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::primitive::{Arc, ShortGuard, ShortMutex};
use crate::wait_list::WaitList;
use crate::wake_batch::{WakeBatch, contain, in_drop, keep_first, resume};

use super::error::TrySendError;
use super::handoff::Handoff;
use super::queue::Queue;
use super::waiters::{Stage, Waiters};

/// In `Chan::received`: the list of waiting senders is not empty.
const WAITING: usize = 1;
/// In `Chan::received`: one value.
const ONE: usize = 2;

/// So many slots no channel has: the counts of slots stay far from overflow.
pub(super) const MAX_SLOTS: usize = usize::MAX >> 3;

#[repr(C)]
pub(super) struct Chan<T> {
    state: ShortMutex<State<T>>,
    handoff: Handoff<T>,
    /// How many values were ever pushed (wraps). Written under the lock.
    sent: AtomicUsize,
    /// Written under the lock, once.
    closed: AtomicBool,
    /// How many senders there are. Never leaves 0.
    strong: AtomicUsize,
    weak: AtomicUsize,
    max: usize,
    /// Who waits in `Sender::closed`.
    closing: WaitList,
    /// Keeps what senders write and what the receiver writes on different cache lines. Padding instead of alignment,
    /// which would make the allocation dearer.
    _apart: [u8; 128],
    /// How many values were ever received (wraps), times `ONE`, and `WAITING`. Bounded channels only.
    received: AtomicUsize,
}

/// What the lock guards.
pub(super) struct State<T> {
    pub(super) queue: Queue<T>,
    /// Slots that are neither reserved nor filled, by what is known of `received`.
    free: usize,
    /// What is known of `received`, without `WAITING`.
    known: usize,
    /// Slots given to permits, and to waiting senders that have not yet looked.
    reserved: usize,
    /// The receiver has gone: values that permits send are dropped.
    pub(super) rx_gone: bool,
    pub(super) rx_waker: Option<Waker>,
    pub(super) waiters: Waiters,
}

pub(super) type Guard<'a, T> = ShortGuard<'a, State<T>>;

/// What became of a wish for slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// They were taken.
    Granted,
    /// Not enough are free, or others wait.
    Full,
    Closed,
}

impl<T> Chan<T> {
    /// A channel of so many slots, with one sender.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            state: ShortMutex::new(State {
                queue: Queue::new(),
                free: max,
                known: 0,
                reserved: 0,
                rx_gone: false,
                rx_waker: None,
                waiters: Waiters::new(),
            }),
            handoff: Handoff::new(),
            sent: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            strong: AtomicUsize::new(1),
            weak: AtomicUsize::new(0),
            max,
            closing: WaitList::new(),
            _apart: [0; 128],
            received: AtomicUsize::new(0),
        })
    }

    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, T> {
        self.state.lock()
    }

    #[inline]
    pub(super) fn max(&self) -> usize {
        self.max
    }

    #[inline]
    pub(super) fn sent(&self) -> usize {
        // Relaxed: a count; the values are behind the lock.
        self.sent.load(Relaxed)
    }

    /// Whether the receiver has closed the channel or has gone.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // Acquire: with the store in `close`; what the receiver did before is seen.
        self.closed.load(Acquire)
    }

    #[inline]
    pub(super) fn closing(&self) -> &WaitList {
        &self.closing
    }

    #[inline]
    pub(super) fn strong(&self) -> usize {
        // Acquire: with the decrement in `remove_sender`; what a sender did before it went is seen.
        self.strong.load(Acquire)
    }

    #[inline]
    pub(super) fn weak(&self) -> usize {
        self.weak.load(Relaxed)
    }

    /// How many slots a newcomer could take.
    pub(super) fn capacity(&self) -> usize {
        let mut state = self.lock();
        self.refresh(&mut state);
        if state.waiters.is_empty() {
            state.free
        } else {
            0
        }
    }

    #[inline]
    pub(super) fn handoff(&self) -> &Handoff<T> {
        &self.handoff
    }

    // Sending.

    /// Puts a value in that has its slot, and tells the receiver.
    #[inline(always)]
    pub(super) fn push(&self, mut state: Guard<'_, T>, value: T) {
        // Relaxed: as in `sent`.
        let sent = self.sent.load(Relaxed);
        self.sent.store(sent.wrapping_add(1), Relaxed);
        let Some(waker) = state.rx_waker.take() else {
            state.queue.push(value);
            return;
        };
        // The receiver waits only if the queue is empty, so no value in there is older.
        debug_assert!(state.queue.is_empty());
        // SAFETY: we hold the lock and have just taken the waker.
        unsafe { self.handoff.put(value) };
        drop(state);
        waker.wake();
    }

    /// Sends without a slot: for unbounded channels.
    #[inline]
    pub(super) fn send_unbounded(&self, value: T) -> Result<(), T> {
        let state = self.lock();
        // Relaxed: written under the lock.
        if self.closed.load(Relaxed) {
            drop(state);
            return Err(value);
        }
        self.push(state, value);
        Ok(())
    }

    #[inline]
    pub(super) fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut state = self.lock();
        match self.admit(&mut state, 1) {
            Admission::Granted => {
                self.push(state, value);
                Ok(())
            }
            Admission::Full => Err(TrySendError::Full(value)),
            Admission::Closed => Err(TrySendError::Closed(value)),
        }
    }

    /// Sends into a slot that was reserved. The value is dropped if the receiver has gone.
    pub(super) fn send_reserved(&self, mut state: Guard<'_, T>, value: T) {
        debug_assert!(state.reserved > 0);
        if state.rx_gone {
            self.release_locked(state, 1);
            drop(value);
        } else {
            state.reserved -= 1;
            self.push(state, value);
        }
    }

    // Slots.

    /// Takes slots for a newcomer, without counting them as reserved.
    #[inline]
    pub(super) fn admit(&self, state: &mut State<T>, need: usize) -> Admission {
        // Relaxed: written under the lock.
        if self.closed.load(Relaxed) {
            return Admission::Closed;
        }
        // None at all overtake nobody.
        if need == 0 {
            return Admission::Granted;
        }
        if !state.waiters.is_empty() {
            return Admission::Full;
        }
        if state.free < need {
            self.refresh(state);
            if state.free < need {
                return Admission::Full;
            }
        }
        state.free -= need;
        Admission::Granted
    }

    /// Takes slots for a newcomer and counts them as reserved.
    #[inline]
    pub(super) fn reserve(&self, state: &mut State<T>, need: usize) -> Admission {
        let admission = self.admit(state, need);
        if admission == Admission::Granted {
            state.reserved += need;
        }
        admission
    }

    /// Counts the slots that the receiver has freed since the last look.
    #[inline]
    fn refresh(&self, state: &mut State<T>) {
        // Relaxed: a count; what was in the slots lies elsewhere.
        let received = self.received.load(Relaxed) & !WAITING;
        state.free += received.wrapping_sub(state.known) / ONE;
        state.known = received;
    }

    /// The first sender is in the list now: asks the receiver to come by from now on (step 2 of the race in the module
    /// head), and lets senders in by what it has freed before.
    pub(super) fn announce_waiting(&self, state: Guard<'_, T>) {
        // Relaxed: that both sides read-modify-write this one word is what orders them; the list is behind the lock.
        // What the receiver added before this, `settle` sees, since it reads the word after it.
        self.received.fetch_or(WAITING, Relaxed);
        self.settle(state);
    }

    /// Frees the slots of `count` values: the receiver's step of the race in the module head.
    #[inline]
    pub(super) fn freed(&self, count: usize) {
        // Relaxed: as in `announce_waiting`.
        let before = self.received.fetch_add(count * ONE, Relaxed);
        if before & WAITING != 0 {
            self.come_by();
        }
    }

    #[cold]
    fn come_by(&self) {
        // The receiver has taken its values: what the waker of a sender does must not cost it these.
        contain(|| self.settle(self.lock()));
    }

    /// Frees slots for which nobody waits any more.
    pub(super) fn freed_at_end(&self, count: usize) {
        self.received.fetch_add(count * ONE, Relaxed);
    }

    /// Gives reserved slots back: the one way for all of them.
    pub(super) fn release(&self, count: usize) {
        self.release_locked(self.lock(), count);
    }

    pub(super) fn release_locked(&self, mut state: Guard<'_, T>, count: usize) {
        debug_assert!(state.reserved >= count);
        state.reserved -= count;
        state.free += count;
        self.settle(state);
    }

    /// A sender has left the list without slots: the next one may need fewer.
    pub(super) fn left(&self, state: Guard<'_, T>) {
        self.quiet_waiting(&state, true);
        self.settle(state);
    }

    /// After slots came free, or the first waiting sender has changed: lets in who can be let in, and tells the
    /// receiver if nothing will come any more.
    #[inline(never)]
    pub(super) fn settle<'a>(&'a self, mut state: Guard<'a, T>) {
        let mut batch = WakeBatch::new();
        let mut panicked = None;
        loop {
            let waited = !state.waiters.is_empty();
            if waited {
                self.refresh(&mut state);
            }
            let mut more = false;
            while let Some(need) = state.waiters.first_need()
                && need <= state.free
            {
                if batch.is_full() {
                    more = true;
                    break;
                }
                state.free -= need;
                state.reserved += need;
                if let Some(waker) = state.waiters.pop(Stage::Granted) {
                    batch.push(waker);
                }
            }
            self.quiet_waiting(&state, waited);
            // Then no slot is out, so that nobody has just been let in, and the batch has room.
            if self.is_over(&state)
                && let Some(waker) = state.rx_waker.take()
            {
                batch.push(waker);
            }
            drop(state);
            keep_first(&mut panicked, batch.wake_all_caught());
            if !more {
                break;
            }
            state = self.lock();
        }
        resume(panicked);
    }

    /// After a change of the list, which was not empty if `waited`: the receiver need not come by for an empty one.
    #[inline]
    fn quiet_waiting(&self, state: &State<T>, waited: bool) {
        if waited && state.waiters.is_empty() {
            // Relaxed: as in `announce_waiting`.
            self.received.fetch_and(!WAITING, Relaxed);
        }
    }

    // The end.

    /// Whether nothing is in the queue and nothing will come into it.
    #[inline]
    pub(super) fn is_over(&self, state: &State<T>) -> bool {
        // Relaxed: written under the lock.
        state.reserved == 0
            && (self.closed.load(Relaxed) || self.strong() == 0)
            && state.queue.is_empty()
    }

    /// Lets nobody in any more. Returns the first panic of a waker.
    pub(super) fn close(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.lock();
        if self.closed.load(Relaxed) {
            return None;
        }
        // Release: with the Acquire in `is_closed`.
        self.closed.store(true, Release);
        let mut batch = WakeBatch::new();
        let mut panicked = None;
        loop {
            let waited = !state.waiters.is_empty();
            while !state.waiters.is_empty() && !batch.is_full() {
                if let Some(waker) = state.waiters.pop(Stage::Closed) {
                    batch.push(waker);
                }
            }
            self.quiet_waiting(&state, waited);
            let more = !state.waiters.is_empty();
            drop(state);
            keep_first(&mut panicked, batch.wake_all_caught());
            if !more {
                break;
            }
            state = self.lock();
        }
        let told = panic::catch_unwind(panic::AssertUnwindSafe(|| self.closing.notify_all()));
        keep_first(&mut panicked, told.err());
        panicked
    }

    // Counts of senders.

    #[inline]
    pub(super) fn add_sender(&self) {
        // Relaxed: whoever clones is a sender, so the count is not 0. It does not overflow: that of the `Arc` would
        // abort the process before.
        self.strong.fetch_add(1, Relaxed);
    }

    /// One more sender, if there is one still.
    pub(super) fn try_add_sender(&self) -> bool {
        let mut count = self.strong.load(Relaxed);
        while count != 0 {
            // Relaxed: as in `add_sender`.
            match self
                .strong
                .compare_exchange_weak(count, count + 1, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }

    #[inline]
    pub(super) fn remove_sender(&self) {
        // AcqRel: what each sender did comes before what is done after the last one.
        if self.strong.fetch_sub(1, AcqRel) == 1 {
            // The receiver looks at the count under the lock before it waits: either it sees 0, or its waker is here.
            let waker = self.lock().rx_waker.take();
            if let Some(waker) = waker {
                in_drop(|| waker.wake());
            }
        }
    }

    #[inline]
    pub(super) fn add_weak(&self) {
        self.weak.fetch_add(1, Relaxed);
    }

    #[inline]
    pub(super) fn remove_weak(&self) {
        self.weak.fetch_sub(1, Relaxed);
    }
}

// No invariant is broken when user code panics: it runs with the lock released and the state whole.
impl<T> UnwindSafe for Chan<T> {}
impl<T> RefUnwindSafe for Chan<T> {}
