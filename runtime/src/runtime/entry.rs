//! The functions at the root of the crate: they use the runtime of the thread.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::Location;

use super::handle::BOX_FROM;
use super::{BlockOnError, Handle};
use crate::context::{self, Place};
use crate::debug::{self, forgotten::Told};
use crate::scheduler::{Home, lend};
use crate::task::group::{Child, Entry, GroupOutput};
use crate::task::{JoinHandle, Meta};

/// Spawns a task on the runtime of this thread. It starts without being awaited.
///
/// A spawn inside a task goes to the own worker's next slot, from outside to the shared queue; idle workers steal.
///
/// # Panics
/// If the thread is in no runtime.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), rt::task::JoinError> {
/// let sum = rt::spawn(async { 1 + 1 }).await?;
/// assert_eq!(sum, 2);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[inline]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let meta = Meta::here();
    match context::place() {
        Some(place) if size_of::<F>() > BOX_FROM => spawn_at(place, Box::pin(future), meta),
        Some(place) => spawn_at(place, future, meta),
        None => no_runtime("rt::spawn"),
    }
}

/// [`spawn`]s a task that may fail, and whose failure somebody should hear of.
///
/// In [debug mode](super::Builder::debug) a task that ends with `Err` while nobody keeps its handle, or whose handle is
/// dropped before anybody took the error from it, is [reported](super::Report), with its name, where it was spawned, and
/// the error's `Display` text (the first 300 bytes). That is the one kind of report that shows a value of the program: an
/// error whose text must not get into a log is for [`spawn`]. Outside debug mode this is [`spawn`].
///
/// # Panics
/// If the thread is in no runtime.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() {
/// // Detached, and yet heard of.
/// drop(rt::task::spawn_result(async {
///     let text = std::fs::read_to_string("/no/such/file")?;
///     println!("{text}");
///     Ok::<(), std::io::Error>(())
/// }));
/// # }
/// ```
#[track_caller]
#[inline]
pub fn spawn_result<F, T, E>(future: F) -> JoinHandle<Result<T, E>>
where
    F: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: fmt::Display + Send + 'static,
{
    spawn(Told::new(future))
}

#[inline]
fn spawn_at<F>(place: Place, future: F, meta: Meta) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match place {
        Place::Seat(seat) => Home::new(seat).spawn(future, meta),
        Place::Runtime(shared) => shared.spawn(future, meta),
    }
}

/// As [`spawn`], into a group.
#[inline]
pub(crate) fn spawn_member<F, E>(
    place: Place,
    future: F,
    meta: Meta,
    entry: Entry<E>,
) -> MemberHandle<F, E>
where
    F: Future + Send + 'static,
    F::Output: GroupOutput<E>,
    <F::Output as GroupOutput<E>>::Value: Send + 'static,
    E: Send + 'static,
{
    if size_of::<F>() > BOX_FROM {
        let child = Child::new(Box::pin(future), &entry);
        spawn_member_at(place, child, meta, entry)
    } else {
        let child = Child::new(future, &entry);
        spawn_member_at(place, child, meta, entry)
    }
}

type MemberHandle<F, E> = JoinHandle<<<F as Future>::Output as GroupOutput<E>>::Value>;

#[inline]
fn spawn_member_at<F, E>(
    place: Place,
    child: F,
    meta: Meta,
    entry: Entry<E>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    E: Send + 'static,
{
    match place {
        Place::Seat(seat) => Home::new(seat).spawn_member(child, meta, entry),
        Place::Runtime(shared) => shared.spawn_member(child, meta, entry),
    }
}

/// Where this thread spawns.
///
/// # Panics
/// Outside a runtime.
#[inline]
#[track_caller]
pub(crate) fn place_or_panic(what: &str) -> Place {
    match context::place() {
        Some(place) => place,
        None => no_runtime(what),
    }
}

/// Runs a closure that blocks on a thread of its own; asyncio's `to_thread`.
///
/// Up to [`max_blocking_threads`](super::Builder::max_blocking_threads) closures run at once, more wait. A closure that
/// runs cannot be aborted. Closures that wait at the runtime's end are dropped, and their handles say so.
///
/// While workers sleep, the thread that has run the closure may also poll the task that awaited it, once, before its next
/// closure: a task that reads one file after the other so costs no wake-ups across threads. (Not on the current-thread
/// flavour, in debug mode, or without the [monitor](super::Builder::monitor).)
///
/// # Panics
/// If the thread is in no runtime. A thread limit of the operating system makes the handle fail, never the caller.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = rt::spawn_blocking(|| std::fs::read_to_string("Cargo.toml")).await??;
/// assert!(text.contains("[package]"));
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    match context::current() {
        Some(shared) => shared.blocking.spawn(f, Meta::here()),
        None => no_runtime("rt::spawn_blocking"),
    }
}

/// Runs a closure that computes, on a pool with as many threads as cores.
///
/// For work that would hold up a worker: hashing, compressing, parsing something large. What waits for a device belongs
/// to [`spawn_blocking`].
///
/// # Panics
/// If the thread is in no runtime.
#[track_caller]
pub fn spawn_compute<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    match context::current() {
        Some(shared) => shared.compute.spawn(f, Meta::here()),
        None => no_runtime("rt::spawn_compute"),
    }
}

/// Spawns a task whose future need not be `Send`: `make` is called on worker `worker`, and the future never leaves it.
///
/// While that worker blocks in [`block_in_place`] its pinned tasks wait with it. Inside such a task
/// [`spawn_local`](crate::task::spawn_local) spawns others on the same worker.
///
/// # Errors
/// If the runtime has no worker of that number (they count from 0), or is closed.
///
/// # Panics
/// If the thread is in no runtime.
///
/// # Examples
/// ```
/// # #[rt::main(worker_threads = 2)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::rc::Rc;
/// let handle = rt::spawn_pinned(1, || async {
///     let local = Rc::new(5);
///     rt::task::yield_now().await;
///     *local
/// })?;
/// assert_eq!(handle.await?, 5);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn spawn_pinned<M, F>(worker: usize, make: M) -> io::Result<JoinHandle<F::Output>>
where
    M: FnOnce() -> F + Send + 'static,
    F: Future + 'static,
    F::Output: Send + 'static,
{
    match context::current() {
        Some(shared) => shared.spawn_pinned(worker, make, Meta::here()),
        None => no_runtime("rt::spawn_pinned"),
    }
}

/// Runs a closure that blocks on this very thread, inside a task, after handing the worker's queue, sockets and timers
/// to another thread.
///
/// The other branches of the same task wait meanwhile, and so do tasks pinned to this worker. Outside a task it just
/// calls the closure.
///
/// # Panics
/// Inside a task of the current-thread flavour, where nobody could take over: use [`spawn_blocking`] there.
#[track_caller]
pub fn block_in_place<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    match lend::block_in_place(f) {
        Ok(result) => result,
        Err(lend::CurrentThread) => panic!(
            "block_in_place inside a task of a current-thread runtime, where no other thread could take over: use \
             rt::spawn_blocking, or the multi-thread flavour"
        ),
    }
}

/// Runs a future from sync code, also below a task: the supported way from a sync function back into async code.
///
/// On a worker it hands queue, sockets and timers to another thread first, as [`block_in_place`], and then turns a loop
/// of its own until the future is done. It costs a thread for that time, so it is for seldom calls: sync traits,
/// callbacks of libraries.
///
/// # Panics
/// If the thread is in no runtime; inside a task of the current-thread flavour; if the runtime closes meanwhile
/// ([`try_bridge`] gives an error instead).
#[track_caller]
pub fn bridge<F: Future>(future: F) -> F::Output {
    match try_bridge(future) {
        Ok(output) => output,
        Err(error) => panic!("{error}"),
    }
}

/// As [`bridge`], with an error if the runtime is closed or closes meanwhile.
///
/// # Errors
/// See [`Handle::try_block_on`].
///
/// # Panics
/// As [`bridge`], but for the runtime's end.
#[track_caller]
pub fn try_bridge<F: Future>(future: F) -> Result<F::Output, BlockOnError> {
    let Some(shared) = context::current() else {
        no_runtime("rt::bridge")
    };
    let handle = Handle { shared };
    let site = Location::caller();
    block_in_place(|| handle.block_on_at(site, future))
}

#[cold]
#[track_caller]
fn no_runtime(what: &str) -> ! {
    match Handle::try_current() {
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => unreachable!("called when there is no runtime"),
    }
}

/// What `rt-io` needs from above: timers for the back-off of `accept`, and the blocking pool to resolve names.
pub(super) fn set_hooks() {
    rt_io::context::set_notice_hook(debug::other::notice);
    rt_io::context::set_sleep_hook(|duration| {
        // A socket may be polled by any executor; a sleep is the matter of a runtime.
        Handle::try_current().ok()?;
        Some(Box::pin(crate::time::sleep(duration)))
    });
    rt_io::context::set_resolve_hook(|host, port| {
        Box::pin(async move {
            let resolve = move || {
                (host.as_str(), port)
                    .to_socket_addrs()
                    .map(Iterator::collect::<Vec<SocketAddr>>)
            };
            match Handle::try_current() {
                Ok(handle) => handle.spawn_blocking(resolve).await?,
                Err(error) => Err(io::Error::other(error)),
            }
        })
    });
}
