//! Addresses: what can be turned into some, and the look-up of names.
//!
//! Literals are turned at once. A name needs a thread, since the system's resolver blocks: that of the runtime's
//! blocking pool, through the hook in [`context`](crate::context), or else one of its own.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;
use std::vec;

use rt_sync::AtomicWaker;
use rt_sync::coop;
use rt_sync::primitive::Mutex;
use rt_sync::wait::{self, WaitKind};

use crate::context::{self, BoxFuture};

/// What can be turned into socket addresses: addresses, pairs of IP address or host name and port, and strings of the
/// form `host:port`.
///
/// This trait is sealed. Names are looked up without blocking the thread.
pub trait ToSocketAddrs: sealed::Resolvable {}

impl<T: sealed::Resolvable + ?Sized> ToSocketAddrs for T {}

mod sealed {
    use super::Resolve;

    pub trait Resolvable {
        fn resolve(&self) -> Resolve;
    }
}

/// Turns addresses into addresses; used by the futures of `bind`, `connect` and the like.
pub struct Resolve(State);

enum State {
    Literal(io::Result<Addrs>),
    Lookup(BoxFuture<io::Result<Vec<SocketAddr>>>),
    Done,
}

/// Some addresses: mostly one.
#[derive(Debug)]
pub(crate) enum Addrs {
    One(Option<SocketAddr>),
    Many(vec::IntoIter<SocketAddr>),
}

impl Iterator for Addrs {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        match self {
            Addrs::One(addr) => addr.take(),
            Addrs::Many(addrs) => addrs.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self {
            Addrs::One(addr) => usize::from(addr.is_some()),
            Addrs::Many(addrs) => addrs.len(),
        };
        (left, Some(left))
    }
}

impl Resolve {
    /// Starts turning addresses into addresses.
    pub(crate) fn new(addrs: impl ToSocketAddrs) -> Self {
        addrs.resolve()
    }

    fn one(addr: SocketAddr) -> Self {
        Resolve(State::Literal(Ok(Addrs::One(Some(addr)))))
    }

    fn host(host: &str, port: u16) -> Self {
        match host.parse::<IpAddr>() {
            Ok(ip) => Self::one(SocketAddr::new(ip, port)),
            Err(_) => Resolve(State::Lookup(Box::pin(look_up_named(
                host.to_owned(),
                port,
            )))),
        }
    }

    fn text(text: &str) -> Self {
        if let Ok(addr) = text.parse() {
            return Self::one(addr);
        }
        let parts = text.rsplit_once(':');
        let parts = parts.and_then(|(host, port)| Some((host, port.parse().ok()?)));
        match parts {
            Some((host, port)) => Self::host(host, port),
            None => Resolve(State::Literal(Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "invalid socket address {text:?}: expected `host:port` with a port of 0 to 65535"
                ),
            )))),
        }
    }

    /// The addresses; the caller records what it waits for.
    pub(crate) fn poll_addrs(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Addrs>> {
        if let State::Lookup(lookup) = &mut self.0 {
            let found = ready!(lookup.as_mut().poll(cx));
            self.0 = State::Literal(found.map(|addrs| Addrs::Many(addrs.into_iter())));
        }
        match std::mem::replace(&mut self.0, State::Done) {
            State::Literal(result) => Poll::Ready(result),
            State::Lookup(_) | State::Done => panic!("a look-up was polled after it had completed"),
        }
    }
}

impl fmt::Debug for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Literal(_) => "Resolve(literal)",
            State::Lookup(_) => "Resolve(look-up)",
            State::Done => "Resolve(done)",
        })
    }
}

impl<T: sealed::Resolvable + ?Sized> sealed::Resolvable for &T {
    fn resolve(&self) -> Resolve {
        (**self).resolve()
    }
}

impl sealed::Resolvable for SocketAddr {
    fn resolve(&self) -> Resolve {
        Resolve::one(*self)
    }
}

impl sealed::Resolvable for SocketAddrV4 {
    fn resolve(&self) -> Resolve {
        Resolve::one((*self).into())
    }
}

impl sealed::Resolvable for SocketAddrV6 {
    fn resolve(&self) -> Resolve {
        Resolve::one((*self).into())
    }
}

impl sealed::Resolvable for (IpAddr, u16) {
    fn resolve(&self) -> Resolve {
        Resolve::one((*self).into())
    }
}

impl sealed::Resolvable for (Ipv4Addr, u16) {
    fn resolve(&self) -> Resolve {
        Resolve::one((*self).into())
    }
}

impl sealed::Resolvable for (Ipv6Addr, u16) {
    fn resolve(&self) -> Resolve {
        Resolve::one((*self).into())
    }
}

impl sealed::Resolvable for [SocketAddr] {
    fn resolve(&self) -> Resolve {
        Resolve(State::Literal(Ok(Addrs::Many(Vec::from(self).into_iter()))))
    }
}

impl<const N: usize> sealed::Resolvable for [SocketAddr; N] {
    fn resolve(&self) -> Resolve {
        self[..].resolve()
    }
}

impl sealed::Resolvable for Vec<SocketAddr> {
    fn resolve(&self) -> Resolve {
        self[..].resolve()
    }
}

impl sealed::Resolvable for str {
    fn resolve(&self) -> Resolve {
        Resolve::text(self)
    }
}

impl sealed::Resolvable for String {
    fn resolve(&self) -> Resolve {
        Resolve::text(self)
    }
}

impl sealed::Resolvable for (&str, u16) {
    fn resolve(&self) -> Resolve {
        Resolve::host(self.0, self.1)
    }
}

impl sealed::Resolvable for (String, u16) {
    fn resolve(&self) -> Resolve {
        Resolve::host(&self.0, self.1)
    }
}

/// Looks a name up.
///
/// # Errors
/// If the name is unknown or the resolver fails; if the text is not of the form `host:port`.
///
/// # Cancel safety
/// The look-up goes on in the background when the future is dropped; its result is lost.
///
/// # Examples
/// ```
/// # futures_lite::future::block_on(async {
/// let mut addrs = rt_io::net::lookup_host("127.0.0.1:80").await?;
/// assert_eq!(addrs.next().map(|addr| addr.port()), Some(80));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[track_caller]
pub fn lookup_host(host: impl ToSocketAddrs) -> Lookup {
    Lookup {
        resolve: Resolve::new(host),
        site: Location::caller(),
    }
}

/// Future of [`lookup_host`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Lookup {
    resolve: Resolve,
    site: &'static Location<'static>,
}

impl Future for Lookup {
    type Output = io::Result<LookupHost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(coop::poll_proceed(cx));
        let Poll::Ready(result) = self.resolve.poll_addrs(cx) else {
            wait::record(WaitKind::Blocking, self.site);
            return Poll::Pending;
        };
        unit.made_progress();
        Poll::Ready(result.map(LookupHost))
    }
}

/// The addresses that [`lookup_host`] found.
#[derive(Debug)]
pub struct LookupHost(Addrs);

impl Iterator for LookupHost {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Future that tries an operation on one address after the other until one succeeds, such as `TcpListener::bind`.
#[must_use = "futures do nothing unless awaited"]
pub struct EachAddr<T> {
    resolve: Resolve,
    try_one: fn(SocketAddr) -> io::Result<T>,
    what: &'static str,
    site: &'static Location<'static>,
}

impl<T> EachAddr<T> {
    /// `what` is for errors: "cannot `what` 127.0.0.1:80: address in use".
    pub(crate) fn new(
        addrs: impl ToSocketAddrs,
        what: &'static str,
        site: &'static Location<'static>,
        try_one: fn(SocketAddr) -> io::Result<T>,
    ) -> Self {
        Self {
            resolve: Resolve::new(addrs),
            try_one,
            what,
            site,
        }
    }
}

impl<T> Future for EachAddr<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let unit = ready!(coop::poll_proceed(cx));
        let Poll::Ready(addrs) = self.resolve.poll_addrs(cx) else {
            wait::record(WaitKind::Blocking, self.site);
            return Poll::Pending;
        };
        unit.made_progress();
        let mut last = None;
        for addr in addrs? {
            match (self.try_one)(addr) {
                Ok(done) => return Poll::Ready(Ok(done)),
                Err(error) => last = Some(crate::error::with_addr(self.what, addr, &error)),
            }
        }
        Poll::Ready(Err(last.unwrap_or_else(no_addresses)))
    }
}

impl<T> fmt::Debug for EachAddr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EachAddr")
            .field("what", &self.what)
            .field("resolve", &self.resolve)
            .finish_non_exhaustive()
    }
}

/// The list was empty, or the resolver found a name without addresses.
pub(crate) fn no_addresses() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "there is no address to try: the list is empty, or the name has no addresses",
    )
}

/// A look-up whose error says what was looked up.
async fn look_up_named(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = look_up(host.clone(), port).await;
    found.map_err(|error| io::Error::new(error.kind(), format!("cannot look up {host:?}: {error}")))
}

fn look_up(host: String, port: u16) -> BoxFuture<io::Result<Vec<SocketAddr>>> {
    match context::resolve_hook() {
        Some(hook) => hook(host, port),
        None => Box::pin(OnThread::spawn(host, port)),
    }
}

/// A look-up on a thread of its own.
struct OnThread {
    shared: Arc<Shared>,
    failed: Option<io::Error>,
}

#[derive(Default)]
struct Shared {
    found: Mutex<Option<io::Result<Vec<SocketAddr>>>>,
    waker: AtomicWaker,
}

impl OnThread {
    fn spawn(host: String, port: u16) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("rt-lookup".to_owned());
        let failed = thread
            .spawn(move || {
                let found = std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), port));
                *theirs.found.lock() = Some(found.map(Iterator::collect));
                theirs.waker.wake();
            })
            .err();
        Self { shared, failed }
    }
}

impl Future for OnThread {
    type Output = io::Result<Vec<SocketAddr>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        self.shared.waker.register(cx.waker());
        match self.shared.found.lock().take() {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        }
    }
}
