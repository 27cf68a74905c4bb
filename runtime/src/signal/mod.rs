//! Signals of the operating system, as futures: [`ctrl_c`], and [`unix::signal`] for the others.
//!
//! # How a signal arrives
//! 1. The handler (through signal-hook-registry, which also runs every handler that was there before) sets the signal's
//!    `pending` flag and writes one byte into a socket pair. Both are safe in a handler.
//! 2. One thread of the process sleeps in a read at the other end. It clears the flags that are set, bumps the *tick* of
//!    each such signal, and wakes its listeners.
//! 3. A listener compares the tick with the one that it saw last. So it sees every signal that arrives after it was
//!    made, but signals that arrive in quick succession may be seen as one, as the operating system itself has it.
//!
//! # Why a thread of the process and not a registration per runtime
//! Handlers are the process's, not a runtime's. One detached thread, started on first use, serves any number of
//! runtimes and any other executor, also after the runtime that used it first is gone, in a current-thread runtime
//! whose thread is busy, and without a place in every driver. It costs nothing while no signal comes. The signal is seen
//! one thread switch later than it could be.
//!
//! # On which stack
//! A handler that is installed for us runs on the alternate stack of its thread (`SA_ONSTACK`), as Go and others ask for,
//! and so do those that were there before and are run by it: see `alternate_stack.rs`. `SA_RESTART` is set.
//!
//! # After a fork
//! A child that does not call `exec` has the handlers but not the thread: its own signals are not seen.

#[cfg(unix)]
mod alternate_stack;
#[cfg(unix)]
mod registry;
#[cfg(unix)]
pub mod unix;

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use self::unix::{Signal, SignalKind, signal};

/// Waits for the next ctrl-c (`SIGINT`) sent to the process.
///
/// It counts from this call, not from the first poll. Each call listens anew: in a loop a signal that comes between
/// two calls is missed, which one [`Signal`] does not.
///
/// The first call replaces what the process does by default on `SIGINT`, which is to end, for the rest of its life:
/// from then on ctrl-c does nothing but complete these futures, also when none waits.
///
/// # Errors
/// The future gives an error if the handler, or the thread that serves it, could not be set up.
///
/// # Cancel safety
/// Dropping the future loses the signal that came after the call, if there was one.
///
/// # Examples
/// ```no_run
/// # #[rt::main]
/// # async fn main() -> std::io::Result<()> {
/// println!("ctrl-c ends this");
/// rt::signal::ctrl_c().await?;
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn ctrl_c() -> CtrlC {
    CtrlC {
        signal: signal(SignalKind::interrupt()),
    }
}

/// Future of [`ctrl_c`].
#[must_use = "futures do nothing unless awaited"]
pub struct CtrlC {
    signal: io::Result<Signal>,
}

impl Future for CtrlC {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.signal {
            Ok(signal) => {
                let _seen = ready!(signal.poll_recv(cx));
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                let spent = io::Error::other("the error of ctrl_c was given before");
                Poll::Ready(Err(mem::replace(error, spent)))
            }
        }
    }
}

impl fmt::Debug for CtrlC {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CtrlC").finish_non_exhaustive()
    }
}
