//! The adapter layer: one trait per runtime, so that every row runs the same workload code on each of them.
//!
//! # What it guarantees
//! Workloads are generic over [`Peer`] and monomorphised: no dynamic dispatch and no box stands between a
//! workload and the runtime. A peer is picked once, outside the measured part, by [`with_peer!`](crate::with_peer).
//!
//! # What would mislead
//! One runtime a process: `smol`'s executor is a global here, as it is in the `smol` crate, so two started runtimes
//! would share it. Every sample therefore runs in a child process of its own (see [`child`](crate::child)).
//!
//! Workers are threads that run tasks. The thread in `block_on` is no worker on any peer; workloads are sent to a
//! worker from outside ([`on_worker`]) and the caller waits on a plain channel.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

pub mod by_hand;
mod rt;
mod smol;
mod tokio;

pub use self::rt::{Rt, without_monitor};
pub use self::smol::Smol;
pub use self::tokio::Tokio;

/// A runtime under comparison, started with a number of workers.
pub trait Peer: Sized + Send + Sync + 'static {
    /// Resolves to what the task returned; dropping it may cancel the task.
    type Join<T: Send + 'static>: Future<Output = T> + Send + 'static;
    /// A listening TCP socket.
    type Listener: Send + Sync + 'static;
    /// A connected TCP socket.
    type Stream: Send + 'static;

    /// Starts the runtime with `workers` worker threads.
    fn start(workers: usize) -> Self;

    /// Runs a future on the calling thread, with the workers beside it.
    fn block_on<F: Future>(&self, future: F) -> F::Output;

    /// Spawns a task from a thread that is no worker, and lets it go.
    fn spawn_remote<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static;

    /// Spawns a task from inside the runtime.
    fn spawn<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Spawns a task from inside the runtime, and lets it go.
    fn detach<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static;

    /// Gives way to the other ready tasks once.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// Completes after `duration`.
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send;

    /// Runs `future` for at most `duration`.
    fn timeout<F>(duration: Duration, future: F) -> impl Future<Output = Option<F::Output>> + Send
    where
        F: Future + Send,
        F::Output: Send;

    /// Runs a closure on the blocking pool.
    fn spawn_blocking<F>(closure: F) -> impl Future<Output = ()> + Send
    where
        F: FnOnce() + Send + 'static;

    /// Listens on a free port of the loopback interface.
    fn listen() -> impl Future<Output = io::Result<(Self::Listener, SocketAddr)>> + Send;

    /// Takes one connection, with Nagle's algorithm off.
    fn accept(listener: &Self::Listener) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Reads what there is, at least one byte; 0 is the end of the stream.
    fn read(
        stream: &mut Self::Stream,
        buffer: &mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Writes all bytes.
    fn write_all(
        stream: &mut Self::Stream,
        bytes: &[u8],
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// A peer that serves HTTP through hyper.
pub trait HttpPeer: Peer {
    /// The connection as hyper sees it.
    type Http: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static;

    /// Wraps a connection for hyper.
    fn http(stream: Self::Stream) -> Self::Http;
}

/// Runs `future` as a task on a worker and waits for it on the calling thread, without the peer's `block_on`.
///
/// # Panics
///
/// If the task ends without an output, that is, when it panicked.
pub fn on_worker<P, F>(peer: &P, future: F) -> F::Output
where
    P: Peer,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (done, wait) = std::sync::mpsc::channel();
    peer.spawn_remote(async move {
        let _ = done.send(future.await);
    });
    wait.recv().expect("the workload panicked on its worker")
}

/// Names a peer on command lines and in tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeerId {
    /// This project's runtime.
    Rt,
    /// tokio, multi-thread flavour.
    Tokio,
    /// `async-executor` with N threads, `async-io` and `blocking`: what smol 2 is made of.
    Smol,
    /// A hand-written event loop, one thread per worker. Only for the echo rows.
    ByHand,
    /// The channels of flume, on this project's runtime. Only for the rows of mpsc.
    Flume,
}

impl PeerId {
    /// All of them, in the order of the table's columns.
    pub const ALL: [Self; 5] = [Self::Rt, Self::Tokio, Self::Smol, Self::ByHand, Self::Flume];
    /// Those that echo.
    pub const ECHO: [Self; 4] = [Self::Rt, Self::Tokio, Self::Smol, Self::ByHand];
    /// Those that run tasks.
    pub const RUNTIMES: [Self; 3] = [Self::Rt, Self::Tokio, Self::Smol];

    /// The name used on command lines and as a column head.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rt => "rt",
            Self::Tokio => "tokio",
            Self::Smol => "smol",
            Self::ByHand => "by-hand",
            Self::Flume => "flume",
        }
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PeerId {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|peer| peer.name() == name)
            .ok_or_else(|| {
                format!("no peer is called {name:?}; there are rt, tokio, smol, by-hand and flume")
            })
    }
}

/// Evaluates an expression with a type alias bound to the runtime that a [`PeerId`] names.
///
/// `with_peer!(id, P => measure::<P>(2))`. Panics for [`PeerId::ByHand`], which runs no tasks.
#[macro_export]
macro_rules! with_peer {
    ($id:expr, $peer:ident => $body:expr) => {
        match $id {
            $crate::peer::PeerId::Rt => {
                type $peer = $crate::peer::Rt;
                $body
            }
            $crate::peer::PeerId::Tokio => {
                type $peer = $crate::peer::Tokio;
                $body
            }
            $crate::peer::PeerId::Smol => {
                type $peer = $crate::peer::Smol;
                $body
            }
            other => panic!("{other} runs no tasks"),
        }
    };
}
