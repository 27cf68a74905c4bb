//! `Barrier`: tasks that wait for each other, with tokio's names and asyncio's index.
//!
//! # What it guarantees
//! Nobody passes before as many wait as the barrier has parties; then just those pass, each with another index of
//! `0..parties`. The last to come is the leader. A waiter that is dropped before that counts no longer; afterwards it
//! has passed, whether it runs or not. So who comes for the next round never passes with this one.
//!
//! # How it works
//! One desk (`desk/mod.rs`) with one line: the round is complete when the line has a place less than there are parties.
//! The last to come gives everybody an index, in order of arrival, and takes the highest.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use pin_project_lite::pin_project;

use crate::coop;
use crate::desk::{Clerk, Desk, Locked, Place, Standing, Wakes};
use crate::wait::{self, WaitKind};

const LINE: usize = 0;

/// Lets tasks go on when a number of them has come. Used round after round.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use rt_sync::barrier::Barrier;
///
/// let barrier = Arc::new(Barrier::new(3));
/// let threads: Vec<_> = (0..3)
///     .map(|_| {
///         let barrier = barrier.clone();
///         std::thread::spawn(move || futures_lite::future::block_on(barrier.wait()).is_leader())
///     })
///     .collect();
/// let leaders = threads.into_iter().map(|thread| thread.join().unwrap());
/// assert_eq!(leaders.filter(|leader| *leader).count(), 1);
/// ```
pub struct Barrier {
    parties: usize,
    desk: Desk<Round, 1>,
}

/// All there is to know of a round is who stands in the line.
struct Round;

impl Clerk<1> for Round {
    /// Who was given an index has passed, whether it runs or not.
    fn pass_on(_: &mut Locked<'_, Self, 1>, _: usize, _index: usize) -> Option<Waker> {
        None
    }
}

/// What [`Barrier::wait`] gives to each that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarrierWaitResult {
    index: usize,
    leader: bool,
}

impl Barrier {
    /// A barrier for `parties` tasks. 0 counts as 1, as in tokio (asyncio refuses it): who comes passes at once.
    #[must_use]
    pub fn new(parties: usize) -> Self {
        Self {
            parties: parties.max(1),
            desk: Desk::new(Round),
        }
    }

    /// Waits until as many wait as the barrier has parties.
    ///
    /// It counts as waiting from the first poll on.
    ///
    /// # Cancel safety
    /// When the future is dropped before the barrier opened, it counts no longer, and another has to come in its place.
    #[inline]
    #[track_caller]
    pub fn wait(&self) -> BarrierWait<'_> {
        BarrierWait {
            barrier: self,
            place: self.desk.place(),
            site: Location::caller(),
        }
    }

    /// How many tasks have to come.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// How many wait now. 0 right after the last has come.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.desk.lock().waiting(LINE)
    }
}

impl BarrierWaitResult {
    /// Whether this is the one that came last: true for exactly one of each round.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.leader
    }

    /// A number of `0..parties`, another for each of a round, in order of arrival.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

pin_project! {
    /// Future of [`Barrier::wait`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct BarrierWait<'a> {
        barrier: &'a Barrier,
        #[pin]
        place: Place<'a, Round, 1>,
        site: &'static Location<'static>,
    }
}

impl Future for BarrierWait<'_> {
    type Output = BarrierWaitResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let unit = ready!(coop::poll_proceed(cx));
        let this = self.project();
        let place = this.place.into_ref();
        let parties = this.barrier.parties;
        // A clone of the waker, made while the lock is not held.
        let mut spare: Option<Waker> = None;
        loop {
            let mut desk = this.barrier.desk.lock();
            match desk.standing(&place) {
                Standing::Away => {
                    if desk.waiting(LINE) + 1 == parties {
                        let mut wakes = Wakes::new();
                        desk.grant_all(LINE, |index| index, &mut wakes);
                        drop(desk);
                        unit.made_progress();
                        wakes.wake_all();
                        return Poll::Ready(BarrierWaitResult {
                            index: parties - 1,
                            leader: true,
                        });
                    }
                    if let Some(waker) = spare.take() {
                        desk.join(place, LINE, waker);
                        break;
                    }
                }
                Standing::Waiting => {
                    if desk.refresh(&place, cx.waker(), &mut spare) {
                        break;
                    }
                }
                Standing::Granted(index) => {
                    desk.leave(&place);
                    drop(desk);
                    unit.made_progress();
                    return Poll::Ready(BarrierWaitResult {
                        index,
                        leader: false,
                    });
                }
            }
            drop(desk);
            spare = Some(cx.waker().clone());
        }
        wait::record(WaitKind::Barrier, this.site);
        Poll::Pending
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.desk.try_lock().map(|desk| desk.waiting(LINE));
        f.debug_struct("Barrier")
            .field("parties", &self.parties)
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BarrierWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWait").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(rt_loom)))]
mod tests;
