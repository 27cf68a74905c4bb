//! Wakers collected under a lock, to be woken after it.
//!
//! # What it guarantees
//! A waker that is pushed is woken exactly once: by [`wake_all`](WakeBatch::wake_all), or when the batch is dropped.
//! One that panics does not keep the others from being woken.
//!
//! # Who may touch what
//! The batch has one owner. Of `wakers`, exactly `next..len` is initialised.
#![expect(
    unsafe_code,
    reason = "an array that is filled in part; clearing it first would cost more than most batches"
)]

use std::any::Any;
use std::fmt;
use std::mem::{self, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::task::Waker;
use std::thread;

/// Room of a batch: 512 bytes of stack, and a lock that is given back after at most so many wakers.
pub const CAPACITY: usize = 32;

/// Some wakers, collected while a lock is held and woken when it is not.
///
/// # Examples
/// ```
/// use std::sync::Mutex;
/// use std::task::Waker;
/// use rt_sync::wake_batch::WakeBatch;
///
/// fn wake_everybody(waiting: &Mutex<Vec<Waker>>) {
///     let mut batch = WakeBatch::new();
///     loop {
///         let mut waiting = waiting.lock().unwrap();
///         while !batch.is_full()
///             && let Some(waker) = waiting.pop()
///         {
///             batch.push(waker);
///         }
///         let more = !waiting.is_empty();
///         drop(waiting);
///         batch.wake_all();
///         if !more {
///             return;
///         }
///     }
/// }
/// ```
pub struct WakeBatch {
    wakers: [MaybeUninit<Waker>; CAPACITY],
    next: usize,
    len: usize,
}

impl WakeBatch {
    /// An empty batch.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            wakers: [const { MaybeUninit::uninit() }; CAPACITY],
            next: 0,
            len: 0,
        }
    }

    /// Whether [`push`](Self::push) would find no room.
    #[inline]
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len == CAPACITY
    }

    /// Whether there is nothing to wake.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.next == self.len
    }

    /// How many wakers wait to be woken.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len - self.next
    }

    /// Adds a waker. Runs no user code.
    ///
    /// # Panics
    /// If the batch [is full](Self::is_full).
    #[inline]
    #[track_caller]
    pub fn push(&mut self, waker: Waker) {
        let Some(slot) = self.wakers.get_mut(self.len) else {
            // The waker must not be dropped here, maybe under a lock, and even less be lost.
            mem::forget(waker);
            panic!(
                "a WakeBatch holds {CAPACITY} wakers; ask `is_full` and call `wake_all` before the next `push`"
            );
        };
        slot.write(waker);
        self.len += 1;
    }

    /// Wakes all, in the order in which they were pushed, and leaves the batch empty.
    ///
    /// # Panics
    /// If a waker panics. All others have been woken then; the first panic is the one that goes on.
    #[inline]
    pub fn wake_all(&mut self) {
        if let Some(payload) = self.wake_all_caught() {
            panic::resume_unwind(payload);
        }
    }

    /// Same as [`wake_all`](Self::wake_all), but gives the payload of the first panic back: for callers that have
    /// nothing to do with who owns the wakers.
    #[inline]
    pub fn wake_all_caught(&mut self) -> Option<Box<dyn Any + Send>> {
        if self.is_empty() {
            return None;
        }
        self.wake_some()
    }

    fn wake_some(&mut self) -> Option<Box<dyn Any + Send>> {
        wake_each(std::iter::from_fn(|| self.pop()))
    }

    /// The oldest waker.
    #[inline]
    fn pop(&mut self) -> Option<Waker> {
        if self.is_empty() {
            self.next = 0;
            self.len = 0;
            return None;
        }
        let slot = &self.wakers[self.next];
        self.next += 1;
        // SAFETY: the slot was in `next..len`, so it is initialised, and it no longer is in there (module head).
        Some(unsafe { slot.assume_init_read() })
    }
}

/// Wakes all, in order. One that panics does not keep the others from being woken; gives the payload of the first panic
/// back, and [discards](discard) the others.
pub fn wake_each(mut wakers: impl Iterator<Item = Waker>) -> Option<Box<dyn Any + Send>> {
    let mut first = None;
    // One `catch_unwind` serves all wakers up to the next panic.
    while let Err(payload) =
        panic::catch_unwind(AssertUnwindSafe(|| wakers.by_ref().for_each(Waker::wake)))
    {
        keep_first(&mut first, Some(payload));
    }
    first
}

/// Drops the payload of a panic that goes no further. Its destructor is user code once more, and nobody would hear of a panic
/// in it.
pub fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}

/// Runs what may wake somebody for a caller that has taken something already and would lose it to a panic. That of a waker,
/// of which the panic hook has told, goes no further.
pub(crate) fn contain(wake: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(wake)) {
        discard(payload);
    }
}

/// Runs what may wake somebody in a destructor. While another panic is under way that of a waker goes no further: it would end
/// the process.
pub(crate) fn in_drop(wake: impl FnOnce()) {
    if thread::panicking() {
        contain(wake);
    } else {
        wake();
    }
}

/// Lets a panic go on, unless another one is under way already.
pub(crate) fn resume(panicked: Option<Box<dyn Any + Send>>) {
    if let Some(payload) = panicked {
        if thread::panicking() {
            discard(payload);
        } else {
            panic::resume_unwind(payload);
        }
    }
}

/// Of several panics the first is the one that goes on.
pub(crate) fn keep_first(
    first: &mut Option<Box<dyn Any + Send>>,
    next: Option<Box<dyn Any + Send>>,
) {
    match next {
        Some(payload) if first.is_some() => discard(payload),
        Some(payload) => *first = Some(payload),
        None => {}
    }
}

impl Drop for WakeBatch {
    /// Wakes what is left: a wake that is lost is a task that hangs.
    fn drop(&mut self) {
        resume(self.wake_all_caught());
    }
}

impl Default for WakeBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<Waker> for WakeBatch {
    /// Pushes every waker, and wakes the batch whenever it is full. Not for use under a lock.
    ///
    /// # Panics
    /// If a waker panics; all have been pushed, or woken, by then.
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        let mut panicked = None;
        for waker in wakers {
            if self.is_full() {
                keep_first(&mut panicked, self.wake_all_caught());
            }
            self.push(waker);
        }
        resume(panicked);
    }
}

impl fmt::Debug for WakeBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeBatch")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
