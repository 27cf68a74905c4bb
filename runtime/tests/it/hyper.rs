//! The feature `hyper`: server and client on one runtime, the executor, and the timer with its reset.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::{Executor as _, Sleep, Timer as _};
use hyper::service::service_fn;
use hyper::{Request, Response};
use rt::hyper::{Executor, Timer};
use rt::net::{TcpListener, TcpStream};
use rt::time::Instant;

use crate::support::Limit;

const SECOND: Duration = Duration::from_secs(1);

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    Ok(Response::new(Full::new(body)))
}

#[rt::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_and_server_talk() {
    let _limit = Limit::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = rt::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        hyper::server::conn::http1::Builder::new()
            .timer(Timer::new())
            .serve_connection(stream, service_fn(echo))
            .await
            .unwrap();
    });

    let stream = TcpStream::connect(addr).await.unwrap();
    let (mut send, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    let connection = rt::spawn(connection);
    // From less than one buffer to far more than a socket takes at once.
    for length in [0, 1, 10_000, 3_000_000] {
        let body = Bytes::from(vec![7; length]);
        let request = Request::post("/").body(Full::new(body.clone())).unwrap();
        let response = send.send_request(request).await.unwrap();
        let answer = response.into_body().collect().await.unwrap().to_bytes();
        assert!(
            answer == body,
            "{} bytes of {length} came back",
            answer.len()
        );
    }
    drop(send);
    connection.await.unwrap().unwrap();
    server.await.unwrap();
}

#[rt::test]
async fn executor_runs_tasks() {
    let _limit = Limit::new();
    let ran = Arc::new(AtomicBool::new(false));
    let (executor, in_task) = (Executor::new(), Arc::clone(&ran));
    executor.execute(async move { in_task.store(true, Relaxed) });
    // On one thread tasks run in the order in which they were started.
    rt::spawn(async {}).await.unwrap();
    assert!(ran.load(Relaxed));
}

#[rt::test(start_paused = true)]
async fn timer_follows_the_clock_of_the_runtime() {
    let _limit = Limit::new();
    let timer = Timer::new();
    let start = Instant::now();
    timer.sleep(60 * SECOND).await;
    assert!(start.elapsed() >= 60 * SECOND);
    timer.sleep_until(timer.now() + 60 * SECOND).await;
    assert!(start.elapsed() >= 120 * SECOND);
    assert!(timer.now().duration_since(start.into_std()) >= 120 * SECOND);
}

#[rt::test(start_paused = true)]
async fn timer_resets_in_both_directions() {
    let _limit = Limit::new();
    let timer = Timer::new();
    for (first, second) in [(10, 60), (60, 10)] {
        let start = Instant::now();
        let mut sleep = timer.sleep(first * SECOND);
        assert!(poll_once(&mut sleep).is_pending());
        timer.reset(&mut sleep, timer.now() + second * SECOND);
        sleep.await;
        let took = start.elapsed();
        assert!(
            took >= second * SECOND && took < (second + 1) * SECOND,
            "{first} {second}: {took:?}"
        );
    }
}

#[rt::test(start_paused = true)]
async fn timer_resets_a_sleep_of_another_timer() {
    struct Never;
    impl Future for Never {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }
    impl Sleep for Never {}

    let _limit = Limit::new();
    let timer = Timer::new();
    let mut sleep: Pin<Box<dyn Sleep>> = Box::pin(Never);
    timer.reset(&mut sleep, timer.now() + SECOND);
    sleep.await;
}

fn poll_once(future: &mut Pin<Box<dyn Sleep>>) -> Poll<()> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

#[rt::test]
async fn a_request_that_never_comes_is_given_up() {
    let _limit = Limit::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let never = service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())));
    let error = hyper::server::conn::http1::Builder::new()
        .timer(Timer::new())
        .header_read_timeout(Duration::from_millis(20))
        .serve_connection(stream, never)
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    drop(silent);
}
