//! What a task waits for: kind and place, recorded by leaf futures and read by dumps.
//!
//! A leaf future that returns `Pending` calls [`record`]: one thread-local write. The executor copies it into the
//! [`WaitSlot`] of the task when the poll is over ([`WaitSlot::keep_last`]): three relaxed stores. A dump reads the slot
//! from any thread and never polls a task. While a task is being polled its slot still tells where it waited last.
//!
//! A future around others ([`around`], [`of_parts`]) that is over takes back what was recorded in its poll: nothing of it is waited
//! for any more, and what the task polls next may record nothing.
//!
//! # Who may touch what
//! The slot is written by the thread that polls its task, and read by anyone. Kind and site are two words, so a reader
//! may see the kind of one wait with the site of another; it is a diagnosis, not a protocol.
//!
//! # Since when
//! No clock is read for a wait. The thread's coarse time ([`set_now`]) is what its loop read last, on its own scale.
#![expect(
    unsafe_code,
    reason = "a `&'static Location` is kept in an atomic pointer"
)]

use std::cell::Cell;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::task::Poll;

/// What kind of thing a leaf future waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each name is that of the operation")]
pub enum WaitKind {
    Nothing = 0,
    Sleep,
    Interval,
    Timeout,
    Join,
    Yield,
    Read,
    Write,
    Accept,
    Connect,
    Readiness,
    Oneshot,
    Blocking,
    Signal,
    Lock,
    Send,
    Recv,
    Broadcast,
    Watch,
    Notify,
    Semaphore,
    Barrier,
    OnceCell,
    Queue,
    Event,
    Condition,
    CancellationToken,
    TaskGroup,
    Capacity,
    Other,
}

impl WaitKind {
    const ALL: [WaitKind; 30] = [
        WaitKind::Nothing,
        WaitKind::Sleep,
        WaitKind::Interval,
        WaitKind::Timeout,
        WaitKind::Join,
        WaitKind::Yield,
        WaitKind::Read,
        WaitKind::Write,
        WaitKind::Accept,
        WaitKind::Connect,
        WaitKind::Readiness,
        WaitKind::Oneshot,
        WaitKind::Blocking,
        WaitKind::Signal,
        WaitKind::Lock,
        WaitKind::Send,
        WaitKind::Recv,
        WaitKind::Broadcast,
        WaitKind::Watch,
        WaitKind::Notify,
        WaitKind::Semaphore,
        WaitKind::Barrier,
        WaitKind::OnceCell,
        WaitKind::Queue,
        WaitKind::Event,
        WaitKind::Condition,
        WaitKind::CancellationToken,
        WaitKind::TaskGroup,
        WaitKind::Capacity,
        WaitKind::Other,
    ];
}

/// What a leaf future recorded.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// What kind of thing is waited for.
    pub kind: WaitKind,
    /// Where the waiting future was made; `None` if nothing is waited for.
    pub site: Option<&'static Location<'static>>,
}

impl Wait {
    const NOTHING: Wait = Wait {
        kind: WaitKind::Nothing,
        site: None,
    };
}

thread_local! {
    static LAST: Last = const { Last { kind: Cell::new(WaitKind::Nothing), site: Cell::new(None) } };
    static NOW: Cell<u32> = const { Cell::new(0) };
}

/// What was recorded last. The kind says nothing if there is no site.
struct Last {
    kind: Cell<WaitKind>,
    site: Cell<Option<&'static Location<'static>>>,
}

/// Sets the coarse time of this thread, on a scale of the executor's: it goes to the slots of tasks that begin to wait.
#[inline]
pub fn set_now(now: u32) {
    NOW.set(now);
}

/// Notes what the current task is about to wait for. For leaf futures, before they return `Pending`.
///
/// `site` is where the future was made: leaf futures are made by `#[track_caller]` functions.
#[inline]
pub fn record(kind: WaitKind, site: &'static Location<'static>) {
    LAST.with(|last| {
        last.kind.set(kind);
        last.site.set(Some(site));
    });
}

/// Corrects the place of what was recorded last: the wait is part of a future that was made at `site`. For futures around
/// others, before they return `Pending`.
#[inline]
pub fn record_site(site: &'static Location<'static>) {
    LAST.with(|last| {
        if last.site.replace(Some(site)).is_none() {
            last.kind.set(WaitKind::Other);
        }
    });
}

/// What was recorded since the last call. For executors, after a poll that returned `Pending`.
#[inline]
#[must_use]
pub fn take() -> Wait {
    LAST.with(|last| match last.site.take() {
        None => Wait::NOTHING,
        site => Wait {
            kind: last.kind.get(),
            site,
        },
    })
}

/// Forgets what was recorded. For executors, after a poll whose future is over.
#[inline]
pub fn forget() {
    LAST.with(|last| last.site.set(None));
}

/// Makes what [`take`] gave what was recorded last.
#[inline]
pub fn put_back(wait: Wait) {
    LAST.with(|last| {
        last.kind.set(wait.kind);
        last.site.set(wait.site);
    });
}

#[inline]
fn is_recorded() -> bool {
    LAST.with(|last| last.site.get().is_some())
}

/// The poll of a future around others. Pending: what these recorded, or else this kind and site, is what is waited for. Ready:
/// what was recorded before is.
#[inline]
pub fn around<T>(
    kind: WaitKind,
    site: &'static Location<'static>,
    poll: impl FnOnce() -> Poll<T>,
) -> Poll<T> {
    let before = take();
    let polled = poll();
    if polled.is_ready() {
        put_back(before);
    } else if !is_recorded() {
        record(kind, site);
    }
    polled
}

/// As [`around`], of a future without a wait of its own.
#[inline]
pub fn of_parts<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    let before = take();
    let polled = poll();
    if polled.is_ready() || !is_recorded() {
        put_back(before);
    }
    polled
}

/// Where a task's wait is kept: part of the task header.
#[derive(Debug, Default)]
pub struct WaitSlot {
    site: AtomicPtr<Location<'static>>,
    kind: AtomicU8,
    since: AtomicU32,
}

impl WaitSlot {
    /// A slot that says "nothing".
    #[must_use]
    pub const fn new() -> Self {
        Self {
            site: AtomicPtr::new(ptr::null_mut()),
            kind: AtomicU8::new(0),
            since: AtomicU32::new(0),
        }
    }

    /// Keeps what was recorded since the last call, as [`take`] and [`store`](Self::store) do, and the coarse time of this
    /// thread. For executors, after a poll that returned `Pending`.
    #[inline]
    pub fn keep_last(&self) {
        LAST.with(|last| {
            let site = last.site.take().map_or(ptr::null(), ptr::from_ref);
            self.site.store(site.cast_mut(), Relaxed);
            self.kind.store(last.kind.get() as u8, Relaxed);
        });
        self.since.store(NOW.get(), Relaxed);
    }

    /// The coarse time at which the wait began; see [`set_now`].
    #[must_use]
    pub fn since(&self) -> u32 {
        self.since.load(Relaxed)
    }

    /// Keeps what the last poll recorded.
    #[inline]
    pub fn store(&self, wait: Wait) {
        let site = wait.site.map_or(ptr::null(), ptr::from_ref);
        self.site.store(site.cast_mut(), Relaxed);
        self.kind.store(wait.kind as u8, Relaxed);
        self.since.store(NOW.get(), Relaxed);
    }

    /// What was last kept.
    #[must_use]
    pub fn load(&self) -> Wait {
        // SAFETY: only this type writes the pointer, and it writes null or a `&'static Location`.
        let site = unsafe { self.site.load(Relaxed).as_ref() };
        if site.is_none() {
            return Wait::NOTHING;
        }
        let kind = WaitKind::ALL
            .get(usize::from(self.kind.load(Relaxed)))
            .copied()
            .unwrap_or(WaitKind::Other);
        Wait { kind, site }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_wait_is_taken_once_and_read_back() {
        let site = Location::caller();
        record(WaitKind::Sleep, site);
        let slot = WaitSlot::new();
        assert_eq!(slot.load().kind, WaitKind::Nothing);
        slot.store(take());
        assert_eq!(slot.load().kind, WaitKind::Sleep);
        assert_eq!(slot.load().site, Some(site));
        assert_eq!(take().kind, WaitKind::Nothing);
    }

    #[test]
    fn the_future_around_a_wait_gives_its_place_and_not_its_kind() {
        let inner = Location::caller();
        let outer = Location::caller();
        record_site(outer);
        let wait = take();
        assert_eq!((wait.kind, wait.site), (WaitKind::Other, Some(outer)));
        record(WaitKind::Read, inner);
        record_site(outer);
        let wait = take();
        assert_eq!((wait.kind, wait.site), (WaitKind::Read, Some(outer)));
    }

    #[test]
    fn a_future_around_others_is_waited_for_until_it_is_ready() {
        let (before, own, inner) = (Location::caller(), Location::caller(), Location::caller());
        let last = || {
            let wait = take();
            (wait.kind, wait.site)
        };
        let around = |inner: fn() -> Poll<()>| around(WaitKind::Timeout, own, inner);
        let leaf = |polled: Poll<()>| {
            record(WaitKind::Recv, inner);
            polled
        };

        record(WaitKind::Sleep, before);
        assert!(around(|| Poll::Pending).is_pending());
        assert_eq!(last(), (WaitKind::Timeout, Some(own)));
        assert!(super::around(WaitKind::Timeout, own, || leaf(Poll::Pending)).is_pending());
        assert_eq!(last(), (WaitKind::Recv, Some(inner)));
        for recorded in [
            Wait::NOTHING,
            Wait {
                kind: WaitKind::Sleep,
                site: Some(before),
            },
        ] {
            put_back(recorded);
            assert!(around(|| Poll::Ready(())).is_ready());
            assert!(super::around(WaitKind::Timeout, own, || leaf(Poll::Ready(()))).is_ready());
            assert!(of_parts(|| leaf(Poll::Ready(()))).is_ready());
            assert!(of_parts(|| Poll::<()>::Pending).is_pending());
            assert_eq!(last(), (recorded.kind, recorded.site));
        }
        record(WaitKind::Sleep, before);
        assert!(of_parts(|| leaf(Poll::Pending)).is_pending());
        assert_eq!(last(), (WaitKind::Recv, Some(inner)));
    }

    #[test]
    fn a_slot_keeps_the_last_wait_and_the_coarse_time() {
        let site = Location::caller();
        let slot = WaitSlot::new();
        record(WaitKind::Recv, site);
        set_now(7);
        slot.keep_last();
        set_now(9);
        assert_eq!(
            (slot.load().kind, slot.load().site),
            (WaitKind::Recv, Some(site))
        );
        assert_eq!(slot.since(), 7);
        slot.keep_last();
        assert_eq!(
            (slot.load().kind, slot.load().site),
            (WaitKind::Nothing, None)
        );
        assert_eq!(slot.since(), 9);
    }
}
