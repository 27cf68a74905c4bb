//! Connecting: one address after the other, until one answers.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rt_sync::coop;
use rt_sync::wait::{self, WaitKind};

use super::stream::{TcpStream, unregistered};
use crate::driver::Registered;
use crate::error;
use crate::net::addr::{Addrs, Resolve, ToSocketAddrs, no_addresses};

/// Future of [`TcpStream::connect`] and [`TcpSocket::connect`](super::TcpSocket::connect).
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Connect {
    step: Step,
    /// Addresses not tried yet.
    addrs: Addrs,
    last: Option<io::Error>,
    site: &'static Location<'static>,
}

#[derive(Debug)]
enum Step {
    Resolve(Resolve),
    Next,
    Wait(Registered<mio::net::TcpStream>, SocketAddr),
    Done,
}

impl Connect {
    pub(super) fn new(addrs: impl ToSocketAddrs, site: &'static Location<'static>) -> Self {
        Self {
            step: Step::Resolve(Resolve::new(addrs)),
            addrs: Addrs::One(None),
            last: None,
            site,
        }
    }

    /// A socket on which `connect` was called already.
    pub(super) fn begun(
        begun: io::Result<mio::net::TcpStream>,
        addr: SocketAddr,
        site: &'static Location<'static>,
    ) -> Self {
        let (step, last) = match begun {
            Ok(stream) => (Step::Wait(unregistered(stream), addr), None),
            Err(error) => (
                Step::Next,
                Some(error::with_addr("connect to", addr, &error)),
            ),
        };
        Self {
            step,
            addrs: Addrs::One(None),
            last,
            site,
        }
    }
}

/// Waits until the connection stands. Most on the same machine stand at once, and then nothing is registered.
fn poll_connected(
    stream: &Registered<mio::net::TcpStream>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    loop {
        // Says `NotConnected` both before and after a failure; only then is there a need to ask for the error.
        match stream.get_ref().peer_addr() {
            Ok(_) => return Poll::Ready(Ok(())),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        if let Some(error) = stream.get_ref().take_error()? {
            return Poll::Ready(Err(error));
        }
        let event = ready!(stream.poll_write_ready(cx))?;
        match stream.get_ref().peer_addr() {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
            _ => continue,
        }
        if let Some(error) = stream.get_ref().take_error()? {
            return Poll::Ready(Err(error));
        }
        stream.clear(event);
    }
}

impl Future for Connect {
    type Output = io::Result<TcpStream>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Of its own, since a connection that stands at once spends no other.
        let unit = ready!(coop::poll_proceed(cx));
        let polled = self.get_mut().poll_steps(cx);
        if polled.is_ready() {
            unit.made_progress();
        }
        polled
    }
}

impl Connect {
    fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let this = self;
        loop {
            match &mut this.step {
                Step::Resolve(resolve) => {
                    let Poll::Ready(addrs) = resolve.poll_addrs(cx) else {
                        wait::record(WaitKind::Connect, this.site);
                        return Poll::Pending;
                    };
                    this.step = Step::Done;
                    this.addrs = addrs?;
                    this.step = Step::Next;
                }
                Step::Next => {
                    let Some(addr) = this.addrs.next() else {
                        this.step = Step::Done;
                        return Poll::Ready(Err(this.last.take().unwrap_or_else(no_addresses)));
                    };
                    match mio::net::TcpStream::connect(addr) {
                        Ok(stream) => this.step = Step::Wait(unregistered(stream), addr),
                        Err(error) => {
                            this.last = Some(error::with_addr("connect to", addr, &error));
                        }
                    }
                }
                Step::Wait(stream, addr) => match poll_connected(stream, cx) {
                    Poll::Pending => {
                        wait::record(WaitKind::Connect, this.site);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(())) => {
                        let Step::Wait(stream, _) = std::mem::replace(&mut this.step, Step::Done)
                        else {
                            unreachable!("the step was `Wait` a line ago")
                        };
                        return Poll::Ready(Ok(TcpStream::from_registered(stream)));
                    }
                    // No other address helps against these.
                    Poll::Ready(Err(error))
                        if error::is_no_runtime(&error) || error::is_runtime_closed(&error) =>
                    {
                        this.step = Step::Done;
                        return Poll::Ready(Err(error));
                    }
                    Poll::Ready(Err(error)) => {
                        this.last = Some(error::with_addr("connect to", *addr, &error));
                        this.step = Step::Next;
                    }
                },
                Step::Done => panic!("`Connect` was polled after it had completed"),
            }
        }
    }
}
