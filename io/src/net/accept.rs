//! What `accept` does about errors that are no fault of the listener.
//!
//! - Errors of the one connection that was accepted are skipped.
//! - Out of descriptors or memory: the connection stays in the backlog and the listener stays ready, so trying again at
//!   once would spin. Wait 10 ms, then twice as long each time up to 1 s, and say so once.

use std::fmt;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;

use crate::context::{self, BoxFuture, Notice};
use crate::tell::to_stderr;

const FIRST_MS: u32 = 10;
const LAST_MS: u32 = 1000;

/// What to do about an error of `accept`.
enum Verdict {
    NextConnection,
    BackOff,
    Fatal,
}

fn judge(error: &io::Error) -> Verdict {
    let Some(errno) = Errno::from_io_error(error) else {
        return Verdict::Fatal;
    };
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Verdict::BackOff,
        // accept(2): errors that are already pending on the new connection. EPERM and EOPNOTSUPP are in that list as well,
        // but may also be the listener's own and then stay for ever.
        Errno::CONNABORTED
        | Errno::CONNRESET
        | Errno::PROTO
        | Errno::NETDOWN
        | Errno::NETUNREACH
        | Errno::NOPROTOOPT
        | Errno::HOSTDOWN
        | Errno::HOSTUNREACH
        | Errno::TIMEDOUT => Verdict::NextConnection,
        _ => Verdict::Fatal,
    }
}

/// The state of a listener between two connections.
#[derive(Default)]
pub(crate) struct Accepting {
    /// The last wait of this episode of errors; 0: there is none.
    delay_ms: AtomicU32,
    /// The wait of `poll_accept`, which has no future to keep it in.
    sleep: Mutex<Option<BoxFuture<()>>>,
}

impl Accepting {
    pub(crate) const fn new() -> Self {
        Self {
            delay_ms: AtomicU32::new(0),
            sleep: Mutex::new(None),
        }
    }

    /// Runs `accept` until there is a connection or an error that the caller should see. `sleep` is where a wait is kept
    /// from one poll to the next.
    pub(crate) fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        sleep: &mut Option<BoxFuture<()>>,
        mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        loop {
            if let Some(waiting) = sleep {
                ready!(waiting.as_mut().poll(cx));
                *sleep = None;
            }
            let error = match ready!(accept(cx)) {
                Ok(connection) => {
                    if self.delay_ms.load(Relaxed) != 0 {
                        self.delay_ms.store(0, Relaxed);
                    }
                    return Poll::Ready(Ok(connection));
                }
                Err(error) => error,
            };
            match judge(&error) {
                Verdict::NextConnection => {}
                Verdict::Fatal => return Poll::Ready(Err(error)),
                Verdict::BackOff => match self.back_off(&error) {
                    Some(waiting) => *sleep = Some(waiting),
                    None => return Poll::Ready(Err(error)),
                },
            }
        }
    }

    /// The same for `poll_accept`.
    pub(crate) fn poll_shared<R>(
        &self,
        cx: &mut Context<'_>,
        accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        // Taken out while it is polled: that clones wakers. The common case is `None` and takes a lock that nobody else wants.
        let mut sleep = self.lock().take();
        let result = self.poll(cx, &mut sleep, accept);
        if sleep.is_some() {
            let replaced = std::mem::replace(&mut *self.lock(), sleep);
            drop(replaced);
        }
        result
    }

    /// The next wait of this episode. `None` without a timer.
    fn back_off(&self, error: &io::Error) -> Option<BoxFuture<()>> {
        let before = self.delay_ms.load(Relaxed);
        let delay = (before * 2).clamp(FIRST_MS, LAST_MS);
        let sleep = context::sleep(Duration::from_millis(delay.into()))?;
        self.delay_ms.store(delay, Relaxed);
        if before == 0 {
            let text = format!(
                "accept fails for want of descriptors or memory ({error}); new connections wait until some are \
                 given back, retrying every {FIRST_MS} to {LAST_MS} ms (raise the limit with `ulimit -n`, or limit the \
                 number of connections)"
            );
            // A runtime takes it, and with a hook for sleeps there is one; this crate may also be used without.
            if !context::notice(Notice::AcceptBackOff(&text)) {
                to_stderr(&text);
            }
        }
        Some(sleep)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<BoxFuture<()>>> {
        self.sleep
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl fmt::Debug for Accepting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepting")
            .field("delay_ms", &self.delay_ms)
            .finish_non_exhaustive()
    }
}
