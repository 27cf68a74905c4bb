//! `block_on`: a thread takes a guest seat and turns its loop for a root future.
//!
//! The root future never leaves this thread, so it need not be `Send`. Tasks that it spawns go to this seat's queue,
//! from which the workers steal. On the current-thread flavour guests do everything.
//!
//! # When the thread leaves
//! What lies in its queue goes to the injector. The seat goes back to the free seats, the next `block_on` takes the last
//! one first. If sockets or timers are still registered with it, the monitor gives it a stand-in after a moment; on the
//! current-thread flavour another thread that is in `block_on` looks after it, or it waits for the next one, as
//! everything there.

use std::future::Future;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context as TaskContext, Poll, Waker};

use rt_sync::{coop, wait};

use super::pinned::Hidden;
use super::shutdown;
use super::worker::{Exit, Loop, Root};
use super::{Seat, Shared};
use crate::context::{self, Context, Phase, Sitting};
use crate::debug;
use crate::task::local::HeldUp;
use crate::time;
use crate::trace;

/// Why `block_on` cannot begin.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A task is being polled on this thread.
    Nested,
    /// The runtime is closed.
    Closed,
    /// No selector could be made for the seat.
    Seat(std::io::Error),
}

impl Shared {
    /// Runs `future` on this thread until it is done. `site`: who waits for it.
    pub(crate) fn block_on<F: Future>(
        self: &Arc<Self>,
        site: &'static Location<'static>,
        future: F,
    ) -> Result<F::Output, Refused> {
        let _inside = debug::stuck_pool::enter();
        let _outsider = self.debug.in_block_on();
        if context::is_polling() {
            return Err(Refused::Nested);
        }
        let _hidden = Hidden::new();
        let _held_up = HeldUp::new();
        let mut root = RootFuture {
            future: pin!(Some(future)),
            seat: None,
            waker: Waker::noop().clone(),
            output: None,
            site,
        };
        loop {
            if self.is_closed() {
                return Err(Refused::Closed);
            }
            let seat = self.guest_seat().map_err(Refused::Seat)?;
            let Some(core) = seat.sit() else {
                unreachable!("a free seat has its core");
            };
            seat.works.store(false, Relaxed);
            seat.sitter.store(0, Relaxed);
            root.sit(&seat);
            let cx = Context::new(self.clone(), Phase::Polling);
            cx.sitting.replace(Some(Sitting::new(seat.clone(), core)));
            let leave = Leave {
                cx: cx.clone(),
                seat: seat.clone(),
            };
            let exit = {
                let _context = context::enter(cx.clone());
                let _selector = rt_io::context::enter(seat.wakeup.selector.get().cloned(), true);
                let _timers = time::current::enter(seat.timers.clone());
                let mut root = DropInside {
                    root: &mut root,
                    goes_on: false,
                };
                let exit = Loop::new(&cx, &seat, true).run(root.root);
                root.goes_on = matches!(exit, Exit::Lent | Exit::Wanted);
                drop(root);
                if exit == Exit::Closed {
                    shutdown::end_seat(&cx, &seat, true);
                }
                cx.lent.take();
                exit
            };
            drop(leave);
            match exit {
                Exit::Done => match root.output {
                    Some(output) => return Ok(output),
                    None => unreachable!("the loop is done when there is an output"),
                },
                Exit::Closed => return Err(Refused::Closed),
                Exit::Lent | Exit::Wanted => {}
            }
        }
    }

    fn guest_seat(self: &Arc<Self>) -> std::io::Result<Arc<Seat>> {
        match self.seats.take_free().or_else(|| self.seats.recall()) {
            Some(seat) => Ok(seat),
            None => self.add_guest_seat(),
        }
    }

    /// Makes one more guest seat.
    pub(crate) fn add_guest_seat(self: &Arc<Self>) -> std::io::Result<Arc<Seat>> {
        self.seats.add(|index| {
            // On the current-thread flavour guests are the workers, as far as there is room in the accounting.
            let idle_index =
                (self.is_current_thread() && index < self.idle.capacity()).then_some(index);
            Seat::new(self.clone(), index, idle_index)
        })
    }
}

struct RootFuture<'a, F: Future> {
    /// `None` once it was dropped.
    future: Pin<&'a mut Option<F>>,
    seat: Option<Arc<Seat>>,
    waker: Waker,
    output: Option<F::Output>,
    /// Where `block_on` was called.
    site: &'static Location<'static>,
}

impl<F: Future> RootFuture<'_, F> {
    /// From now on the future is woken through this seat; it is polled once for that.
    fn sit(&mut self, seat: &Arc<Seat>) {
        seat.root.set();
        self.waker = Waker::from(seat.root.clone());
        self.seat = Some(seat.clone());
        if seat.shared.debug.notes_polls() {
            seat.note.set_root(Some(self.site));
        }
    }
}

impl<F: Future> Root for RootFuture<'_, F> {
    #[inline]
    fn turn(&mut self, cx: &Context) -> bool {
        let Some(seat) = self.seat.as_ref().filter(|seat| seat.root.take()) else {
            return false;
        };
        let _noted = cx
            .shared
            .debug
            .notes_polls()
            .then(|| debug::polls::root(seat, self.site));
        let _traced = trace::root(self.site);
        let _budget = Budget(coop::start());
        let mut cx = TaskContext::from_waker(&self.waker);
        let Some(future) = self.future.as_mut().as_pin_mut() else {
            unreachable!("the loop ends with the root future");
        };
        match future.poll(&mut cx) {
            Poll::Ready(output) => {
                wait::forget();
                self.output = Some(output);
                true
            }
            Poll::Pending => {
                seat.note.root_wait.store(wait::take());
                false
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.root.is_set())
    }
}

/// Whether `waker` is that of the root future which this thread polls, and the runtime has closed: then `block_on` ends after
/// this poll.
pub(crate) fn ends_with_poll(waker: &Waker) -> bool {
    let is_root = |sitting: &Sitting| {
        let root = Arc::as_ptr(&sitting.seat.root);
        ptr::eq(waker.data(), root.cast())
    };
    context::with(|cx| {
        cx.is_some_and(|cx| {
            cx.shared.is_closed() && cx.sitting.borrow().as_ref().is_some_and(is_root)
        })
    })
}

/// Drops the root future while the thread is still in the runtime, for the sake of its destructors: when it is done,
/// when the runtime closes, and when it unwinds.
struct DropInside<'a, 'b, F: Future> {
    root: &'a mut RootFuture<'b, F>,
    goes_on: bool,
}

impl<F: Future> Drop for DropInside<'_, '_, F> {
    #[inline]
    fn drop(&mut self) {
        if !self.goes_on {
            self.root.future.set(None);
        }
    }
}

/// Restores the budget also when the poll unwinds.
struct Budget(coop::Saved);

impl Drop for Budget {
    fn drop(&mut self) {
        coop::restore(self.0);
    }
}

/// Leaves a guest seat, also when the root future unwinds.
struct Leave {
    cx: Rc<Context>,
    seat: Arc<Seat>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        // Lent: a stand-in has the core, and frees the seat when it is done. Perhaps another guest sits there by now.
        let Some(sitting) = self.cx.sitting.take() else {
            return;
        };
        if self.seat.shared.debug.notes_polls() {
            self.seat.note.set_root(None);
        }
        leave_guest(&self.seat, sitting.core);
    }
}

/// Empties a guest seat that nobody sits on any more, and frees it.
pub(super) fn leave_guest(seat: &Arc<Seat>, core: Box<super::Core>) {
    let shared = &seat.shared;
    let mut left = false;
    let mut inject = |task| {
        shared.injector.push(task);
        left = true;
    };
    core.found
        .take()
        .into_iter()
        .chain(seat.next.take())
        .for_each(&mut inject);
    while let Some(task) = core.queue.pop() {
        inject(task);
    }
    core.deferred.borrow_mut().drain(..).for_each(&mut inject);
    core.since_select.set(0);
    seat.rise(core);
    shared.seats.put_free(seat.clone());
    if left {
        shared.notify_injected();
    }
    if shared.is_closed() {
        shutdown::end_left(seat);
    }
    if shared.is_current_thread() {
        // Another guest has to look after what is left (`Loop::before_abandoned`).
        if shared.seats.len() > 1 && shared.seats.any_free(Seat::has_sources) {
            shared.notify_injected();
        }
    } else if seat.has_sources() {
        shared.monitor.bed.call_for_guests();
    }
}
