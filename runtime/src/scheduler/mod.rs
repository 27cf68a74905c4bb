//! The scheduler: start here.
//!
//! A runtime has N **workers**, threads that each turn a loop (`worker.rs`) on a **seat** of their own (`seat.rs`):
//! ready queue, next slot, selector, timer wheel. A thread in `block_on` takes a **guest** seat (`guest.rs`) and turns
//! the same loop for its root future and the tasks that it spawns. With N = 0, the current-thread flavour, guests do
//! everything, and nothing runs while nobody blocks on the runtime.
//!
//! # Where a woken task goes, and whom it wakes
//! 1. Woken or spawned by the task that runs on this seat: into the next slot; who lay there moves to the back of the
//!    queue. At most [`MOST_FROM_SLOT`] polls in a row come from the slot.
//! 2. Woken by this seat's own selector or timers: to the back of its queue.
//! 3. Woken by any other thread: into the injector, which workers look at every
//!    [`global_queue_interval`](crate::runtime::Builder::global_queue_interval) polls and when their queue is empty.
//! 4. Woken in its own poll (`yield_now`, a spent budget): to the back of the queue after the next select.
//! 5. A sleeper is woken only if something stealable is left beyond what the seat polls next, and nobody searches.
//!    Never for a task that enters an empty slot.
//! 6. The events of one select are queued first; then at most one sleeper is woken for all of them.
//! 7. Waking writes to an eventfd, or a futex, only if the target is really asleep (`park.rs`).
//!
//! # Who helps whom
//! A worker out of work looks at the injector and at every other seat (`rest.rs`; `idle.rs` says why nothing is lost), and what
//! it finds goes into its next slot. It searches and does nothing else: no task and no waker runs meanwhile. A guest
//! looks at neither, since the N workers are the capacity; but they steal from it. A worker that is about to sleep, and
//! the monitor, turn the selector and the timers of a seat that has not done so for a while (`help.rs`); so do workers in long
//! polls for each other (`computing.rs`). Of several with crowds of timers one wakes up for all (`relief.rs`). A task that blocks its thread on
//! purpose lends the seat to a stand-in (`lend.rs`). The monitor (`monitor.rs`) wakes helpers for a seat that is stuck,
//! calls spare workers when all are (`spare.rs`), and gives a stand-in to a guest seat whose thread has left while sockets
//! or timers are registered with it.
//!
//! # Bounds
//! With polls that take t each, a socket, a timer or an injected task on a busy seat is looked at after at most
//! `event_interval` (61) polls or about 100 µs + t, whichever comes first; after that it waits its turn in a FIFO
//! queue. Two tasks that keep waking each other hold up a third for [`MOST_FROM_SLOT`] polls.
//!
//! # Shutdown
//! See `shutdown.rs`.

pub(crate) mod attendance;
mod backlog;
pub(crate) mod bed;
mod computing;
pub(crate) mod departed;
pub(crate) mod driver_lock;
pub(crate) mod guest;
mod help;
pub(crate) mod idle;
mod laps;
pub(crate) mod launch;
pub(crate) mod lend;
pub(crate) mod live;
pub(crate) mod metrics;
mod moment;
mod monitor;
pub(crate) mod next_slot;
mod next_task;
pub(crate) mod park;
pub(crate) mod pinned;
mod relief;
mod remote;
mod rest;
mod returning;
pub(crate) mod seat;
mod seat_ref;
mod seats;
mod select;
pub(crate) mod shutdown;
mod spare;
mod worker;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_deque::Injector;
use rt_sync::primitive::Arc as ModelArc;
use rt_sync::semaphore::Semaphore;

use self::idle::Idle;
use self::lend::Spares;
use self::monitor::Monitor;
use self::seats::Seats;
use self::shutdown::Latch;
use crate::blocking::follow_up::FollowUps;
use crate::blocking::{self, Pool};
use crate::context::{self, Context, Phase};
use crate::debug::{self, Debug};
use crate::runtime::config::{Config, call};
use crate::runtime::panics::{self, Unretrieved};
use crate::task::{Meta, Runnable, stock};
use crate::time::{self, Clock, Timers};

pub(crate) use self::remote::Home;
pub(crate) use self::seat::{Core, Seat, Wakeup};
pub(crate) use self::seat_ref::SeatRef;

/// Polls in a row that may come from the next slot: rule 1. Go's and tokio's experience is that the slot needs a cap of
/// its own (pains A7); three keep a ping-pong of two tasks in it most of the time.
pub(crate) const MOST_FROM_SLOT: u32 = 3;

/// What all threads of a runtime share.
pub(crate) struct Shared {
    /// Unique in the process.
    pub(crate) id: u64,
    /// From when [`stamp`](Self::stamp) counts.
    started: Instant,
    /// When the runtime was made.
    pub(crate) built: Instant,
    pub(crate) name: Arc<str>,
    /// N. Zero is the current-thread flavour.
    pub(crate) workers: usize,
    pub(crate) seats: Seats,
    pub(crate) injector: Injector<Runnable>,
    pub(crate) idle: Idle,
    /// For tasks that are spawned from outside. Each piece comes with a reference to the first seat, which such tasks are on.
    pub(crate) memory: ModelArc<stock::Stock<Arc<Seat>>>,
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    pub(crate) blocking: Pool,
    pub(crate) compute: Pool,
    /// The slots of `admit_blocking`.
    pub(crate) admission: Arc<Semaphore>,
    pub(crate) monitor: Monitor,
    /// Seats whose sitters sleep while others fire their timers: see `relief.rs`.
    relieved: AtomicUsize,
    pub(crate) spares: Spares,
    /// Threads that run the loop on behalf of the runtime, and have to be gone before it is.
    pub(crate) threads: Latch,
    closed: AtomicBool,
    pub(crate) debug: Debug,
    /// Panics whose handles are kept.
    pub(crate) unretrieved: Unretrieved,
    /// Selector and timers for threads that enter the runtime without a seat: those of the first seat. They outlive it,
    /// so that a thread that enters a closed runtime is told so.
    first: OnceLock<(Arc<Wakeup>, ModelArc<Timers>)>,
    pub(crate) remote_schedules: metrics::Count,
    pub(crate) unparks: metrics::Count,
    /// Times that somebody turned the selector or the timers of another seat, with effect.
    pub(crate) helps: metrics::Count,
    /// Times that a spare worker was called, since every worker was stuck.
    pub(crate) hand_offs: metrics::Count,
    pub(crate) follow_ups: FollowUps,
}

/// From when the stamps of all runtimes count.
pub(crate) fn process_start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

impl Shared {
    /// `clock_paused`: whether the clock starts stopped; `None` if it cannot be stopped. `blocking`: the most threads of
    /// the blocking pool, how many closures it has slots for, and how long it keeps idle threads.
    pub(crate) fn new(
        id: u64,
        name: Arc<str>,
        workers: usize,
        clock_paused: Option<bool>,
        (most_blocking, slots, keep_alive): (usize, usize, Duration),
        config: Config,
    ) -> Arc<Self> {
        let clock = clock_paused.map_or_else(Clock::new, Clock::pausable);
        Arc::new_cyclic(|weak: &Weak<Shared>| {
            let pool =
                |pool: blocking::Config, kind| pool_config(pool, kind, weak, &config, &clock);
            let mut blocking_config = pool(blocking::Config::blocking(), "blocking");
            blocking_config.max_threads = most_blocking;
            blocking_config.keep_alive = keep_alive;
            Self {
                id,
                started: process_start(),
                built: Instant::now(),
                debug: Debug::new(&config, &name, workers),
                name,
                workers,
                seats: Seats::new(),
                injector: Injector::new(),
                idle: Idle::new(workers),
                memory: ModelArc::new(stock::Stock::new()),
                blocking: Pool::new(blocking_config),
                compute: Pool::new(pool(blocking::Config::compute(), "compute")),
                admission: Arc::new(Semaphore::new(slots)),
                monitor: Monitor::new(config.monitor),
                relieved: AtomicUsize::new(0),
                spares: Spares::new(),
                threads: Latch::default(),
                closed: AtomicBool::new(false),
                unretrieved: Unretrieved::default(),
                first: OnceLock::new(),
                remote_schedules: metrics::Count::default(),
                unparks: metrics::Count::default(),
                helps: metrics::Count::default(),
                hand_offs: metrics::Count::default(),
                // Without the monitor there would be nobody to keep their promises.
                follow_ups: FollowUps::new(if config.monitor { workers } else { 0 }),
                clock,
                config,
            }
        })
    }

    fn set_first_seat(&self, seat: &Seat) {
        let first = (seat.wakeup.clone(), seat.timers.clone());
        debug_assert!(self.first.get().is_none(), "a runtime is started once");
        let _ = self.first.set(first);
    }

    /// Enters a thread that sits on no seat: its tasks go to the injector, its sockets and timers to the first seat.
    pub(crate) fn enter(self: &Arc<Self>, phase: Phase) -> Entered {
        let first = self.first.get();
        let selector = first.and_then(|(wakeup, _)| wakeup.selector.get().cloned());
        Entered {
            _timers: first.map(|(_, timers)| time::current::enter(timers.clone())),
            _selector: rt_io::context::enter(selector, false),
            _context: context::enter(Context::new(self.clone(), phase)),
        }
    }

    /// Enters a thread for a moment. What it does otherwise stays so: inside a task, blocking does not become right.
    pub(crate) fn enter_here(self: &Arc<Self>) -> Entered {
        self.enter(context::with(|cx| {
            cx.map_or(Phase::Entered, |cx| cx.phase.get())
        }))
    }

    /// Whether shutdown has begun.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Whether this is the current-thread flavour.
    #[inline]
    pub(crate) fn is_current_thread(&self) -> bool {
        self.workers == 0
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("workers", &self.workers)
            .field("idle", &self.idle)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A thread in a runtime, without a seat; dropping it leaves.
pub(crate) struct Entered {
    _context: context::Guard,
    _selector: rt_io::context::Guard,
    _timers: Option<time::current::Guard>,
}

/// What a pool's threads have to do with the runtime. Weak: the runtime owns its pools.
fn pool_config(
    mut pool: blocking::Config,
    kind: &'static str,
    shared: &Weak<Shared>,
    config: &Config,
    clock: &Clock,
) -> blocking::Config {
    let names = config.clone();
    pool.name = Arc::new(move || names.thread_name(kind));
    pool.stack_size = config.thread_stack_size;
    let (start, stop, weak) = (
        config.on_thread_start.clone(),
        config.on_thread_stop.clone(),
        shared.clone(),
    );
    pool.run = Arc::new(move |body| {
        let _entered = weak.upgrade().map(|shared| shared.enter(Phase::Entered));
        call(start.as_ref());
        // The thread does not keep the runtime alive.
        let inside = weak
            .upgrade()
            .filter(|_| kind == "blocking")
            .and_then(|shared| shared.debug.pool_thread());
        debug::stuck_pool::on_thread(inside, body);
        call(stop.as_ref());
    });
    let clock = clock.clone();
    pool.inhibit = Some(Arc::new(move || Box::new(clock.inhibit())));
    let weak = shared.clone();
    pool.later = Some(Arc::new(move |delay, again| {
        let Some(shared) = weak.upgrade() else { return };
        if shared.clock.is_paused() {
            // The closure that waits keeps virtual time from passing: ask at once, and fail if there is no thread yet.
            return again();
        }
        drop(shared.spawn(
            async move {
                time::sleep(delay).await;
                again();
            },
            Meta::here(),
        ));
    }));
    let weak = shared.clone();
    pool.panicked = Arc::new(move |report, handle_alive| {
        if let Some(shared) = weak.upgrade() {
            panics::task_panicked(&shared, report, handle_alive);
        }
    });
    let weak = shared.clone();
    pool.destructor_panicked = Arc::new(move |report| {
        if let Some(shared) = weak.upgrade() {
            panics::destructor_panicked(&shared, report);
        }
    });
    pool
}
