//! Standard input, output and error.
//!
//! What the selector can watch is watched: pipes, terminals and sockets. Pipes and terminals are opened anew for that,
//! so that no flag of ours leaks to other processes that share them. Nothing is buffered here, neither in nor out: a
//! cancelled read has eaten nothing, and what a write reports as written has been handed to the system.
//!
//! Mixing with [`std::io`]: what the buffer of [`std::io::stdin`] already holds is not seen here, and what lies
//! unflushed in that of [`std::io::stdout`] comes later than what is written here.

mod own;
mod reader;

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};
use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use self::own::Own;
use self::reader::{ThreadReader, block_until};
use crate::driver::{Interest, Registered};

/// Reads what the selector cannot watch, for all handles of the process.
static READER: LazyLock<ThreadReader> = LazyLock::new(ThreadReader::default);

/// Tells handles apart.
static NEXT_KEY: AtomicU64 = AtomicU64::new(0);

/// A handle to standard input.
///
/// Each handle waits for itself; a byte goes to one of those that read.
///
/// If standard input is a pipe, a terminal or a socket, waiting for it is waiting for the selector. Otherwise (a file,
/// another device) a thread reads, which nobody ever waits for: neither the end of a runtime nor that of the process.
/// It reads only when a handle asked for bytes, and what it reads for a read that was then cancelled goes to
/// the next one.
pub struct Stdin {
    input: Input,
    site: &'static Location<'static>,
}

#[derive(Debug)]
enum Input {
    /// Non-blocking, and nobody else's.
    Reopened(Registered<OwnedFd>),
    Socket(Registered<OwnedFd>),
    Thread {
        key: u64,
    },
}

/// A handle to standard input. Needs no runtime until it has to wait.
///
/// # Examples
/// ```no_run
/// use rt_io::util::{AsyncBufReadExt, BufReader};
///
/// # async fn first_line() -> std::io::Result<String> {
/// let mut lines = BufReader::new(rt_io::stdio::stdin());
/// let mut line = String::new();
/// lines.read_line(&mut line).await?;
/// # Ok(line)
/// # }
/// ```
#[must_use]
#[track_caller]
pub fn stdin() -> Stdin {
    let watch = |fd| Registered::with_interest(fd, Interest::READABLE);
    let input = match Own::of(rustix::stdio::stdin(), OFlags::RDONLY) {
        Some(Own::Reopened(fd)) => Input::Reopened(watch(fd)),
        Some(Own::Socket(fd)) => Input::Socket(watch(fd)),
        None => Input::Thread {
            key: NEXT_KEY.fetch_add(1, Relaxed),
        },
    };
    Stdin {
        input,
        site: Location::caller(),
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match &self.input {
            Input::Reopened(io) => io.poll_read_io(cx, |fd| Ok(rustix::io::read(fd, &mut *buf)?)),
            Input::Socket(io) => io.poll_read_io(cx, |fd| {
                let (read, _) = rustix::net::recv(fd, &mut *buf, RecvFlags::DONTWAIT)?;
                Ok(read)
            }),
            Input::Thread { key } => {
                let unit = ready!(coop::poll_proceed(cx));
                let result = READER.poll_read(cx, *key, rustix::stdio::stdin(), buf);
                if result.is_pending() {
                    wait::record(WaitKind::Read, self.site);
                } else {
                    unit.made_progress();
                }
                result
            }
        }
    }
}

impl Drop for Stdin {
    fn drop(&mut self) {
        if let Input::Thread { key } = self.input {
            READER.forget(key);
        }
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("input", &self.input).finish()
    }
}

/// How an output stream is written.
#[derive(Debug)]
enum Output {
    /// Non-blocking, and nobody else's.
    Reopened(Registered<OwnedFd>),
    Socket(Registered<OwnedFd>),
    /// The stream itself, with blocking calls.
    Blocking(BorrowedFd<'static>),
}

impl Output {
    fn new(shared: BorrowedFd<'static>) -> Self {
        let watch = |fd| Registered::with_interest(fd, Interest::WRITABLE);
        match Own::of(shared, OFlags::WRONLY) {
            Some(Own::Reopened(fd)) => Output::Reopened(watch(fd)),
            Some(Own::Socket(fd)) => Output::Socket(watch(fd)),
            None => Output::Blocking(shared),
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Output::Reopened(io) => io.poll_write_io(cx, |fd| Ok(rustix::io::write(fd, buf)?)),
            Output::Socket(io) => io.poll_write_io(cx, |fd| {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                Ok(rustix::net::send(fd, buf, flags)?)
            }),
            Output::Blocking(fd) => blocking(cx, *fd, |fd| rustix::io::write(fd, buf)),
        }
    }

    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Output::Reopened(io) => io.poll_write_io(cx, |fd| Ok(rustix::io::writev(fd, bufs)?)),
            Output::Socket(_) => {
                let first = bufs.iter().find(|buf| !buf.is_empty());
                self.poll_write(cx, first.map_or(&[][..], |buf| buf))
            }
            Output::Blocking(fd) => blocking(cx, *fd, |fd| rustix::io::writev(fd, bufs)),
        }
    }
}

/// One blocking write, also if somebody else made the shared description non-blocking.
fn blocking(
    cx: &mut Context<'_>,
    fd: BorrowedFd<'_>,
    write: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<usize>,
) -> Poll<io::Result<usize>> {
    let unit = ready!(coop::poll_proceed(cx));
    unit.made_progress();
    loop {
        match write(fd) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => block_until(fd, PollFlags::OUT)?,
            other => return Poll::Ready(other.map_err(io::Error::from)),
        }
    }
}

/// The two output streams.
macro_rules! output {
    ($type:ident, $name:ident, $what:literal) => {
        #[doc = concat!("A handle to ", $what, ".")]
        ///
        /// A write completes when the system has taken the bytes: nothing is lost when the process ends without a
        /// flush, and an error comes from the call that made it. Writes of several handles do not mix within one call
        /// that fits into the pipe.
        ///
        /// If the stream is a pipe, a terminal or a socket, a write that finds no room waits for the selector.
        /// Otherwise (a file, another device) it is a plain blocking write on this thread: such writes do not wait for
        /// anybody else's program.
        #[derive(Debug)]
        pub struct $type(Output);

        #[doc = concat!("A handle to ", $what, ". Needs no runtime until it has to wait.")]
        ///
        /// Keep the handle if you write often: making one costs some system calls.
        #[must_use]
        pub fn $name() -> $type {
            $type(Output::new(rustix::stdio::$name()))
        }

        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_write_vectored(cx, bufs)
            }

            /// There is nothing to flush.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            /// Leaves the stream open: others use it too.
            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
        }

        descriptor!($type, $name);
    };
}

/// The descriptor that other processes know too.
macro_rules! descriptor {
    ($type:ident, $name:ident) => {
        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                rustix::stdio::$name()
            }
        }

        impl AsRawFd for $type {
            fn as_raw_fd(&self) -> RawFd {
                rustix::stdio::$name().as_raw_fd()
            }
        }
    };
}

descriptor!(Stdin, stdin);
output!(Stdout, stdout, "standard output");
output!(Stderr, stderr, "standard error");
