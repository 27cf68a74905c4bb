//! `JoinSet::build_task`: tasks with a name.

use std::future::Future;
use std::io;

use super::JoinSet;
use crate::runtime::Handle;
use crate::task::{self, AbortHandle, LocalSet};

/// Gives a task a name and spawns it on a [`JoinSet`]. Made by [`JoinSet::build_task`].
///
/// # Examples
/// ```
/// # #[rt::main]
/// # async fn main() -> std::io::Result<()> {
/// let mut set = rt::task::JoinSet::new();
/// set.build_task().name("greeter").spawn(async { "hello" })?;
/// assert_eq!(set.join_next().await.expect("one task").expect("no panic"), "hello");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a Builder does nothing until it spawns"]
pub struct Builder<'a, T> {
    set: &'a mut JoinSet<T>,
    builder: task::Builder<'a>,
}

impl<'a, T: 'static> Builder<'a, T> {
    pub(super) fn new(set: &'a mut JoinSet<T>) -> Self {
        Self {
            set,
            builder: task::Builder::new(),
        }
    }

    /// The task's name, for reports and dumps.
    pub fn name(self, name: &'a str) -> Self {
        Self {
            builder: self.builder.name(name),
            ..self
        }
    }

    /// Spawns the task on the current runtime.
    ///
    /// # Errors
    /// Those of [`task::Builder::spawn`].
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<AbortHandle>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let handle = self.builder.spawn(future)?;
        Ok(self.set.insert(handle))
    }

    /// Spawns the task on the runtime of `handle`.
    ///
    /// # Errors
    /// Those of [`task::Builder::spawn_on`].
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<AbortHandle>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let handle = self.builder.spawn_on(future, handle)?;
        Ok(self.set.insert(handle))
    }

    /// Runs a closure on the blocking pool of the current runtime.
    ///
    /// # Errors
    /// Those of [`task::Builder::spawn_blocking`].
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(self, f: F) -> io::Result<AbortHandle>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let handle = self.builder.spawn_blocking(f)?;
        Ok(self.set.insert(handle))
    }

    /// Runs a closure on the blocking pool of the runtime of `handle`.
    ///
    /// # Errors
    /// Those of [`task::Builder::spawn_blocking_on`].
    #[track_caller]
    pub fn spawn_blocking_on<F>(self, f: F, handle: &Handle) -> io::Result<AbortHandle>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let handle = self.builder.spawn_blocking_on(f, handle)?;
        Ok(self.set.insert(handle))
    }

    /// Spawns the task on the current [`LocalSet`], or worker.
    ///
    /// # Errors
    /// Those of [`task::Builder::spawn_local`].
    ///
    /// # Panics
    /// Where [`spawn_local`](crate::task::spawn_local) does.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<AbortHandle>
    where
        F: Future<Output = T> + 'static,
    {
        let handle = self.builder.spawn_local(future)?;
        Ok(self.set.insert(handle))
    }

    /// Spawns the task on `local_set`.
    ///
    /// # Errors
    /// Those of [`task::Builder::spawn_local_on`].
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, local_set: &LocalSet) -> io::Result<AbortHandle>
    where
        F: Future<Output = T> + 'static,
    {
        let handle = self.builder.spawn_local_on(future, local_set)?;
        Ok(self.set.insert(handle))
    }
}
