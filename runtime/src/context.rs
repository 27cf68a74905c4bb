//! What a thread is to a runtime: entered, and perhaps sitting on a seat.
//!
//! `rt::spawn` and its like ask here for the runtime to use; a woken task asks whether it may go straight to the queue
//! of the seat that this thread sits on.
//!
//! # Who may touch what
//! The context belongs to its thread. [`with`] lends it for a moment in which no user code runs.
//!
//! The thread owns its contexts through `ENTERED`, the innermost last; `CURRENT` is that one as a bare pointer, which
//! needs no destructor and so is read in one instruction. The rule for it: it is null, or points at the last of
//! `ENTERED`. Both change together, in `change`, and only while nothing is lent.
#![expect(
    unsafe_code,
    reason = "a woken task finds its worker through a bare pointer in thread-local storage"
)]

use std::cell::{Cell, OnceCell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use crate::blocking::follow_up::{self, Stage};
use crate::scheduler::departed::{Batch, Departed};
use crate::scheduler::{Core, Seat, SeatRef, Shared};
use crate::task::memory::Memory;
use crate::task::stock::Freed;
use crate::task::{Runnable, TaskRef};

/// A thread's relation to a runtime.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// `None` where the runtime is only entered, in blocking closures, and while the seat is lent.
    pub(crate) sitting: RefCell<Option<Sitting>>,
    pub(crate) phase: Cell<Phase>,
    /// While the seat is lent: sources of this thread register as those of a stranger.
    pub(crate) lent: RefCell<Option<rt_io::context::Guard>>,
    /// Of a thread of a pool.
    pub(crate) stage: Cell<Stage>,
}

/// The seat under a thread, and the state that comes with it.
pub(crate) struct Sitting {
    pub(crate) seat: SeatRef,
    pub(crate) core: Box<Core>,
    /// Made when the first task from outside ends here: a `block_on` sits down and rises without.
    pub(crate) outside: OnceCell<Box<FromOutside>>,
}

/// What tasks from outside have left to the thread on which they ended.
pub(crate) struct FromOutside {
    /// Those that ended of late.
    departed: Departed,
    /// Their memory, each piece with the reference to the seat that such a task has.
    freed: Freed<Arc<Seat>>,
}

impl Sitting {
    fn outside(&self) -> &FromOutside {
        self.outside.get_or_init(|| {
            Box::new(FromOutside {
                departed: Departed::default(),
                freed: Freed::new(self.seat.shared.memory.clone()),
            })
        })
    }
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
    static ENTERED: RefCell<Entered> = const { RefCell::new(Entered(Vec::new())) };
}

/// The contexts of a thread. Clears the bare pointer when the thread ends and its locals go.
struct Entered(Vec<Rc<Context>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
    }
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, phase: Phase) -> Rc<Self> {
        Rc::new(Self {
            shared,
            sitting: RefCell::new(None),
            phase: Cell::new(phase),
            lent: RefCell::new(None),
            stage: Cell::default(),
        })
    }
}

/// Lends the context of this thread, if it has one. `f` runs no user code, and neither enters nor leaves a runtime.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&Context>) -> R) -> R {
    // SAFETY: null, or the last of `ENTERED` (module head); it does not change before `f` is over.
    f(unsafe { CURRENT.get().as_ref() })
}

/// Changes the contexts of this thread.
fn change<R>(f: impl FnOnce(&mut Vec<Rc<Context>>) -> R) -> Option<R> {
    let done = ENTERED.try_with(|entered| {
        let entered = &mut entered.borrow_mut().0;
        let result = f(entered);
        CURRENT.set(entered.last().map_or(ptr::null(), Rc::as_ptr));
        result
    });
    // While the thread ends there is nothing to enter or to leave any more.
    done.ok()
}

/// The runtime of this thread, if it is in one.
pub(crate) fn current() -> Option<Arc<Shared>> {
    with(|cx| cx.map(|cx| cx.shared.clone()))
}

/// The context of this thread, for who keeps it.
pub(crate) fn innermost() -> Option<Rc<Context>> {
    ENTERED
        .try_with(|entered| entered.borrow().0.last().cloned())
        .ok()
        .flatten()
}

/// Where this thread spawns: the seat under it, or the runtime that it is in without one.
#[inline]
pub(crate) fn place() -> Option<Place> {
    with(|cx| {
        cx.map(|cx| match &*cx.sitting.borrow() {
            Some(sitting) => Place::Seat(sitting.seat.another()),
            None => Place::Runtime(cx.shared.clone()),
        })
    })
}

/// See [`place`].
pub(crate) enum Place {
    Seat(Arc<Seat>),
    Runtime(Arc<Shared>),
}

/// Whether this thread is in any runtime.
#[inline]
pub(crate) fn is_entered() -> bool {
    with(|cx| cx.is_some())
}

/// Whether a task, or a root future, of any runtime is being polled on this thread, so that blocking it is a mistake.
pub(crate) fn is_polling() -> bool {
    with(|cx| cx.is_some_and(|cx| matches!(cx.phase.get(), Phase::Polling | Phase::Dispatching)))
}

/// Whether this thread is inside a loop of this runtime, perhaps below `block_in_place`, so that the runtime cannot wait
/// for the thread.
pub(crate) fn is_inside(shared: &Arc<Shared>) -> bool {
    let inside =
        |cx: &Rc<Context>| Arc::ptr_eq(&cx.shared, shared) && cx.phase.get() != Phase::Entered;
    ENTERED
        .try_with(|entered| entered.borrow().0.iter().any(inside))
        .unwrap_or(false)
}

/// Puts a context in place until the guard is dropped.
#[inline]
pub(crate) fn enter(context: Rc<Context>) -> Guard {
    let address = Rc::as_ptr(&context);
    change(|entered| entered.push(context));
    Guard { address }
}

/// Takes its context away again. In whatever order guards are dropped, the innermost context that is left is current.
#[must_use = "the runtime is left at once when the guard is not kept"]
pub(crate) struct Guard {
    /// Tells the context; never read through.
    address: *const Context,
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        let left = change(|entered| {
            let place = entered
                .iter()
                .rposition(|context| Rc::as_ptr(context) == self.address)?;
            Some(entered.remove(place))
        });
        // Dropped after the change: a context may hold the last reference to its runtime.
        drop(left);
    }
}

/// A task that was spawned on this seat is gone: keeps its reference for the next one, or drops it.
#[inline]
pub(crate) fn leave(seat: Arc<Seat>) {
    // Dropped after the context is given back: it may be the last reference of its runtime.
    let left = with(|cx| match cx {
        Some(cx) => match &*cx.sitting.borrow() {
            Some(sitting) => sitting.seat.keep(seat),
            None => Some(seat),
        },
        None => Some(seat),
    });
    drop(left);
}

/// A task that was spawned on `seat` from outside has come to its end. `true`: it counts as gone, and the caller
/// [`depart`]s from it.
#[inline]
pub(crate) fn departs(seat: &Arc<Seat>) -> bool {
    with(|cx| {
        let Some(cx) = cx else { return false };
        match &*cx.sitting.borrow() {
            Some(sitting) if Arc::ptr_eq(&seat.shared, &sitting.seat.shared) => {
                // Whoever sees that it is gone sees that it came.
                sitting.seat.counters.departed.publish(1);
                true
            }
            _ => false,
        }
    })
}

/// A task that was spawned on `seat` from outside is over. It lies in the list there, whose reference is the caller's.
pub(crate) fn depart(seat: &Arc<Seat>, task: TaskRef, refs: usize) {
    let mut task = Some(task);
    let full = with(|cx| match &*cx?.sitting.borrow() {
        Some(sitting) if Arc::ptr_eq(&seat.shared, &sitting.seat.shared) => {
            sitting.outside().departed.put(seat, task.take()?, refs)
        }
        _ => None,
    });
    // The seat is gone since: a callback has lent it.
    if let Some(task) = task {
        seat.live.remove_departed([&task].into_iter());
        task.drop_many(refs);
    }
    if let Some(full) = full {
        // From here on `seat`, which the task has lent, may be gone.
        keep_batch(full.part());
    }
}

/// Takes the tasks that have departed out of their list, and gives away what memory was freed: for a thread that is about to
/// sleep.
pub(crate) fn clean_up() {
    let Some(batch) = with_outside(|outside| outside.departed.take()) else {
        return;
    };
    if let Some(batch) = batch {
        keep_batch(batch.part());
    }
    // As in `leave`: what is left is dropped afterwards.
    let left = with_outside(|outside| outside.freed.flush());
    drop(left);
}

fn keep_batch(batch: Batch) {
    let mut batch = Some(batch);
    let left = with_outside(|outside| outside.departed.put_back(batch.take()?));
    drop((batch, left));
}

/// Shows what tasks from outside have left to this thread, if any has.
fn with_outside<R>(f: impl FnOnce(&FromOutside) -> R) -> Option<R> {
    with(|cx| Some(f(cx?.sitting.borrow().as_ref()?.outside.get()?)))
}

/// A task that was spawned from outside is gone: keeps its memory, and its reference with it, for the next one.
pub(crate) fn recycle(seat: Arc<Seat>, memory: Memory) {
    let (mut own, mut left) = (Some((memory, seat)), None);
    // As in `leave`: what is left is dropped afterwards.
    with(|cx| {
        if let Some(cx) = cx
            && let Some(sitting) = &*cx.sitting.borrow()
            && let Some((memory, seat)) =
                own.take_if(|(_, seat)| Arc::ptr_eq(&seat.shared, &sitting.seat.shared))
        {
            left = sitting.outside().freed.put(memory, seat);
        }
    });
    drop(own);
    drop(left);
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
            None => follow_up::catch(self, task),
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
