//! `TaskGroup::build_task`: children with a name.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::error::SpawnError;
use super::{GroupOutput, TaskGroup};
use crate::task::{JoinHandle, Meta};

/// Gives a child a name and spawns it. Made by [`TaskGroup::build_task`].
///
/// # Examples
/// ```
/// use rt::task::TaskGroup;
///
/// # #[rt::main]
/// # async fn main() {
/// let failed = TaskGroup::<String>::scope(async |group| {
///     group.build_task().name("reader").spawn(async { Err::<(), _>("no such file".to_owned()) });
/// })
/// .await
/// .expect_err("a child fails");
/// assert_eq!(failed.first().name(), Some("reader"));
/// # }
/// ```
#[must_use = "a Builder does nothing until it spawns"]
pub struct Builder<'a, E> {
    group: &'a TaskGroup<E>,
    name: Option<&'a str>,
}

impl<'a, E: Send + 'static> Builder<'a, E> {
    pub(super) fn new(group: &'a TaskGroup<E>) -> Self {
        Self { group, name: None }
    }

    /// The child's name, for errors, reports and dumps. It need not be unique.
    pub fn name(self, name: &'a str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    #[track_caller]
    fn meta(&self) -> Meta {
        Meta {
            name: self.name.map(Arc::from),
            ..Meta::here()
        }
    }

    /// Spawns the child: see [`TaskGroup::spawn`].
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<<F::Output as GroupOutput<E>>::Value>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: Send + 'static,
    {
        self.group.spawn_meta(future, self.meta())
    }

    /// Spawns the child, unless the group takes no more: see [`TaskGroup::try_spawn`].
    ///
    /// # Errors
    /// The future, if the group has failed or ended.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn try_spawn<F>(
        self,
        future: F,
    ) -> Result<JoinHandle<<F::Output as GroupOutput<E>>::Value>, SpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: Send + 'static,
    {
        self.group.try_spawn_meta(future, self.meta())
    }

    /// Spawns the child on the current [`LocalSet`](crate::task::LocalSet), or worker: see [`TaskGroup::spawn_local`].
    ///
    /// # Panics
    /// Where [`spawn_local`](crate::task::spawn_local) does.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> JoinHandle<<F::Output as GroupOutput<E>>::Value>
    where
        F: Future + 'static,
        F::Output: GroupOutput<E>,
        <F::Output as GroupOutput<E>>::Value: 'static,
    {
        self.group.spawn_local_meta(future, self.meta())
    }
}

impl<E> fmt::Debug for Builder<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
