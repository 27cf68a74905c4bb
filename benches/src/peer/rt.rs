//! `rt` as a [`Peer`].

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rt::io::{AsyncReadExt, AsyncWriteExt};
use rt::net::{TcpListener, TcpStream};
use rt::runtime::{Builder, Runtime};
use rt::task::JoinHandle;

use super::{HttpPeer, Peer};

/// Whether runtimes that are started have a monitor.
static MONITOR: AtomicBool = AtomicBool::new(true);

/// The runtimes that this process starts from now on have no monitor. A type of its own for those would be compiled a second
/// time, and the two copies of one workload differ by 2 % in what they take.
pub fn without_monitor() {
    MONITOR.store(false, Relaxed);
}

/// This project's runtime.
#[derive(Debug)]
pub struct Rt {
    runtime: Runtime,
}

/// A join handle that panics where the task panicked, so that all peers resolve to the bare output.
#[derive(Debug)]
pub struct Join<T>(JoinHandle<T>);

impl<T> Future for Join<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(output) => Poll::Ready(output),
            Err(error) => panic!("a benchmark task failed: {error}"),
        }
    }
}

impl Peer for Rt {
    type Join<T: Send + 'static> = Join<T>;
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn start(workers: usize) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .monitor(MONITOR.load(Relaxed))
            .build()
            .expect("rt starts");
        Self { runtime }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    fn spawn_remote<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(self.runtime.spawn(future));
    }

    fn spawn<F>(future: F) -> Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Join(rt::spawn(future))
    }

    fn detach<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(rt::spawn(future));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        rt::task::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send {
        rt::time::sleep(duration)
    }

    async fn timeout<F>(duration: Duration, future: F) -> Option<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        rt::time::timeout(duration, future).await.ok()
    }

    async fn spawn_blocking<F>(closure: F)
    where
        F: FnOnce() + Send + 'static,
    {
        rt::spawn_blocking(closure)
            .await
            .expect("the closure returns");
    }

    async fn listen() -> io::Result<(TcpListener, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    }

    async fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        stream.read(buffer).await
    }

    async fn write_all(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes).await
    }
}

impl HttpPeer for Rt {
    type Http = TcpStream;

    fn http(stream: TcpStream) -> TcpStream {
        stream
    }
}
