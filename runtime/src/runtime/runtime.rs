//! The owner of a runtime.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::handle::BOX_FROM;
use super::{Builder, EnterGuard, Handle, RuntimeMetrics};
use crate::dump::Dump;
use crate::scheduler::{Shared, shutdown};
use crate::task::{JoinHandle, Meta};

/// A runtime. Dropping it ends it.
///
/// # Shutdown
/// Dropping refuses new work, cancels every task, drops the futures on their workers, and waits for the threads. It
/// waits for blocking closures that still run up to a grace
/// ([`Builder::shutdown_grace`], 2 s); after that they are named on standard error and left behind. It never panics:
/// in async code, where it must not wait, a helper thread does the work. Handles of tasks that did not end give an error
/// for which [`is_runtime_closed`](crate::task::JoinError::is_runtime_closed) holds; sockets of the runtime give errors
/// that name it.
pub struct Runtime {
    handle: Handle,
}

impl Runtime {
    /// A multi-thread runtime with as many workers as cores.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().build()
    }

    pub(super) fn from_shared(shared: Arc<Shared>) -> Self {
        Self {
            handle: Handle { shared },
        }
    }

    /// A handle, by which the runtime is reached from anywhere.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Spawns a task: see [`rt::spawn`](crate::spawn).
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Not by way of `Handle::spawn`: each function has the future on the stack once more in a debug build.
        self.handle.spawn_meta(future, Meta::here())
    }

    /// Runs a closure that blocks: see [`rt::spawn_blocking`](crate::spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    /// Runs `future` on this thread, which turns a loop of the runtime meanwhile, and returns its output.
    ///
    /// The future need not be `Send`. Tasks that it spawns start on this thread; idle workers steal them.
    ///
    /// # Panics
    /// Inside a task or a root future of any runtime, where blocking would stall it; the text says what to do. If the
    /// runtime shuts down meanwhile (policy [`ShutdownRuntime`](super::UnhandledPanic::ShutdownRuntime)).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        if size_of::<F>() > BOX_FROM {
            self.handle.block_on(Box::pin(future))
        } else {
            self.handle.block_on(future)
        }
    }

    /// Makes this the runtime of the thread until the guard is dropped: see [`Handle::enter`].
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Ends the runtime, and waits up to `timeout` for what does not end at once, blocking closures above all.
    ///
    /// In async code it does not wait.
    pub fn shutdown_timeout(self, timeout: Duration) {
        shutdown::shut_down(&self.handle.shared, timeout);
    }

    /// Ends the runtime without waiting: a helper thread does the work.
    pub fn shutdown_background(self) {
        shutdown::shut_down_elsewhere(
            &self.handle.shared,
            self.handle.shared.config.shutdown_grace,
        );
    }

    /// Every task of the runtime and what it waits for, and what its workers do: see [`rt::dump`](crate::dump()).
    #[must_use]
    pub fn dump(&self) -> Dump {
        self.handle.dump()
    }

    /// What the runtime has counted so far.
    #[must_use]
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        shutdown::shut_down(
            &self.handle.shared,
            self.handle.shared.config.shutdown_grace,
        );
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.shared.fmt(f)
    }
}
