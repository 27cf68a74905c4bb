//! Values that belong to a task, or to any future: [`task_local!`](crate::task_local).
//!
//! # How it works
//! A key is one slot in thread-local storage. The future of [`LocalKey::scope`] holds the value; around each poll of the
//! future inside, and around its destructor, it swaps value and slot. So nested scopes shadow each other, and the value
//! follows its future from thread to thread.
//!
//! # User code
//! The swap runs none. A `with` that still borrows the slot makes entering a scope of the same key an error.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use pin_project_lite::pin_project;

/// A key of [`task_local!`](crate::task_local): the value is there only inside [`scope`](Self::scope) or
/// [`sync_scope`](Self::sync_scope).
///
/// # Examples
/// ```
/// rt::task_local! {
///     static REQUEST: u32;
/// }
///
/// # #[rt::main]
/// # async fn main() {
/// REQUEST
///     .scope(7, async {
///         assert_eq!(REQUEST.get(), 7);
///         REQUEST.scope(8, async { assert_eq!(REQUEST.get(), 8) }).await;
///         assert_eq!(REQUEST.get(), 7);
///     })
///     .await;
/// assert!(REQUEST.try_get().is_err());
/// # }
/// ```
pub struct LocalKey<T: 'static> {
    slot: thread::LocalKey<RefCell<Option<T>>>,
}

impl<T: 'static> LocalKey<T> {
    /// For [`task_local!`](crate::task_local).
    #[doc(hidden)]
    pub const fn new(slot: thread::LocalKey<RefCell<Option<T>>>) -> Self {
        Self { slot }
    }

    /// Gives `future` this value: it is there whenever the future is polled, and while it is dropped.
    ///
    /// Tasks that the future spawns do not inherit it.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture {
            key: self,
            value: Some(value),
            future: Some(future),
            _pinned: PhantomPinned,
        }
    }

    /// Calls `f` with this value in place.
    ///
    /// # Panics
    /// If a `with` of the same key is on the stack, or this thread is past the end of its thread-local storage.
    #[track_caller]
    pub fn sync_scope<F: FnOnce() -> R, R>(&'static self, value: T, f: F) -> R {
        let mut value = Some(value);
        match self.swapped_in(&mut value, f) {
            Ok(output) => output,
            Err(error) => error.panic(),
        }
    }

    /// Calls `f` with `value` and slot swapped.
    fn swapped_in<R>(
        &'static self,
        value: &mut Option<T>,
        f: impl FnOnce() -> R,
    ) -> Result<R, ScopeError> {
        struct Guard<'a, T: 'static> {
            key: &'static LocalKey<T>,
            value: &'a mut Option<T>,
        }
        impl<T: 'static> Drop for Guard<'_, T> {
            fn drop(&mut self) {
                // It was there and free when we swapped in, and every borrow since then has ended: both are certain,
                // but for a thread whose storage was destroyed in between.
                let _ = self.key.swap(self.value);
            }
        }
        self.swap(value)?;
        let _guard = Guard { key: self, value };
        Ok(f())
    }

    fn swap(&'static self, value: &mut Option<T>) -> Result<(), ScopeError> {
        self.slot
            .try_with(|slot| match slot.try_borrow_mut() {
                Ok(mut slot) => {
                    mem::swap(&mut *slot, value);
                    Ok(())
                }
                Err(_) => Err(ScopeError::Borrowed),
            })
            .unwrap_or(Err(ScopeError::Destroyed))
    }

    /// Looks at the value.
    ///
    /// # Panics
    /// Outside a scope of this key; [`try_with`](Self::try_with) does not.
    #[track_caller]
    pub fn with<F: FnOnce(&T) -> R, R>(&'static self, f: F) -> R {
        match self.try_with(f) {
            Ok(output) => output,
            Err(error) => panic!("{error}; use `try_with` where that may happen"),
        }
    }

    /// Looks at the value, if there is one.
    ///
    /// # Errors
    /// [`AccessError`] outside a scope of this key.
    pub fn try_with<F: FnOnce(&T) -> R, R>(&'static self, f: F) -> Result<R, AccessError> {
        self.slot
            .try_with(|slot| match slot.try_borrow() {
                Ok(slot) => slot.as_ref().map(f),
                // Nothing of ours runs user code while it holds the slot for writing.
                Err(_) => None,
            })
            .ok()
            .flatten()
            .ok_or(AccessError(()))
    }

    /// A copy of the value.
    ///
    /// # Panics
    /// Outside a scope of this key; [`try_get`](Self::try_get) does not.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// A copy of the value, if there is one.
    ///
    /// # Errors
    /// [`AccessError`] outside a scope of this key.
    pub fn try_get(&'static self) -> Result<T, AccessError>
    where
        T: Clone,
    {
        self.try_with(T::clone)
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey { .. }")
    }
}

/// Why a scope could not be entered.
#[derive(Debug)]
enum ScopeError {
    Borrowed,
    Destroyed,
}

impl ScopeError {
    #[cold]
    #[track_caller]
    fn panic(&self) -> ! {
        match self {
            Self::Borrowed => panic!(
                "a scope of a task-local key was entered inside `with` of the same key; copy the value out first"
            ),
            Self::Destroyed => panic!(
                "a scope of a task-local key was entered on a thread whose thread-local storage is destroyed already"
            ),
        }
    }
}

/// The error of [`LocalKey::try_with`]: this is not inside a scope of the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessError")
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task-local value is not set: this is not inside `scope` or `sync_scope` of its key")
    }
}

impl Error for AccessError {}

pin_project! {
    /// Future of [`LocalKey::scope`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct TaskLocalFuture<T: 'static, F> {
        key: &'static LocalKey<T>,
        value: Option<T>,
        #[pin]
        future: Option<F>,
        #[pin]
        _pinned: PhantomPinned,
    }

    impl<T: 'static, F> PinnedDrop for TaskLocalFuture<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let mut future = this.future;
            if mem::needs_drop::<F>() && future.is_some() {
                // If the slot cannot be had, the future is dropped below, without its value in place.
                let _ = this.key.swapped_in(this.value, || future.set(None));
            }
        }
    }
}

impl<T: 'static, F> TaskLocalFuture<T, F> {
    /// Takes the value out, after which the future inside finds none. `None` if it was taken before.
    ///
    /// Useful after the end, to get back what the scope was given.
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut slot = this.future;
        let poll = this.key.swapped_in(this.value, || {
            let future = slot.as_mut().as_pin_mut()?;
            let poll = future.poll(cx);
            if poll.is_ready() {
                slot.set(None);
            }
            Some(poll)
        });
        match poll {
            Ok(Some(poll)) => poll,
            Ok(None) => panic!("the future of a task-local scope was polled again after its end"),
            Err(error) => error.panic(),
        }
    }
}

impl<T: fmt::Debug + 'static, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocalFuture")
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}
