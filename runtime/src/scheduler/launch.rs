//! Starting: seats, worker threads, and what every thread of a runtime does first and last.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use rt_io::thread::ThreadId;

use super::lend::take_back;
use super::shutdown::{self, Latch};
use super::worker::{Exit, Loop, Root};
use super::{Seat, Shared};
use crate::context::{self, Context, Phase, Sitting};
use crate::runtime::config::call;
use crate::time;

/// Makes the seats and starts a thread for each worker. If one cannot be started, the others end again.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    for index in 0..shared.workers {
        shared
            .seats
            .add(|_| Seat::new(shared.clone(), index, Some(index)))?;
    }
    if shared.is_current_thread() {
        let seat = shared.add_guest_seat()?;
        shared.set_first_seat(&seat);
        let weak = Arc::downgrade(&seat);
        shared.clock.set_unpark(Box::new(move || {
            if let Some(seat) = weak.upgrade() {
                seat.wakeup.unpark();
            }
        }));
        shared.seats.put_free(seat);
        return Ok(());
    }
    if let Some(seat) = shared.seats.get(0) {
        shared.set_first_seat(&seat);
    }
    for seat in shared.seats.snapshot().iter() {
        let seat = seat.clone();
        start_thread(shared, "worker", move || work(&seat))?;
    }
    super::monitor::start(shared)
}

/// Starts a thread of the runtime, with its name, its stack and the user's hooks. Shutdown waits for its end.
pub(super) fn start_thread(
    shared: &Arc<Shared>,
    kind: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let config = &shared.config;
    let mut builder = thread::Builder::new().name(config.thread_name(kind));
    if let Some(size) = config.thread_stack_size {
        builder = builder.stack_size(size);
    }
    let ticket = Latch::enter(shared);
    let entered = shared.clone();
    builder
        .spawn(move || {
            let _ticket = ticket;
            // For the hooks.
            let _entered = entered.enter(Phase::Entered);
            call(entered.config.on_thread_start.as_ref());
            body();
            call(entered.config.on_thread_stop.as_ref());
        })
        .map(drop)
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "runtime '{}' cannot start a {kind} thread: {error}",
                    shared.name
                ),
            )
        })
}

/// A worker has no root future.
struct NoRoot;

impl Root for NoRoot {
    #[inline]
    fn turn(&mut self, _cx: &Context) -> bool {
        false
    }

    #[inline]
    fn is_ready(&self) -> bool {
        false
    }
}

/// The life of a worker thread.
fn work(seat: &Arc<Seat>) {
    let cx = Context::new(seat.shared.clone(), Phase::Polling);
    let _context = context::enter(cx.clone());
    let _selector = rt_io::context::enter(seat.wakeup.selector.get().cloned(), true);
    let _timers = time::current::enter(seat.timers.clone());
    let mut core = seat.sit_when_free();
    let this = ThreadId::current().as_raw();
    loop {
        seat.sitter.store(this, Relaxed);
        cx.sitting.replace(Some(Sitting::new(seat.clone(), core)));
        let exit = Loop::new(&cx, seat, true).run(&mut NoRoot);
        if exit == Exit::Lent {
            // The poll in which the seat was lent is over.
            core = take_back(seat);
            cx.lent.take();
            continue;
        }
        break;
    }
    shutdown::end_seat(&cx, seat, true);
    if let Some(sitting) = cx.sitting.take() {
        seat.rise(sitting.core);
    }
}
