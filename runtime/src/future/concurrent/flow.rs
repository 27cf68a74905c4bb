//! The flow: items come in, each becomes a future, outputs come out, and at most so many futures are there at a time.
//!
//! # Fairness
//! Taking an item and ending a future spend a unit of the task's budget each. Which of the two comes first changes with
//! each poll, so that neither an endless iterator nor futures that spend the whole budget keep the other waiting.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;
use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use crate::future::pool::{Pool, spend};

/// So many items are taken at a time before futures are polled: less than a budget.
const BURST: usize = 32;

/// Places in the first chunk of a pool without a limit.
const FEW: usize = 16;

pin_project! {
    /// See the module head.
    pub(super) struct Flow<S, F, Fut> {
        #[pin]
        items: S,
        make: F,
        pool: Pool<Fut>,
        limit: usize,
        // The items have come to their end.
        ended: bool,
        polls_first: bool,
        site: &'static Location<'static>,
    }
}

impl<S: Stream, F, Fut> Flow<S, F, Fut> {
    /// # Panics
    /// If the limit is 0.
    #[track_caller]
    pub(super) fn new(items: S, limit: Option<usize>, make: F) -> Self {
        assert!(
            limit != Some(0),
            "a limit of 0 futures at a time would never start any: use `None` for no limit"
        );
        let limit = limit.unwrap_or(usize::MAX);
        let (least, most) = items.size_hint();
        let first = least.max(FEW).min(most.unwrap_or(usize::MAX)).min(limit);
        Self {
            items,
            make,
            pool: Pool::with_capacity(first),
            limit,
            ended: false,
            polls_first: false,
            site: Location::caller(),
        }
    }

    /// How many outputs are to come: at least, and at most.
    pub(super) fn size_hint(&self) -> (usize, Option<usize>) {
        let open = self.pool.len();
        if self.ended {
            return (open, Some(open));
        }
        let (least, most) = self.items.size_hint();
        (
            least.saturating_add(open),
            most.and_then(|most| most.checked_add(open)),
        )
    }
}

impl<S, F, Fut> Flow<S, F, Fut>
where
    S: Stream,
    F: FnMut(S::Item) -> Fut,
    Fut: Future,
{
    /// The next output, with the number of the place its future had. `None`: all items are done.
    ///
    /// `held` counts towards the limit. `started` hears of the place of each new future.
    pub(super) fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        held: usize,
        started: impl FnMut(u32),
    ) -> Poll<Option<(u32, Fut::Output)>> {
        let site = self.site;
        wait::around(WaitKind::Other, site, || {
            self.as_mut().poll_inside(cx, held, started)
        })
    }

    fn poll_inside(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        held: usize,
        mut started: impl FnMut(u32),
    ) -> Poll<Option<(u32, Fut::Output)>> {
        let this = self.as_mut().project();
        let polls_first = *this.polls_first;
        *this.polls_first = !polls_first;
        if polls_first && let Poll::Ready(Some(next)) = this.pool.poll_next(cx) {
            return Poll::Ready(Some(next));
        }
        loop {
            let more = self.as_mut().take_items(cx, held, &mut started);
            let this = self.as_mut().project();
            match this.pool.poll_next(cx) {
                Poll::Ready(None) if *this.ended => return Poll::Ready(None),
                Poll::Ready(Some(next)) => return Poll::Ready(Some(next)),
                Poll::Ready(None) | Poll::Pending if !more => return Poll::Pending,
                Poll::Ready(None) | Poll::Pending => {}
            }
        }
    }

    /// Takes some items; whether there may be more at once. If not, the task is woken when it is worth another look.
    fn take_items(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        held: usize,
        started: &mut impl FnMut(u32),
    ) -> bool {
        let mut this = self.project();
        for _ in 0..BURST {
            if *this.ended || this.pool.len().saturating_add(held) >= *this.limit {
                return false;
            }
            if !coop::budget_left() {
                cx.waker().wake_by_ref();
                return false;
            }
            match this.items.as_mut().poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    spend(cx);
                    started(this.pool.push((this.make)(item)));
                }
                Poll::Ready(None) => *this.ended = true,
                Poll::Pending => return false,
            }
        }
        true
    }
}

impl<S, F, Fut> fmt::Debug for Flow<S, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("open", &self.pool.len())
            .field("limit", &self.limit)
            .field("ended", &self.ended)
            .field("made_at", &format_args!("{}", self.site))
            .finish_non_exhaustive()
    }
}
