//! The futures of a queue.

use std::fmt;
use std::future::Future;
use std::panic::{self, Location};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::base::BaseQueue;
use super::error::QueueShutDown;
use super::state::{
    GETTERS, GO, JOINERS, PUTTERS, QueueLocked, QueuePlace, Refusal, get_fast, put_fast,
};
use super::store::Store;
use crate::coop::{self, RestoreOnPending};
use crate::desk::Standing;
use crate::wait::{self, WaitKind};

type Site = &'static Location<'static>;

pin_project! {
    /// Future of [`BaseQueue::put`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Put<'a, S: Store> {
        #[pin]
        place: QueuePlace<'a, S>,
        item: Option<S::Item>,
        site: Site,
    }
}

pin_project! {
    /// Future of [`BaseQueue::get`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Get<'a, S: Store> {
        #[pin]
        place: QueuePlace<'a, S>,
        site: Site,
    }
}

pin_project! {
    /// Future of [`BaseQueue::next`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Next<'a, S: Store> {
        #[pin]
        get: Get<'a, S>,
    }
}

pin_project! {
    /// Stream of [`BaseQueue::items`].
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped. Between two items it stands in no line.
    #[must_use = "streams do nothing unless polled"]
    pub struct Items<'a, S: Store> {
        #[pin]
        get: Get<'a, S>,
    }
}

pin_project! {
    /// Future of [`BaseQueue::join`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Join<'a, S: Store> {
        #[pin]
        place: QueuePlace<'a, S>,
        site: Site,
    }
}

/// The place stands in a line: keeps its waker up to date. The lock is held on entry, and released.
fn keep_waiting<'a, S: Store>(
    mut queue: QueueLocked<'a, S>,
    place: &QueuePlace<'a, S>,
    cx: &Context<'_>,
    spare: &mut Option<Waker>,
) -> bool {
    let kept = queue.refresh(place, cx.waker(), spare);
    drop(queue);
    if kept {
        *spare = None;
    } else {
        *spare = Some(cx.waker().clone());
    }
    kept
}

impl<'a, S: Store> Put<'a, S> {
    #[inline]
    pub(super) fn new(queue: &'a BaseQueue<S>, item: S::Item, site: Site) -> Self {
        Self {
            place: queue.desk.place(),
            item: Some(item),
            site,
        }
    }
}

impl<S: Store> Future for Put<'_, S> {
    type Output = Result<(), QueueShutDown<S::Item>>;

    /// # Panics
    /// Polled again after it was ready.
    // `always`: what is left of a put that is made, polled and dropped in one place is the lock, the store and the budget;
    // a call in between costs half of that.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let this = self.project();
        if !this.place.joined() {
            let item = this
                .item
                .take()
                .expect("a put is polled after it was ready");
            match put_fast(this.place.desk(), item) {
                Ok(()) => {
                    unit.made_progress();
                    return Poll::Ready(Ok(()));
                }
                Err(item) => *this.item = Some(item),
            }
        }
        Self::poll_slow(this.place.into_ref(), this.item, this.site, cx, unit)
    }
}

impl<'a, S: Store> Put<'a, S> {
    /// What is not done by `put_fast`.
    #[inline(never)]
    fn poll_slow(
        place: Pin<&QueuePlace<'a, S>>,
        slot: &mut Option<S::Item>,
        site: Site,
        cx: &mut Context<'_>,
        unit: RestoreOnPending,
    ) -> Poll<Result<(), QueueShutDown<S::Item>>> {
        // A clone of the waker, made while the lock is not held.
        let mut spare = (!place.joined()).then(|| cx.waker().clone());
        loop {
            let mut queue = place.desk().lock();
            let standing = queue.standing(&place);
            if standing == Standing::Waiting {
                if keep_waiting(queue, &place, cx, &mut spare) {
                    break;
                }
                continue;
            }
            let item = slot.take().expect("a put that waits has its item");
            let put = match standing {
                Standing::Granted(GO) => queue.put_granted(item),
                Standing::Granted(_) => Err((item, Refusal::ShutDown)),
                _ => queue.put_now(item),
            };
            match put {
                Ok(wake) => {
                    if standing != Standing::Away {
                        queue.leave(&place);
                    }
                    drop(queue);
                    unit.made_progress();
                    if let Some(waker) = wake {
                        waker.wake();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err((item, Refusal::ShutDown)) => {
                    if standing == Standing::Granted(GO) {
                        // Nobody waits for it, by rule 3.
                        queue.give_place_back();
                    }
                    queue.leave(&place);
                    drop(queue);
                    unit.made_progress();
                    return Poll::Ready(Err(QueueShutDown(item)));
                }
                Err((item, Refusal::Panicked(payload))) => {
                    drop(queue);
                    // The grant, if there is one, is passed on when the future is dropped.
                    *slot = Some(item);
                    panic::resume_unwind(payload);
                }
                Err((item, Refusal::Wait)) => {
                    *slot = Some(item);
                    if let Some(waker) = spare.take() {
                        queue.join(place, PUTTERS, waker);
                        break;
                    }
                    drop(queue);
                    spare = Some(cx.waker().clone());
                }
            }
        }
        wait::record(WaitKind::Queue, site);
        Poll::Pending
    }
}

impl<'a, S: Store> Get<'a, S> {
    #[inline]
    pub(super) fn new(queue: &'a BaseQueue<S>, site: Site) -> Self {
        Self {
            place: queue.desk.place(),
            site,
        }
    }
}

impl<S: Store> Future for Get<'_, S> {
    type Output = Result<S::Item, QueueShutDown>;

    /// Polled again after it was ready, it gets another item.
    // `always`: as for `Put`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let this = self.project();
        if !this.place.joined()
            && let Some(item) = get_fast(this.place.desk())
        {
            unit.made_progress();
            return Poll::Ready(Ok(item));
        }
        Self::poll_slow(this.place.into_ref(), this.site, cx, unit)
    }
}

impl<'a, S: Store> Get<'a, S> {
    /// What is not done by `get_fast`.
    #[inline(never)]
    fn poll_slow(
        place: Pin<&QueuePlace<'a, S>>,
        site: Site,
        cx: &mut Context<'_>,
        unit: RestoreOnPending,
    ) -> Poll<Result<S::Item, QueueShutDown>> {
        let mut spare = (!place.joined()).then(|| cx.waker().clone());
        loop {
            let mut queue = place.desk().lock();
            let standing = queue.standing(&place);
            let got = match standing {
                Standing::Waiting => {
                    if keep_waiting(queue, &place, cx, &mut spare) {
                        break;
                    }
                    continue;
                }
                Standing::Granted(GO) => queue.get_granted(),
                Standing::Granted(_) => Err(Refusal::ShutDown),
                Standing::Away => queue.get_now(),
            };
            match got {
                Ok((item, after)) => {
                    if standing != Standing::Away {
                        queue.leave(&place);
                    }
                    drop(queue);
                    unit.made_progress();
                    after.wake();
                    return Poll::Ready(Ok(item));
                }
                Err(Refusal::ShutDown) => {
                    if standing == Standing::Granted(GO) {
                        queue.give_item_back();
                    }
                    queue.leave(&place);
                    drop(queue);
                    unit.made_progress();
                    return Poll::Ready(Err(QueueShutDown(())));
                }
                Err(Refusal::Panicked(payload)) => {
                    drop(queue);
                    // The grant, if there is one, is passed on when the future is dropped.
                    panic::resume_unwind(payload);
                }
                Err(Refusal::Wait) => {
                    if let Some(waker) = spare.take() {
                        queue.join(place, GETTERS, waker);
                        break;
                    }
                    drop(queue);
                    spare = Some(cx.waker().clone());
                }
            }
        }
        wait::record(WaitKind::Queue, site);
        Poll::Pending
    }
}

impl<'a, S: Store> Next<'a, S> {
    #[inline]
    pub(super) fn new(queue: &'a BaseQueue<S>, site: Site) -> Self {
        Self {
            get: Get::new(queue, site),
        }
    }
}

impl<S: Store> Future for Next<'_, S> {
    type Output = Option<S::Item>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().get.poll(cx).map(Result::ok)
    }
}

impl<'a, S: Store> Items<'a, S> {
    pub(super) fn new(queue: &'a BaseQueue<S>, site: Site) -> Self {
        Self {
            get: Get::new(queue, site),
        }
    }
}

impl<S: Store> Stream for Items<'_, S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.project().get.poll(cx).map(Result::ok)
    }
}

impl<'a, S: Store> Join<'a, S> {
    #[inline]
    pub(super) fn new(queue: &'a BaseQueue<S>, site: Site) -> Self {
        Self {
            place: queue.desk.place(),
            site,
        }
    }
}

impl<S: Store> Future for Join<'_, S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(coop::poll_proceed(cx));
        let this = self.project();
        let place = this.place.into_ref();
        let mut spare: Option<Waker> = None;
        loop {
            let mut queue = place.desk().lock();
            match queue.standing(&place) {
                Standing::Waiting => {
                    if keep_waiting(queue, &place, cx, &mut spare) {
                        break;
                    }
                }
                Standing::Away if !queue.is_done() => {
                    if let Some(waker) = spare.take() {
                        queue.join(place, JOINERS, waker);
                        break;
                    }
                    drop(queue);
                    spare = Some(cx.waker().clone());
                }
                _ => {
                    queue.leave(&place);
                    drop(queue);
                    unit.made_progress();
                    return Poll::Ready(());
                }
            }
        }
        wait::record(WaitKind::Queue, this.site);
        Poll::Pending
    }
}

macro_rules! debug {
    ($($name:ident),*) => {$(
        impl<S: Store> fmt::Debug for $name<'_, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

debug!(Put, Get, Next, Items, Join);
