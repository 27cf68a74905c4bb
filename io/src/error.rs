//! What went wrong with a runtime rather than with a descriptor, as `io::Error`.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// An operation had to wait, but the runtime that its source is registered with is closed.
///
/// Found inside the `io::Error` of the operation: see [`is_runtime_closed`].
///
/// # Examples
/// ```
/// let error = std::io::Error::other("something else");
/// assert!(!rt_io::error::is_runtime_closed(&error));
/// ```
#[derive(Debug, Clone)]
pub struct RuntimeClosed {
    runtime: Arc<str>,
}

impl RuntimeClosed {
    /// The name of the runtime.
    #[must_use]
    pub fn runtime(&self) -> &str {
        &self.runtime
    }
}

impl fmt::Display for RuntimeClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "runtime \"{}\" is closed, and with it the selector that this I/O source registers with; keep the runtime \
             alive for as long as its sockets are used, or make the source anew on another one",
            self.runtime
        )
    }
}

impl Error for RuntimeClosed {}

/// An operation had to wait on a thread without a runtime.
#[derive(Debug, Clone, Copy)]
pub struct NoRuntime(());

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no rt runtime on this thread: an I/O source registers with the runtime of the thread on which it first has \
             to wait; do this inside `Runtime::block_on` or a spawned task, or keep `let _guard = handle.enter();` \
             alive around it",
        )
    }
}

impl Error for NoRuntime {}

/// Whether an operation failed because its runtime is closed.
#[must_use]
pub fn is_runtime_closed(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<RuntimeClosed>())
}

/// Whether an operation failed because there was no runtime on its thread.
#[must_use]
pub fn is_no_runtime(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoRuntime>())
}

#[cold]
pub(crate) fn runtime_closed(runtime: Arc<str>) -> io::Error {
    io::Error::other(RuntimeClosed { runtime })
}

#[cold]
pub(crate) fn no_runtime() -> io::Error {
    io::Error::other(NoRuntime(()))
}

/// Keeps the kind of the selector's error: `PermissionDenied` is what it says of regular files.
#[cold]
pub(crate) fn register_failed(fd: RawFd, runtime: &str, error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (the selector refuses what is always ready, such as regular files: use blocking threads for these)"
        }
        io::ErrorKind::StorageFull => {
            " (the system's limit of watched descriptors, /proc/sys/fs/epoll/max_user_watches)"
        }
        io::ErrorKind::AlreadyExists => {
            " (this descriptor is already registered: wrap each descriptor once)"
        }
        _ => "",
    };
    io::Error::new(
        error.kind(),
        format!(
            "cannot register descriptor {fd} with the selector of runtime \"{runtime}\": {error}{hint}"
        ),
    )
}

#[cold]
pub(crate) fn too_many_sources() -> io::Error {
    io::Error::other("the selector of this thread has no room for another source")
}

/// An error of the system with the address that it is about; the kind stays.
#[cold]
pub(crate) fn with_addr(what: &str, addr: std::net::SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {addr}: {error}"))
}
