//! What a thread is to a runtime: entered, and perhaps sitting on a seat.
//!
//! `rt::spawn` and its like ask here for the runtime to use; a woken task asks whether it may go straight to the queue
//! of the seat that this thread sits on.
//!
//! # Who may touch what
//! The context belongs to its thread. [`with`] lends it for a moment in which no user code runs.
//!
//! The thread owns its context through `OWNER`; `CURRENT` is the same as a bare pointer, which needs no destructor and
//! so is read in one instruction. The rule for it: it is null, or points at what `OWNER` holds. Both change together,
//! in `replace`, and only while nothing is lent.
#![expect(unsafe_code, reason = "a woken task finds its worker through a bare pointer in thread-local storage")]

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use crate::scheduler::{Core, Seat, Shared};
use crate::task::Runnable;

/// A thread's relation to a runtime.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// `None` where the runtime is only entered, in blocking closures, and while the seat is lent.
    pub(crate) sitting: RefCell<Option<Sitting>>,
    pub(crate) phase: Cell<Phase>,
    /// While the seat is lent: sources of this thread register as those of a stranger.
    pub(crate) lent: RefCell<Option<rt_io::context::Guard>>,
}

/// The seat under a thread, and the state that comes with it.
pub(crate) struct Sitting {
    pub(crate) seat: Arc<Seat>,
    pub(crate) core: Box<Core>,
}

/// What the thread does, as far as a waking task needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The runtime is entered, but no task of it runs on this thread: blocking is allowed.
    Entered,
    /// Polls tasks, or the root future: who is woken runs next.
    Polling,
    /// Dispatches events or timers: who is woken goes to the back of the queue.
    Dispatching,
    /// Inside `block_in_place`, below a task: blocking is allowed.
    Blocking,
}

thread_local! {
    static CURRENT: Cell<*const Context> = const { Cell::new(ptr::null()) };
    static OWNER: RefCell<Owner> = const { RefCell::new(Owner(None)) };
}

/// Clears the bare pointer when the thread ends and its locals go.
struct Owner(Option<Rc<Context>>);

impl Drop for Owner {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
    }
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, phase: Phase) -> Rc<Self> {
        Rc::new(Self { shared, sitting: RefCell::new(None), phase: Cell::new(phase), lent: RefCell::new(None) })
    }
}

/// Lends the context of this thread, if it has one. `f` runs no user code, and neither enters nor leaves a runtime.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&Context>) -> R) -> R {
    // SAFETY: null, or what `OWNER` holds (module head); it does not change before `f` is over.
    f(unsafe { CURRENT.get().as_ref() })
}

/// Changes the context of this thread, and gives the one before.
fn replace(context: Option<Rc<Context>>) -> Option<Rc<Context>> {
    let before = OWNER.try_with(|owner| {
        CURRENT.set(context.as_ref().map_or(ptr::null(), Rc::as_ptr));
        std::mem::replace(&mut owner.borrow_mut().0, context)
    });
    // While the thread ends there is nothing to enter or to leave any more.
    before.ok().flatten()
}

/// The runtime of this thread, if it is in one.
pub(crate) fn current() -> Option<Arc<Shared>> {
    with(|cx| cx.map(|cx| cx.shared.clone()))
}

/// Where this thread spawns: the seat under it, or the runtime that it is in without one.
#[inline]
pub(crate) fn place() -> Option<Place> {
    with(|cx| {
        cx.map(|cx| match &*cx.sitting.borrow() {
            Some(sitting) => Place::Seat(sitting.seat.clone()),
            None => Place::Runtime(cx.shared.clone()),
        })
    })
}

/// See [`place`].
pub(crate) enum Place {
    Seat(Arc<Seat>),
    Runtime(Arc<Shared>),
}

/// Whether a task, or a root future, of any runtime is being polled on this thread, so that blocking it is a mistake.
pub(crate) fn is_polling() -> bool {
    with(|cx| cx.is_some_and(|cx| matches!(cx.phase.get(), Phase::Polling | Phase::Dispatching)))
}

/// Puts a context in place until the guard is dropped.
pub(crate) fn enter(context: Rc<Context>) -> Guard {
    Guard { before: replace(Some(context)) }
}

/// Restores the context that was there before. Guards that are dropped out of order leave the older one in place.
#[must_use = "the runtime is left at once when the guard is not kept"]
pub(crate) struct Guard {
    before: Option<Rc<Context>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Dropped after the change: a context may hold the last reference to its runtime.
        drop(replace(self.before.take()));
    }
}

impl Context {
    /// A task of this runtime was woken on this thread: takes it, unless the thread sits on no seat.
    #[inline]
    pub(crate) fn push_woken(&self, task: Runnable) -> Result<(), Runnable> {
        match &*self.sitting.borrow() {
            Some(sitting) => {
                sitting.push(task, self.phase.get());
                Ok(())
            }
            None => Err(task),
        }
    }

    /// A task that was woken in its own poll, which is over: it goes behind everything, and behind a select.
    #[inline]
    pub(crate) fn push_again(&self, task: Runnable) -> Result<(), Runnable> {
        match &*self.sitting.borrow() {
            Some(sitting) => {
                sitting.core.defer(task);
                Ok(())
            }
            None => Err(task),
        }
    }
}
