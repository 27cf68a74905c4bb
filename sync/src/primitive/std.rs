//! The primitives as they run: those of `std`, with loom's shape of `UnsafeCell`.

pub use ::std::hint;
pub use ::std::thread;

/// `Arc`, as modelled code uses it (no `Weak`, which loom does not have).
pub use ::std::sync::Arc;

/// Locks without poisoning: no code of ours leaves an invariant broken when it panics.
pub use self::lock::{Condvar, Mutex, MutexGuard};
pub use super::short::{ShortGuard, ShortMutex};

/// Atomic integers, pointers and fences.
pub mod atomic {
    pub use ::std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// A cell whose accesses loom can check against each other.
pub mod cell {
    /// [`std::cell::UnsafeCell`] in the closure form that loom has.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T: ?Sized>(::std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps a value.
        pub const fn new(value: T) -> Self {
            Self(::std::cell::UnsafeCell::new(value))
        }

        /// Gives the value back.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> UnsafeCell<T> {
        /// Runs `f` with a pointer that it may read through, under the rules of the caller.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Runs `f` with a pointer that it may write through, under the rules of the caller.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// A lock for many readers or one writer, without poisoning.
pub use parking_lot::{RwLock, RwLockReadGuard};

mod lock {
    use ::std::time::Duration;

    pub use parking_lot::MutexGuard;

    /// [`parking_lot::Mutex`]: no poisoning to look after, which makes a lock and unlock 30 instructions cheaper than
    /// that of `std`; a spawn and its end take four of them.
    #[derive(Debug, Default)]
    pub struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        /// Wraps a value.
        pub const fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }
    }

    impl<T: ?Sized> Mutex<T> {
        /// Blocks until the lock is held.
        #[inline]
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }

        /// Takes the lock if it is free.
        #[inline]
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock()
        }

        /// The value, of which the caller is the only user.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut()
        }
    }

    /// [`parking_lot::Condvar`] for the [`Mutex`] above.
    #[derive(Debug, Default)]
    pub struct Condvar(parking_lot::Condvar);

    impl Condvar {
        /// A condition nobody waits for.
        pub const fn new() -> Self {
            Self(parking_lot::Condvar::new())
        }

        /// Waits until notified, or spuriously.
        pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }

        /// Waits until notified, spuriously, or until `timeout` has passed; `true` says that it passed.
        pub fn wait_timeout<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            timeout: Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            let result = self.0.wait_for(&mut guard, timeout);
            (guard, result.timed_out())
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes every waiter.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
