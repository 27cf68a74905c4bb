//! A web server with hyper: `cargo run --release --example http -- --addr 127.0.0.1:8080 --workers 2`.
//!
//! `GET /` answers at once, `GET /sleep/<ms>` after a timer, `GET /blocking/<ms>` after a thread has slept that long; all
//! else is 404. SIGINT and SIGTERM let open requests finish, but no longer than [`DRAIN`].

#[path = "support/connections.rs"]
mod connections;
mod support;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use rt::net::{TcpListener, TcpStream};
use rt::signal::unix::{SignalKind, signal};

use crate::connections::{Connection, Connections};

/// How long open requests may go on after a signal; the process is gone within a second.
const DRAIN: Duration = Duration::from_millis(900);

fn main() -> io::Result<()> {
    let args = support::Args::from_command_line("127.0.0.1:8080");
    let runtime = args.runtime()?;
    runtime.block_on(serve(args.addr))?;
    // Closures of `/blocking` that still sleep are left behind: nobody waits for their answers any more.
    runtime.shutdown_background();
    Ok(())
}

async fn serve(addr: SocketAddr) -> io::Result<()> {
    // Before anybody can know the address, so that no signal comes too early.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;

    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    let connections = Arc::new(Connections::default());
    // A task of its own, so that with worker threads the sockets live there and not on the main thread.
    let acceptor = rt::spawn(accept(listener, Arc::clone(&connections)));
    println!("listening on http://{addr}");

    future::or(interrupt.recv(), terminate.recv()).await;
    acceptor.abort();
    connections.close();
    if rt::time::timeout(DRAIN, connections.all_gone())
        .await
        .is_err()
    {
        eprintln!("requests still open after {DRAIN:?} are dropped");
    }
    Ok(())
}

async fn accept(listener: TcpListener, connections: Arc<Connections>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let connection = connections.open();
                // Dropping the handle lets the task go on by itself.
                drop(rt::spawn(async move {
                    if let Err(error) = talk(stream, connection).await {
                        eprintln!("{peer}: {error}");
                    }
                }));
            }
            Err(error) => {
                eprintln!("accept: {error}");
                rt::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection until the peer or a signal ends it.
async fn talk(
    stream: TcpStream,
    mut connection: Connection,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let mut http = pin!(
        http1::Builder::new()
            .timer(rt::hyper::Timer::new())
            .serve_connection(stream, service_fn(answer))
    );
    let mut told = false;
    std::future::poll_fn(|cx| {
        if !told && connection.poll_closing(cx).is_ready() {
            told = true;
            http.as_mut().graceful_shutdown();
        }
        http.as_mut().poll(cx)
    })
    .await?;
    Ok(())
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match (request.method(), route(request.uri().path())) {
        (&Method::GET, Some(Route::Root)) => (StatusCode::OK, "hello from rt\n".to_owned()),
        (&Method::GET, Some(Route::Sleep(time))) => {
            rt::time::sleep(time).await;
            (StatusCode::OK, format!("slept for {time:?}\n"))
        }
        (&Method::GET, Some(Route::Blocking(time))) => {
            match rt::spawn_blocking(move || std::thread::sleep(time)).await {
                Ok(()) => (StatusCode::OK, format!("blocked a thread for {time:?}\n")),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        }
        _ => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

enum Route {
    Root,
    Sleep(Duration),
    Blocking(Duration),
}

fn route(path: &str) -> Option<Route> {
    let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
    if path == "/" {
        Some(Route::Root)
    } else if let Some(time) = path.strip_prefix("/sleep/") {
        millis(time).map(Route::Sleep)
    } else if let Some(time) = path.strip_prefix("/blocking/") {
        millis(time).map(Route::Blocking)
    } else {
        None
    }
}
