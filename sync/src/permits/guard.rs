//! What the guards of [`Mutex`](crate::mutex::Mutex) and [`RwLock`](crate::rwlock::RwLock) have in common.

use std::ops::{Deref, DerefMut};

/// The traits of a guard that gives out `&$target`: written as `leads_to!([generics] Guard => Target, |guard| pointer)`.
///
/// The pointer must be good for a `&$target` as long as the guard exists: that is what its permits are for.
macro_rules! leads_to {
    ([$($generics:tt)*] $guard:ty => $target:ident, |$this:ident| $pointer:expr) => {
        impl<$($generics)*> std::ops::Deref for $guard {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &$target {
                let $this = self;
                // SAFETY: the guard has the permits for what the pointer leads to, as long as it exists (`mod.rs`).
                unsafe { &*$pointer }
            }
        }

        impl<$($generics)*> std::fmt::Debug for $guard
        where
            $target: std::fmt::Debug,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&**self, f)
            }
        }

        impl<$($generics)*> std::fmt::Display for $guard
        where
            $target: std::fmt::Display,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&**self, f)
            }
        }
    };
}

/// The same for a guard that gives out `&mut $target` as well, for which the pointer must be good too.
macro_rules! leads_to_mut {
    ([$($generics:tt)*] $guard:ty => $target:ident, |$this:ident| $pointer:expr) => {
        $crate::permits::leads_to!([$($generics)*] $guard => $target, |$this| $pointer);

        impl<$($generics)*> std::ops::DerefMut for $guard {
            #[inline]
            fn deref_mut(&mut self) -> &mut $target {
                let $this = &*self;
                // SAFETY: the guard has all permits for what the pointer leads to (`mod.rs`), and we have the guard to
                // ourselves.
                unsafe { &mut *$pointer }
            }
        }
    };
}

pub(crate) use {leads_to, leads_to_mut};

/// What `f` finds in the value of a guard, with the guard that it needs; the guard alone if it finds nothing.
#[inline]
pub(crate) fn try_part<G: Deref, U: ?Sized>(
    guard: G,
    f: impl FnOnce(&G::Target) -> Option<&U>,
) -> Result<(G, *const U), G> {
    match f(&*guard) {
        Some(part) => {
            let part: *const U = part;
            Ok((guard, part))
        }
        None => Err(guard),
    }
}

/// [`try_part`] for a part that may be changed.
#[inline]
pub(crate) fn try_part_mut<G: DerefMut, U: ?Sized>(
    mut guard: G,
    f: impl FnOnce(&mut G::Target) -> Option<&mut U>,
) -> Result<(G, *mut U), G> {
    match f(&mut *guard) {
        Some(part) => {
            let part: *mut U = part;
            Ok((guard, part))
        }
        None => Err(guard),
    }
}
