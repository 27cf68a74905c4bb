//! A local socket by which the binary `rt` looks into this process: `rt ps PID`, `rt tree PID`, `rt top PID`.
//!
//! With the feature `inspect` a process that has a runtime listens on a Unix socket (`place.rs`) that only its owner may
//! open. `RT_INSPECT=0` in its environment turns that off. A thread of its own answers, so it does while every worker is
//! blocked; it polls no task, and holds no lock of a runtime but for the moments that [`dump`](crate::dump()) does. The
//! socket goes with the last runtime; what a process leaves that was killed, the next one takes away, if nobody listens there.
//!
//! # The protocol
//! The client writes one line, `rt 1 dump` or `rt 1 metrics`. The answer is one line, `rt 1 ok` or `rt 1 error` and why,
//! after the first with a JSON document up to the end of the stream (`wire.rs`). The number is that of the protocol; a
//! program that speaks another says so in its first line.
//!
//! These modules are for the binary: they are no part of the public interface.

pub mod place;
mod server;
pub mod wire;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use self::server::Server;
use crate::scheduler::Shared;
use crate::unpoisoned::lock;

static STATE: Mutex<State> = Mutex::new(State {
    runtimes: Vec::new(),
    server: None,
});

struct State {
    runtimes: Vec<Weak<Shared>>,
    server: Option<Server>,
}

fn state() -> MutexGuard<'static, State> {
    lock(&STATE)
}

/// A runtime was built. Without a socket it works as well, and there is nobody to tell.
pub(crate) fn register(shared: &Arc<Shared>) {
    if std::env::var_os("RT_INSPECT").is_some_and(|value| value == "0") {
        return;
    }
    let mut state = state();
    state.runtimes.push(Arc::downgrade(shared));
    if state.server.is_none() {
        state.server = Server::start().ok();
    }
}

/// A runtime has ended.
pub(crate) fn unregister(shared: &Arc<Shared>) {
    let mut state = state();
    state.runtimes.retain(|other| {
        other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), Arc::as_ptr(shared))
    });
    if state.runtimes.is_empty()
        && let Some(server) = state.server.take()
    {
        // Under the lock: the next one makes its socket at the same place.
        server.stop();
    }
}

/// The runtimes that are not over.
fn runtimes() -> Vec<Arc<Shared>> {
    state().runtimes.iter().filter_map(Weak::upgrade).collect()
}

/// Where this process listens, if it does.
#[must_use]
pub fn socket() -> Option<PathBuf> {
    state()
        .server
        .as_ref()
        .map(|server| server.path().to_owned())
}

/// How many threads there are besides those of the runtimes.
pub(crate) fn threads() -> usize {
    usize::from(state().server.is_some())
}
