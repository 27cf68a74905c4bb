//! Shutdown: in which order a runtime ends.
//!
//! 1. Refuse new work: `closed` is set, and each live list closes.
//! 2. Cancel every task and drop its future on its own worker, while context, selector and timers still live, under no
//!    lock of ours. A task that is being polled at this moment is cancelled when that poll ends.
//! 3. Wait for the threads that turn loops, guests among them, up to the grace. A thread that stays in one poll gets no say any more over
//!    the other tasks of its seat: they are dropped on its behalf.
//! 4. Wait for running blocking closures, up to the grace; then say which still run, and leave them.
//! 5. Close timers and selectors: whoever still uses a socket of this runtime gets an error that names it.
//! 6. Let go of the seats, and of the memory of tasks, each piece of which has a reference to one, so that runtime and
//!    seats do not keep each other alive.
//!
//! Nothing here panics. In async context a helper thread does all of it, since waiting there would stall the runtime
//! that is being polled.
//!
//! # The race
//! A spawn or a wake against the closing: see `live.rs`. A `Runnable` that is queued after its queue was emptied belongs
//! to a task that is over, and is dropped with the queue.
//!
//! A `Runnable` in a queue against who ends its task: see `task/steps.rs`. Without the fence it is left to whoever drops the
//! queue: the seat's own thread, or step 3.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_deque::Steal;
use rt_sync::primitive::atomic::fence;
use rt_sync::wake_batch::discard;

use super::{Seat, Shared};
use crate::context::{self, Context, Phase};
use crate::debug;
use crate::task::{Runnable, TaskRef};
use crate::trace;
use crate::unpoisoned::lock;

/// How long a worker may take to come out of a poll before its other tasks are dropped on its behalf: what it waits for
/// may be one of their destructors (pains B4).
const HELP_AFTER: Duration = Duration::from_millis(50);

/// Counts the threads that turn loops, and waits for their end.
#[derive(Default)]
pub(crate) struct Latch {
    threads: Mutex<usize>,
    condvar: Condvar,
}

/// One thread's share in the latch.
pub(crate) struct Ticket(Arc<Shared>);

impl Latch {
    /// Before the thread is started.
    pub(super) fn enter(shared: &Arc<Shared>) -> Ticket {
        *lock(&shared.threads.threads) += 1;
        Ticket(shared.clone())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        *lock(&self.threads)
    }

    /// Waits until all are gone. `false`: the deadline passed.
    fn wait(&self, deadline: Instant) -> bool {
        let mut threads = lock(&self.threads);
        while *threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            threads = self
                .condvar
                .wait_timeout(threads, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let latch = &self.0.threads;
        *lock(&latch.threads) -= 1;
        latch.condvar.notify_all();
    }
}

/// Shuts down, and waits up to `grace` for what does not end at once. Later calls do nothing.
pub(crate) fn shut_down(shared: &Arc<Shared>, grace: Duration) {
    if context::is_polling() || context::is_inside(shared) {
        shut_down_elsewhere(shared, grace);
    } else if begin(shared) {
        finish(shared, grace);
    }
}

/// Shuts down on a thread of its own.
pub(crate) fn shut_down_elsewhere(shared: &Arc<Shared>, grace: Duration) {
    if !begin(shared) {
        return;
    }
    let reaped = shared.clone();
    let reaper = thread::Builder::new().name(shared.config.thread_name("reaper"));
    if reaper.spawn(move || finish(&reaped, grace)).is_err() {
        // No thread to be had: do what needs no waiting.
        finish(shared, Duration::ZERO);
    }
}

/// Step 1. `true` for the first caller.
fn begin(shared: &Arc<Shared>) -> bool {
    if shared.closed.swap(true, SeqCst) {
        return false;
    }
    // Pairs with the fence in `idle.rs`: a sitter that goes to sleep sees `closed`, or is unparked.
    fence(SeqCst);
    shared.spares.close();
    // Refuses new closures, tells who waits for a slot, and drops those that wait; their destructors find the runtime.
    let entered = shared.enter_here();
    // A waker may panic; the panic hook has told of it.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| shared.admission.close())) {
        discard(payload);
    }
    shared.blocking.close();
    shared.compute.close();
    drop(entered);
    for seat in shared.seats.snapshot().iter() {
        seat.wakeup.unpark();
    }
    shared.monitor.bed.close();
    true
}

/// Steps 2 to 6.
fn finish(shared: &Arc<Shared>, grace: Duration) {
    let deadline = Instant::now()
        .checked_add(grace)
        .unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
    // Destructors that ask for the runtime find it.
    let guard = shared.enter(Phase::Entered);
    while let Some(seat) = shared.seats.take_free() {
        // Guest seats on which nobody sits.
        close_tasks(&seat);
        if let Some(core) = seat.sit() {
            drain(&seat, &core);
            seat.rise(core);
        }
    }
    let mut all_gone = wait_for_sitters(shared, deadline.min(Instant::now() + HELP_AFTER));
    if !all_gone {
        for seat in shared.seats.snapshot().iter() {
            end_tasks(seat);
        }
        drain_injector(shared);
        all_gone = wait_for_sitters(shared, deadline);
    }
    shared.seats.close();
    for seat in shared.seats.snapshot().iter() {
        // Again for all: a seat whose thread does not come back, or of a guest in a long poll.
        end_tasks(seat);
    }
    drain_injector(shared);
    let left = deadline.saturating_duration_since(Instant::now());
    let mut running = shared.blocking.shutdown(left);
    running.extend(
        shared
            .compute
            .shutdown(deadline.saturating_duration_since(Instant::now())),
    );
    if !running.is_empty() || !all_gone {
        report_left(shared, grace, &running, all_gone);
    }
    for seat in shared.seats.snapshot().iter() {
        close_sources(seat);
    }
    shared.unretrieved.report_all(shared);
    debug::close(shared, deadline);
    trace::close();
    #[cfg(all(unix, feature = "inspect"))]
    crate::inspect::unregister(shared);
    shared.memory.close();
    shared.seats.clear();
    drop(guard);
}

/// Step 3: threads of the runtime, and guests.
fn wait_for_sitters(shared: &Shared, deadline: Instant) -> bool {
    shared.threads.wait(deadline)
        && shared
            .seats
            .snapshot()
            .iter()
            .filter(|seat| seat.is_guest())
            .all(|seat| seat.wait_free(deadline))
}

fn report_left(
    shared: &Shared,
    grace: Duration,
    running: &[crate::blocking::Running],
    all_gone: bool,
) {
    if !all_gone {
        shared.debug.left_behind(
            None,
            format!(
                "closed after {grace:?} while a task still held a worker; its thread is left behind"
            ),
        );
    }
    for closure in running {
        shared.debug.left_behind(
            Some(closure.site),
            format!(
                "closed after {grace:?} while a {} still ran: {closure}",
                closure.kind
            ),
        );
    }
}

/// Step 5 for one seat.
fn close_sources(seat: &Seat) {
    seat.timers.close();
    let Some(selector) = seat.wakeup.selector.get() else {
        return;
    };
    // A foreign waker may panic; the panic hook has told of it.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| selector.close())) {
        discard(payload);
    }
}

/// Step 2 for the tasks of one seat that are not pinned to its thread.
fn close_tasks(seat: &Seat) {
    TaskRef::shut_down_all(seat.live.close());
}

/// Step 2 for a seat whose thread may not come back soon. What lies in its queues are shells, unless the kernel has refused
/// the fence without which they are not known to lie there ([`TaskRef::shut_down_all`]): then they end here, all but those
/// that gave way in the turn that is not over.
fn end_tasks(seat: &Seat) {
    close_tasks(seat);
    drop(seat.next.rescue());
    while let Some(task) = steal(|| seat.stealer.steal()) {
        drop(task);
    }
}

/// Step 2, on the thread that sits on the seat. `own`: it is the seat's own thread, where pinned tasks live.
pub(super) fn end_seat(cx: &Context, seat: &Seat, own: bool) {
    close_tasks(seat);
    if own {
        TaskRef::shut_down_own(seat.inbox.live.close());
        drop(seat.inbox.close());
    }
    // What is in the queues are shells, but dropping them is not free of user code: no borrow is held.
    loop {
        let task = cx
            .sitting
            .borrow()
            .as_ref()
            .and_then(|sitting| pop_any(seat, &sitting.core));
        match task {
            Some(task) => drop(task),
            None => break,
        }
    }
    drain_injector(&seat.shared);
}

fn drain(seat: &Seat, core: &super::Core) {
    while let Some(task) = pop_any(seat, core) {
        drop(task);
    }
}

fn pop_any(seat: &Seat, core: &super::Core) -> Option<Runnable> {
    core.found
        .take()
        .or_else(|| seat.next.take())
        .or_else(|| core.queue.pop())
        .or_else(|| core.deferred.borrow_mut().pop())
}

/// A guest leaves a runtime that has closed: as `finish` does for the seats that it knows of.
pub(super) fn end_left(seat: &Seat) {
    // Destructors that ask for the runtime find it.
    let _guard = seat.shared.enter(Phase::Entered);
    close_tasks(seat);
    close_sources(seat);
    drain_injector(&seat.shared);
}

/// Tasks in the injector belong to live lists that are closed by now, or will be: this thread may end them.
pub(super) fn drain_injector(shared: &Shared) {
    while let Some(task) = steal(|| shared.injector.steal()) {
        drop(task);
    }
}

/// As often as somebody else gets in between: nobody adds anything for long.
fn steal(mut once: impl FnMut() -> Steal<Runnable>) -> Option<Runnable> {
    loop {
        match once() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => {}
        }
    }
}
