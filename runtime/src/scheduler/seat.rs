//! A seat: what a worker sits on.
//!
//! [`Seat`] is the half that everybody sees: queue to steal from, next slot, sleep, selector, timers, live tasks,
//! counters. [`Core`] is the half that only the sitting thread has; it lies in the seat while nobody sits.
//!
//! N workers have a seat each for the life of the runtime. A thread in `block_on` takes a guest seat (`guest.rs`). With
//! N = 0, the current-thread flavour, guests do everything.
//!
//! # Who may touch what
//! `Core` moves: from the seat to the thread that takes it, to a stand-in and back (`lend.rs`), always whole. All its
//! fields are cells, since tasks polled by the loop reach it as well, through the context.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_deque::{Stealer, Worker};
use rt_io::driver::{self, Driver};
use rt_sync::primitive::atomic::AtomicBool as ModelBool;
use rt_sync::primitive::atomic::Ordering::{AcqRel, Acquire};
use rt_sync::primitive::{Arc as ModelArc, Condvar, Mutex};

use super::Shared;
use super::attendance::Attendance;
use super::driver_lock::DriverLock;
use super::live::LiveTasks;
use super::metrics::{Count, Counters};
use super::next_slot::NextSlot;
use super::park::Park;
use super::pinned::Inbox;
use super::returning::Returning;
use super::seat_ref::SeatRef;
use crate::context::{self, Phase, Sitting};
use crate::debug::polls::Note;
use crate::task::Runnable;
use crate::time::Timers;

/// The shared half of a seat.
pub(crate) struct Seat {
    pub(crate) shared: Arc<Shared>,
    /// Place among all seats of the runtime: workers first.
    pub(crate) index: usize,
    /// Place in the idle accounting. `None` for guests of the multi-thread flavour, which are never woken to search.
    pub(crate) idle_index: Option<usize>,
    pub(crate) stealer: Stealer<Runnable>,
    pub(crate) next: NextSlot,
    pub(crate) wakeup: Arc<Wakeup>,
    pub(crate) timers: ModelArc<Timers>,
    pub(crate) live: LiveTasks,
    pub(crate) inbox: Inbox,
    pub(crate) root: Arc<RootFlag>,
    pub(crate) counters: Counters,
    /// The selector's turning half. The sitter holds the lock while it selects; others only try it, when the sitter has
    /// not selected for a while (`help.rs`).
    pub(crate) driver: DriverLock<Driver>,
    /// Bumped by every turn: the monitor sees by it who is stuck.
    pub(crate) turn: AtomicU64,
    /// Nanoseconds of a mean poll, as of late: see `backlog.rs`. Written by the sitter.
    pub(crate) mean_poll: AtomicU64,
    /// The same, of polls that were not alone in taking so long.
    pub(crate) lasting_poll: AtomicU64,
    /// How much of the work comes back again and again.
    pub(super) returning: Returning,
    /// When the sitter last came out of a turn of long polls, likewise as `selected_at`: see `computing.rs`.
    pub(crate) computed_at: AtomicU64,
    /// When the sitter last came from its selector or was about to go there, in ns since the runtime's start.
    pub(crate) selected_at: AtomicU64,
    /// When somebody else last looked at its selector, likewise.
    pub(crate) helped_at: AtomicU64,
    /// Set when the owner wants its seat back from a stand-in.
    pub(crate) wanted: AtomicBool,
    /// The thread that sits, as the system numbers it, if it is one of the runtime's own; else zero.
    pub(crate) sitter: AtomicU32,
    /// A guest seat whose sitter takes whatever task there is, as a worker does: see `spare.rs`.
    pub(crate) works: AtomicBool,
    /// Whether somebody who sleeps wakes up for its selector too: see `help.rs`.
    pub(super) attendance: Attendance,
    /// The poll that the sitter is in, in debug mode.
    pub(crate) note: Note,
    /// The core, while nobody sits.
    resting: Mutex<Option<Box<Core>>>,
    returned: Condvar,
}

/// What wakes the sitter of a seat: its sleep, and the selector in which it may be asleep.
pub struct Wakeup {
    /// The sleep.
    pub park: Park,
    pub(crate) selector: OnceLock<Arc<driver::Handle>>,
    /// Times that the sitter was woken.
    pub(crate) unparks: Count,
}

impl Wakeup {
    /// Of a seat without a selector, whose sitter is awake.
    #[must_use]
    pub fn new() -> Self {
        Self {
            park: Park::new(),
            selector: OnceLock::new(),
            unparks: Count::default(),
        }
    }

    /// Wakes the sitter, or keeps it from falling asleep; `true` if it was asleep.
    pub fn unpark(&self) -> bool {
        let slept = self.park.unpark(|| {
            if let Some(selector) = self.selector.get() {
                selector.unpark();
            }
        });
        if slept {
            self.unparks.add(1);
        }
        slept
    }
}

/// The waker of a root future: a flag, and the seat of the thread that polls it.
///
/// # The race
/// A wake against the sitter's last look at the flag before it sleeps: the flag is set before the sitter is unparked,
/// and looked at before the park word is set, so the exchange on that word decides. Two wakes: the second finds the flag
/// set and leaves the unparking to the first; it is an exchange all the same, so that the poll which follows sees what
/// either waking thread did before.
pub struct RootFlag {
    ready: ModelBool,
    wakeup: Arc<Wakeup>,
}

impl RootFlag {
    /// For the root future that is polled by the sitter behind `wakeup`.
    #[must_use]
    pub fn new(wakeup: Arc<Wakeup>) -> Self {
        Self {
            ready: ModelBool::new(false),
            wakeup,
        }
    }

    /// Whether the root future was woken since the last call.
    #[inline]
    #[must_use]
    pub fn take(&self) -> bool {
        // Acquire: pairs with `set`; the poll sees what was done before each wake.
        self.ready.load(Relaxed) && self.ready.swap(false, Acquire)
    }

    /// Whether the root future was woken.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.ready.load(Relaxed)
    }

    /// Asks for a poll. `true`: somebody had asked already.
    pub(crate) fn set(&self) -> bool {
        // Release: pairs with `take`. An exchange, since a plain store would hide from it what an earlier one published;
        // acquire: whoever leaves the unparking to the first is as good as behind it.
        self.ready.swap(true, AcqRel)
    }
}

impl std::task::Wake for RootFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.set() {
            return;
        }
        // The sitter itself looks at the flag before it sleeps.
        let own = context::with(|cx| {
            cx.is_some_and(|cx| {
                cx.sitting
                    .borrow()
                    .as_ref()
                    .is_some_and(|sitting| Arc::ptr_eq(&sitting.seat.wakeup, &self.wakeup))
            })
        });
        if !own {
            self.wakeup.unpark();
        }
    }
}

/// The half of a seat that only its sitter has.
pub(crate) struct Core {
    pub(crate) queue: Worker<Runnable>,
    /// Tasks woken during their own poll: they go to the back of the queue after the next select.
    pub(crate) deferred: RefCell<Vec<Runnable>>,
    /// What a search brought that nobody else may, or can, poll; polled first. Anything else goes into the next slot.
    pub(crate) found: Cell<Option<Runnable>>,
    /// Polls in a row that came from the next slot.
    pub(crate) streak: Cell<u32>,
    /// Polls since the last select.
    pub(crate) since_select: Cell<u32>,
    /// Polls since the injector was last looked at.
    pub(crate) since_injector: Cell<u32>,
    /// The mean poll as it was measured last, in ns.
    pub(crate) measured: Cell<u64>,
    /// Most polls between two selects, so that they take about 100 µs: see `worker.rs`.
    pub(crate) most_polls: Cell<u32>,
    /// State of the generator that picks the first victim of a search.
    pub(crate) random: Cell<u32>,
}

impl Core {
    /// See rule 4 of `scheduler/mod.rs`.
    #[inline]
    pub(crate) fn defer(&self, task: Runnable) {
        self.deferred.borrow_mut().push(task);
    }

    /// Whether there is a task that a thief could take or that waits behind a select.
    pub(crate) fn is_empty(&self) -> bool {
        let found = self.found.take();
        let none = found.is_none();
        self.found.set(found);
        none && self.queue.is_empty() && self.deferred.borrow().is_empty()
    }

    /// A number below `limit`.
    pub(crate) fn random_below(&self, limit: usize) -> usize {
        // Xorshift (Marsaglia 2003): enough to spread thieves.
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random.set(x);
        x as usize % limit.max(1)
    }
}

impl Sitting {
    /// A thread sits down.
    pub(crate) fn new(seat: Arc<Seat>, core: Box<Core>) -> Self {
        Self {
            seat: SeatRef::new(seat),
            core,
            outside: OnceCell::new(),
        }
    }

    /// A task was woken, or spawned, by this thread: rules 1 and 2 of `scheduler/mod.rs`.
    #[inline]
    pub(crate) fn push(&self, task: Runnable, phase: Phase) {
        if phase == Phase::Dispatching {
            self.core.queue.push(task);
        } else if let Some(displaced) = self.seat.next.put(task) {
            self.displaced(displaced);
        }
    }

    #[inline(never)]
    fn displaced(&self, task: Runnable) {
        self.core.queue.push(task);
        // Rule 5. Unfenced: what is missed here is seen once a turn.
        if self.seat.shared.idle.has_sleeper() && self.seat.backlog() >= super::backlog::WAKE_COST {
            self.seat.shared.notify(&self.seat);
        }
    }
}

impl Seat {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: usize,
        idle_index: Option<usize>,
    ) -> std::io::Result<Arc<Self>> {
        let wakeup = Arc::new(Wakeup::new());
        let (driver, handle) = Driver::new(shared.name.clone())?;
        let weak = Arc::downgrade(&wakeup);
        let sitter_wanted = wants_sitter(&shared, index);
        handle.set_on_foreign(Box::new(move || {
            if let Some(wakeup) = weak.upgrade()
                && !wakeup.unpark()
            {
                sitter_wanted();
            }
        }));
        let runtime = Arc::downgrade(&shared);
        handle.set_on_failure(Box::new(move |error| {
            if let Some(runtime) = runtime.upgrade() {
                runtime.debug.selector_failed(error);
            }
        }));
        // Cannot be set already: the wakeup is new.
        let _ = wakeup.selector.set(handle);
        let unpark = wakeup.clone();
        let sitter_wanted = wants_sitter(&shared, index);
        let timers = Timers::new(
            shared.clock.clone(),
            Box::new(move || {
                if !unpark.unpark() {
                    sitter_wanted();
                }
            }),
        );
        let queue = Worker::new_fifo();
        let stealer = queue.stealer();
        let core = Core {
            queue,
            deferred: RefCell::new(Vec::new()),
            found: Cell::new(None),
            streak: Cell::new(0),
            since_select: Cell::new(0),
            since_injector: Cell::new(0),
            measured: Cell::new(super::backlog::FIRST_GUESS),
            most_polls: Cell::new(shared.config.event_interval),
            random: Cell::new(0x9e37_79b9 ^ (index as u32 + 1)),
        };
        Ok(Arc::new(Self {
            shared,
            index,
            idle_index,
            stealer,
            next: NextSlot::new(),
            root: Arc::new(RootFlag::new(wakeup.clone())),
            wakeup,
            timers,
            live: LiveTasks::new(),
            inbox: Inbox::new(),
            counters: Counters::default(),
            driver: DriverLock::new(driver),
            turn: AtomicU64::new(0),
            mean_poll: AtomicU64::new(super::backlog::FIRST_GUESS),
            lasting_poll: AtomicU64::new(super::backlog::FIRST_GUESS),
            returning: Returning::default(),
            computed_at: AtomicU64::new(0),
            selected_at: AtomicU64::new(0),
            helped_at: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            sitter: AtomicU32::new(0),
            works: AtomicBool::new(false),
            attendance: Attendance::new(),
            note: Note::new(),
            resting: Mutex::new(Some(Box::new(core))),
            returned: Condvar::new(),
        }))
    }

    /// Takes the core, if nobody sits.
    pub(crate) fn sit(&self) -> Option<Box<Core>> {
        self.resting.lock().take()
    }

    /// Takes the core as soon as its present sitter gives it back.
    pub(crate) fn sit_when_free(&self) -> Box<Core> {
        let mut resting = self.resting.lock();
        loop {
            if let Some(core) = resting.take() {
                return core;
            }
            resting = self.returned.wait(resting);
        }
    }

    /// Waits until nobody sits, at most until `deadline`.
    pub(crate) fn wait_free(&self, deadline: Instant) -> bool {
        let mut resting = self.resting.lock();
        while resting.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            resting = self.returned.wait_timeout(resting, left).0;
        }
        true
    }

    /// Gives the core back.
    pub(crate) fn rise(&self, core: Box<Core>) {
        let before = self.resting.lock().replace(core);
        debug_assert!(before.is_none(), "a seat has one core");
        self.returned.notify_all();
    }

    /// Whether a selector or a wheel of this seat has anything to wait for.
    pub(crate) fn has_sources(&self) -> bool {
        !self.timers.is_empty() || self.registrations() > 0
    }

    pub(crate) fn registrations(&self) -> usize {
        self.wakeup
            .selector
            .get()
            .map_or(0, |selector| selector.registrations())
    }

    /// How many tasks that were spawned on this seat are alive.
    pub(crate) fn live_tasks(&self) -> usize {
        if self.index > 0 {
            return self.live.len();
        }
        let seats = self.shared.seats.snapshot();
        if seats.len() == 0 {
            // The runtime has ended, and nobody knows any more how many have departed.
            return self.live.listed();
        }
        // First: what departs between the two looks counts as alive.
        let departed = seats.iter().map(|seat| seat.counters.departed.acquire());
        let departed = departed.fold(0, u64::wrapping_add) as usize;
        // Both go on for ever, and may wrap around.
        let alive = self.live.len().wrapping_sub(departed);
        usize::try_from(alive.cast_signed()).unwrap_or(0)
    }

    pub(crate) fn is_guest(&self) -> bool {
        self.index >= self.shared.workers
    }
}

/// What is called when something was registered with a seat that is not asleep, so that perhaps nobody sits on it: a guest
/// that has lent its seat registers there until its poll is over, and the stand-in may have found nothing to do and left.
fn wants_sitter(shared: &Arc<Shared>, index: usize) -> impl Fn() + Send + Sync + 'static {
    let guest = index >= shared.workers && !shared.is_current_thread();
    let shared = guest.then(|| Arc::downgrade(shared));
    move || {
        if let Some(shared) = shared.as_ref().and_then(Weak::upgrade) {
            shared.monitor.bed.call_for_guests();
        }
    }
}

impl Default for Wakeup {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Wakeup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakeup")
            .field("park", &self.park)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RootFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootFlag")
            .field("set", &self.is_set())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat")
            .field("index", &self.index)
            .field("park", &self.wakeup.park)
            .finish_non_exhaustive()
    }
}

impl Seat {
    /// How many turns were begun.
    pub(crate) fn turns(&self) -> u64 {
        self.turn.load(Relaxed)
    }

    /// Whether nobody sits.
    pub(crate) fn is_free(&self) -> bool {
        self.resting.lock().is_some()
    }
}
