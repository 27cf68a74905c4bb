//! The primitives under a model: loom's.

pub use ::loom::hint;
pub use ::loom::thread;

/// `Arc`, as modelled code uses it (no `Weak`, which loom does not have).
pub use ::loom::sync::Arc;

/// Locks, with the shape of those in `std.rs`.
pub use self::lock::{Condvar, Mutex, MutexGuard};
/// A model cannot tell how a lock waits.
pub use self::lock::{Mutex as ShortMutex, MutexGuard as ShortGuard};

/// Atomic integers, pointers and fences.
pub mod atomic {
    pub use ::loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// A cell whose accesses loom checks against each other.
pub mod cell {
    pub use ::loom::cell::UnsafeCell;
}

/// A lock for many readers or one writer, with the shape of the one in `std.rs`.
pub use self::rw_lock::{RwLock, RwLockReadGuard};

mod rw_lock {
    use ::std::sync::PoisonError;

    pub use ::loom::sync::RwLockReadGuard;
    use ::loom::sync::RwLockWriteGuard;

    /// loom's lock without poisoning.
    #[derive(Debug)]
    pub struct RwLock<T>(::loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        /// Wraps a value.
        pub fn new(value: T) -> Self {
            Self(::loom::sync::RwLock::new(value))
        }

        /// Blocks until it can be read.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        /// Reads if nobody writes.
        pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        /// Blocks until it can be written.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

mod lock {
    use ::std::time::Duration;

    pub use ::loom::sync::MutexGuard;

    /// loom's mutex without poisoning.
    #[derive(Debug)]
    pub struct Mutex<T>(::loom::sync::Mutex<T>);

    impl<T: Default> Default for Mutex<T> {
        fn default() -> Self {
            Self::new(T::default())
        }
    }

    impl<T> Mutex<T> {
        /// Wraps a value.
        pub fn new(value: T) -> Self {
            Self(::loom::sync::Mutex::new(value))
        }

        /// Blocks until the lock is held.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0
                .lock()
                .unwrap_or_else(::std::sync::PoisonError::into_inner)
        }

        /// Takes the lock if it is free.
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        /// The value, of which the caller is the only user.
        pub fn get_mut(&mut self) -> &mut T {
            self.0
                .get_mut()
                .unwrap_or_else(::std::sync::PoisonError::into_inner)
        }
    }

    /// loom's condition variable for the [`Mutex`] above.
    #[derive(Debug)]
    pub struct Condvar(::loom::sync::Condvar);

    impl Default for Condvar {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Condvar {
        /// A condition nobody waits for.
        pub fn new() -> Self {
            Self(::loom::sync::Condvar::new())
        }

        /// Waits until notified.
        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0
                .wait(guard)
                .unwrap_or_else(::std::sync::PoisonError::into_inner)
        }

        /// Waits until notified. loom lets no time pass: it never times out, and the second value is always `false`. A wait
        /// that nobody ends is a deadlock of the model, also where the timeout would end it on a real machine.
        pub fn wait_timeout<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            timeout: Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            let (guard, result) = self
                .0
                .wait_timeout(guard, timeout)
                .unwrap_or_else(::std::sync::PoisonError::into_inner);
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
