//! smol 2 as a [`Peer`], from the crates it consists of: one global `async-executor`, N threads that run it, sockets
//! and timers of `async-io`, the pool of `blocking`.
//!
//! # What would mislead
//! `async-io` turns its one reactor on whichever executor thread is idle, and on a thread of its own while none is.
//! So a process with one worker has two threads that may take events.

use std::future::{Future, pending};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use async_executor::{Executor, Task};
use async_io::{Async, Timer};
use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt};

use super::Peer;

static EXECUTOR: Executor<'static> = Executor::new();

/// smol 2.
#[derive(Debug)]
pub struct Smol(());

impl Peer for Smol {
    type Join<T: Send + 'static> = Task<T>;
    type Listener = Async<TcpListener>;
    type Stream = Async<TcpStream>;

    fn start(workers: usize) -> Self {
        for worker in 0..workers {
            std::thread::Builder::new()
                .name(format!("smol-{worker}"))
                .spawn(|| async_io::block_on(EXECUTOR.run(pending::<()>())))
                .expect("the system gives a thread");
        }
        Self(())
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        async_io::block_on(future)
    }

    fn spawn_remote<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        EXECUTOR.spawn(future).detach();
    }

    fn spawn<F>(future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        EXECUTOR.spawn(future)
    }

    fn detach<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        EXECUTOR.spawn(future).detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }

    async fn sleep(duration: Duration) {
        Timer::after(duration).await;
    }

    async fn timeout<F>(duration: Duration, future: F) -> Option<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        let late = async {
            Timer::after(duration).await;
            None
        };
        async { Some(future.await) }.or(late).await
    }

    fn spawn_blocking<F>(closure: F) -> impl Future<Output = ()> + Send
    where
        F: FnOnce() + Send + 'static,
    {
        blocking::unblock(closure)
    }

    async fn listen() -> io::Result<(Self::Listener, SocketAddr)> {
        let listener = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.get_ref().local_addr()?;
        Ok((listener, address))
    }

    async fn accept(listener: &Self::Listener) -> io::Result<Self::Stream> {
        let (stream, _) = listener.accept().await?;
        stream.get_ref().set_nodelay(true)?;
        Ok(stream)
    }

    async fn read(stream: &mut Self::Stream, buffer: &mut [u8]) -> io::Result<usize> {
        stream.read(buffer).await
    }

    async fn write_all(stream: &mut Self::Stream, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes).await
    }
}
