//! Signals of Unix systems: [`signal`] makes a listener for one kind.

use std::ffi::c_int;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::process::Signal as Number;

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::registry::Listener;

/// Which signal to listen to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignalKind(c_int);

impl SignalKind {
    /// Any signal, by its number.
    #[must_use]
    pub const fn from_raw(number: c_int) -> Self {
        Self(number)
    }

    /// The signal's number.
    #[must_use]
    pub const fn as_raw_value(&self) -> c_int {
        self.0
    }

    /// `SIGALRM`: a timer of the process has run out. By default it ends the process.
    #[must_use]
    pub const fn alarm() -> Self {
        Self(Number::ALARM.as_raw())
    }

    /// `SIGCHLD`: a child process has stopped or ended. By default nothing happens.
    #[must_use]
    pub const fn child() -> Self {
        Self(Number::CHILD.as_raw())
    }

    /// `SIGHUP`: the terminal is gone; for many daemons, "read your configuration again". By default it ends the process.
    #[must_use]
    pub const fn hangup() -> Self {
        Self(Number::HUP.as_raw())
    }

    /// `SIGINT`: ctrl-c. By default it ends the process.
    #[must_use]
    pub const fn interrupt() -> Self {
        Self(Number::INT.as_raw())
    }

    /// `SIGIO`: input or output is possible. By default it ends the process.
    #[must_use]
    pub const fn io() -> Self {
        Self(Number::IO.as_raw())
    }

    /// `SIGPIPE`: a write to a pipe that nobody reads. Rust programs ignore it from the start.
    #[must_use]
    pub const fn pipe() -> Self {
        Self(Number::PIPE.as_raw())
    }

    /// `SIGQUIT`: ctrl-\\. By default it ends the process with a core dump.
    #[must_use]
    pub const fn quit() -> Self {
        Self(Number::QUIT.as_raw())
    }

    /// `SIGTERM`: the polite request to end. By default it ends the process.
    #[must_use]
    pub const fn terminate() -> Self {
        Self(Number::TERM.as_raw())
    }

    /// `SIGUSR1`, for the program's own use. By default it ends the process.
    #[must_use]
    pub const fn user_defined1() -> Self {
        Self(Number::USR1.as_raw())
    }

    /// `SIGUSR2`, for the program's own use. By default it ends the process.
    #[must_use]
    pub const fn user_defined2() -> Self {
        Self(Number::USR2.as_raw())
    }

    /// `SIGWINCH`: the terminal has a new size. By default nothing happens.
    #[must_use]
    pub const fn window_change() -> Self {
        Self(Number::WINCH.as_raw())
    }
}

impl From<c_int> for SignalKind {
    fn from(number: c_int) -> Self {
        Self(number)
    }
}

impl From<SignalKind> for c_int {
    fn from(kind: SignalKind) -> Self {
        kind.0
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Number::from_named_raw(self.0) {
            Some(number) => write!(f, "SignalKind({number:?})"),
            None => write!(f, "SignalKind({})", self.0),
        }
    }
}

/// Listens to one kind of signal, from now on.
///
/// The first listener of a kind replaces what the process does by default on that signal, for the rest of its life:
/// when all listeners are gone, a `SIGTERM` does nothing at all. Handlers that were set before still run. A handler set
/// afterwards by other means takes the signals away from all listeners.
///
/// The handler runs on the alternate signal stack of its thread, if there is one (every thread of Rust's has one, of 8
/// KiB or a little more), with all other signals blocked. Handlers that were set before run there too. If
/// signal-hook-registry handles the signal already for somebody else, it goes on as it does.
///
/// It needs no runtime.
///
/// # Errors
/// If the kind is one of `SIGKILL`, `SIGSTOP`, `SIGILL`, `SIGFPE` and `SIGSEGV`, or no signal at all; if the operating
/// system refuses the handler, or the thread that serves all listeners.
///
/// # Examples
/// ```no_run
/// use rt::signal::unix::{SignalKind, signal};
///
/// # #[rt::main]
/// # async fn main() -> std::io::Result<()> {
/// let mut hangup = signal(SignalKind::hangup())?;
/// loop {
///     hangup.recv().await;
///     println!("read the configuration again");
/// }
/// # }
/// ```
#[track_caller]
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    let listener = Listener::new(kind.0)?;
    Ok(Signal {
        listener,
        site: Location::caller(),
    })
}

/// Listens to one kind of signal. Made by [`signal`].
///
/// Every signal that arrives after it was made is seen. Several that arrive before it is asked again are seen as one.
#[must_use = "a listener hears nothing unless it is asked"]
pub struct Signal {
    listener: Listener,
    site: &'static Location<'static>,
}

impl Signal {
    /// Waits for the signal. Always gives `Some`.
    ///
    /// # Cancel safety
    /// A signal is taken only when the future completes: none is lost if it is dropped early.
    #[track_caller]
    pub fn recv(&mut self) -> Recv<'_> {
        let site = Location::caller();
        Recv { signal: self, site }
    }

    /// Polls for the signal; `Pending` has the task woken by the next one. Always gives `Some`.
    ///
    /// Only the waker of the last call is kept.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let site = self.site;
        self.poll_at(cx, site)
    }

    fn poll_at(
        &mut self,
        cx: &mut Context<'_>,
        site: &'static Location<'static>,
    ) -> Poll<Option<()>> {
        let unit = ready!(coop::poll_proceed(cx));
        if !self.listener.take() {
            self.listener.register(cx.waker());
            if !self.listener.take() {
                wait::record(WaitKind::Signal, site);
                return Poll::Pending;
            }
        }
        unit.made_progress();
        Poll::Ready(Some(()))
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("kind", &SignalKind(self.listener.number()))
            .finish_non_exhaustive()
    }
}

/// Future of [`Signal::recv`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a> {
    signal: &'a mut Signal,
    site: &'static Location<'static>,
}

impl Future for Recv<'_> {
    type Output = Option<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let site = self.site;
        self.signal.poll_at(cx, site)
    }
}
