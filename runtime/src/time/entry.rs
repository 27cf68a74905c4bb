//! What a wheel holds of a timer: a deadline, a waker and its place, in the memory of the future that waits.
//!
//! # The word
//! `word` is the deadline in nanoseconds since the clock's base while the entry lies in a wheel, or one of the values
//! at the end of the range. "Lock" is that of the wheel the entry belongs to.
//!
//! | word       | state    | in a list | leaves it by                                                     | `poll` says |
//! |------------|----------|-----------|------------------------------------------------------------------|-------------|
//! | `IDLE`     | Idle     | no        | the waiting side under the lock: deadline, `FIRED` or `CLOSED`   | registers   |
//! | `NEVER`    | Never    | no        | the waiting side: as `IDLE`, or `IDLE` itself (cancel)           | pending     |
//! | deadline   | Linked   | yes       | under the lock: `IDLE` (cancel), a deadline (reset), `FIRING`, `CLOSING`; the waiting side without it: a *later* deadline | pending |
//! | `FIRING`   | Fired    | no        | who set it, before it gives the lock back: `FIRED`               | ready       |
//! | `FIRED`    | Fired    | no        | the waiting side (reset): `IDLE`                                 | ready       |
//! | `CLOSING`  | Closed   | no        | who set it, before it gives the lock back: `CLOSED`              | closed      |
//! | `CLOSED`   | Closed   | no        | the waiting side (reset): `IDLE`                                 | closed      |
//!
//! A timer that waits for a deadline out of reach is `NEVER`: it is not in the wheel, and has its waker all the same,
//! since a reset may bring the deadline near without another poll.
//!
//! # Rules
//! 1. An entry is put in a wheel only while it is pinned, and its [`Timer`](super::timer::Timer) takes it out before
//!    the memory goes. So an [`EntryRef`] that is found in a list points to a live entry.
//! 2. `key` is touched under the lock of the wheel the entry belongs to. An entry that is not Linked belongs to the
//!    waiting side, which hands it over by taking that lock.
//! 3. The last that a wheel does to an entry is the release store of `FIRED` or `CLOSED`. The waiting side may free or
//!    reuse the entry without the lock only once it has read one of these (acquire), `IDLE` or `NEVER`. With any other word it
//!    takes the lock first; after that the word is settled one way or the other.
//! 4. `waker` is registered by the waiting side only, which is borrowed mutably.
//!
//! # The races
//! *Fire against poll.* The wheel stores `FIRING` and then takes the waker; `poll` registers and then reads the word
//! again. The waker's word decides: if taking came first, registering reads from it and so sees `FIRING`.
//!
//! *Fire against free.* A waiting side that sees `FIRING` may be ready, but not gone: rule 3.
//!
//! *Fire against reset to later.* Both are an exchange of the same deadline for something else: one of them fails.
//! That a reset to later leaves the entry where it lies, until its slot comes up and it is put further along, makes
//! the timeout that is pushed back on every message cost one exchange.
#![expect(
    unsafe_code,
    reason = "the entry lies in its future and is linked into a wheel by address"
)]

use std::fmt;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::Waker;

use rt_sync::AtomicWaker;
use rt_sync::primitive::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use rt_sync::primitive::cell::UnsafeCell;

use super::list::Key;

const IDLE: u64 = u64::MAX;
const FIRING: u64 = u64::MAX - 1;
const FIRED: u64 = u64::MAX - 2;
const CLOSING: u64 = u64::MAX - 3;
const CLOSED: u64 = u64::MAX - 4;
const NEVER: u64 = u64::MAX - 5;
/// Everything below is a deadline.
const DEADLINES: u64 = NEVER;

/// A timer as its wheel sees it.
pub(super) struct Entry {
    word: AtomicU64,
    waker: AtomicWaker,
    key: UnsafeCell<Key>,
    /// The wheel writes to this memory behind the back of a `&mut` to it.
    _pinned: PhantomPinned,
}

/// What the waiting side sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    /// Waits for a deadline that does not come.
    Never,
    /// In a wheel, with this deadline.
    Linked(u64),
    Fired,
    Closed,
}

/// What a wheel makes of an entry that leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Fired,
    Closed,
}

// SAFETY: `key` is touched under the wheel's lock only (rule 2); the other fields are `Sync`, and `register` asks for
// `&mut` (rule 4).
unsafe impl Sync for Entry {}

impl Entry {
    pub(super) fn new() -> Entry {
        Entry {
            word: AtomicU64::new(IDLE),
            waker: AtomicWaker::new(),
            key: UnsafeCell::new(Key::NONE),
            _pinned: PhantomPinned,
        }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        // Acquire: pairs with the release store in `finish` (rule 3).
        match self.word.load(Acquire) {
            IDLE => State::Idle,
            NEVER => State::Never,
            FIRING | FIRED => State::Fired,
            CLOSING | CLOSED => State::Closed,
            deadline => State::Linked(deadline),
        }
    }

    /// Whether a wheel may touch this entry now or later (rule 3). For the waiting side.
    #[inline]
    pub(super) fn in_wheel(&self) -> bool {
        // Acquire: pairs with the release store in `finish`.
        !matches!(self.word.load(Acquire), IDLE | NEVER | FIRED | CLOSED)
    }

    /// Makes `waker` the one that firing wakes. The caller reads [`state`](Self::state) afterwards.
    #[inline]
    pub(super) fn register(self: Pin<&mut Self>, waker: &Waker) {
        // SAFETY: only this function registers, and it has the entry borrowed mutably (rule 4).
        unsafe { self.waker.register_exclusive(waker) }
    }

    /// Same as [`register`](Self::register) for an entry that is Idle or Never, without a read-modify-write of our own.
    #[inline]
    pub(super) fn set_waker(self: Pin<&mut Self>, waker: &Waker) {
        debug_assert!(matches!(self.state(), State::Idle | State::Never));
        // SAFETY: nothing is moved out of the entry.
        let entry = unsafe { self.get_unchecked_mut() };
        // Such an entry is in no wheel, so this borrow is the only way to it (rule 3).
        entry.waker.set(waker);
    }

    /// Moves the deadline from `from` to a later one without the lock. `false`: it was not `from` any more.
    #[inline]
    pub(super) fn extend(&self, from: u64, to: u64) -> bool {
        debug_assert!(from <= to && to < DEADLINES);
        // Relaxed: the word alone says all; nothing is published with it.
        let exchange = self.word.compare_exchange(from, to, Relaxed, Relaxed);
        exchange.is_ok()
    }

    /// Back to the beginning. The caller is the waiting side of an entry that is in no wheel, or holds the lock and has
    /// just unlinked it.
    #[inline]
    pub(super) fn set_idle(&self) {
        // Compiles to nothing; a model complains here if the wheel's last access is not ordered before ours (rule 3).
        self.key.with_mut(|_| ());
        self.word.store(IDLE, Relaxed);
    }

    /// The waiting side waits, for a deadline that does not come. The entry is Idle or Never.
    #[inline]
    pub(super) fn set_never(&self) {
        self.word.store(NEVER, Relaxed);
    }

    /// Wakes the waiting side of an entry that is in no wheel, if it has left its waker.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// The entry has this deadline and is about to be linked. Under the lock.
    #[inline]
    pub(super) fn set_deadline(&self, deadline: u64) {
        debug_assert!(deadline < DEADLINES);
        self.word.store(deadline, Relaxed);
    }

    /// The entry never gets into a wheel: its deadline has passed, or the wheel is closed. Under the lock, for an entry
    /// that is not linked and whose caller is the waiting side.
    #[inline]
    pub(super) fn set_ended(&self, end: End) {
        let word = match end {
            End::Fired => FIRED,
            End::Closed => CLOSED,
        };
        self.word.store(word, Relaxed);
    }

    /// Ends an entry that has just been unlinked, and hands its waker out. Under the lock. Nothing may touch the entry
    /// after this (rule 3).
    ///
    /// # Errors
    /// The deadline was moved and no longer is `deadline`: gives the new one.
    pub(super) fn finish(&self, deadline: u64, end: End) -> Result<Option<Waker>, u64> {
        let (ending, ended) = match end {
            End::Fired => (FIRING, FIRED),
            End::Closed => (CLOSING, CLOSED),
        };
        // Relaxed: `poll` sees it through the waker's word ("Fire against poll").
        self.word
            .compare_exchange(deadline, ending, Relaxed, Relaxed)?;
        let waker = self.waker.take();
        // As in `set_idle`: the wheel's last access.
        self.key.with_mut(|_| ());
        // Release: pairs with the acquire of `state` and `in_wheel`; all we did comes before the entry is freed.
        self.word.store(ended, Release);
        Ok(waker)
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("state", &self.state())
            .field("waker", &self.waker)
            .finish_non_exhaustive()
    }
}

/// The address of an entry that is in a wheel, or is being put in or taken out by its waiting side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryRef(NonNull<Entry>);

// SAFETY: entries are `Send` and `Sync`, and rule 1 keeps the address valid on every thread.
unsafe impl Send for EntryRef {}

impl EntryRef {
    /// # Safety
    /// The entry is taken out of the wheel before its memory goes (rule 1).
    #[inline]
    pub(super) unsafe fn new(entry: Pin<&Entry>) -> EntryRef {
        EntryRef(NonNull::from(entry.get_ref()))
    }

    /// The entry. Not to be kept after the lock is given back.
    #[inline]
    pub(super) fn get(&self) -> &Entry {
        // SAFETY: whoever has an `EntryRef` found it in a list under the lock, or is called by the waiting side that
        // has the entry pinned (rule 1).
        unsafe { self.0.as_ref() }
    }

    /// The deadline of an entry that is Linked. Under the lock.
    #[inline]
    pub(super) fn deadline(&self) -> u64 {
        let deadline = self.get().word.load(Relaxed);
        debug_assert!(deadline < DEADLINES, "no deadline in {:?}", self.get());
        deadline
    }

    /// Notes under which key the wheel has the entry.
    ///
    /// # Safety
    /// The caller holds the lock of the wheel (rule 2).
    #[inline]
    pub(super) unsafe fn set_key(&self, key: Key) {
        // SAFETY: the caller's promise.
        self.get().key.with_mut(|place| unsafe { *place = key });
    }

    /// Under which key the wheel has the entry.
    ///
    /// # Safety
    /// As [`set_key`](Self::set_key).
    #[inline]
    pub(super) unsafe fn key(&self) -> Key {
        // SAFETY: the caller's promise.
        self.get().key.with(|place| unsafe { *place })
    }
}
