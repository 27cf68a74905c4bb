//! A cell of a `broadcast` channel: one value, who has yet to get it, and who looks at it.
//!
//! # The word
//!
//! | part     | means                                                                                              |
//! |----------|----------------------------------------------------------------------------------------------------|
//! | `PINS`   | so many threads look at the cell, some of them in vain; fewer than 2^24 threads do at a time       |
//! | `HELD`   | a value is there, or somebody takes it out                                                         |
//! | `ORPHAN` | the cell has lost its slot: another cell took its place, because this one could not be overwritten |
//! | the rest | *shares*: so many receivers have not got the value                                                 |
//!
//! | `HELD` | shares | state                                                               | left by                     |
//! |--------|--------|---------------------------------------------------------------------|-----------------------------|
//! | 0      | 0      | free                                                                | who sends, with `fill`      |
//! | 1      | > 0    | the value is there                                                  | who takes the last share    |
//! | 1      | 0      | the value belongs to who took the last share, or all of them at once| that one: to free or filled |
//!
//! # The life of a share
//! 1. A receiver that wants a number, and whose share of it has not been taken, sees the number in the cell, pins it,
//!    and looks again: at shares that were there when it pinned, and at the number.
//! 2. If both are good the value stays as long as the pin: who overwrites takes the shares only while there is no pin,
//!    and not the last share goes while this one is there. If it is the last one, the value is this receiver's at once.
//! 3. It clones the value, or moves it out, and gives pin and share back in one go.
//!
//! The number is looked at before the pin, too, since a free cell is filled in spite of pins (those are in vain, and on
//! their way out): who has seen the number before, and shares when it pinned, has not pinned what was there before.
//!
//! # Orphans
//! Who sends waits for nobody. A value that is late but pinned, or on its way out, loses its slot: the sender sets
//! `ORPHAN` and goes on with another cell. The last who unpins it takes the shares of those who are too late.
//!
//! # Who may touch what
//! `value`: who fills a free cell under the lock of the channel; who has a pin by step 2, to read; and the one to whom
//! it belongs by the table.
#![expect(
    unsafe_code,
    reason = "a value that is shared by those who have pinned it"
)]

use std::mem::MaybeUninit;

use crate::primitive::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::primitive::cell::UnsafeCell;

const PIN: u64 = 1;
const PINS: u64 = HELD - 1;
const HELD: u64 = 1 << 24;
const ORPHAN: u64 = 1 << 25;
const SHARE: u64 = 1 << 32;
/// All but the shares.
const REST: u64 = SHARE - 1;

/// More shares than the word has room for.
pub(super) const MAX_SHARES: usize = u32::MAX as usize;

pub(super) struct Cell<T> {
    word: AtomicU64,
    /// Of the value that is there, was there last, or is on its way in. Never falls.
    number: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// What a sender finds.
pub(super) enum Claimed<T> {
    Free,
    /// Not any more: the late value is the sender's, and so is the cell.
    Overwritten(T),
    /// The cell is lost.
    Orphaned,
}

/// What is to be done after a share was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Then {
    Nothing,
    /// The value belongs to the caller: call [`Cell::take_out`] and [`Cell::release`].
    TakeOut,
    /// The cell is free and has no slot.
    Spare,
}

impl<T> Cell<T> {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            // Nobody wants this number before it has been sent.
            number: AtomicU64::new(u64::MAX),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Whether the number is there, or was at the last look. Acquire: with `fill`; who sees the number sees the cell no
    /// earlier than free.
    #[inline]
    pub(super) fn has(&self, number: u64) -> bool {
        self.number.load(Acquire) == number
    }

    /// Step 1, after `has`. `Ok`: whether the share is the last one. `Err`: it was in vain, and the pin is gone again.
    #[inline]
    pub(super) fn pin(&self, number: u64) -> Result<bool, Then> {
        // Acquire: with `fill`, for the value and its number; with `unpin`, if the others have got it.
        let word = self.word.fetch_add(PIN, Acquire);
        // Relaxed: if the shares are those of a later value its number is seen with them.
        if word >= SHARE && self.number.load(Relaxed) == number {
            Ok(word < 2 * SHARE)
        } else {
            Err(self.unpin(PIN))
        }
    }

    /// The value of who has pinned it.
    ///
    /// # Safety
    /// The caller has pinned the cell by `pin`, and keeps it pinned for as long as it uses the value.
    #[inline]
    pub(super) unsafe fn with<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.value.with(|slot| {
            // SAFETY: nobody writes while we have a pin and a share (module head).
            let slot = unsafe { &*slot };
            // SAFETY: the value is there for the same reason.
            f(unsafe { slot.assume_init_ref() })
        })
    }

    /// Moves the value out.
    ///
    /// # Safety
    /// It belongs to the caller (module head), who does not use it in here any more.
    #[inline]
    pub(super) unsafe fn take_out(&self) -> T {
        self.value.with_mut(|slot| {
            // SAFETY: the caller's: nobody else reaches the slot.
            let slot = unsafe { &*slot };
            // SAFETY: the caller's.
            unsafe { slot.assume_init_read() }
        })
    }

    /// Step 3 of who has cloned the value, or does not want it.
    #[inline]
    pub(super) fn unpin_share(&self) -> Then {
        self.unpin(PIN + SHARE)
    }

    /// Step 3 of who had the last share and has taken the value out.
    #[inline]
    pub(super) fn unpin_last(&self) -> Then {
        // Release: with `claim`; the value has been moved out. Acquire: the orphan is ours.
        let before = self.word.fetch_sub(PIN + SHARE + HELD, AcqRel);
        if before & ORPHAN == 0 {
            return Then::Nothing;
        }
        self.found_orphaned()
    }

    #[cold]
    fn found_orphaned(&self) -> Then {
        // Relaxed: only who frees an orphan clears the bit, and the lock of the channel orders what comes then.
        self.word.fetch_and(!ORPHAN, Relaxed);
        Then::Spare
    }

    #[inline]
    fn unpin(&self, what: u64) -> Then {
        // Release: with `claim` and `pin`; we do not read the value any more. Acquire: it may be ours now.
        let now = self.word.fetch_sub(what, AcqRel) - what;
        if now < SHARE {
            // Without a share of ours somebody else took the last one.
            if what < SHARE {
                Then::Nothing
            } else {
                Then::TakeOut
            }
        } else if now & ORPHAN != 0 && now & PINS == 0 {
            self.last_of_orphan(now)
        } else {
            Then::Nothing
        }
    }

    /// Takes what shares there are in an orphan, unless somebody has pinned it meanwhile, who will do it then.
    #[cold]
    fn last_of_orphan(&self, word: u64) -> Then {
        // Acquire: as in `unpin`.
        let taken = self
            .word
            .compare_exchange(word, word & REST, Acquire, Relaxed);
        if taken.is_ok() {
            Then::TakeOut
        } else {
            Then::Nothing
        }
    }

    /// Frees the cell of who has taken the value out without a pin.
    pub(super) fn release(&self) -> Then {
        // Release: with `claim`; the value has been moved out.
        let before = self.word.fetch_and(!(HELD | ORPHAN), Release);
        if before & ORPHAN == 0 {
            Then::Nothing
        } else {
            Then::Spare
        }
    }

    /// Makes room for another value. Only under the lock of the channel.
    #[inline]
    pub(super) fn claim(&self) -> Claimed<T> {
        // Acquire, here and below: with who gave shares back; nobody reads the value any more.
        let mut word = self.word.load(Acquire);
        loop {
            if word & HELD == 0 {
                return Claimed::Free;
            }
            let late = word >= SHARE && word & PINS == 0;
            let next = if late { word & REST } else { word | ORPHAN };
            match self
                .word
                .compare_exchange_weak(word, next, Acquire, Acquire)
            {
                // SAFETY: we took all shares, with nobody pinning.
                Ok(_) if late => return Claimed::Overwritten(unsafe { self.take_out() }),
                Ok(_) => return Claimed::Orphaned,
                Err(now) => word = now,
            }
        }
    }

    /// Puts a value in, with so many shares. `free`: whether the cell was free, or overwritten.
    ///
    /// # Safety
    /// Under the lock of the channel, after `claim` said so, or with a spare cell.
    #[inline]
    pub(super) unsafe fn fill(&self, number: u64, value: T, shares: usize, free: bool) {
        // Release: with `has`.
        self.number.store(number, Release);
        self.value.with_mut(|slot| {
            // SAFETY: the cell is the caller's, and has no shares, so nobody looks at the slot.
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        let held = if free { HELD } else { 0 };
        // An addition, since there may be pins. Release: with `pin`; number and value are seen.
        self.word.fetch_add(shares as u64 * SHARE + held, Release);
    }

    /// Whether every receiver has got the value.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: a count for who asks.
        self.word.load(Relaxed) < SHARE
    }
}
