//! Debug mode: which locks and permits were granted to futures that nobody polls.
//!
//! A lock that is fair grants itself to the future that is next in line, and wakes its task. If that task waits for
//! something else and does not poll the future, as when one branch of a `select!` has been taken and the other future is
//! kept, everybody who wants the lock waits for ever. So those who wait are listed here while debug mode is [on](watch),
//! and a watcher asks for those who were granted long ago ([`overdue`]).
//!
//! # What it costs
//! Off: one load and a branch in each poll that has to wait, in each grant, and in the end of a future that had to wait. An
//! uncontended lock never comes here. On: a lock for the whole process.
//!
//! # Bounds
//! `MOST` futures are listed; those that come when the list is full are not seen.

use std::collections::HashMap;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::wait::WaitKind;

const MOST: usize = 4096;

static ON: AtomicBool = AtomicBool::new(false);
static WAITING: OnceLock<Mutex<HashMap<usize, Waiting>>> = OnceLock::new();

struct Waiting {
    kind: WaitKind,
    site: &'static Location<'static>,
    task: usize,
    granted: Option<Instant>,
    told: bool,
}

/// A lock or permits that were granted to a future which has not been polled since.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Overdue {
    /// What was granted.
    pub kind: WaitKind,
    /// Where the future was made.
    pub site: &'static Location<'static>,
    /// How long ago it was granted.
    pub age: Duration,
    /// The data pointer of the waker that the future was polled with last: says whose it is.
    pub task: usize,
    key: usize,
}

/// From now on waiting futures are listed.
pub fn watch() {
    WAITING.get_or_init(Mutex::default);
    ON.store(true, Relaxed);
}

#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

fn list() -> Option<MutexGuard<'static, HashMap<usize, Waiting>>> {
    let list = WAITING.get()?;
    Some(list.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The future at `key` waits.
#[cold]
pub(crate) fn waits<T>(key: &T, kind: WaitKind, site: &'static Location<'static>, waker: &Waker) {
    let Some(mut list) = list() else { return };
    let key = ptr::from_ref(key).addr();
    let task = waker.data().addr();
    if let Some(waiting) = list.get_mut(&key) {
        waiting.task = task;
    } else if list.len() < MOST {
        let waiting = Waiting {
            kind,
            site,
            task,
            granted: None,
            told: false,
        };
        list.insert(key, waiting);
    }
}

/// The future at `key` was granted what it waits for.
#[cold]
pub(crate) fn granted<T>(key: *const T) {
    if let Some(waiting) = list().as_mut().and_then(|list| list.get_mut(&key.addr())) {
        waiting.granted = Some(Instant::now());
    }
}

/// The future at `key` has taken what it waited for, or is gone.
#[cold]
pub(crate) fn over<T>(key: &T) {
    if let Some(mut list) = list() {
        list.remove(&ptr::from_ref(key).addr());
    }
}

/// What was granted at least so long ago, and was not [told](Overdue::tell) yet.
#[must_use]
pub fn overdue(age: Duration) -> Vec<Overdue> {
    let Some(list) = list() else {
        return Vec::new();
    };
    let now = Instant::now();
    let overdue = list.iter().filter_map(|(key, waiting)| {
        let since = now.saturating_duration_since(waiting.granted?);
        (since >= age && !waiting.told).then_some(Overdue {
            kind: waiting.kind,
            site: waiting.site,
            age: since,
            task: waiting.task,
            key: *key,
        })
    });
    overdue.collect()
}

impl Overdue {
    /// Claims the right to tell of it; `false` if somebody has, or the future was polled by now.
    #[must_use]
    pub fn tell(&self) -> bool {
        list()
            .as_mut()
            .and_then(|list| list.get_mut(&self.key))
            .filter(|waiting| waiting.granted.is_some() && ptr::eq(waiting.site, self.site))
            .is_some_and(|waiting| !std::mem::replace(&mut waiting.told, true))
    }
}
