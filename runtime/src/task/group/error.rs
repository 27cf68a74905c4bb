//! What a group says when it failed: every failure, and whose it was.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;

use crate::task::error::{PanicReport, Refusal};
use crate::task::{Header, Id, JoinError, try_id};

/// Why a [`TaskGroup`](super::TaskGroup) failed: the first failure and every other one, in the order in which they
/// happened.
///
/// There are failures only: neither children that were cancelled because of the first one, nor children that somebody
/// aborted.
///
/// An inner group's error is one member of the outer group's, if the child that ran it returns it as its own.
pub struct GroupError<E> {
    /// Never empty.
    failures: Vec<Failure<E>>,
}

impl<E> GroupError<E> {
    /// `failures` is not empty.
    pub(super) fn new(failures: Vec<Failure<E>>) -> Self {
        debug_assert!(!failures.is_empty());
        // Whoever has the error knows of the panics in it.
        for report in failures.iter().filter_map(Failure::report) {
            report.settle();
        }
        Self { failures }
    }

    /// The failure that cancelled everything else.
    #[must_use]
    pub fn first(&self) -> &Failure<E> {
        &self.failures[0]
    }

    /// All failures, the first one first.
    #[must_use]
    pub fn failures(&self) -> &[Failure<E>] {
        &self.failures
    }

    /// The failure that cancelled everything else.
    #[must_use]
    pub fn into_first(self) -> Failure<E> {
        self.failures.into_iter().next().expect("never empty")
    }

    /// All failures, the first one first.
    #[must_use]
    pub fn into_failures(self) -> Vec<Failure<E>> {
        self.failures
    }

    /// The errors that children, or the body, returned.
    pub fn errors(&self) -> impl Iterator<Item = &E> {
        self.failures.iter().filter_map(Failure::error)
    }
}

impl<E> IntoIterator for GroupError<E> {
    type Item = Failure<E>;
    type IntoIter = std::vec::IntoIter<Failure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.failures.into_iter()
    }
}

impl<E: fmt::Display> fmt::Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failures.as_slice() {
            [one] => write!(f, "a task group failed: {one}"),
            many => {
                write!(f, "a task group failed with {} failures", many.len())?;
                for (number, failure) in (1..).zip(many) {
                    write!(f, "; ({number}) {failure}")?;
                }
                Ok(())
            }
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupError")?;
        f.debug_list().entries(&self.failures).finish()
    }
}

impl<E: fmt::Display + fmt::Debug> Error for GroupError<E> {}

impl<E> From<GroupError<E>> for io::Error
where
    E: fmt::Display + fmt::Debug + Send + Sync + 'static,
{
    fn from(error: GroupError<E>) -> Self {
        io::Error::other(error)
    }
}

/// One failure in a group.
pub struct Failure<E> {
    /// `None`: the body.
    child: Option<Child>,
    cause: Cause<E>,
}

#[derive(Clone)]
struct Child {
    id: Id,
    name: Option<Arc<str>>,
    site: &'static Location<'static>,
}

/// What went wrong.
#[non_exhaustive]
pub enum Cause<E> {
    /// It returned this error.
    Error(E),
    /// It panicked, in its code or in a destructor.
    Panic(JoinError),
    /// The child's runtime closed before its end, and nobody had cancelled it.
    RuntimeClosed(JoinError),
}

impl<E> Failure<E> {
    /// The child returned an error.
    pub(super) fn of_child(error: E, task: Option<&Header>) -> Self {
        Self {
            child: task.map(Child::of),
            cause: Cause::Error(error),
        }
    }

    pub(super) fn of_body(error: E) -> Self {
        Self {
            child: None,
            cause: Cause::Error(error),
        }
    }

    /// A destructor in the body panicked.
    pub(super) fn body_panic(
        payload: Box<dyn Any + Send>,
        site: &'static Location<'static>,
    ) -> Self {
        let id = try_id().unwrap_or_else(Id::next);
        let report = PanicReport::new(id, None, site, &*payload);
        Self {
            child: None,
            cause: Cause::Panic(JoinError::panicked(payload, report)),
        }
    }

    /// The error is a panic.
    pub(super) fn panic(error: JoinError) -> Self {
        let child = error.report().map(|report| Child {
            id: report.id,
            name: report.name.clone(),
            site: report.site,
        });
        Self {
            child,
            cause: Cause::Panic(error),
        }
    }

    pub(super) fn runtime_closed(task: &Header) -> Self {
        Self {
            child: Some(Child::of(task)),
            cause: Cause::RuntimeClosed(JoinError::closed(task.id)),
        }
    }

    /// What a panic is reported by.
    pub(super) fn report(&self) -> Option<&Arc<PanicReport>> {
        match &self.cause {
            Cause::Panic(error) => error.report(),
            Cause::Error(_) | Cause::RuntimeClosed(_) => None,
        }
    }

    /// Whether the body failed, and not a child.
    #[must_use]
    pub fn is_body(&self) -> bool {
        self.child.is_none()
    }

    /// The number of the child that failed. `None` if it was the body.
    #[must_use]
    pub fn id(&self) -> Option<Id> {
        self.child.as_ref().map(|child| child.id)
    }

    /// The name of the child that failed, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.child.as_ref()?.name.as_deref()
    }

    /// Where the child that failed was spawned. `None` if it was the body.
    #[must_use]
    pub fn spawned_at(&self) -> Option<&'static Location<'static>> {
        self.child.as_ref().map(|child| child.site)
    }

    /// What went wrong.
    #[must_use]
    pub fn cause(&self) -> &Cause<E> {
        &self.cause
    }

    /// What went wrong.
    #[must_use]
    pub fn into_cause(self) -> Cause<E> {
        self.cause
    }

    /// The error that was returned, if it is one.
    #[must_use]
    pub fn error(&self) -> Option<&E> {
        match &self.cause {
            Cause::Error(error) => Some(error),
            _ => None,
        }
    }

    /// The error that was returned, if it is one.
    #[must_use]
    pub fn into_error(self) -> Option<E> {
        match self.cause {
            Cause::Error(error) => Some(error),
            _ => None,
        }
    }

    /// Whether it is a panic.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, Cause::Panic(_))
    }
}

impl Child {
    fn of(task: &Header) -> Self {
        Self {
            id: task.id,
            name: task.name().cloned(),
            site: task.site,
        }
    }
}

impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "child {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " '{name}'")?;
        }
        write!(f, " spawned at {}", self.site)
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.child {
            Some(child) => write!(f, "{child}")?,
            None => f.write_str("the body")?,
        }
        match &self.cause {
            Cause::Error(error) => write!(f, " failed: {error}"),
            Cause::Panic(error) => {
                match error.report().and_then(|report| report.message.as_deref()) {
                    Some(message) => write!(f, " panicked: {message}"),
                    None => f.write_str(" panicked"),
                }
            }
            Cause::RuntimeClosed(_) => f.write_str(" did not end: its runtime closed"),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.child {
            Some(child) => write!(f, "[{child}] ")?,
            None => f.write_str("[the body] ")?,
        }
        self.cause.fmt(f)
    }
}

impl<E: fmt::Debug> fmt::Debug for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Error(error) => error.fmt(f),
            Cause::Panic(error) | Cause::RuntimeClosed(error) => error.fmt(f),
        }
    }
}

/// A group did not take a child in: see [`TaskGroup::try_spawn`](super::TaskGroup::try_spawn).
///
/// The future was not polled.
pub struct SpawnError<F> {
    /// The future, to be run elsewhere.
    pub future: F,
    /// Why it was not taken.
    pub why: Refusal,
}

impl<F> fmt::Display for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<F> fmt::Debug for SpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError")
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

impl<F> Error for SpawnError<F> {}
