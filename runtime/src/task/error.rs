//! Why a task gave no output: it panicked, was cancelled, or its runtime closed.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Id, Outcome};

/// The error of awaiting a [`JoinHandle`](super::JoinHandle): the task has no output.
pub struct JoinError(
    /// Boxed, so that the result of a task is small where it ends well.
    Box<Inner>,
);

struct Inner {
    id: Id,
    kind: Kind,
}

enum Kind {
    Cancelled,
    Closed,
    /// A thread could not be had: the text of the OS.
    NoThread(String),
    /// The error or the panic is part of the task group's.
    InGroup(Outcome),
    /// A group did not take the task in.
    Refused(Refusal),
    Panic {
        /// Behind a lock only to make the error `Sync`.
        payload: Mutex<Box<dyn Any + Send + 'static>>,
        report: Arc<PanicReport>,
    },
}

/// Why a [`TaskGroup`](super::TaskGroup) takes no more children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The group has failed, or was dropped, and its children are being cancelled.
    Cancelled,
    /// The group has ended.
    Ended,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Cancelled => {
                "the task group has failed or was dropped, and takes no more children"
            }
            Refusal::Ended => {
                "the task group has ended: spawn into it before its scope is over, or use rt::spawn"
            }
        })
    }
}

/// What is told about a panic that nobody retrieves. Never the payload itself, only its message.
#[derive(Debug)]
pub struct PanicReport {
    pub(crate) id: Id,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) site: &'static Location<'static>,
    pub(crate) message: Option<Box<str>>,
    settled: AtomicBool,
}

impl PanicReport {
    pub(crate) fn new(
        id: Id,
        name: Option<Arc<str>>,
        site: &'static Location<'static>,
        payload: &(dyn Any + Send),
    ) -> Arc<Self> {
        let message = message_of(payload).map(Box::from);
        Arc::new(Self {
            id,
            name,
            site,
            message,
            settled: AtomicBool::new(false),
        })
    }

    /// Claims the right to deal with this panic; `true` for the first who asks.
    ///
    /// Either the handle hands the error to its owner, or one of the report's occasions writes the report.
    pub(crate) fn settle(&self) -> bool {
        // AcqRel: a single claim; nothing else is published by it.
        !self.settled.swap(true, AcqRel)
    }
}

impl fmt::Display for PanicReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " '{name}'")?;
        }
        write!(f, " spawned at {} panicked", self.site)?;
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

fn message_of(payload: &(dyn Any + Send)) -> Option<&str> {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

impl JoinError {
    #[cold]
    fn new(id: Id, kind: Kind) -> Self {
        Self(Box::new(Inner { id, kind }))
    }

    pub(crate) fn cancelled(id: Id) -> Self {
        Self::new(id, Kind::Cancelled)
    }

    pub(crate) fn closed(id: Id) -> Self {
        Self::new(id, Kind::Closed)
    }

    pub(crate) fn no_thread(id: Id, text: String) -> Self {
        Self::new(id, Kind::NoThread(text))
    }

    /// The task's error, or panic, was given to its group.
    pub(crate) fn given_to_group(id: Id, outcome: Outcome) -> Self {
        Self::new(id, Kind::InGroup(outcome))
    }

    pub(crate) fn refused(id: Id, why: Refusal) -> Self {
        Self::new(id, Kind::Refused(why))
    }

    pub(crate) fn panicked(
        payload: Box<dyn Any + Send + 'static>,
        report: Arc<PanicReport>,
    ) -> Self {
        Self::new(
            report.id,
            Kind::Panic {
                payload: Mutex::new(payload),
                report,
            },
        )
    }

    pub(crate) fn report(&self) -> Option<&Arc<PanicReport>> {
        match &self.0.kind {
            Kind::Panic { report, .. } => Some(report),
            _ => None,
        }
    }

    /// How a task with this error has ended.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.0.kind {
            Kind::Panic { .. } => Outcome::Panicked,
            Kind::InGroup(outcome) => *outcome,
            _ => Outcome::Cancelled,
        }
    }

    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.0.id
    }

    /// Whether the task was a child of a [`TaskGroup`](super::TaskGroup) and failed: its error, or its panic, is part of
    /// the group's error.
    #[must_use]
    pub fn is_in_group(&self) -> bool {
        matches!(self.0.kind, Kind::InGroup(_))
    }

    /// Whether the task never began, since the [`TaskGroup`](super::TaskGroup) that it was spawned into had failed or
    /// ended.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.0.kind, Kind::Refused(_))
    }

    /// Whether the task was stopped before its end: by an abort, or because its runtime closed.
    ///
    /// [`is_aborted`](Self::is_aborted) and [`is_runtime_closed`](Self::is_runtime_closed) tell the two apart.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.kind, Kind::Cancelled | Kind::Closed)
    }

    /// Whether the task was aborted through a handle.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        matches!(self.0.kind, Kind::Cancelled)
    }

    /// Whether the task's runtime shut down before the task was over, or before it was spawned.
    #[must_use]
    pub fn is_runtime_closed(&self) -> bool {
        matches!(self.0.kind, Kind::Closed)
    }

    /// Whether a blocking closure was given up since the operating system refused a thread for it.
    #[must_use]
    pub fn is_out_of_threads(&self) -> bool {
        matches!(self.0.kind, Kind::NoThread(_))
    }

    /// Whether the task panicked, and the panic is here (and not [in the error of a group](Self::is_in_group)).
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.0.kind, Kind::Panic { .. })
    }

    /// The payload of the panic, as for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    /// If the task did not panic; [`try_into_panic`](Self::try_into_panic) does not.
    #[must_use]
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => {
                panic!("JoinError::into_panic called on an error that is no panic: {error}")
            }
        }
    }

    /// The payload of the panic.
    ///
    /// # Errors
    /// The error itself, if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        let Inner { id, kind } = *self.0;
        match kind {
            Kind::Panic { payload, .. } => {
                Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
            kind => Err(Self::new(id, kind)),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0.id;
        match &self.0.kind {
            Kind::Cancelled => write!(f, "task {id} was cancelled"),
            Kind::Closed => write!(f, "task {id} did not end: its runtime closed"),
            Kind::NoThread(text) => {
                write!(
                    f,
                    "blocking task {id} did not run: no thread could be started for it: {text}"
                )
            }
            Kind::InGroup(Outcome::Panicked) => {
                write!(
                    f,
                    "task {id} panicked: the panic is part of the error of its task group"
                )
            }
            Kind::InGroup(_) => {
                write!(
                    f,
                    "task {id} failed: its error is part of the error of its task group"
                )
            }
            Kind::Refused(why) => write!(f, "task {id} was not started: {why}"),
            Kind::Panic { report, .. } => match &report.message {
                Some(message) => write!(f, "task {id} panicked: {message}"),
                None => write!(f, "task {id} panicked"),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0.kind {
            Kind::Cancelled => "Cancelled",
            Kind::Closed => "RuntimeClosed",
            Kind::NoThread(_) => "OutOfThreads",
            Kind::InGroup(_) => "InGroup",
            Kind::Refused(_) => "Refused",
            Kind::Panic { report, .. } => {
                return write!(f, "JoinError::Panic({:?}, {:?})", self.0.id, report.message);
            }
        };
        write!(f, "JoinError::{kind}({:?})", self.0.id)
    }
}

impl Error for JoinError {}

impl From<JoinError> for std::io::Error {
    fn from(error: JoinError) -> Self {
        std::io::Error::other(error)
    }
}
