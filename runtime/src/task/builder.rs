//! `task::Builder`: gives a task a name before it is spawned.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use super::local::spawn_local_meta;
use super::{JoinHandle, LocalSet, Meta};
use crate::blocking::BlockingPriority;
use crate::debug::forgotten::Told;
use crate::runtime::Handle;

/// Gives a task a name, which reports and dumps show, and spawns it.
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> std::io::Result<()> {
/// let task = rt::task::Builder::new().name("adder").spawn(async { 1 + 1 })?;
/// assert_eq!(task.name(), Some("adder"));
/// assert_eq!(task.await?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "a Builder does nothing until it spawns"]
pub struct Builder<'a> {
    name: Option<&'a str>,
    priority: BlockingPriority,
}

impl<'a> Builder<'a> {
    /// A builder without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// The task's name. It need not be unique.
    pub fn name(self, name: &'a str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    /// Which closures a blocking one overtakes while it waits for a thread. Tasks have no priority: they ignore it.
    pub fn blocking_priority(self, priority: BlockingPriority) -> Self {
        Self { priority, ..self }
    }

    #[track_caller]
    fn meta(&self) -> Meta {
        Meta {
            name: self.name.map(Arc::from),
            ..Meta::here()
        }
    }

    /// Spawns a task on the current runtime, as [`rt::spawn`](crate::spawn) does.
    ///
    /// # Errors
    /// None today.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_on(future, &Handle::current())
    }

    /// Spawns a task on the runtime of `handle`.
    ///
    /// # Errors
    /// None today.
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Ok(handle.spawn_meta(future, self.meta()))
    }

    /// Spawns a task that may fail on the current runtime, as [`spawn_result`](super::spawn_result) does.
    ///
    /// # Errors
    /// None today.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_result<F, T, E>(self, future: F) -> io::Result<JoinHandle<Result<T, E>>>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        self.spawn(Told::new(future))
    }

    /// Spawns a task on the current [`LocalSet`], or worker, as [`spawn_local`](super::spawn_local) does.
    ///
    /// # Errors
    /// None today.
    ///
    /// # Panics
    /// Where [`spawn_local`](super::spawn_local) does.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        Ok(spawn_local_meta(future, self.meta()))
    }

    /// Spawns a task on `local_set`.
    ///
    /// # Errors
    /// None today.
    #[track_caller]
    pub fn spawn_local_on<F>(
        self,
        future: F,
        local_set: &LocalSet,
    ) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        Ok(local_set.spawn_meta(future, self.meta()))
    }

    /// Runs a closure on the blocking pool of the current runtime.
    ///
    /// # Errors
    /// None today: a closure that gets no thread makes its handle fail.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, f: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_blocking_on(f, &Handle::current())
    }

    /// Runs a closure on the blocking pool of the runtime of `handle`.
    ///
    /// # Errors
    /// None today: a closure that gets no thread makes its handle fail.
    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, f: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Ok(handle.spawn_blocking_as(f, self.meta(), self.priority))
    }
}
