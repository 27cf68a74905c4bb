//! The process's part: one slot for each signal number, the handlers, and the thread that wakes listeners.
//!
//! # Who may touch what
//! `pending` is set by handlers and cleared by the thread. `tick` is written by the thread and read by listeners. The
//! list of listeners is behind a lock that the thread holds only to take the wakers out, and never while it wakes one.
//!
//! # The race
//! A signal arrives while the thread looks at the flags: its handler sets the flag before it writes the byte, so
//! either the thread finds the flag now, or the byte makes it look again. If the socket is full, bytes that are still
//! to be read do the same.
#![expect(unsafe_code, reason = "a signal handler must be async-signal-safe")]

use std::ffi::c_int;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;

use rt_sync::wake_batch::{discard, wake_each};

use rt_sync::AtomicWaker;

use super::alternate_stack::{self, Action};
use crate::debug::tell_without_runtime;
use crate::unpoisoned::lock;

/// One more than the highest signal number: Linux has 64, others fewer.
const NUMBERS: usize = 65;

static SLOTS: [Slot; NUMBERS] = [const { Slot::new() }; NUMBERS];

/// Where handlers write, once the thread reads at the other end.
static ALARM: Mutex<Option<&'static UnixStream>> = Mutex::new(None);

struct Slot {
    pending: AtomicBool,
    /// Bumped for each time the signal was found pending.
    tick: AtomicU64,
    /// Whether our handler is there.
    handled: Mutex<bool>,
    listeners: Mutex<Vec<Arc<AtomicWaker>>>,
}

/// One listener's entry in its slot.
pub(super) struct Listener {
    number: c_int,
    slot: &'static Slot,
    seen: u64,
    waker: Arc<AtomicWaker>,
}

impl Slot {
    const fn new() -> Self {
        Self {
            pending: AtomicBool::new(false),
            tick: AtomicU64::new(0),
            handled: Mutex::new(false),
            listeners: Mutex::new(Vec::new()),
        }
    }

    fn handle(&'static self, number: c_int) -> io::Result<()> {
        let mut handled = lock(&self.handled);
        if !*handled {
            let alarm = alarm()?;
            let before = Action::of(number);
            let action = move || {
                // Release: pairs with the exchange in `look`, which finds the flag.
                self.pending.store(true, Release);
                // A full socket has enough bytes in it to wake the thread; no other error is of use to anyone here.
                let _ = rustix::io::write(alarm, b"!");
            };
            // SAFETY: the action does one atomic store and one `write`, both async-signal-safe, and does not panic.
            let registered = unsafe { signal_hook_registry::register(number, action) };
            registered.map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("no handler can be set for signal {number}: {error}"),
                )
            })?;
            if let Some(before) = before {
                alternate_stack::prefer(number, &before);
            }
            *handled = true;
        }
        Ok(())
    }

    /// Tells the listeners if the signal came.
    fn look(&self) {
        // Acquire pairs with the handler. An exchange and not a load, so that the newest value is seen.
        if !self.pending.swap(false, AcqRel) {
            return;
        }
        // Release: pairs with `Listener::take`. It comes before the wakers are taken, so that a listener that registers
        // too late to be taken sees the new tick.
        self.tick.fetch_add(1, Release);
        let wakers: Vec<Waker> = lock(&self.listeners)
            .iter()
            .filter_map(|waker| waker.take())
            .collect();
        // A waker is code of whatever executor runs the listener; its panic must not end this thread.
        if let Some(payload) = wake_each(wakers.into_iter()) {
            discard(payload);
        }
    }
}

impl Listener {
    /// Listens from now on.
    pub(super) fn new(number: c_int) -> io::Result<Self> {
        let slot = slot(number)?;
        slot.handle(number)?;
        let waker = Arc::new(AtomicWaker::new());
        lock(&slot.listeners).push(waker.clone());
        // Acquire: a signal that was told before is not news.
        let seen = slot.tick.load(Acquire);
        Ok(Self {
            number,
            slot,
            seen,
            waker,
        })
    }

    pub(super) fn number(&self) -> c_int {
        self.number
    }

    /// Whether the signal came since the last time that this said so.
    pub(super) fn take(&mut self) -> bool {
        // Acquire: pairs with `look`.
        let tick = self.slot.tick.load(Acquire);
        let new = tick != self.seen;
        self.seen = tick;
        new
    }

    /// Has `waker` woken at the next signal; ask [`take`](Self::take) afterwards.
    pub(super) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&self.slot.listeners).retain(|waker| !Arc::ptr_eq(waker, &self.waker));
    }
}

fn slot(number: c_int) -> io::Result<&'static Slot> {
    if signal_hook_registry::FORBIDDEN.contains(&number) {
        let name = forbidden_name(number);
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "signal {number} ({name}) cannot be listened to: the system does not let it be handled, or it reports a \
                 fault of the very code that it interrupts"
            ),
        ));
    }
    usize::try_from(number)
        .ok()
        .filter(|&index| index != 0)
        .and_then(|index| SLOTS.get(index))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("there is no signal with the number {number}: numbers are 1 to 64"),
            )
        })
}

fn forbidden_name(number: c_int) -> &'static str {
    use rustix::process::Signal;
    match number {
        _ if number == Signal::KILL.as_raw() => "SIGKILL",
        _ if number == Signal::STOP.as_raw() => "SIGSTOP",
        _ if number == Signal::ILL.as_raw() => "SIGILL",
        _ if number == Signal::FPE.as_raw() => "SIGFPE",
        _ if number == Signal::SEGV.as_raw() => "SIGSEGV",
        _ => "forbidden",
    }
}

/// Where handlers write; starts the thread on the first call that succeeds.
fn alarm() -> io::Result<&'static UnixStream> {
    let mut alarm = lock(&ALARM);
    if let Some(alarm) = *alarm {
        return Ok(alarm);
    }
    let (to, from) = UnixStream::pair()?;
    to.set_nonblocking(true)?;
    thread::Builder::new()
        .name("rt-signal".to_owned())
        .spawn(move || watch(from))?;
    // For the rest of the process, as handlers are.
    let to: &'static UnixStream = Box::leak(Box::new(to));
    Ok(*alarm.insert(to))
}

fn watch(mut from: UnixStream) {
    let mut bytes = [0; 64];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => SLOTS.iter().for_each(Slot::look),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // No other error is known for a socket pair; if there is one, reading on would only burn time.
            Err(error) => {
                // Signals are the process's, and so is this thread: listeners may be of any runtime, or of none.
                tell_without_runtime(&format_args!("signals are no longer seen: {error}"));
                return;
            }
        }
    }
}
