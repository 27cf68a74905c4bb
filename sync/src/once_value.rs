//! Room for a value that is put in once: what `OnceCell` and `SetOnce` are made of.
//!
//! # The state
//!
//! | state   | `value`                             | left by                                          |
//! |---------|-------------------------------------|--------------------------------------------------|
//! | `EMPTY` | nothing                             | an exchange to `BUSY`, whose winner has the room |
//! | `BUSY`  | written by who has the room         | that one: to `SET`, or back to `EMPTY`           |
//! | `SET`   | there, read by anyone               | nobody (who has a `&mut` may take it out)        |
#![expect(
    unsafe_code,
    reason = "a cell that is written by one and then read by all"
)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};

use crate::primitive::atomic::{
    AtomicU8,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::primitive::cell::UnsafeCell;

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const SET: u8 = 2;

pub(crate) struct OnceValue<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
    /// A value is dropped with us.
    _owns: PhantomData<T>,
}

/// The right to put the value in. Dropped without, it makes the room free again.
#[must_use]
pub(crate) struct Room<'a, T>(&'a OnceValue<T>);

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Busy,
    Set,
}

// SAFETY: the value goes with us.
unsafe impl<T: Send> Send for OnceValue<T> {}
// SAFETY: who shares us reads the value, and may put one in that another thread takes out or drops.
unsafe impl<T: Send + Sync> Sync for OnceValue<T> {}

impl<T> OnceValue<T> {
    #[cfg(not(rt_loom))]
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            _owns: PhantomData,
        }
    }

    #[cfg(rt_loom)]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            _owns: PhantomData,
        }
    }

    #[cfg(not(rt_loom))]
    pub(crate) const fn with(value: T) -> Self {
        Self {
            state: AtomicU8::new(SET),
            value: UnsafeCell::new(MaybeUninit::new(value)),
            _owns: PhantomData,
        }
    }

    #[cfg(rt_loom)]
    pub(crate) fn with(value: T) -> Self {
        Self {
            state: AtomicU8::new(SET),
            value: UnsafeCell::new(MaybeUninit::new(value)),
            _owns: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Acquire: with `Room::fill`; the value is seen.
        self.state.load(Acquire) == SET
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        if !self.is_set() {
            return None;
        }
        self.value.with(|value| {
            // SAFETY: once `SET`, the value is not written as long as we are shared (module head).
            let value = unsafe { &*value };
            // SAFETY: it is there.
            Some(unsafe { value.assume_init_ref() })
        })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        if !self.is_set() {
            return None;
        }
        self.value.with_mut(|value| {
            // SAFETY: we are borrowed mutably.
            let value = unsafe { &mut *value };
            // SAFETY: it is there.
            Some(unsafe { value.assume_init_mut() })
        })
    }

    /// Takes the room, if it is free.
    #[inline]
    pub(crate) fn begin(&self) -> Result<Room<'_, T>, Taken> {
        // Acquire: with who gave the room back, or put the value in.
        match self.state.compare_exchange(EMPTY, BUSY, Acquire, Acquire) {
            Ok(_) => Ok(Room(self)),
            Err(SET) => Err(Taken::Set),
            Err(_) => Err(Taken::Busy),
        }
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        if !self.is_set() {
            return None;
        }
        // Relaxed: we are borrowed mutably.
        self.state.store(EMPTY, Relaxed);
        self.value.with(|value| {
            // SAFETY: we are borrowed mutably.
            let value = unsafe { &*value };
            // SAFETY: it was there, and with the state cleared nobody uses it afterwards.
            Some(unsafe { value.assume_init_read() })
        })
    }
}

impl<'a, T> Room<'a, T> {
    /// Puts the value in.
    #[inline]
    pub(crate) fn fill(self, value: T) -> &'a T {
        let once = self.0;
        mem::forget(self);
        once.value.with_mut(|slot| {
            // SAFETY: we have the room: nobody else touches `value` while the state is `BUSY`.
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        // Release: with `is_set` and `begin`.
        once.state.store(SET, Release);
        once.value.with(|value| {
            // SAFETY: as in `get`.
            let value = unsafe { &*value };
            // SAFETY: it was written above.
            unsafe { value.assume_init_ref() }
        })
    }
}

impl<T> Drop for Room<'_, T> {
    fn drop(&mut self) {
        // Release: with `begin`.
        self.0.state.store(EMPTY, Release);
    }
}

impl<T> Drop for OnceValue<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
