//! The shared half of a driver: who registers, deregisters, unparks and closes it.
//!
//! # Who may touch what
//! `registry` and `waker` are the kernel's business and need no lock. The slots are behind a lock that is held for a
//! few instructions: one insert, one removal, or the dispatch of one batch of events. `closed` lies behind the same
//! lock, so that no source is put in after `close` has looked at them all.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::Location;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use mio::unix::SourceFd;
use rt_sync::primitive::Mutex;
use rt_sync::primitive::atomic::{AtomicUsize, Ordering::Relaxed};

use super::readiness::Readiness;
use super::ready::{Interest, Ready};
use super::slots::{Slots, Token};
use super::source::Source;
use super::woken::Woken;
use crate::error;
use crate::tell::to_stderr;

type Hook = Box<dyn Fn() + Send + Sync>;
type FailureHook = Box<dyn Fn(&io::Error) + Send + Sync>;

/// The shared half of a [`Driver`](super::Driver).
pub struct Handle {
    name: Arc<str>,
    registry: mio::Registry,
    waker: mio::Waker,
    registrations: AtomicUsize,
    table: Mutex<Table>,
    on_foreign: OnceLock<Hook>,
    on_failure: OnceLock<FailureHook>,
}

#[derive(Default)]
struct Table {
    closed: bool,
    slots: Slots,
}

impl Handle {
    pub(super) fn new(name: Arc<str>, registry: mio::Registry, waker: mio::Waker) -> Self {
        Self {
            name,
            registry,
            waker,
            registrations: AtomicUsize::new(0),
            table: Mutex::new(Table::default()),
            on_foreign: OnceLock::new(),
            on_failure: OnceLock::new(),
        }
    }

    /// The name of the runtime.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are selectors of one runtime.
    pub(crate) fn is_of_same_runtime(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.name, &other.name)
    }

    /// Makes the current or the next turn return. From any thread; each call costs a system call.
    pub fn unpark(&self) {
        if let Err(error) = self.waker.wake() {
            self.wake_failed(&error);
        }
    }

    /// The descriptor is ours and non-blocking: nothing but a broken process gets here.
    #[cold]
    fn wake_failed(&self, error: &io::Error) {
        let error = io::Error::new(error.kind(), format!("it cannot be woken: {error}"));
        match self.on_failure.get() {
            Some(hook) => hook(&error),
            // A driver that no runtime turns.
            None => to_stderr(&format_args!("selector of \"{}\": {error}", self.name)),
        }
    }

    /// From now on a turn of this driver also returns when one of `other` would. Of one other driver at a time, and not while
    /// that one attends this; see [`ignore`](Self::ignore).
    ///
    /// # Errors
    /// If the selector refuses.
    pub fn attend(&self, other: &Self) -> io::Result<()> {
        let fd = other.registry.as_raw_fd();
        self.registry.register(
            &mut SourceFd(&fd),
            mio::Token(Token::ATTENDED.0),
            mio::Interest::READABLE,
        )
    }

    /// Ends [`attend`](Self::attend).
    pub fn ignore(&self, other: &Self) {
        let fd = other.registry.as_raw_fd();
        let _ = self.registry.deregister(&mut SourceFd(&fd));
    }

    /// How many sources are registered. At 0 there is no need to turn the driver but for [`unpark`](Self::unpark).
    #[inline]
    #[must_use]
    pub fn registrations(&self) -> usize {
        self.registrations.load(Relaxed)
    }

    /// Whether [`close`](Self::close) was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.table.lock().closed
    }

    /// Sets what is called, under no lock, after a thread that does not own this driver has registered a source with
    /// it. Only the first call has an effect.
    pub fn set_on_foreign(&self, hook: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_foreign.set(hook);
    }

    /// Sets who is told, under no lock of this crate, that the driver cannot be woken; without it, standard error. Only the
    /// first call has an effect.
    pub fn set_on_failure(&self, hook: Box<dyn Fn(&io::Error) + Send + Sync>) {
        let _ = self.on_failure.set(hook);
    }

    /// Ends the driver: everybody who waits is woken, and every operation that would have to wait fails with an error
    /// that names the runtime.
    pub fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        // Taken out, so that the cycle of source and handle ends also where a source was leaked.
        let sources = table.slots.drain();
        drop(table);
        let mut woken = Woken::new();
        for source in &sources {
            source.readiness.close(woken.list());
        }
        drop(sources);
        woken.wake();
    }

    /// Registers a descriptor, with the readiness to assume until its first event.
    pub(crate) fn register(
        self: &Arc<Self>,
        fd: RawFd,
        interest: Interest,
        initial: Ready,
        made: &'static Location<'static>,
    ) -> io::Result<Arc<Source>> {
        let mut table = self.table.lock();
        if table.closed {
            drop(table);
            return Err(self.closed_error());
        }
        let source = table.slots.insert(|token| {
            Arc::new(Source {
                readiness: Readiness::new(initial),
                handle: Arc::clone(self),
                token,
                fd,
                made,
            })
        });
        let source = source.cloned();
        drop(table);
        let source = source.ok_or_else(error::too_many_sources)?;
        // Before the selector can report anything: a scheduler that sees 0 does not turn.
        self.registrations.fetch_add(1, Relaxed);
        let token = mio::Token(source.token.0);
        let added = self
            .registry
            .register(&mut SourceFd(&fd), token, interest.to_mio());
        if let Err(error) = added {
            self.forget(source.token);
            return Err(error::register_failed(fd, &self.name, &error));
        }
        Ok(source)
    }

    /// A thread that does not own the driver has registered something, and holds no lock.
    pub(crate) fn registered_by_foreigner(&self) {
        if let Some(hook) = self.on_foreign.get() {
            hook();
        }
    }

    /// Takes a source out. Does not depend on what the selector says: the descriptor may be closed already.
    pub(crate) fn deregister(&self, source: &Source) {
        let _ = self.registry.deregister(&mut SourceFd(&source.fd));
        self.forget(source.token);
    }

    fn forget(&self, token: Token) {
        let mut table = self.table.lock();
        let source = table.slots.remove(token);
        drop(table);
        // Its wakers are dropped here at the earliest, under no lock.
        drop(source);
        self.registrations.fetch_sub(1, Relaxed);
    }

    /// Sets the readiness of every source that has an event. Returns how many there were.
    pub(super) fn dispatch(&self, events: &mio::Events, woken: &mut Vec<Waker>) -> Dispatched {
        let mut seen = Dispatched::default();
        let mut table = None;
        for event in events {
            match Token(event.token().0) {
                Token::UNPARK => seen.woken = true,
                Token::TIMER => seen.timer = true,
                // It was about being woken.
                Token::ATTENDED => {}
                token => {
                    seen.events += 1;
                    // Taken with the first event of a source, and once for all of them.
                    let table = table.get_or_insert_with(|| self.table.lock());
                    if let Some(source) = table.slots.get(token) {
                        source.readiness.set(Ready::from_event(event), woken);
                    }
                }
            }
        }
        seen
    }

    #[cold]
    pub(crate) fn closed_error(&self) -> io::Error {
        error::runtime_closed(Arc::clone(&self.name))
    }
}

/// What one batch of events held.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Dispatched {
    pub(super) events: usize,
    pub(super) woken: bool,
    pub(super) timer: bool,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("runtime", &self.name)
            .field("registrations", &self.registrations())
            .finish_non_exhaustive()
    }
}
