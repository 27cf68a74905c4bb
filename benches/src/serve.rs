//! The servers under load: echo, HTTP through hyper, and sleepers that only wait.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;

use crate::peer::{HttpPeer, Peer, on_worker};

/// Longer than any row runs.
pub const FOREVER: Duration = Duration::from_secs(3600);

/// Starts a peer that echoes with one task and one buffer of `buffer` bytes a connection.
///
/// # Panics
///
/// If the peer cannot listen on the loopback interface.
pub fn echo<P: Peer>(workers: usize, buffer: usize) -> (P, SocketAddr) {
    let peer = P::start(workers);
    let address = on_worker(&peer, async move {
        let (listener, address) = P::listen()
            .await
            .expect("the loopback interface has a free port");
        P::detach(async move {
            while let Ok(stream) = P::accept(&listener).await {
                P::detach(echo_one::<P>(stream, buffer));
            }
        });
        address
    });
    (peer, address)
}

/// Echoes on one connection, until it ends.
pub async fn echo_one<P: Peer>(mut stream: P::Stream, size: usize) {
    let mut buffer = vec![0; size].into_boxed_slice();
    loop {
        match P::read(&mut stream, &mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                if P::write_all(&mut stream, &buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Starts a peer that answers every HTTP/1.1 request with a small text.
///
/// # Panics
///
/// If the peer cannot listen on the loopback interface.
pub fn http<P: HttpPeer>(workers: usize) -> (P, SocketAddr) {
    let peer = P::start(workers);
    let address = on_worker(&peer, async move {
        let (listener, address) = P::listen()
            .await
            .expect("the loopback interface has a free port");
        P::detach(async move {
            while let Ok(stream) = P::accept(&listener).await {
                P::detach(http_one::<P>(stream));
            }
        });
        address
    });
    (peer, address)
}

async fn http_one<P: HttpPeer>(stream: P::Stream) {
    let service = service_fn(|_request| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(
            b"Hello, world!\n",
        ))))
    });
    // An error here is a client that went away: the load generator does that at the end.
    let _ = http1::Builder::new()
        .serve_connection(P::http(stream), service)
        .await;
}

/// Adds `count` tasks that sleep for an hour each to a running peer.
pub fn sleepers<P: Peer>(peer: &P, count: u64) {
    on_worker(peer, async move {
        for _ in 0..count {
            P::detach(async { P::sleep(FOREVER).await });
        }
        P::yield_now().await;
    });
}
