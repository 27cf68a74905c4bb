//! Timelines: `RT_TRACE=file.json` writes what each thread of a runtime did, for [Perfetto](https://ui.perfetto.dev) and
//! `chrome://tracing`.
//!
//! Each thread keeps its last 16,384 events, about 1.5 MB at most; older ones are dropped and counted. An event is a
//! poll of a task (with its name, number and spawn site), a poll of the future of `block_on`, a sleep, a steal, a time when
//! somebody looked after the sockets of a seat that was stuck, or a hand-off to a spare worker. The file is written when a
//! runtime ends, when the process ends by returning from `main` or by `std::process::exit`, and by [`flush`]. A process that is
//! ended by a signal or aborts leaves what was written last.
//!
//! # What it costs
//! Without `RT_TRACE`: one predictable branch a poll (the one that debug mode has as well) and one a sleep. With it: two
//! clock reads and a lock that nobody contends, for each event. Once for the process: the variable is read when the first
//! runtime is built.
//!
//! # How it works
//! A ring belongs to a thread, so that the events on one track of the picture follow each other or lie one in the other:
//! a seat may be sat on by one thread while another is still in a poll that began there.

mod at_exit;
mod chrome;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::env;
use std::io;
use std::panic::Location;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rt_io::tell::to_stderr;

use crate::scheduler::process_start;
use crate::task::Header;
use crate::unpoisoned::lock;

/// Events that a thread keeps.
const RING: usize = 16_384;

/// Rings of threads that have ended; beyond that the oldest go, so that a program that starts a thread for everything does
/// not fill the memory.
const ENDED: usize = 64;

static ON: AtomicBool = AtomicBool::new(false);
static TRACE: OnceLock<Option<Trace>> = OnceLock::new();

struct Trace {
    path: PathBuf,
    rings: Mutex<Vec<Arc<Ring>>>,
    /// One writer of the file at a time.
    writing: Mutex<()>,
    /// Not a child that was forked, whose locks nobody may ever give back.
    process: u32,
    /// Whether it could not be written the last time, which was told.
    failed: AtomicBool,
}

/// The events of one thread.
struct Ring {
    number: u64,
    name: String,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    last: VecDeque<Event>,
    dropped: u64,
}

#[derive(Clone)]
struct Event {
    /// In ns since the start of the process.
    at: u64,
    /// Zero: a moment.
    took: u64,
    what: What,
}

#[derive(Clone)]
enum What {
    Poll {
        id: u64,
        name: Option<Arc<str>>,
        site: &'static Location<'static>,
    },
    Root(&'static Location<'static>),
    Park,
    Steal,
    Help {
        seat: usize,
    },
    HandOff,
}

thread_local! {
    static RING_HERE: RefCell<Option<Arc<Ring>>> = const { RefCell::new(None) };
}

/// Whether this process takes a trace, that is, whether `RT_TRACE` was set when the first runtime was built.
#[must_use]
#[inline]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Writes the file named by `RT_TRACE` with what is known so far. Without `RT_TRACE` it does nothing.
///
/// It blocks while it writes: up to some ten megabytes. Prefer [`spawn_blocking`](crate::spawn_blocking) in async code.
///
/// # Errors
/// If the file cannot be written; the error names it.
pub fn flush() -> io::Result<()> {
    match TRACE.get() {
        Some(Some(trace)) => trace.write(),
        _ => Ok(()),
    }
}

/// A runtime is built: looks at the variable, once.
pub(crate) fn start() {
    TRACE.get_or_init(|| {
        let path = env::var_os("RT_TRACE").filter(|path| !path.is_empty())?;
        // From which all stamps count.
        process_start();
        ON.store(true, Relaxed);
        // Runtimes may outlive `main`: those that end in the background, and all of them after `exit`.
        at_exit::call(at_end);
        Some(Trace {
            path: path.into(),
            rings: Mutex::default(),
            writing: Mutex::default(),
            process: process::id(),
            failed: AtomicBool::new(false),
        })
    });
}

/// A runtime has ended.
pub(crate) fn close() {
    tell(flush());
}

/// The process ends.
extern "C" fn at_end() {
    if let Some(Some(trace)) = TRACE.get()
        && trace.process == process::id()
        && !trace.failed.load(Relaxed)
    {
        tell(trace.write());
    }
}

fn tell(written: io::Result<()>) {
    if let Err(error) = written {
        // Not through the hook, nor to `tracing`: the file is the process's, and who has set the variable looks here.
        to_stderr(&error);
    }
}

impl Trace {
    fn write(&self) -> io::Result<()> {
        let _writing = lock(&self.writing);
        let rings = lock(&self.rings).clone();
        // Readers never see half a file.
        let mut beside = self.path.clone().into_os_string();
        beside.push(".part");
        let written = chrome::write(beside.as_ref(), &rings)
            .and_then(|()| std::fs::rename(&beside, &self.path));
        self.failed.store(written.is_err(), Relaxed);
        written.map_err(|error| {
            let path = self.path.display();
            io::Error::new(
                error.kind(),
                format!("cannot write the trace to '{path}' (RT_TRACE): {error}"),
            )
        })
    }

    fn new_ring(&self) -> Arc<Ring> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        let thread = thread::current();
        let ring = Arc::new(Ring {
            number,
            name: format!("{} {number}", thread.name().unwrap_or("thread")),
            events: Mutex::default(),
        });
        let mut rings = lock(&self.rings);
        let ended = |ring: &Arc<Ring>| Arc::strong_count(ring) == 1;
        if rings.iter().filter(|ring| ended(ring)).count() >= ENDED
            && let Some(oldest) = rings.iter().position(ended)
        {
            rings.remove(oldest);
        }
        rings.push(ring.clone());
        ring
    }
}

fn stamp(at: Instant) -> u64 {
    nanos(at.saturating_duration_since(process_start()))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cold]
fn push(event: Event) {
    let Some(Some(trace)) = TRACE.get() else {
        return;
    };
    // While the thread ends there is no ring any more.
    let _ = RING_HERE.try_with(|here| {
        let mut here = here.borrow_mut();
        let ring = here.get_or_insert_with(|| trace.new_ring());
        let mut events = lock(&ring.events);
        let oldest = if events.last.len() >= RING {
            events.dropped += 1;
            events.last.pop_front()
        } else {
            None
        };
        events.last.push_back(event);
        drop(events);
        drop(oldest);
    });
}

/// A poll of a task is over.
pub(crate) fn polled(task: &Header, began: Instant, took: Duration) {
    if is_on() {
        push(Event {
            at: stamp(began),
            took: nanos(took).max(1),
            what: What::Poll {
                id: task.id.get(),
                name: task.name().cloned(),
                site: task.site,
            },
        });
    }
}

/// The thread slept, between two stamps of its runtime.
#[inline]
pub(crate) fn parked(from: u64, until: u64) {
    if is_on() {
        let took = until.saturating_sub(from).max(1);
        push(Event {
            at: from,
            took,
            what: What::Park,
        });
    }
}

fn moment(what: What) {
    if is_on() {
        push(Event {
            at: stamp(Instant::now()),
            took: 0,
            what,
        });
    }
}

/// A search found a task.
#[inline]
pub(crate) fn stole() {
    moment(What::Steal);
}

/// This thread woke tasks in the stead of a seat that was stuck.
#[inline]
pub(crate) fn helped(seat: usize) {
    moment(What::Help { seat });
}

/// A spare worker is called.
#[inline]
pub(crate) fn handed_off() {
    moment(What::HandOff);
}

/// A poll of the future of a `block_on`, until the guard is dropped.
#[inline]
pub(crate) fn root(site: &'static Location<'static>) -> Option<RootPoll> {
    is_on().then(|| RootPoll(Instant::now(), site))
}

/// See [`root`].
pub(crate) struct RootPoll(Instant, &'static Location<'static>);

impl Drop for RootPoll {
    fn drop(&mut self) {
        push(Event {
            at: stamp(self.0),
            took: nanos(self.0.elapsed()).max(1),
            what: What::Root(self.1),
        });
    }
}
