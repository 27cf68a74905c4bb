//! Lending a seat: a thread that is about to block gives its seat to a stand-in, which turns the loop meanwhile.
//!
//! Stand-ins are spare threads of the runtime, started when needed, kept for a while afterwards. They also serve guest
//! seats whose thread has left `block_on` while sockets or timers were registered with them; the next `block_on` asks for
//! such a seat back (`Seats::recall`), so that they do not grow in number. And they work while every worker is stuck
//! (`spare.rs`).
//!
//! # What happens to the seat
//! The core goes to the stand-in whole. The thread that lent it goes on without a seat: a task that it wakes goes to
//! the injector. When the poll in which it blocked is over, a worker asks for its seat ([`Seat::wanted`]) and waits
//! until the stand-in's present turn is over; a guest takes another seat, since its root future should not wait.
//!
//! # The race
//! Giving back against asking: the core lies in the seat behind a lock, so it is never in two places.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rt_io::thread::ThreadId;

use super::guest::leave_guest;
use super::shutdown;
use super::worker::{Exit, Loop, Root};
use super::{Core, Seat, Shared};
use crate::context::{self, Context, Phase, Sitting};
use crate::time;
use crate::unpoisoned::lock;

/// How long a spare thread waits for its next seat.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The spare threads of a runtime.
pub(crate) struct Spares {
    state: Mutex<State>,
    condvar: Condvar,
}

struct State {
    waiting: usize,
    jobs: VecDeque<Job>,
    closed: bool,
}

/// A seat that needs a stand-in.
pub(super) struct Job {
    pub(super) seat: Arc<Seat>,
    pub(super) core: Box<Core>,
}

impl Spares {
    pub(crate) fn new() -> Self {
        let state = State {
            waiting: 0,
            jobs: VecDeque::new(),
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            condvar: Condvar::new(),
        }
    }

    /// Finds a thread for the seat. `Err`: there is none, and the job comes back.
    pub(super) fn run(&self, job: Job) -> Result<(), Job> {
        let shared = job.seat.shared.clone();
        let mut state = lock(&self.state);
        if state.closed {
            return Err(job);
        }
        state.jobs.push_back(job);
        if state.waiting >= state.jobs.len() {
            drop(state);
            self.condvar.notify_one();
            return Ok(());
        }
        drop(state);
        let started = super::launch::start_thread(&shared, "spare", {
            let shared = shared.clone();
            move || shared.spares.serve()
        });
        match started {
            Ok(()) => Ok(()),
            // Another spare thread may have taken it meanwhile.
            Err(_) => match lock(&self.state).jobs.pop_back() {
                Some(job) => Err(job),
                None => Ok(()),
            },
        }
    }

    /// The life of a spare thread.
    fn serve(&self) {
        while let Some(job) = self.next_job() {
            stand_in(job);
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.waiting += 1;
            let (back, timeout) = self
                .condvar
                .wait_timeout(state, KEEP_ALIVE)
                .unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.waiting -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                return None;
            }
        }
    }

    /// No more seats are lent; waiting threads end.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.condvar.notify_all();
    }
}

/// What a stand-in does besides tasks: it notices when a guest seat needs it no more.
struct StandIn<'a> {
    seat: &'a Seat,
}

impl Root for StandIn<'_> {
    fn turn(&mut self, cx: &Context) -> bool {
        self.seat.is_guest()
            && !self.seat.works.load(Relaxed)
            && !self.seat.has_sources()
            && self.seat.next.is_empty()
            && cx
                .sitting
                .borrow()
                .as_ref()
                .is_some_and(|sitting| sitting.core.is_empty())
    }

    fn is_ready(&self) -> bool {
        false
    }
}

fn stand_in(job: Job) {
    let Job { seat, core } = job;
    let cx = Context::new(seat.shared.clone(), Phase::Polling);
    seat.sitter.store(ThreadId::current().as_raw(), Relaxed);
    cx.sitting.replace(Some(Sitting::new(seat.clone(), core)));
    let _context = context::enter(cx.clone());
    let _selector = rt_io::context::enter(seat.wakeup.selector.get().cloned(), true);
    let _timers = time::current::enter(seat.timers.clone());
    let exit = Loop::new(&cx, &seat, false).run(&mut StandIn { seat: &seat });
    if exit == Exit::Closed {
        shutdown::end_seat(&cx, &seat, false);
    }
    cx.lent.take();
    if exit != Exit::Lent {
        seat.works.store(false, Relaxed);
    }
    // Without a core the seat was lent once more, and is its stand-in's.
    let Some(sitting) = cx.sitting.take() else {
        return;
    };
    if seat.is_guest() {
        // As if it slept for ever: a timer that its guest puts in from now on calls for a sitter (`seat.rs`).
        seat.timers.before_park();
        leave_guest(&seat, sitting.core);
    } else {
        seat.rise(sitting.core);
    }
}

/// How a thread blocks.
enum Lent {
    /// There is no seat to lend: no task runs on this thread.
    Nothing,
    /// The seat is with a stand-in.
    Seat(Phase),
    /// No thread could be had for a stand-in; the seat waits with this thread.
    Kept(Phase),
    /// A task of the current-thread flavour, which has nobody to help.
    Refused,
}

/// Runs `f`, which may block, after the seat was lent.
///
/// # Errors
/// On the current-thread flavour, inside a task.
pub(crate) fn block_in_place<R>(f: impl FnOnce() -> R) -> Result<R, CurrentThread> {
    let lent = context::with(|cx| match cx {
        None => Lent::Nothing,
        Some(cx) => lend(cx),
    });
    let before = match lent {
        Lent::Refused => return Err(CurrentThread),
        Lent::Nothing => return Ok(f()),
        Lent::Seat(before) | Lent::Kept(before) => before,
    };
    let counted = context::with(|cx| cx?.shared.debug.in_place());
    let saved = rt_sync::coop::lift();
    let result = catch_unwind(AssertUnwindSafe(f));
    rt_sync::coop::restore(saved);
    drop(counted);
    context::with(|cx| {
        if let Some(cx) = cx {
            cx.phase.set(before);
        }
    });
    match result {
        Ok(result) => Ok(result),
        Err(payload) => resume_unwind(payload),
    }
}

/// A task of the current-thread flavour cannot block in place.
#[derive(Debug)]
pub(crate) struct CurrentThread;

fn lend(cx: &Context) -> Lent {
    let before = cx.phase.get();
    if !matches!(before, Phase::Polling | Phase::Dispatching) {
        return Lent::Nothing;
    }
    if cx.shared.is_current_thread() {
        return Lent::Refused;
    }
    cx.phase.set(Phase::Blocking);
    // A waker that blocks, called by the driver in the middle of a turn: the core cannot go now.
    if before == Phase::Dispatching {
        return Lent::Kept(before);
    }
    // Blocks for the second time in one poll: the seat is away already.
    let Some(Sitting {
        seat,
        core,
        outside,
    }) = cx.sitting.take()
    else {
        return Lent::Seat(before);
    };
    let seat = seat.into_arc();
    drop(outside);
    seat.note.forget();
    let mut root = None;
    if seat.is_guest() {
        cx.shared.seats.note_served(&seat);
        // Another guest may sit there before this one is back.
        root = seat.note.take_root();
    }
    match cx.shared.spares.run(Job {
        seat: seat.clone(),
        core,
    }) {
        Ok(()) => {
            let selector = seat.wakeup.selector.get().cloned();
            cx.lent
                .replace(Some(rt_io::context::enter(selector, false)));
            Lent::Seat(before)
        }
        Err(Job { seat, core }) => {
            cx.shared.seats.forget_served(&seat);
            if root.is_some() {
                seat.note.set_root(root);
            }
            share_all(&cx.shared, &seat, &core);
            cx.sitting.replace(Some(Sitting::new(seat, core)));
            Lent::Kept(before)
        }
    }
}

/// Gives the tasks of a seat that cannot be lent to whoever is awake.
fn share_all(shared: &Shared, seat: &Seat, core: &Core) {
    if let Some(task) = seat.next.take() {
        shared.injector.push(task);
    }
    while let Some(task) = core.queue.pop() {
        shared.injector.push(task);
    }
    shared.notify_injected();
}

/// A worker's thread takes its seat back, which it had lent.
pub(super) fn take_back(seat: &Seat) -> Box<Core> {
    seat.wanted.store(true, SeqCst);
    seat.wakeup.unpark();
    let core = seat.sit_when_free();
    seat.wanted.store(false, SeqCst);
    core
}
