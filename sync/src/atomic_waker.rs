//! One waker slot without a lock: one side waits, any thread wakes.
//!
//! # What it guarantees
//! The waiting side calls [`register`](AtomicWaker::register) and *then* looks at its condition; the other side makes
//! the condition true and *then* calls [`wake`](AtomicWaker::wake) or [`take`](AtomicWaker::take). Then either the
//! waiting side sees the condition, or its waker is woken. A waker that is put in comes out exactly once.
//!
//! # The state word
//! A generation in the upper bits, which every registration bumps, and two bits:
//!
//! | bits      | meaning                         | `take` makes of it      | who may leave it          |
//! |-----------|---------------------------------|-------------------------|---------------------------|
//! | none      | no waker                        | itself (a barrier)      | `register`                |
//! | `ARMED`   | `words` holds a waker           | none, and has the waker | whoever wins the exchange |
//! | `WRITING` | a `register` writes `words`     | itself (a barrier)      | that `register`           |
//!
//! # Who may touch what
//! `words` is written only by whoever set `WRITING`, or by the one caller of `register_exclusive` while `ARMED` is
//! clear. Anyone may read it, and the pair may then be torn: it means something only for who has taken `ARMED` away
//! with a compare-exchange that started from the state it had read before the pair. A generation is armed once and
//! every change of the state is a read-modify-write, so exactly one exchange ends it, and before that end nobody
//! writes the pair. 2^62 registrations do not happen, so a generation does not come back.
//!
//! # The race
//! Both sides do a read-modify-write on one word, `take` also when there is no waker to take. If that of `take` comes
//! second it finds the waker; if it comes before the last one of `register`, that one reads from it, and the waiting side
//! sees the condition. So a `take` that meets a `register` half-way has nothing else to do.
//!
//! # User code
//! The functions of a waker's vtable may panic and may call back into the same object. `clone` is called before the
//! state is touched, `wake` and `drop` after it is whole again.
//!
//! # Where it comes from
//! The contract of futures' `AtomicWaker`. That one keeps the waker in a cell, so that a wake needs a second
//! read-modify-write to give the cell back; reading the pair ahead and claiming it by generation saves that one.
#![expect(
    unsafe_code,
    reason = "a waker is kept as two atomic words and put together again by its owner"
)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::task::Waker;

use crate::primitive::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use crate::waker_words::WakerWords;

/// `words` holds a waker that whoever clears this bit owns.
const ARMED: u64 = 1;
/// A `register` is between its two steps.
const WRITING: u64 = 2;
const BITS: u64 = ARMED | WRITING;
/// One generation.
const GENERATION: u64 = BITS + 1;

/// A slot for the waker of one waiting task, which any thread may wake.
///
/// Registering the waker that is already there costs no read-modify-write, registering anew two (one with
/// [`register_exclusive`](Self::register_exclusive)), waking one.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::task::{Context, Poll};
/// use rt_sync::atomic_waker::AtomicWaker;
///
/// struct Flag {
///     set: AtomicBool,
///     waker: AtomicWaker,
/// }
///
/// impl Flag {
///     fn set(&self) {
///         self.set.store(true, Ordering::Relaxed);
///         self.waker.wake();
///     }
///
///     fn poll_set(&self, cx: &mut Context<'_>) -> Poll<()> {
///         self.waker.register(cx.waker());
///         if self.set.load(Ordering::Relaxed) {
///             Poll::Ready(())
///         } else {
///             Poll::Pending
///         }
///     }
/// }
/// ```
pub struct AtomicWaker {
    state: AtomicU64,
    words: WakerWords,
}

impl AtomicWaker {
    /// A slot without a waker.
    #[cfg(not(rt_loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            words: WakerWords::new(),
        }
    }

    /// A slot without a waker.
    #[cfg(rt_loom)]
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            words: WakerWords::new(),
        }
    }

    /// Makes `waker` the one that the next [`wake`](Self::wake) wakes. Look at the condition afterwards, not before.
    ///
    /// The waker is cloned only if it would not wake the same task as the one that is there. The one that was there is
    /// dropped without being woken.
    ///
    /// There is room for one waiting side. When two call this at the same time, one of them may be woken at once
    /// instead of being registered, and afterwards only one of them is registered.
    #[inline]
    pub fn register(&self, waker: &Waker) {
        if !self.holds(waker) {
            self.replace(waker);
        }
    }

    /// Same as [`register`](Self::register), with one read-modify-write less where no waker is left from before.
    ///
    /// # Safety
    /// No other thread is in `register` or `register_exclusive` of the same object at the same time, as is the case
    /// where the waiting side is borrowed mutably. ([`take`](Self::take), [`wake`](Self::wake) and
    /// [`clear`](Self::clear) may come from anywhere.)
    #[inline]
    pub unsafe fn register_exclusive(&self, waker: &Waker) {
        if self.holds(waker) {
            return;
        }
        let new = ManuallyDrop::new(waker.clone());
        // Only we set `ARMED`, so that it stays clear once it is. If it is set, another waker is left from before.
        // Relaxed: if it is clear, nothing is read, and the swap below acquires.
        let old = if self.state.load(Relaxed) & ARMED == 0 {
            None
        } else {
            self.take()
        };
        self.words.write(&new);
        let state = self.state.load(Relaxed);
        // Release: whoever takes the waker sees the pair. Acquire: what came before a `take` that found no waker is
        // seen when the caller looks at its condition.
        let before = self
            .state
            .swap(state.wrapping_add(GENERATION) | ARMED, AcqRel);
        debug_assert_eq!(before, state, "two threads in register_exclusive");
        drop(old);
    }

    /// Puts a waker in while nobody else can reach the slot: no read-modify-write but that of the clone. The one that
    /// was there is dropped without being woken.
    #[inline]
    pub fn set(&mut self, waker: &Waker) {
        if self.holds(waker) {
            return;
        }
        let new = ManuallyDrop::new(waker.clone());
        let state = self.state.load(Relaxed);
        // SAFETY: the slot is borrowed mutably, so the waker that `ARMED` tells of is ours.
        let old = (state & ARMED != 0).then(|| unsafe { self.words.read().into_waker() });
        self.words.write(&new);
        // Relaxed: whoever makes the slot reachable for others orders this before.
        let next = (state & !BITS).wrapping_add(GENERATION) | ARMED;
        self.state.store(next, Relaxed);
        drop(old);
    }

    /// Takes the waker out, if there is one, without waking it.
    ///
    /// A `register` that is half-way is as good as one that comes later: it sees what was done before.
    #[inline]
    pub fn take(&self) -> Option<Waker> {
        // Acquire: the pair that belongs to this state is seen (from the publishing step of `register`).
        let mut state = self.state.load(Acquire);
        loop {
            let pair = self.words.read();
            // In the other states this changes nothing: it is there for its order.
            let next = state & !ARMED;
            // Release: a later `register` sees what the caller did before; also when there is no waker. Acquire: as
            // above, and the owner of the waker is ordered after who had it before.
            match self.state.compare_exchange(state, next, AcqRel, Acquire) {
                Ok(_) if state & ARMED != 0 => {
                    // SAFETY: the exchange took `ARMED` from the state that was read before the pair (module head, "Who
                    // may touch what").
                    return Some(unsafe { pair.into_waker() });
                }
                Ok(_) => return None,
                // Somebody else made a step: they took the waker, or the waiting side went on.
                Err(now) => state = now,
            }
        }
    }

    /// Wakes the waker, if there is one, and leaves the slot empty.
    #[inline]
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Drops the waker, if there is one: for the waiting side, when it goes.
    #[inline]
    pub fn clear(&self) {
        drop(self.take());
    }

    /// Whether a waker like this one is there, so that nothing needs to be done: a later `take` finds it, and an
    /// earlier one that this thread does not see yet is followed by a wake that this poll has not consumed.
    #[inline]
    fn holds(&self, waker: &Waker) -> bool {
        // Acquire: the pair was written before `ARMED`, maybe by another thread that polled this task.
        self.state.load(Acquire) & ARMED != 0 && self.words.will_wake(waker)
    }

    /// The slow part of `register`.
    fn replace(&self, waker: &Waker) {
        // User code, before the state is touched.
        let new = ManuallyDrop::new(waker.clone());

        // Step 1: get the right to write. Whatever was armed is ours then.
        // Acquire here and below: as in `take`.
        let mut state = self.state.load(Acquire);
        let old = loop {
            if state & WRITING != 0 {
                // Two waiting sides: this one polls again.
                ManuallyDrop::into_inner(new).wake();
                return;
            }
            let pair = self.words.read();
            let next = state & !BITS | WRITING;
            match self.state.compare_exchange(state, next, AcqRel, Acquire) {
                Ok(_) if state & ARMED != 0 => {
                    state = next;
                    // SAFETY: the exchange took `ARMED` from the state that was read before the pair (module head).
                    break Some(unsafe { pair.into_waker() });
                }
                Ok(_) => {
                    state = next;
                    break None;
                }
                Err(now) => state = now,
            }
        };

        // Step 2.
        self.words.write(&new);

        // Step 3: publish. Only we leave `WRITING`. AcqRel: as in `register_exclusive`.
        let next = (state & !BITS).wrapping_add(GENERATION) | ARMED;
        self.state.swap(next, AcqRel);
        drop(old);
    }
}

impl Drop for AtomicWaker {
    fn drop(&mut self) {
        // Relaxed: whoever hands us the only reference has ordered everything before.
        if self.state.load(Relaxed) & ARMED != 0 {
            // SAFETY: nobody else has a reference, so the waker is ours.
            drop(unsafe { self.words.read().into_waker() });
        }
    }
}

impl Default for AtomicWaker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AtomicWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicWaker")
            .field("registered", &(self.state.load(Relaxed) & ARMED != 0))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
