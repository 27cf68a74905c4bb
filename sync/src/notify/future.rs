//! The futures of `Notify`: borrowed and owned.
#![expect(
    unsafe_code,
    reason = "the nodes of an intrusive list lie in these futures, pinned"
)]

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::Notify;
use super::list::Node;
use crate::coop;
use crate::wait::{self, WaitKind};

/// How a future reaches its `Notify`.
///
/// # Safety
/// `notify` always returns the same one, and that one stays where it is for as long as `self` exists.
unsafe trait Reach {
    fn notify(&self) -> &Notify;
}

// SAFETY: it is one reference, and what it refers to is borrowed for as long as it exists.
unsafe impl Reach for &Notify {
    #[inline]
    fn notify(&self) -> &Notify {
        self
    }
}

// SAFETY: nobody exchanges the `Arc` in a future, and what it refers to lives as long as it does.
unsafe impl Reach for Arc<Notify> {
    #[inline]
    fn notify(&self) -> &Notify {
        self
    }
}

/// What both futures are. Polled only where it is pinned, and leaves the list when it is dropped.
struct Waiting<R: Reach> {
    notify: R,
    node: Node,
}

impl<R: Reach> Waiting<R> {
    #[inline]
    fn new(notify: R) -> Self {
        let node = notify.notify().core.node();
        Self { notify, node }
    }

    #[inline]
    fn poll(self: Pin<&mut Self>, waker: Option<&Waker>) -> Poll<()> {
        let this = self.into_ref().get_ref();
        // SAFETY: the node is that of this `Notify`, pinned with us, and `drop` takes it out before either goes.
        unsafe { this.notify.notify().core.poll(&this.node, waker) }
    }
}

impl<R: Reach> Drop for Waiting<R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `poll`.
        unsafe { self.notify.notify().core.leave(&self.node) };
    }
}

macro_rules! future {
    ($(#[$doc:meta])* $name:ident<$($lifetime:lifetime)?>, $reach:ty) => {
        pin_project_lite::pin_project! {
            $(#[$doc])*
            #[must_use = "futures do nothing unless awaited"]
            pub struct $name<$($lifetime)?> {
                #[pin]
                waiting: Waiting<$reach>,
                site: &'static Location<'static>,
            }
        }

        impl<$($lifetime)?> $name<$($lifetime)?> {
            #[inline]
            pub(super) fn new(notify: $reach, site: &'static Location<'static>) -> Self {
                Self {
                    waiting: Waiting::new(notify),
                    site,
                }
            }

            /// Begins to wait without being polled: from here on `notify_one` and `notify_last` find this future.
            ///
            /// Returns whether it has been notified, in which case a permit, if that is what it was, has been taken.
            /// Can be called again and again.
            #[inline]
            pub fn enable(self: Pin<&mut Self>) -> bool {
                self.project().waiting.poll(None).is_ready()
            }
        }

        impl<$($lifetime)?> Future for $name<$($lifetime)?> {
            type Output = ();

            #[inline]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                let unit = ready!(coop::poll_proceed(cx));
                let this = self.project();
                let polled = this.waiting.poll(Some(cx.waker()));
                if polled.is_ready() {
                    unit.made_progress();
                } else {
                    wait::record(WaitKind::Notify, this.site);
                }
                polled
            }
        }

        impl<$($lifetime)?> fmt::Debug for $name<$($lifetime)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("state", &self.waiting.node.name())
                    .finish_non_exhaustive()
            }
        }
    };
}

future! {
    /// Future of [`Notify::notified`].
    ///
    /// Once it was ready it is ready for ever.
    Notified<'a>, &'a Notify
}

future! {
    /// Future of [`Notify::notified_owned`].
    ///
    /// Once it was ready it is ready for ever.
    OwnedNotified<>, Arc<Notify>
}

impl Notified<'_> {
    /// `poll` for the futures of other primitives, which spend the budget and record the wait themselves.
    #[inline]
    pub(crate) fn poll_inner(self: Pin<&mut Self>, waker: &Waker) -> Poll<()> {
        self.project().waiting.poll(Some(waker))
    }
}
