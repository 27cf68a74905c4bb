//! Operations that succeed at once spend budget, so that a task that does nothing else gives way.

use std::future::Future;
use std::net::UdpSocket as StdUdpSocket;
use std::pin::pin;
use std::task::Context;

use rt_io::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream, lookup_host};
use rt_sync::coop;

use crate::exec::Counter;
use crate::support::within_limit;

/// Makes one future after the other and polls each once. Before the budget is spent twice, one must wake itself and wait.
#[track_caller]
fn gives_way<F: Future>(mut make: impl FnMut() -> F) {
    let counter = Counter::new(None);
    let waker = counter.waker();
    let saved = coop::start();
    let gave_way = (0..=coop::BUDGET).any(|_| {
        let polled = pin!(make()).poll(&mut Context::from_waker(&waker));
        polled.is_pending() && counter.wakes() == 1
    });
    coop::restore(saved);
    assert!(gave_way, "it never gives way");
}

#[test]
fn looking_up_binding_and_connecting_give_way() {
    within_limit(|| {
        gives_way(|| lookup_host("127.0.0.1:80"));
        gives_way(|| TcpListener::bind("127.0.0.1:0"));
        gives_way(|| UdpSocket::bind("127.0.0.1:0"));

        let listener = StdUdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let socket = UdpSocket::from_std(StdUdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        gives_way(|| socket.connect(addr));

        let listener = futures_lite::future::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap();
        gives_way(|| TcpStream::connect(addr));

        let path = std::env::temp_dir().join(format!("rt-io-coop-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        gives_way(|| UnixStream::connect(&path));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
    });
}
