//! What the futures of [`Mutex`](crate::mutex::Mutex) and [`RwLock`](crate::rwlock::RwLock) are: a [`Wait`](super::Wait) whose
//! permits become a guard.

/// A future that waits for the permits of `$target`, which is never closed, and makes a `$guard` of them.
macro_rules! lock_future {
    ($(#[$doc:meta])* $name:ident<$($lifetime:lifetime,)? T>, $target:ty => $guard:ident<$($guard_lifetime:lifetime,)? T>) => {
        pin_project_lite::pin_project! {
            $(#[$doc])*
            #[must_use = "futures do nothing unless awaited"]
            pub struct $name<$($lifetime,)? T: ?Sized> {
                #[pin]
                wait: $crate::permits::Wait<$target>,
            }
        }

        impl<$($lifetime,)? T: ?Sized> $name<$($lifetime,)? T> {
            #[inline]
            pub(super) fn new(wait: $crate::permits::Wait<$target>) -> Self {
                Self { wait }
            }
        }

        impl<$($lifetime,)? T: ?Sized> Future for $name<$($lifetime,)? T> {
            type Output = $guard<$($guard_lifetime,)? T>;

            // `always`: as `Wait::poll`.
            #[inline(always)]
            fn poll(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Self::Output> {
                match std::task::ready!(self.project().wait.poll(cx)) {
                    Ok(target) => std::task::Poll::Ready($guard::new(target)),
                    Err(()) => unreachable!("a lock is never closed"),
                }
            }
        }

        impl<$($lifetime,)? T: ?Sized> std::fmt::Debug for $name<$($lifetime,)? T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.wait).finish()
            }
        }
    };
}

pub(crate) use lock_future;
