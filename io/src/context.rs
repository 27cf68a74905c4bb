//! What sources find on the thread that polls them: the driver to register with, and hooks of the runtime.
//!
//! The runtime calls [`enter`] on each of its threads and wherever a user enters it; sources ask when they first have
//! to wait. The hooks are for the few places where I/O needs what lies above this crate, a timer and a blocking pool.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::driver::{Handle, Source};
use crate::error;

/// A boxed future, as hooks return it.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// Sleeps for a time; `None` if this thread has no timer to do it with.
pub type SleepHook = fn(Duration) -> Option<BoxFuture<()>>;
/// Resolves a host name and a port.
pub type ResolveHook = fn(String, u16) -> BoxFuture<io::Result<Vec<SocketAddr>>>;

/// What this crate has to tell.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// `accept` waits for descriptors or memory: what is to be told.
    AcceptBackOff(&'a str),
    /// A source is registered with one runtime and waited for in another.
    OtherRuntime {
        /// The name of the runtime that the source is registered with.
        owner: &'a str,
        /// Where it had to wait for the first time, and so was registered.
        made: &'static Location<'static>,
        /// Where it waits now.
        site: &'static Location<'static>,
    },
}

/// Takes a notice; `false` if nobody is there for it.
pub type NoticeHook = fn(Notice<'_>) -> bool;

static NOTICE: OnceLock<NoticeHook> = OnceLock::new();
/// Whether sources tell of waits in another runtime.
static CHECKING: AtomicBool = AtomicBool::new(false);
static SLEEP: OnceLock<SleepHook> = OnceLock::new();
static RESOLVE: OnceLock<ResolveHook> = OnceLock::new();

struct Entered {
    /// Which guard ends it.
    number: u64,
    handle: Option<Arc<Handle>>,
    owner: bool,
}

thread_local! {
    /// The innermost last.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
}

/// Makes `handle` the driver that sources of this thread register with, until the guard is dropped.
///
/// `owner` says that this thread turns the driver itself; if not, the hook of
/// [`Handle::set_on_foreign`] tells the one who does of every registration. `None` means that there is no driver.
///
/// Guards nest. In whatever order they are dropped, the innermost driver that is left is current.
pub fn enter(handle: Option<Arc<Handle>>, owner: bool) -> Guard {
    let number = GUARDS.get();
    GUARDS.set(number + 1);
    // A thread that ends can enter nothing any more.
    let _ = ENTERED.try_with(|entered| {
        entered.borrow_mut().push(Entered {
            number,
            handle,
            owner,
        });
    });
    Guard {
        number,
        _not_send: PhantomData,
    }
}

/// Ends what [`enter`] began when it is dropped.
#[must_use = "the driver is left at once when the guard is not kept"]
pub struct Guard {
    number: u64,
    _not_send: PhantomData<*const ()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        // While the thread ends there may be nothing left to leave.
        let left = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let place = entered.iter().rposition(|one| one.number == self.number)?;
            Some(entered.remove(place))
        });
        // Dropped when the cell is free again: it may be the last reference.
        drop(left);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// The driver of this thread, and whether the thread owns it.
pub(crate) fn current() -> io::Result<(Arc<Handle>, bool)> {
    ENTERED
        .try_with(|entered| {
            let entered = entered.borrow();
            let current = entered.last()?;
            let handle = current.handle.as_ref()?;
            Some((Arc::clone(handle), current.owner))
        })
        .ok()
        .flatten()
        .ok_or_else(error::no_runtime)
}

/// Sets who hears what this crate has to tell; without it, standard error. Only the first call has an effect.
pub fn set_notice_hook(hook: NoticeHook) {
    let _ = NOTICE.set(hook);
}

/// Passes a notice on; `false` if nobody has taken it.
pub(crate) fn notice(notice: Notice<'_>) -> bool {
    NOTICE.get().is_some_and(|hook| hook(notice))
}

/// From now on sources tell when they wait in another runtime than the one that they are registered with.
pub fn check_runtimes() {
    CHECKING.store(true, Relaxed);
}

/// A source that is registered with `owner` waits on this thread.
#[inline]
pub(crate) fn waits(source: &Source, site: &'static Location<'static>) {
    if CHECKING.load(Relaxed) {
        waits_checked(source, site);
    }
}

#[cold]
fn waits_checked(source: &Source, site: &'static Location<'static>) {
    // On a thread without a runtime a foreign executor polls: the wakes reach it.
    if let Ok((here, _)) = current()
        && !here.is_of_same_runtime(&source.handle)
    {
        notice(Notice::OtherRuntime {
            owner: source.handle.name(),
            made: source.made,
            site,
        });
    }
}

/// Sets how this crate sleeps: needed by the back-off of `accept`. Only the first call has an effect.
pub fn set_sleep_hook(hook: SleepHook) {
    let _ = SLEEP.set(hook);
}

/// A sleep, if there is a hook, and a timer on this thread.
pub(crate) fn sleep(duration: Duration) -> Option<BoxFuture<()>> {
    SLEEP.get().and_then(|hook| hook(duration))
}

/// Sets how this crate resolves host names; without it each look-up takes a thread of its own. Only the first call has
/// an effect.
pub fn set_resolve_hook(hook: ResolveHook) {
    let _ = RESOLVE.set(hook);
}

/// The hook for look-ups, if there is one.
pub(crate) fn resolve_hook() -> Option<ResolveHook> {
    RESOLVE.get().copied()
}
