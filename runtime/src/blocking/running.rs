//! Which closures run at this moment: what shutdown says about those that it has to leave behind.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::task::Header;
use crate::unpoisoned::lock;

/// What still ran when [`Pool::shutdown`](super::Pool::shutdown) gave up waiting for it.
#[derive(Debug, Clone)]
pub struct Running {
    /// Whether it is a closure, or a task that awaited one: see `follow_up.rs`.
    pub kind: Kind,
    /// Where it was spawned.
    pub site: &'static Location<'static>,
    /// The name it was given.
    pub name: Option<Arc<str>>,
    /// Since when it runs.
    pub age: Duration,
}

/// What a thread of a pool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Given to the pool.
    Closure,
    /// It awaited a closure.
    Task,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closure => "blocking closure",
            Self::Task => "task",
        })
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(name) = &self.name {
            write!(f, " '{name}'")?;
        }
        write!(f, " spawned at {}, running for {:.1?}", self.site, self.age)
    }
}

/// What one thread of a pool has on it.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<Option<Work>>);

#[derive(Debug)]
struct Work {
    kind: Kind,
    site: &'static Location<'static>,
    name: Option<Arc<str>>,
    since: Instant,
}

impl Desk {
    pub(super) fn take_up(&self, kind: Kind, task: &Header) {
        let work = Work {
            kind,
            site: task.site,
            name: task.name().cloned(),
            since: Instant::now(),
        };
        *lock(&self.0) = Some(work);
    }

    pub(super) fn clear(&self) {
        *lock(&self.0) = None;
    }
}

/// The desks of a pool's threads.
#[derive(Debug, Default)]
pub(super) struct Desks(Mutex<Vec<Arc<Desk>>>);

impl Desks {
    pub(super) fn add(&self) -> Arc<Desk> {
        let desk = Arc::new(Desk::default());
        lock(&self.0).push(desk.clone());
        desk
    }

    pub(super) fn remove(&self, desk: &Arc<Desk>) {
        lock(&self.0).retain(|other| !Arc::ptr_eq(other, desk));
    }

    /// What runs, without the closure on the given desk; the oldest first.
    pub(super) fn running(&self, without: Option<&Arc<Desk>>) -> Vec<Running> {
        let mut running: Vec<Running> = lock(&self.0)
            .iter()
            .filter(|desk| without.is_none_or(|own| !Arc::ptr_eq(desk, own)))
            .filter_map(|desk| {
                let work = lock(&desk.0);
                let Work {
                    kind,
                    site,
                    name,
                    since,
                } = work.as_ref()?;
                Some(Running {
                    kind: *kind,
                    site,
                    name: name.clone(),
                    age: since.elapsed(),
                })
            })
            .collect();
        running.sort_by_key(|running| std::cmp::Reverse(running.age));
        running
    }
}
